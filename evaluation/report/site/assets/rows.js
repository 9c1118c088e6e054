// The list of a table's items and the way through it.
(() => {
  "use strict";
  const PAGE = 24;
  const table = document.currentScript.dataset.table;
  const { state, select, single, filters, item: parts } = eqforge;
  const by = (id) => document.getElementById(id);
  let order = new Uint32Array();
  let shownOrder = null;
  let turn = 0;
  let left = ""; // the item from which the way leads back to the list

  const pages = () => Math.max(1, Math.ceil(order.length / PAGE));

  // What decides the order; with the rest of the state the list is only turned to another page.
  const orderOf = (now) => state.written(state.changed(now, { page: 1, id: "" }));

  async function refresh() {
    const now = state.read();
    const mine = ++turn;
    if (orderOf(now) !== shownOrder) {
      by("count").textContent = "…";
      const found = await select.chosen(now);
      if (mine !== turn) return;
      order = found;
      shownOrder = orderOf(now);
      filters.draw(by("filters"), select.index);
    }
    filters.chosen(by("chosen"));
    by("sort").value = now.sort;
    if (document.activeElement !== by("search")) by("search").value = now.q;
    by("count").textContent = counted();
    if (now.id) await showSingle(now, mine);
    else await showList(now, mine);
  }

  function counted() {
    const all = select.index.rows.toLocaleString("en");
    const some = order.length.toLocaleString("en");
    const thing = select.index.rows === 1 ? one(select.index.thing).toLowerCase() : select.index.thing;
    return order.length === select.index.rows ? `${all} ${thing}` : `${some} of ${all} ${thing}`;
  }

  async function showList(now, mine) {
    const page = Math.min(now.page, pages());
    const places = Array.from(order.subarray((page - 1) * PAGE, page * PAGE));
    const cards = await Promise.all(places.map(async (place) => {
      const [item, found] = await Promise.all([select.item(place), select.verdicts(place)]);
      return parts.card(item, found, state.written(state.changed(now, { page, id: item.id })));
    }));
    if (mine !== turn) return;
    single.hide();
    by("single").hidden = true;
    by("list").hidden = false;
    // Two changes of the address may both draw the last one: whoever was on a card stays there.
    const focused = left || focusedCard();
    by("grid").replaceChildren(...cards);
    by("grid").setAttribute("start", (page - 1) * PAGE + 1);
    drawPager(now, page);
    if (focused) focusCard(focused);
    left = "";
  }

  function focusedCard() {
    const cover = document.activeElement?.closest("#grid .cover");
    return cover ? cover.querySelector(".id").title : "";
  }

  function focusCard(id) {
    const links = Array.from(by("grid").querySelectorAll(".cover"));
    links.find((each) => each.querySelector(".id").title === id)?.focus();
  }

  function drawPager(now, page) {
    const link = (label, to) => (to >= 1 && to <= pages() && to !== page
      ? parts.make("a", { href: state.written(state.changed(now, { page: to })), class: "button" }, label)
      : parts.make("span", { class: "button off" }, label));
    by("pages").hidden = pages() === 1;
    by("pages").replaceChildren(link("First", 1), link("Previous", page - 1),
      parts.make("span", {}, `page ${page.toLocaleString("en")} of ${pages().toLocaleString("en")}`), link("Next", page + 1), link("Last", pages()));
  }

  // "pairs" is "Pair", "queries" is "Query".
  const one = (things) => things[0].toUpperCase() + things.slice(1).replace(/ies$/, "y").replace(/s$/, "");

  async function showSingle(now, mine) {
    const place = await select.find(now.id);
    if (mine !== turn) return;
    if (place < 0) {
      by("count").textContent = `This list has no item ${now.id}.`;
      await showList(state.changed(now, { id: "" }), mine);
      return;
    }
    const at = order.indexOf(place);
    const near = async (step) => {
      const other = at < 0 ? undefined : order[at + step];
      if (other === undefined) return null;
      const { id } = await select.item(other);
      return state.written(state.changed(now, { id, page: Math.floor((at + step) / PAGE) + 1 }));
    };
    const [item, found, before, after] = await Promise.all([select.item(place), select.verdicts(place), near(-1), near(1)]);
    if (mine !== turn) return;
    const page = at < 0 ? now.page : Math.floor(at / PAGE) + 1;
    const position = at < 0 ? "not in the current list" : `${one(select.index.thing)} ${(at + 1).toLocaleString("en")} of ${order.length.toLocaleString("en")}`;
    left = now.id;
    by("list").hidden = true;
    by("single").hidden = false;
    single.show(place, item, found, select.index, { list: state.written(state.changed(now, { id: "", page })), before, after, position });
    scrollTo(0, 0);
  }

  function panel(button, id) {
    const open = by(id).hidden;
    by(id).hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (open) by(id).querySelector("input, summary")?.focus();
  }

  function step(forward) {
    const label = forward ? "Next" : "Previous";
    const links = document.querySelectorAll(by("single").hidden ? "#pages a" : "#single .way a");
    const link = Array.from(links).find((each) => each.textContent === label);
    if (link) location.hash = link.getAttribute("href");
  }

  function key(event) {
    const typing = event.target.matches("input:not([type=checkbox], [type=range]), select, textarea");
    if (event.key === "Escape") return escape(event.target);
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const isRange = event.target.matches("[type=range]");
    const acts = {
      "/": () => by("search").focus(), "?": () => panel(by("help-button"), "help"), f: () => panel(by("filters-button"), "filters"),
      j: () => step(true), k: () => step(false),
      ...(isRange ? {} : { ArrowRight: () => step(true), ArrowLeft: () => step(false) }),
    };
    if (acts[event.key]) acts[event.key]();
    else if (by("single").hidden || !single.key(event.key)) return;
    event.preventDefault();
  }

  function escape(target) {
    const now = state.read();
    if (target.matches("input, select")) target.blur();
    else if (now.id) {
      left = now.id; // which may be on its way still
      state.go(state.changed(now, { id: "" }));
    }
  }

  async function start() {
    try {
      const index = await select.open(table);
      filters.sorts(by("sort"), index);
      await filters.models(by("models"), index);
      await refresh();
    } catch (error) {
      by("count").textContent = `${error.message}: check that you copied the whole folder of the report.`;
    }
  }

  let typed = 0;
  by("search").addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => state.replace(state.changed(state.read(), { q: by("search").value.trim(), page: 1, id: "" })), 250);
  });
  by("tools").addEventListener("submit", (event) => event.preventDefault());
  by("sort").addEventListener("change", () => state.go(state.changed(state.read(), { sort: by("sort").value, page: 1, id: "" })));
  by("filters-button").addEventListener("click", (event) => panel(event.currentTarget, "filters"));
  by("help-button").addEventListener("click", (event) => panel(event.currentTarget, "help"));
  addEventListener("hashchange", refresh);
  addEventListener("keydown", key);
  start();
})();
