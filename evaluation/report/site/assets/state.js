// What is shown, as the fragment of the address says it: a link keeps all of it.
eqforge.state = (() => {
  "use strict";

  function read() {
    const said = new URLSearchParams(location.hash.slice(1));
    const state = { facets: new Map(), least: new Map(), most: new Map(), q: "", sort: "", page: 1, id: "" };
    for (const [key, value] of said) {
      const [kind, title] = split(key);
      if (kind === "facet") state.facets.set(title, [...(state.facets.get(title) || []), value]);
      else if (kind === "min" && isNumber(value)) state.least.set(title, Number(value));
      else if (kind === "max" && isNumber(value)) state.most.set(title, Number(value));
      else if (key === "q" || key === "sort" || key === "id") state[key] = value;
      else if (key === "page") state.page = Math.max(1, Math.floor(Number(value)) || 1);
    }
    return state;
  }

  function split(key) {
    const place = key.indexOf(".");
    return place < 0 ? [key, ""] : [key.slice(0, place), key.slice(place + 1)];
  }

  function isNumber(text) {
    return text.trim() !== "" && Number.isFinite(Number(text));
  }

  function written(state) {
    const said = new URLSearchParams();
    for (const [title, values] of state.facets) for (const value of values) said.append(`facet.${title}`, value);
    for (const [title, value] of state.least) said.append(`min.${title}`, value);
    for (const [title, value] of state.most) said.append(`max.${title}`, value);
    if (state.q) said.append("q", state.q);
    if (state.sort) said.append("sort", state.sort);
    if (state.page > 1) said.append("page", state.page);
    if (state.id) said.append("id", state.id);
    return `#${said}`;
  }

  // Returns a changed copy of a state; what is not named stays.
  function changed(state, changes) {
    return { ...state, ...changes };
  }

  function go(state) {
    location.hash = written(state);
  }

  // Changes the address without a new entry in the history, as while somebody types.
  function replace(state) {
    history.replaceState(null, "", written(state));
    dispatchEvent(new HashChangeEvent("hashchange"));
  }

  return { read, written, changed, go, replace };
})();
