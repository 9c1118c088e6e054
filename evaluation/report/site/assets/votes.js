// The votes of a reviewer, and drafts of what has no answer yet: kept in the browser as they come; votes are saved as a file.
eqforge.votes = (() => {
  "use strict";
  let about = null;
  let key = "";
  let votes = new Map(); // by the number of the task
  let drafts = new Map(); // notes, and what else is given, on tasks without an answer, by their numbers
  let isKept = true;

  function open(tasks) {
    about = tasks;
    key = `eqforge-votes:${tasks.plan}:${tasks.reviewer}`;
    try {
      votes = new Map(JSON.parse(localStorage.getItem(key) || "[]"));
      drafts = new Map(JSON.parse(localStorage.getItem(`${key}:drafts`) || "[]"));
    } catch {
      isKept = false;
    }
  }

  function keep() {
    try {
      localStorage.setItem(key, JSON.stringify([...votes]));
      localStorage.setItem(`${key}:drafts`, JSON.stringify([...drafts]));
      isKept = true;
    } catch {
      isKept = false;
    }
  }

  // `said` has the answer, the reason, the note and the seconds, and what was given.
  function set(number, said) {
    const [id, isRepeat] = about.tasks[number - 1];
    votes.set(number, { task: number, id, is_repeat: isRepeat, ...said });
    if (said.answer !== "skipped") drafts.delete(number); // a skip may be a slip
    keep();
  }

  // Takes an answer back: it is a draft again, with what was given before it was skipped.
  function remove(number) {
    draft(number, { ...drafts.get(number), ...votes.get(number) });
    votes.delete(number);
    keep();
  }

  function draft(number, said) {
    drafts.set(number, said);
    keep();
  }

  function draftOf(number) {
    return drafts.get(number) || { note: "" };
  }

  // Returns the first task without an answer; 0 where all have one.
  function next() {
    for (let number = 1; number <= about.tasks.length; number++) if (!votes.has(number)) return number;
    return 0;
  }

  function last() {
    return Math.max(0, ...votes.keys());
  }

  // Tells whether something that is kept are these votes.
  function isOf(name) {
    return name === key;
  }

  function file() {
    return {
      format: "eqforge votes", format_version: 2, dataset: about.dataset, sha256: about.sha256,
      protocol: about.protocol, form: about.form, plan: about.plan, reviewer: about.reviewer, tasks: about.tasks.length, overlap: about.overlap,
      of: about.of, fields: about.fields,
      votes: [...votes.values()].sort((a, b) => a.task - b.task),
    };
  }

  function save() {
    const text = `${JSON.stringify(file(), null, 1)}\n`;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = `votes-${about.reviewer}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  return { open, set, remove, draft, draftOf, next, last, isOf, save, file, get size() { return votes.size; }, get isKept() { return isKept; } };
})();
