"""Inflects words, and adds inflected entries to a lexicon: "holds", "grasps"."""

import dataclasses
import functools

from eqforge.generators.text.lexicon import Lexicon, LexiconEntry
from eqforge.generators.text.parts import inflections, lemmatizer

_VERB_TAGS = ("VB", "VBZ", "VBD", "VBN")
_ADJECTIVE_TAGS = ("JJR", "JJS")


def inflect_word(lemma: str, tag: str) -> str | None:
    """Return the form of a word for a Penn tag, None if the dictionary has none.

    Args:
      tag: Penn Treebank tag, such as `VBZ`, `NNS` or `JJR`.
    """
    forms = _forms(lemma, tag)
    return forms[0] if forms else None


def with_inflections(lexicon: Lexicon) -> Lexicon:
    """Return the lexicon with each entry followed by its other inflected forms.

    An entry is inflected if its word and replacement inflect alike: two "-ing" forms of verbs by
    person and tense, two adjectives by degree. In a phrase the first word is inflected. Forms that
    the lexicon already has are left out; no two entries share kind, group and word.
    """
    taken = {(entry.kind, entry.group, entry.word) for entry in lexicon}
    entries: list[LexiconEntry] = []
    for entry in lexicon:
        entries.append(entry)
        for word, replacement in _other_forms(entry):
            if (entry.kind, entry.group, word) not in taken:
                taken.add((entry.kind, entry.group, word))
                source = f"{entry.source}; inflected from {entry.word!r}"
                entries.append(
                    dataclasses.replace(entry, word=word, replacement=replacement, source=source)
                )
    return tuple(entries)


def _other_forms(entry: LexiconEntry) -> list[tuple[str, str]]:
    word, _, word_rest = entry.word.partition(" ")
    replacement, _, replacement_rest = entry.replacement.partition(" ")
    tags: tuple[str, ...]
    if word.endswith("ing") and replacement.endswith("ing"):
        lemmas = _verb_lemma(word), _verb_lemma(replacement)
        tags = _VERB_TAGS
    elif not (word_rest or replacement_rest) and entry.kind == "attribute":
        lemmas, tags = (word, replacement), _ADJECTIVE_TAGS
    else:
        return []
    forms = [(inflect_word(lemmas[0], tag), inflect_word(lemmas[1], tag)) for tag in tags]
    return [
        (f"{left} {word_rest}".strip(), f"{right} {replacement_rest}".strip())
        for left, right in forms
        if left is not None and right is not None
    ]


@functools.lru_cache(maxsize=65_536)
def _forms(lemma: str, tag: str) -> tuple[str, ...]:
    return tuple(inflections().getInflection(lemma, tag=tag, inflect_oov=False))


def _verb_lemma(form: str) -> str:
    lemmas = lemmatizer().getLemma(form, upos="VERB", lemmatize_oov=False)
    return str(lemmas[0]) if lemmas else form
