// Texts to write, and the rules that they keep, as `fields.py` has them.
eqforge.fields = (() => {
  "use strict";
  const { make } = eqforge.item;
  const TOLD = {
    empty: () => "is empty",
    few_words: (field) => `needs at least ${field.min_words} words`,
    never: (_, word) => `must not contain the word "${word}"`,
    not_first: (_, word) => `must not start with "${word}"`,
    same_answer: () => "must differ between the images",
    not_listed: () => "is not in the list of answers",
  };
  let inputs = [];

  const plain = (text) => text.trim().split(/\s+/).join(" ");
  const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const has = (text, word, before) => new RegExp(`${before}${escaped(word)}(?![\\p{L}\\p{N}_])`, "iu").test(text);

  function make_all(item, fields, before) {
    inputs = fields.flatMap((field) => {
      if (!field.per_picture) return [one(field, field.name, field.label, before)];
      return item.places.map((place, number) => one(field, `${field.name}_${place}`, `${field.label} ${item.panes[number].name}`, before));
    });
    return inputs.map((each) => each.row);
  }

  function one(field, name, label, before) {
    const input = make("textarea", { rows: 1, dir: "auto", maxlength: 1000, spellcheck: "true", name, "data-field": name });
    input.value = before?.texts?.[name] || "";
    return { field, name, label, input, row: make("label", { class: "field" }, make("span", { dir: "auto" }, label), input) };
  }

  function wrong({ field, input }, answers) {
    const text = plain(input.value);
    if (!text) return ["empty"];
    if (text.split(" ").length < field.min_words) return ["few_words"];
    const never = field.never.find((word) => has(text, word, "(?<![\\p{L}\\p{N}_])"));
    if (never) return ["never", never];
    const first = field.not_first.find((word) => has(text, word, "^"));
    if (first) return ["not_first", first];
    return field.listed && answers.length && !answers.includes(text) ? ["not_listed"] : null;
  }

  // Returns the texts by name; null, and says why, where a rule is broken.
  function given(answers, missing) {
    for (const each of inputs) {
      const found = wrong(each, answers) || (isSame(each) ? ["same_answer"] : null);
      if (found) {
        missing(`${each.label} ${TOLD[found[0]](each.field, found[1])}.`);
        each.input.focus();
        return null;
      }
    }
    return texts(plain);
  }

  // Returns what is written, by name.
  function texts(read = (text) => text) {
    return Object.fromEntries(inputs.map(({ name, input }) => [name, read(input.value)]));
  }

  function isSame(one) {
    if (!one.field.per_picture) return false;
    const own = plain(one.input.value).toLowerCase();
    return inputs.some((each) => each !== one && each.field === one.field && plain(each.input.value).toLowerCase() === own);
  }

  function focus() {
    inputs[0]?.input.focus({ preventScroll: true }); // the pictures stay in sight
  }

  return { make: make_all, given, texts, focus };
})();
