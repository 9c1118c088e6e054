// One task after the other: look, answer with one key, go on.
(() => {
  "use strict";
  const KEYS = { side: "a", blink: "b", swipe: "s", diff: "c", boxes: "x", masks: "m" };
  const LONGEST_S = 300; // whoever takes longer has left the room
  const reviewer = document.currentScript.dataset.reviewer;
  const { votes, compare } = eqforge;
  const { text } = eqforge.item;
  const by = (id) => document.getElementById(id);
  let about = null;
  let number = 0;
  let ready = false; // whether the task stands before the reviewer; nothing else can be answered
  let since = 0;
  let turn = 0;

  async function show(task) {
    const mine = ++turn;
    number = task;
    wait(true);
    tell();
    reasons(false);
    by("note").value = votes.noteOf(task);
    if (!task) return end();
    by("vote").hidden = false;
    const items = await eqforge.load(`${reviewer}/items/${Math.floor((task - 1) / about.chunk)}`);
    if (mine !== turn) return;
    const item = items[(task - 1) % about.chunk];
    by("single").replaceChildren(...compare.view(by("single"), item, KEYS), ...item.texts.map(text));
    compare.apply();
    await Promise.all(Array.from(by("single").querySelectorAll("img"), (image) => image.decode().catch(() => {})));
    if (mine !== turn) return;
    since = performance.now();
    wait(false);
  }

  function wait(waiting) {
    ready = !waiting;
    by("single").setAttribute("aria-busy", String(waiting));
  }

  function trouble(error) {
    by("count").textContent = `${error.message}: was the whole folder copied?`;
  }

  function tell() {
    const total = about.tasks.length;
    const minutes = Math.ceil((total - votes.size) * about.seconds / 60);
    by("progress").max = total;
    by("progress").value = votes.size;
    by("count").textContent = votes.size === total ? `all ${total} answered` : `${votes.size} of ${total} answered, about ${minutes} min left`;
    by("undo").disabled = !votes.size;
    warn();
  }

  function warn() {
    by("trouble").hidden = votes.isKept;
    by("trouble").textContent = votes.isKept ? "" : "Your browser does not keep the votes: save them as a file before you close the page.";
  }

  function end() {
    compare.stop();
    by("single").setAttribute("aria-busy", "false");
    by("vote").hidden = true;
    by("single").replaceChildren(eqforge.item.make("p", { class: "done" }, "That was all. Save your votes as a file and send it to whoever asked you."));
    by("save").focus();
  }

  function reasons(open) {
    by("reasons").hidden = !open;
    document.querySelector("[data-answer=drop]").setAttribute("aria-expanded", String(open));
  }

  function answer(said) {
    if (!ready) return;
    if (said === "drop" && about.reasons.length && by("reasons").hidden) {
      reasons(true);
      return;
    }
    vote(said, "");
  }

  function vote(said, reason) {
    if (!ready) return;
    const seconds = Math.min(LONGEST_S, Math.round((performance.now() - since) / 100) / 10);
    votes.set(number, said, reason, by("note").value.trim(), seconds);
    show(votes.next()).catch(trouble);
  }

  function undo() {
    const last = votes.last();
    if (!last) return;
    votes.remove(last);
    show(last).catch(trouble);
  }

  function note() {
    votes.write(number, by("note").value);
    warn();
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === by("note")) {
      if (event.key === "Enter" || event.key === "Escape") by("note").blur();
      if (event.key === "Enter") event.preventDefault();
      return;
    }
    if (event.repeat) { // a key that is held is one answer
      if (event.target.matches("button")) event.preventDefault();
      return;
    }
    const open = !by("reasons").hidden;
    const place = Number(event.key);
    const acts = {
      k: () => answer("keep"), d: () => answer("drop"), u: () => answer("unsure"), z: undo, n: () => by("note").focus(),
      ...(open && !event.target.matches("button") ? { Enter: () => vote("drop", "") } : {}),
      ...(open ? { Escape: () => reasons(false) } : {}),
    };
    if (open && place >= 1 && place <= about.reasons.length) vote("drop", about.reasons[place - 1]);
    else if (acts[event.key]) acts[event.key]();
    else if (!compare.key(event.key)) return;
    event.preventDefault();
  }

  async function start() {
    try {
      about = await eqforge.load(`${reviewer}/tasks`);
      votes.open(about);
      await show(votes.next());
    } catch (error) {
      trouble(error);
    }
  }

  for (const button of document.querySelectorAll("[data-answer]")) button.addEventListener("click", () => answer(button.dataset.answer));
  for (const button of document.querySelectorAll("[data-reason]")) button.addEventListener("click", () => vote("drop", button.dataset.reason));
  by("undo").addEventListener("click", undo);
  by("note").addEventListener("input", note);
  by("save").addEventListener("click", votes.save);
  by("vote").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("keydown", key);
  start();
})();
