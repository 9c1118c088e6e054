// One item, large: its pictures side by side or one over the other, its texts, and all that is known.
eqforge.single = (() => {
  "use strict";
  const { make, text, picture, boxes, verdicts, why } = eqforge.item;
  const BLINK_MS = 700; // less than three changes a second, whatever is shown
  const CALM_MS = 1600;
  const MODES = [["side", "Side by side", "1"], ["blink", "Blink", "b"], ["swipe", "Swipe", "s"], ["diff", "Difference", "d"]];
  const shown = { mode: "side", boxes: true, masks: false, all: false };
  let timer = 0;
  let place = null;

  const root = () => document.getElementById("single");

  function frame(pane) {
    const image = picture(pane, pane.file || pane.thumb);
    const mask = pane.mask ? make("img", { class: "mask", src: pane.mask, alt: "" }) : null;
    return make("div", { class: "frame" }, image, mask, make("div", { class: "boxes" }, ...boxes(pane)));
  }

  function stage(item) {
    const panes = item.panes.map((pane) => make("figure", { class: "pane" }, frame(pane),
      make("figcaption", {}, pane.name ? make("span", { class: "role" }, pane.name) : null, ...pane.texts.map(text))));
    const stack = item.comparable ? make("div", { class: "stack", hidden: true }) : null;
    return make("div", { class: "stage", "data-mode": "side" }, stack, ...panes);
  }

  function tools(item) {
    const made = [];
    if (item.comparable) {
      const buttons = MODES.map(([mode, label, key]) => button(label, key, () => setMode(mode), { "data-mode": mode }));
      made.push(make("span", { role: "group", "aria-label": "Compare the pictures", class: "group" }, ...buttons));
    }
    if (item.panes.some((pane) => pane.boxes.length)) made.push(button("Boxes", "x", () => toggle("boxes"), { "data-toggle": "boxes" }));
    if (item.panes.some((pane) => pane.mask)) made.push(button("Masks", "m", () => toggle("masks"), { "data-toggle": "masks" }));
    return make("div", { class: "tools" }, ...made);
  }

  function button(label, key, onclick, more = {}) {
    return make("button", { type: "button", onclick, "aria-keyshortcuts": key, title: `${label} (${key})`, ...more }, label);
  }

  function swipe() {
    const range = make("input", { type: "range", min: 0, max: 100, value: 50, class: "swipe", "aria-label": "How much of the first picture is shown" });
    const move = () => root().style.setProperty("--swipe", `${range.value}%`);
    range.addEventListener("input", move);
    move();
    return range;
  }

  function apply() {
    const box = root().querySelector(".stage");
    if (!box) return;
    const mode = box.dataset.comparable === "yes" ? shown.mode : "side";
    clearInterval(timer);
    box.dataset.mode = mode;
    arrange(box, mode !== "side");
    box.dataset.turn = "0";
    box.classList.toggle("with-boxes", shown.boxes);
    box.classList.toggle("with-masks", shown.masks);
    for (const each of root().querySelectorAll("[data-mode]")) if (each !== box) each.setAttribute("aria-pressed", String(each.dataset.mode === mode));
    for (const each of root().querySelectorAll("[data-toggle]")) each.setAttribute("aria-pressed", String(shown[each.dataset.toggle]));
    const range = root().querySelector(".swipe");
    if (range) range.hidden = mode !== "swipe";
    if (mode === "blink") {
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      timer = setInterval(() => { box.dataset.turn = box.dataset.turn === "0" ? "1" : "0"; }, calm ? CALM_MS : BLINK_MS);
    }
  }

  // Lays the two pictures one over the other, or puts each back above its captions.
  function arrange(box, over) {
    const stack = box.querySelector(".stack");
    if (!stack) return;
    const figures = Array.from(box.querySelectorAll(".pane"));
    const frames = Array.from(box.querySelectorAll(".frame"));
    frames.forEach((each, place) => (over ? stack.append(each) : figures[place].prepend(each)));
    stack.hidden = !over;
  }

  function setMode(mode) {
    shown.mode = mode;
    apply();
  }

  function toggle(what) {
    shown[what] = !shown[what];
    apply();
  }

  // A word in quotes as a shell takes it: nothing in it means anything.
  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  function again(item, index) {
    if (!index.again) return null;
    const line = index.again + quoted(item.id);
    const copy = make("button", { type: "button", class: "quiet" }, "Copy");
    copy.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(line); copy.textContent = "Copied"; } catch { copy.textContent = "Mark it and copy"; }
    });
    return make("div", { class: "again" }, make("h3", {}, "Made again by"), make("pre", { tabindex: 0 }, line), copy);
  }

  function value(said) {
    const parsed = typeof said === "string" && /^\s*[[{]/.test(said) ? asJson(said) : said;
    if (parsed === null || parsed === undefined) return make("span", { class: "faint" }, "none");
    if (Array.isArray(parsed)) {
      if (!parsed.length) return make("span", { class: "faint" }, "none");
      if (parsed.every((each) => typeof each !== "object")) return make("span", {}, parsed.join(", "));
      return make("ol", { class: "nested" }, ...parsed.map((each) => make("li", {}, value(each))));
    }
    if (typeof parsed === "object") return fields(parsed);
    return make("span", { dir: "auto" }, String(parsed));
  }

  function asJson(said) {
    try { return JSON.parse(said); } catch { return said; }
  }

  function fields(row) {
    return make("table", { class: "fields" }, make("tbody", {}, ...Object.entries(row).map(([name, each]) => make(
      "tr", {}, make("th", { scope: "row" }, name), make("td", {}, value(each))))));
  }

  async function details(box) {
    if (!box.open || box.dataset.filled === "yes") return;
    box.dataset.filled = "yes";
    const rows = await eqforge.select.rows(place);
    box.append(...rows.map(([table, row]) => make("section", {}, make("h3", {}, table), fields(row))));
  }

  function everything() {
    const box = make("details", { class: "everything" }, make("summary", {}, "Everything that is known of it (i)"));
    box.open = shown.all;
    box.addEventListener("toggle", () => { shown.all = box.open; details(box); });
    if (shown.all) details(box);
    return box;
  }

  // Shows an item; `way` has links to the list and to the items before and after.
  function show(at, item, found, index, way) {
    place = at;
    const facts = make("ul", { class: "facts" }, ...item.facts.map(([name, said]) => make("li", {}, make("span", { class: "faint" }, `${name} `), said)));
    const box = stage(item);
    box.dataset.comparable = item.comparable ? "yes" : "no";
    const step = (label, link, key) => (link ? make("a", { href: link, class: "button", "aria-keyshortcuts": key }, label) : make("span", { class: "button off" }, label));
    root().replaceChildren(
      make("nav", { class: "way", "aria-label": "Way through the list" },
        make("a", { href: way.list, class: "button" }, "Back to the list"), step("Previous", way.before, "k"), step("Next", way.after, "j"),
        make("span", { class: "faint" }, way.position)),
      make("h2", { class: "id", tabindex: -1 }, item.id), facts,
      ...[verdicts(found), why(item)].filter(Boolean), tools(item),
      ...(item.comparable ? [swipe()] : []), box, ...item.texts.map(text),
      ...[again(item, index), everything()].filter(Boolean));
    apply();
  }

  function hide() {
    clearInterval(timer);
    root().replaceChildren();
  }

  function key(pressed) {
    const mode = MODES.find((each) => each[2] === pressed);
    if (mode) setMode(mode[0]);
    else if (pressed === "x") toggle("boxes");
    else if (pressed === "m") toggle("masks");
    else if (pressed === "i") root().querySelector(".everything summary")?.click();
    else return false;
    return true;
  }

  return { show, hide, key };
})();
