// The parts of an item: texts with what differs marked, pictures with boxes, verdicts of models.
// Everything comes from data and is set as text, never as markup.
eqforge.item = (() => {
  "use strict";

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "class") element.className = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  function text(said) {
    const parts = said.parts.map((part) => (typeof part === "string" ? part : make("mark", {}, part[0])));
    const role = said.role ? make("span", { class: "role" }, said.role) : null;
    return make("p", { class: `text ${said.tone}` }, role, role ? " " : null, make("span", { dir: "auto" }, ...parts));
  }

  function picture(pane, path) {
    if (!path) return make("span", { class: "none" }, pane.width ? "cannot be shown" : "no image");
    const image = make("img", { src: path, alt: pane.alt, decoding: "async" });
    if (pane.width) {
      image.width = pane.width;
      image.height = pane.height;
    }
    return image;
  }

  function boxes(pane) {
    return pane.boxes.map((box) => {
      const drawn = make("span", { class: `box tone${box.tone % 3} ${box.y < 0.1 ? "high" : ""}` }, make("span", {}, box.label));
      const share = (value) => `${100 * value}%`;
      Object.assign(drawn.style, {
        left: share(box.x), top: share(box.y), width: share(box.width), height: share(box.height),
      });
      return drawn;
    });
  }

  function verdicts(found) {
    if (!found.length) return null;
    return make("ul", { class: "verdicts" }, ...found.map(({ name, verdict, margin, share }) => make(
      "li", { class: verdict.replace(" ", "-") },
      make("b", {}, verdict), ` ${name}`, Number.isNaN(margin) ? "" : ` ${share ? `${Math.round(100 * margin)}%` : signed(margin)}`,
    )));
  }

  const signed = (value) => `${value > 0 ? "+" : ""}${number(value)}`;

  function number(value) {
    if (Number.isInteger(value)) return value.toLocaleString("en");
    return Number(value.toPrecision(4)).toString();
  }

  function why(item) {
    if (!item.why) return null;
    const { stage, reason, meaning, detail, value, threshold } = item.why;
    const measured = value === null ? null : make("p", { class: "measured" },
      `${detail || "value"} `, make("b", {}, number(value)),
      threshold === null ? "" : ", limit ", threshold === null ? null : make("b", {}, number(threshold)));
    return make("div", { class: "why" },
      make("p", {}, make("b", {}, reason), make("span", { class: "faint" }, ` ${stage}`)),
      meaning ? make("p", { class: "faint" }, meaning) : null, measured);
  }

  // The id without the name of its dataset.
  function short({ id, facts }) {
    const [, name] = facts.find(([title]) => title === "dataset") || [];
    return name && id.startsWith(`${name}/`) ? id.slice(name.length + 1) : id;
  }

  function card(item, found, link) {
    const thumbs = item.panes.slice(0, 4).map((pane) => picture(pane, pane.thumb));
    const more = item.panes.length > 4 ? make("span", { class: "none" }, `+ ${item.panes.length - 4}`) : null;
    const cover = make("a", { class: "cover", href: link },
      thumbs.length ? make("span", { class: "thumbs" }, ...thumbs, more) : null,
      make("span", { class: "id", title: item.id }, short(item)));
    const own = item.panes.flatMap((pane) => pane.texts.slice(0, 2));
    const shown = [...own, ...item.texts].slice(0, 6);
    const left = own.length + item.texts.length - shown.length;
    return make("li", { class: "card" }, cover, verdicts(found), why(item), ...shown.map(text),
      left > 0 ? make("p", { class: "faint" }, `and ${left} more texts`) : null);
  }

  return { make, text, picture, boxes, verdicts, why, number, card };
})();
