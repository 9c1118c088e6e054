// One item, large: its pictures, its texts, and all details.
eqforge.single = (() => {
  "use strict";
  const { make, text, verdicts, why } = eqforge.item;
  const KEYS = { side: "a", blink: "b", swipe: "s", diff: "c", boxes: "x", masks: "m" };
  let isOpen = false; // whether the details of each item are open
  let place = null;

  const root = () => document.getElementById("single");

  // A word in quotes as a shell takes it: nothing in it means anything.
  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  function again(item, index) {
    if (!index.again) return null;
    const line = index.again + quoted(item.id);
    const copy = make("button", { type: "button", class: "quiet" }, "Copy");
    copy.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(line); copy.textContent = "Copied"; } catch { copy.textContent = "Select and copy it"; }
    });
    return make("div", { class: "again" }, make("h3", {}, "Reproduce"), make("pre", { tabindex: 0 }, line), copy);
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

  // Whole numbers that JavaScript would round are left as they stand in the text.
  const LONG = /(?<![\w.])\d{16,}(?![\w.])/;

  function asJson(said) {
    if (LONG.test(said)) return said;
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

  async function toggle(box) {
    box.open = !box.open;
    await details(box);
    if (box.open) box.scrollIntoView();
  }

  function everything() {
    const box = make("details", { class: "everything" }, make("summary", {}, "Details (i)"));
    box.open = isOpen;
    box.addEventListener("toggle", () => { isOpen = box.open; details(box); });
    if (isOpen) details(box);
    return box;
  }

  // Shows an item; `way` has links to the list and to the items before and after.
  function show(at, item, found, index, way) {
    place = at;
    const facts = make("ul", { class: "facts" }, ...item.facts.map(([name, said]) => make("li", {}, make("span", { class: "faint" }, `${name} `), said)));
    const step = (label, link, key) => (link ? make("a", { href: link, class: "button", "aria-keyshortcuts": key }, label) : make("span", { class: "button off" }, label));
    root().replaceChildren(
      make("nav", { class: "way", "aria-label": "List navigation" },
        make("a", { href: way.list, class: "button" }, "Back to the list"), step("Previous", way.before, "k"), step("Next", way.after, "j"),
        make("span", { class: "faint" }, way.position)),
      make("h2", { class: "id", tabindex: -1 }, item.id), facts,
      ...[verdicts(found), why(item)].filter(Boolean), ...eqforge.compare.view(root(), item, KEYS), ...item.texts.map(text),
      ...[again(item, index), everything()].filter(Boolean));
    eqforge.compare.apply();
  }

  function hide() {
    eqforge.compare.stop();
    root().replaceChildren();
  }

  function key(pressed) {
    if (eqforge.compare.key(pressed)) return true;
    if (pressed !== "i") return false;
    const box = root().querySelector(".everything");
    if (box) toggle(box);
    return true;
  }

  return { show, hide, key };
})();
