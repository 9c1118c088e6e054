// Pictures side by side, blinking, with a swipe between them, or as their difference.
eqforge.compare = (() => {
  "use strict";
  const { make, text, picture, boxes } = eqforge.item;
  const BLINK_MS = 700; // less than three changes a second, whatever is shown
  const CALM_MS = 1600;
  const MODES = [["side", "Side by side"], ["blink", "Blink"], ["swipe", "Swipe"], ["diff", "Difference"]];
  const TOGGLES = [["boxes", "Boxes"], ["masks", "Masks"]];
  const shown = { mode: "side", boxes: true, masks: false };
  let timer = 0;
  let root = null;
  let keys = {};

  function frame(pane) {
    const image = picture(pane, pane.thumb && (pane.file || pane.thumb));
    const mask = pane.mask ? make("img", { class: "mask", src: pane.mask, alt: "" }) : null;
    return make("div", { class: "frame" }, image, mask, make("div", { class: "boxes" }, ...boxes(pane)));
  }

  function stage(item) {
    const panes = item.panes.map((pane, place) => make("figure", { class: `pane ${place % 2 ? "second" : "first"}` }, frame(pane),
      make("figcaption", {}, pane.name ? make("span", { class: "role" }, pane.name) : null, ...pane.texts.map(text))));
    if (!item.comparable) return make("div", { class: "stage", "data-mode": "side" }, ...panes);
    // Two by two, a place where they are laid one over the other stands before them.
    const both = panes.flatMap((pane, place) => (place % 2 || place + 1 === panes.length ? [pane] : [make("div", { class: "stack", hidden: true }), pane]));
    return make("div", { class: "stage", "data-mode": "side" }, ...both);
  }

  function tools(item) {
    const made = [];
    if (item.comparable) {
      const buttons = MODES.map(([mode, label]) => button(label, keys[mode], () => setMode(mode), { "data-mode": mode }));
      made.push(make("span", { role: "group", "aria-label": "Compare the images", class: "group" }, ...buttons));
    }
    const has = { boxes: item.panes.some((pane) => pane.boxes.length), masks: item.panes.some((pane) => pane.mask) };
    for (const [what, label] of TOGGLES) if (has[what]) made.push(button(label, keys[what], () => toggle(what), { "data-toggle": what }));
    return make("div", { class: "tools" }, ...made);
  }

  function button(label, key, onclick, more = {}) {
    return make("button", { type: "button", onclick, "aria-keyshortcuts": key, title: `${label} (${key})`, ...more }, label);
  }

  function swipe() {
    const range = make("input", { type: "range", min: 0, max: 100, value: 50, class: "swipe", "aria-label": "Visible part of the first image" });
    const move = () => root.style.setProperty("--swipe", `${range.value}%`);
    range.addEventListener("input", move);
    move();
    return range;
  }

  function apply() {
    const box = root.querySelector(".stage");
    if (!box) return;
    const mode = box.dataset.comparable === "yes" ? shown.mode : "side";
    clearInterval(timer);
    box.dataset.mode = mode;
    arrange(box, mode !== "side");
    box.dataset.turn = "0";
    box.classList.toggle("with-boxes", shown.boxes);
    box.classList.toggle("with-masks", shown.masks);
    for (const each of root.querySelectorAll("[data-mode]")) if (each !== box) each.setAttribute("aria-pressed", String(each.dataset.mode === mode));
    for (const each of root.querySelectorAll("[data-toggle]")) each.setAttribute("aria-pressed", String(shown[each.dataset.toggle]));
    const range = root.querySelector(".swipe");
    if (range) range.hidden = mode !== "swipe";
    if (mode === "blink") {
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      timer = setInterval(() => { box.dataset.turn = box.dataset.turn === "0" ? "1" : "0"; }, calm ? CALM_MS : BLINK_MS);
    }
  }

  // Lays pictures one over the other, two by two, or puts each back above its captions.
  function arrange(box, over) {
    const stacks = Array.from(box.querySelectorAll(".stack"));
    const figures = Array.from(box.querySelectorAll(".pane"));
    const frames = Array.from(box.querySelectorAll(".frame"));
    frames.forEach((each, place) => {
      const stack = stacks[Math.floor(place / 2)];
      if (over && stack) stack.append(each);
      else figures[place].prepend(each);
    });
    for (const stack of stacks) stack.hidden = !over;
  }

  function setMode(mode) {
    shown.mode = mode;
    apply();
  }

  function toggle(what) {
    shown[what] = !shown[what];
    apply();
  }

  // Returns the pictures of an item with what compares them; to be put into `element`, then applied.
  function view(element, item, named) {
    root = element;
    keys = named;
    const box = stage(item);
    box.dataset.comparable = item.comparable ? "yes" : "no";
    return [tools(item), ...(item.comparable ? [swipe()] : []), box];
  }

  // Boxes or masks are shown, or not, until somebody says otherwise.
  function start(what, isShown) {
    shown[what] = isShown;
  }

  function stop() {
    clearInterval(timer);
  }

  function key(pressed) {
    const found = Object.keys(keys).find((name) => keys[name] === pressed);
    if (!found) return false;
    if (found in shown) toggle(found);
    else setMode(found);
    return true;
  }

  return { view, apply, start, stop, key };
})();
