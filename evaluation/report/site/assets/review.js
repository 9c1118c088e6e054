// One task after the other: look, answer, go on. How an item is answered is in a script of `forms`.
(() => {
  "use strict";
  const LONGEST_S = 300; // whoever takes longer has left the room
  const { reviewer, refusal } = document.currentScript.dataset;
  const { votes, compare, form } = eqforge;
  const by = (id) => document.getElementById(id);
  const longest = () => Math.max(LONGEST_S, 3 * about.seconds);
  let about = null;
  let number = 0;
  let ready = false; // whether the task stands before the reviewer; nothing else can be answered
  let since = 0;
  let turn = 0;

  async function show(task) {
    const before = votes.draftOf(task);
    const mine = ++turn;
    number = task;
    wait(true);
    tell();
    reasons(false);
    missing("");
    by("note").value = before.note;
    if (!task) return end();
    by("vote").hidden = false;
    const items = await eqforge.load(`${reviewer}/items/${Math.floor((task - 1) / about.chunk)}`);
    if (mine !== turn) return;
    draw(items[(task - 1) % about.chunk], before);
    await Promise.all(Array.from(by("single").querySelectorAll("img"), (image) => image.decode().catch(() => {})));
    if (mine !== turn) return;
    since = performance.now();
    wait(false);
    form.focus?.();
  }

  function draw(item, before) {
    const view = form.isWhole ? [] : compare.view(by("single"), item, form.keys);
    by("single").replaceChildren(...view, ...form.show(item, before));
    by("given").replaceChildren(...form.controls(item, before, about));
    form.place?.(by("single"));
    if (!form.isWhole) compare.apply();
  }

  function wait(waiting) {
    ready = !waiting;
    by("single").setAttribute("aria-busy", String(waiting));
  }

  function trouble(error) {
    by("count").textContent = `${error.message}: check that you copied the whole folder.`;
  }

  function missing(said) {
    by("missing").textContent = said;
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
    by("trouble").textContent = votes.isKept ? "" : "Your browser does not store your votes. Save them as a file before you close the page.";
  }

  function end() {
    compare.stop();
    by("single").setAttribute("aria-busy", "false");
    by("vote").hidden = true;
    by("single").replaceChildren(eqforge.item.make("p", { class: "done" }, "You have answered all tasks. Save your votes as a file and send it to the person who asked you. ",
      eqforge.item.make("button", { type: "button", class: "quiet", onclick: undo }, "Undo the last answer")));
    by("save").focus();
  }

  function reasons(open) {
    by("reasons").hidden = !open;
    document.querySelector(`[data-answer=${refusal}]`).setAttribute("aria-expanded", String(open));
  }

  function answer(said) {
    if (!ready) return;
    if (said === refusal && about.reasons.length && by("reasons").hidden) {
      reasons(true);
      return;
    }
    if (said === "given") {
      const more = form.given(missing);
      if (more) vote(said, "", more);
    } else vote(said, "");
  }

  function vote(said, reason, more = {}) {
    if (!ready) return;
    const seconds = Math.min(longest(), Math.round((performance.now() - since) / 100) / 10);
    votes.set(number, { answer: said, reason, note: by("note").value.trim(), seconds, ...more });
    show(votes.next()).catch(trouble);
  }

  function undo() {
    const last = votes.last();
    if (!last) return;
    votes.remove(last);
    show(last).catch(trouble);
  }

  function draft() {
    if (!ready) return;
    votes.draft(number, { note: by("note").value, ...form.draft?.() });
    warn();
  }

  // In a text all keys are letters, but for Enter, which ends a note or gives the answer, and Escape.
  function typed(event) {
    if (event.isComposing) return; // Enter chooses among the letters of a script
    if (event.key === "Enter" || event.key === "Escape") event.target.blur();
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (event.target !== by("note")) answer("given");
  }

  const acts = Object.fromEntries(Array.from(document.querySelectorAll("[data-answer]"), (button) => [button.getAttribute("aria-keyshortcuts"), () => answer(button.dataset.answer)]));

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("textarea, [type=text], [type=number]")) return typed(event);
    if (event.repeat) { // a key that is held is one answer
      if (event.target.matches("button")) event.preventDefault();
      return;
    }
    if (event.target.matches("button") && (event.key === " " || (event.key === "Enter" && !event.target.matches(".choice")))) return; // a picture is chosen by space; Enter is done
    if (pressed(event)) event.preventDefault();
  }

  function pressed(event) {
    const open = !by("reasons").hidden;
    const place = Number(event.key);
    const own = {
      z: undo, n: () => by("note").focus(),
      ...(open ? { Enter: () => vote(refusal, ""), Escape: () => reasons(false) } : {}),
    };
    const act = own[event.key] || acts[event.key];
    if (open && place >= 1 && place <= about.reasons.length) vote(refusal, about.reasons[place - 1]);
    else if (!open && number && form.key(event)) draft();
    else if (act) act();
    else return compare.key(event.key);
    return true;
  }

  async function start() {
    try {
      about = await eqforge.load(`${reviewer}/tasks`);
      votes.open(about);
      compare.start("boxes", form.hasBoxes === true); // their labels would tell what is to be seen
      await show(votes.next());
    } catch (error) {
      trouble(error);
    }
  }

  for (const button of document.querySelectorAll("[data-answer]")) button.addEventListener("click", () => answer(button.dataset.answer));
  for (const button of document.querySelectorAll("[data-reason]")) button.addEventListener("click", () => vote(refusal, button.dataset.reason));
  by("undo").addEventListener("click", undo);
  for (const part of ["single", "vote"]) for (const done of ["input", "change", "click", "pointerup"]) by(part).addEventListener(done, draft);
  by("save").addEventListener("click", votes.save);
  by("vote").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("keydown", key);
  addEventListener("storage", (event) => { if (votes.isOf(event.key)) location.reload(); }); // the page is open twice
  start();
})();
