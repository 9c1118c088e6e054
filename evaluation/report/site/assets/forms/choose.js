// A choice for each text of each picture, by its first letter or digit: a rank, or true, false, unsure.
eqforge.form = (() => {
  "use strict";
  const { make } = eqforge.item;
  let item = null;
  let about = null;
  let ranks = []; // [pictures][texts], as they are shown: the place of the choice, from 1; 0 for none yet
  let here = 0; // the text that a key is for, counted through all pictures
  let lines = [];

  function controls(shown, before, all) {
    item = shown;
    about = all;
    ranks = item.asked.map((_, row) => item.texts.map((_, column) => before?.ranks?.[row]?.[column] || 0));
    lines = [];
    const sets = item.asked.map((name, row) => make("fieldset", { class: "ranks" },
      make("legend", {}, `${about.legend} ${name}`),
      ...item.texts.map((said, column) => line(row, column, said))));
    move(0);
    return sets;
  }

  function line(row, column, said) {
    const name = `rank-${row}-${column}`;
    const words = said.parts.map((part) => (typeof part === "string" ? part : part[0])).join("");
    const choices = item.choices.map((choice, place) => {
      const input = make("input", { type: "radio", name, value: place + 1, "aria-label": `${choice}: ${words}`, onchange: () => { here = row * item.texts.length + column; set(place + 1, false); } });
      input.checked = ranks[row][column] === place + 1;
      return make("label", {}, input, choice);
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
    const texts = item.texts.length;
    ranks[Math.floor(here / texts)][here % texts] = rank;
    lines[here].querySelector(`[value="${rank}"]`).checked = true;
    move(here + (forward ? 1 : 0));
  }

  function given(missing) {
    if (!ranks.some((own) => own.includes(0))) return draft();
    missing(about.missing);
    return null;
  }

  const draft = () => ({ ranks });

  function key(event) {
    const place = item.choices.findIndex((choice) => choice.startsWith(event.key));
    if (place >= 0) set(place + 1);
    else if (event.key === "ArrowDown" && !event.target.matches("input")) move(here + 1);
    else if (event.key === "ArrowUp" && !event.target.matches("input")) move(here - 1);
    else return false;
    return true;
  }

  return { keys: { side: "a", blink: "b", swipe: "s", diff: "c" }, show: () => [], controls, given, draft, key };
})();
