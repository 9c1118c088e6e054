// Pictures put in order for a text, one after the other, the best first.
eqforge.form = (() => {
  "use strict";
  const { make, text, picture } = eqforge.item;
  let item = null;
  let order = []; // places of the pictures that were chosen
  let buttons = [];

  function show(shown, before) {
    item = shown;
    order = (before?.order || []).map((image) => item.images.indexOf(image));
    buttons = item.panes.map((pane, place) => make("button", { type: "button", class: "choice", "aria-label": pane.name, onclick: () => choose(place) },
      picture(pane, pane.thumb), make("b", { class: "place" })));
    draw();
    return [make("div", { class: "asked query" }, ...item.texts.map(text)), make("div", { class: "choices-of-pictures", role: "group", "aria-label": "Pictures" }, ...buttons)];
  }

  function choose(place) {
    if (order.includes(place)) order = order.filter((each) => each !== place);
    else {
      order.push(place);
      if (order.length === item.panes.length - 1) order.push(item.panes.findIndex((_, each) => !order.includes(each)));
    }
    draw();
  }

  function draw() {
    buttons.forEach((button, place) => {
      const at = order.indexOf(place);
      button.setAttribute("aria-pressed", String(at >= 0));
      button.querySelector(".place").textContent = at >= 0 ? String(at + 1) : "";
      button.setAttribute("aria-label", at >= 0 ? `${item.panes[place].name}, number ${at + 1}` : item.panes[place].name);
    });
  }

  function given(missing) {
    if (order.length < item.panes.length) {
      const left = item.panes.length - order.length;
      missing(left > 1 ? `Select the other ${left} images.` : "Select the last image.");
      return null;
    }
    return draft();
  }

  const draft = () => ({ order: order.map((place) => item.images[place]) });

  function key(event) {
    const at = buttons.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) buttons[(Math.max(at, step < 0 ? 0 : -1) + step + buttons.length) % buttons.length].focus();
    else if (event.key === "Backspace") { order.pop(); draw(); }
    else return false;
    return true;
  }

  return { keys: {}, isWhole: true, show, controls: () => [], given, draft, key };
})();
