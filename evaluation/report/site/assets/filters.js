// The panels by which items are chosen: values, numbers, and what models answered.
eqforge.filters = (() => {
  "use strict";
  const { make, number } = eqforge.item;
  const { state } = eqforge;

  function toggled(now, title, value) {
    const facets = new Map(now.facets);
    const values = facets.get(title) || [];
    const left = values.includes(value) ? values.filter((each) => each !== value) : [...values, value];
    if (left.length) facets.set(title, left);
    else facets.delete(title);
    return state.changed(now, { facets, page: 1, id: "" });
  }

  function limited(now, side, title, said) {
    const limits = new Map(now[side]);
    if (said === "" || !Number.isFinite(Number(said))) limits.delete(title);
    else limits.set(title, Number(said));
    return state.changed(now, { [side]: limits, page: 1, id: "" });
  }

  function facet(now, each) {
    const values = now.facets.get(each.title) || [];
    const boxes = each.values.map((value, place) => {
      const box = make("input", { type: "checkbox", "data-key": `${each.title}\n${value}`, onchange: () => state.go(toggled(state.read(), each.title, value)) });
      box.checked = values.includes(value);
      return make("label", {}, box, make("span", { dir: "auto" }, value), make("span", { class: "faint" }, each.counts[place].toLocaleString("en")));
    });
    const details = make("details", { class: "facet" }, make("summary", {}, each.title.replaceAll("_", " "), values.length ? make("b", {}, ` ${values.length}`) : null), make("div", { class: "values" }, ...boxes));
    details.open = values.length > 0 || each.values.length <= 8;
    return details;
  }

  function limits(now, each) {
    const title = eqforge.select.nameOf(each);
    const field = (side, word) => make("input", {
      type: "number", step: "any", "aria-label": `${title}: ${word}`, "data-key": `${side}\n${title}`, placeholder: number(side === "least" ? each.least : each.most),
      value: now[side].get(title) ?? "", onchange: (event) => state.go(limited(state.read(), side, title, event.target.value)),
    });
    return make("div", { class: "limits" }, make("span", { title }, labelOf(each)), field("least", "at least"), make("span", { class: "faint" }, "to"), field("most", "at most"));
  }

  function draw(root, index) {
    const now = state.read();
    const focused = root.contains(document.activeElement) ? document.activeElement.dataset.key : "";
    const models = new Set(index.models.map((model) => model.facet));
    root.replaceChildren(
      make("div", { class: "columns" }, ...index.facets.filter((_, place) => !models.has(place)).map((each) => facet(now, each))),
      make("div", { class: "columns" }, ...index.numbers.map((each) => limits(now, each))));
    // Whoever goes through the filters by keyboard stays where they were.
    if (focused) Array.from(root.querySelectorAll("[data-key]")).find((each) => each.dataset.key === focused)?.focus();
  }

  function chosen(root) {
    const now = state.read();
    const chip = (label, next) => make("button", { type: "button", class: "chip", onclick: () => state.go(next), "aria-label": `Without ${label}` }, label, " ×");
    const chips = [];
    for (const [title, values] of now.facets) for (const value of values) chips.push(chip(`${title}: ${value}`, toggled(now, title, value)));
    for (const [title, value] of now.least) chips.push(chip(`${title} ≥ ${value}`, limited(now, "least", title, "")));
    for (const [title, value] of now.most) chips.push(chip(`${title} ≤ ${value}`, limited(now, "most", title, "")));
    if (now.q) chips.push(chip(`“${now.q}”`, state.changed(now, { q: "", page: 1, id: "" })));
    if (chips.length > 1) chips.push(make("button", { type: "button", class: "quiet", onclick: () => state.go(state.changed(now, { facets: new Map(), least: new Map(), most: new Map(), q: "", page: 1, id: "" })) }, "Clear all"));
    root.replaceChildren(...chips);
  }

  const labelOf = ({ group, label }) => (group && group !== "scores" ? `${group}: ${label}` : label);

  const marginOf = (index, model) => eqforge.select.nameOf(index.numbers[model.number]);

  function sorts(select, index) {
    const option = (value, label) => make("option", { value }, label);
    const options = [option("", "id")];
    for (const model of index.models) options.push(option(marginOf(index, model), `worst first: ${model.name}`));
    for (const each of index.numbers) {
      const title = eqforge.select.nameOf(each);
      options.push(option(title, `${labelOf(each)} ↑`), option(`-${title}`, `${labelOf(each)} ↓`));
    }
    select.replaceChildren(...options);
  }

  // The verdicts of models, each a link; of two models how often each pair of verdicts is given.
  async function models(root, index) {
    root.hidden = !index.models.length;
    if (!index.models.length) return;
    const parts = index.models.map((model) => {
      const { values, counts } = index.facets[model.facet];
      const links = values.map((value, place) => make("a", { href: only([[titleOf(index, model), value]]), class: `verdict ${value.replace(" ", "-")}` }, `${value} ${counts[place].toLocaleString("en")}`));
      const worst = make("a", { href: state.written({ ...empty(), sort: marginOf(index, model) }) }, "worst first");
      return make("p", { class: "model" }, make("b", {}, model.name), ...links, worst);
    });
    if (index.models.length === 2) parts.push(await crossed(index));
    root.replaceChildren(...parts);
  }

  const empty = () => ({ facets: new Map(), least: new Map(), most: new Map(), q: "", sort: "", page: 1, id: "" });

  const titleOf = (index, model) => index.facets[model.facet].title;

  function only(values) {
    const facets = new Map(values.map(([title, value]) => [title, [value]]));
    return state.written({ ...empty(), facets });
  }

  async function crossed(index) {
    const [a, b] = index.models;
    const [mine, theirs] = await Promise.all([a, b].map((model) => eqforge.select.facet(model.facet)));
    const names = [index.facets[a.facet].values, index.facets[b.facet].values];
    const counts = names[0].map(() => names[1].map(() => 0));
    for (let item = 0; item < index.rows; item++) counts[mine.flat[item]][theirs.flat[item]] += 1;
    const head = make("tr", {}, make("td", {}, ""), ...names[1].map((name) => make("th", { scope: "col" }, `${b.name} ${name}`)));
    const rows = names[0].map((name, i) => make("tr", {}, make("th", { scope: "row" }, `${a.name} ${name}`),
      ...names[1].map((other, j) => make("td", { class: "number" }, make("a", { href: only([[titleOf(index, a), name], [titleOf(index, b), other]]) }, counts[i][j].toLocaleString("en"))))));
    const table = make("table", { class: "crossed" }, make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Verdicts of both models" }, table);
  }

  return { draw, chosen, sorts, models };
})();
