// Texts are written about what is shown.
eqforge.form = (() => {
  "use strict";
  const { make, text } = eqforge.item;
  let about = null;
  return {
    keys: { boxes: "x" },
    hasBoxes: true, // the text is about what they are around
    show: (item) => [make("div", { class: "asked" }, ...item.texts.map(text))],
    controls: (item, before, all) => { about = all; return eqforge.fields.make(item, about.fields, before); },
    given: (missing) => {
      const texts = eqforge.fields.given(about.answers, missing);
      return texts && { texts };
    },
    draft: () => ({ texts: eqforge.fields.texts() }),
    focus: () => eqforge.fields.focus(),
    key: () => false,
  };
})();
