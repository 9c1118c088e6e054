// A rank for each caption of each picture, 1 for the best; captions may share a rank.
eqforge.form = (() => {
  "use strict";
  const { make } = eqforge.item;
  let item = null;
  let ranks = []; // [pictures][captions], as they are shown; 0 for none yet
  let here = 0; // the caption that a digit is for, counted through all pictures
  let lines = [];

  function controls(shown, before) {
    item = shown;
    const captions = item.texts.length;
    ranks = item.places.map((place) => item.ranked.map((own) => before?.ranks?.[place]?.[own] || 0));
    lines = [];
    const sets = item.panes.map((pane, row) => make("fieldset", { class: "ranks" },
      make("legend", {}, item.panes.length > 1 ? `How well each fits ${pane.name}` : "How well each caption fits"),
      ...item.texts.map((said, column) => line(row, column, captions, said))));
    move(0);
    return sets;
  }

  function line(row, column, captions, said) {
    const name = `rank-${row}-${column}`;
    const words = said.parts.map((part) => (typeof part === "string" ? part : part[0])).join("");
    const choices = Array.from({ length: captions }, (_, place) => {
      const input = make("input", { type: "radio", name, value: place + 1, "aria-label": `rank ${place + 1}: ${words}`, onchange: () => { here = row * captions + column; set(place + 1, false); } });
      input.checked = ranks[row][column] === place + 1;
      return make("label", {}, input, String(place + 1));
    });
    const made = make("div", { class: "rank", role: "radiogroup", "aria-label": words }, make("span", { dir: "auto" }, words), make("span", { class: "choices" }, ...choices));
    lines.push(made);
    return made;
  }

  function move(to) {
    here = Math.max(0, Math.min(lines.length - 1, to));
    lines.forEach((each, place) => each.classList.toggle("here", place === here));
  }

  function set(rank, forward = true) {
    const captions = item.texts.length;
    ranks[Math.floor(here / captions)][here % captions] = rank;
    lines[here].querySelector(`[value="${rank}"]`).checked = true;
    move(here + (forward ? 1 : 0));
  }

  function given(missing) {
    if (ranks.some((own) => own.includes(0))) {
      missing("Give each caption a rank.");
      return null;
    }
    return draft();
  }

  function draft() {
    const sorted = item.places.map(() => []);
    item.places.forEach((place, row) => item.ranked.forEach((own, column) => { sorted[place][own] = ranks[row][column]; }));
    return { ranks: sorted };
  }

  function key(event) {
    const rank = Number(event.key);
    if (rank >= 1 && rank <= item.texts.length) set(rank);
    else if (event.key === "ArrowDown" && !event.target.matches("input")) move(here + 1);
    else if (event.key === "ArrowUp" && !event.target.matches("input")) move(here - 1);
    else return false;
    return true;
  }

  return { keys: { side: "a", blink: "b", swipe: "s", diff: "c" }, show: () => [], controls, given, draft, key };
})();
