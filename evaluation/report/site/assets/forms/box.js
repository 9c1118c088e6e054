// A box is drawn with the pointer, or written as four numbers, and named.
eqforge.form = (() => {
  "use strict";
  const { make, text } = eqforge.item;
  const NAMES = ["left", "top", "width", "height"];
  const LEAST = 0.001; // of the picture, across and down
  let about = null;
  let box = null; // shares of the picture: x, y, width, height
  let drawn = null;
  let numbers = [];

  function show(item) {
    return [make("div", { class: "asked" }, ...item.texts.map(text))];
  }

  function controls(item, before, all) {
    about = all;
    box = before?.box || null;
    numbers = NAMES.map((name, place) => make("input", { type: "number", min: 0, max: 100, step: 0.1, "aria-label": `${name} in percent`, onchange: () => written(place) }));
    const shares = make("fieldset", { class: "shares" }, make("legend", {}, "Box in percent of the image: draw it, or enter the numbers"),
      ...NAMES.map((name, place) => make("label", {}, name, " ", numbers[place])));
    return [...eqforge.fields.make(item, about.fields, before), shares];
  }

  // Called when the picture stands in the page.
  function place(section) {
    const frame = section.querySelector(".frame");
    const image = frame.querySelector("img");
    drawn = make("span", { class: "box tone0", hidden: true });
    frame.append(drawn);
    draw();
    if (!image) return; // it cannot be shown: there is nothing to draw on, but to skip it
    image.draggable = false;
    frame.classList.add("to-draw");
    frame.addEventListener("pointerdown", (event) => start(event, frame));
  }

  function start(event, frame) {
    event.preventDefault();
    frame.setPointerCapture(event.pointerId);
    const from = at(event, frame);
    const move = (moved) => { box = between(from, at(moved, frame)); draw(); };
    const end = () => {
      frame.removeEventListener("pointermove", move);
      if (box && !isArea(box)) { box = null; draw(); }
    };
    frame.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) frame.addEventListener(name, end, { once: true });
  }

  function at(event, frame) {
    const area = frame.querySelector("img").getBoundingClientRect();
    const share = (value, start, size) => Math.max(0, Math.min(1, (value - start) / size));
    return [share(event.clientX, area.left, area.width), share(event.clientY, area.top, area.height)];
  }

  const between = ([a, b], [c, d]) => [Math.min(a, c), Math.min(b, d), Math.abs(a - c), Math.abs(b - d)];

  const isArea = (some) => some[2] >= LEAST && some[3] >= LEAST;

  function written(place) {
    box = box || [0, 0, 0, 0];
    box[place] = Math.max(0, Math.min(100, Number(numbers[place].value) || 0)) / 100;
    box = [box[0], box[1], Math.min(box[2], 1 - box[0]), Math.min(box[3], 1 - box[1])];
    draw();
  }

  function draw() {
    drawn.hidden = !box;
    numbers.forEach((each, place) => { each.value = box ? (100 * box[place]).toFixed(1) : ""; });
    if (box) NAMES.forEach((name, place) => { drawn.style[name] = `${100 * box[place]}%`; });
  }

  function given(missing) {
    if (!box || !isArea(box)) {
      missing("Draw a box.");
      return null;
    }
    const texts = eqforge.fields.given(about.answers, missing);
    return texts && { box, texts };
  }

  const draft = () => ({ box, texts: eqforge.fields.texts() });

  return { keys: {}, show, controls, place, given, draft, key: () => false };
})();
