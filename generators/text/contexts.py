"""Check whether the words around a phrase give it the intended sense.

A context is written as places separated by ";": `subject:living;object:room,-garage`. The places:

  object    a noun phrase starts after the words
  alone     none does
  subject   a noun phrase ends before them, or before a "be", "that" or "that is" there
  besides   no noun phrase of these classes ends there
  noun      they are adjectives in a noun phrase, before its head
  end       nothing but punctuation follows
  clause    a noun phrase and a finite verb of action follow: not "a man is there"

A colon introduces classes: the noun must have one of them. A minus introduces classes that the noun
must not have. "=" introduces texts: the noun phrase must equal one of them.

The classes of a noun are the noun itself, its groups among the closed classes of objects, "living",
"shapeless" (water, a light), and the name of a WordNet file, such as "artifact" or "food": that of
its groups or, for other nouns, of the most frequent sense that an image can show.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis, Range
from eqforge.generators.text.coordination.conjuncts import is_living
from eqforge.generators.text.hard_negatives.lexicon import ClassKind, closed_classes, read_rows
from eqforge.generators.text.wordnet import WORDNET_LOCK, open_wordnet
from eqforge.generators.text.words import DATA, read_word_list, word_set

_FINITE: Final = ("VBZ", "VBP", "VBD")
_BE: Final = frozenset(("is", "are", "was", "were"))
_RELATIVE: Final = frozenset(("that", "which", "who"))
_PLACES: Final = ("object", "alone", "subject", "besides", "noun", "end", "clause")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """What a place asks of its noun phrase; an empty set asks nothing."""

    any_of: frozenset[str]
    none_of: frozenset[str]
    texts: frozenset[str]


Context = Mapping[str, _Wanted]


def parse_context(text: str) -> Context:
    """Parse a written context by place; raise ValueError for an unknown place."""
    found = {}
    for part in filter(None, text.split(";")):
        place, _, wanted = part.partition(":")
        if place not in _PLACES:
            raise ValueError(f"expected one of {', '.join(_PLACES)}, found {place!r}")
        names = list(filter(None, wanted.removeprefix("=").split(",")))
        is_text = wanted.startswith("=")
        found[place] = _Wanted(
            any_of=frozenset(name for name in names if not is_text and name[0] != "-"),
            none_of=frozenset(name[1:] for name in names if not is_text and name[0] == "-"),
            texts=frozenset(names if is_text else ()),
        )
    return found


def fits_context(analysis: Analysis, span: Range, context: Context) -> bool:
    return all(_holds(analysis, span, place, wanted) for place, wanted in context.items())


def _holds(analysis: Analysis, span: Range, place: str, wanted: _Wanted) -> bool:
    first, last = span
    behind = analysis.phrase_from(last)
    if place == "alone":
        return behind is None
    if place == "end":
        return all(token.tag in (".", ",") for token in analysis.tokens[last:])
    if place in ("subject", "besides"):
        end = first - (analysis.word(first - 1) in _BE)
        end -= analysis.word(end - 1) in _RELATIVE
        return _suits(analysis, analysis.phrase_to(end), wanted) is (place == "subject")
    if place == "noun":
        around = next((p for p in analysis.noun_phrases if p[0] <= first and last < p[1]), None)
        return _suits(analysis, around, wanted)
    if behind is None:
        return False
    tag, after = analysis.tag(behind[1]), analysis.tag(behind[1] + 1)
    if place == "clause":
        is_state = analysis.word(behind[1]) in _BE and after != "VBG"
        is_role = analysis.tag(first - 1) == "VBN"  # "a child dressed as a monkey walks"
        return tag in _FINITE and not is_state and not is_role
    is_modifier = tag == "VBN" and after.startswith("NN")  # "a horse drawn carriage"
    return not is_modifier and _suits(analysis, behind, wanted)


def _suits(analysis: Analysis, phrase: Range | None, wanted: _Wanted) -> bool:
    if phrase is None:
        return False
    if wanted.texts:
        return " ".join(analysis.words(phrase)) in wanted.texts
    if not wanted.any_of and not wanted.none_of:
        return True
    classes = classes_of(analysis, phrase)
    return not classes & wanted.none_of and (not wanted.any_of or bool(classes & wanted.any_of))


_FILES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bird", "pet or farm animal", "wild animal"), "animal"),
    **dict.fromkeys(("dish", "drink", "fruit", "sweet", "vegetable"), "food"),
    **dict.fromkeys(("boy or girl", "man or woman"), "person"),
    **dict.fromkeys(("ground", "land", "slope or shore", "water"), "object"),
    "plant": "plant",
}
"""WordNet files of some groups; all other groups are artifacts."""

_VISIBLE: Final = word_set("contexts.visible")
_SENSES: Final = 3


def classes_of(analysis: Analysis, phrase: Range) -> frozenset[str]:
    head = analysis.head(phrase)
    living = frozenset(("living",)) if is_living(analysis, phrase) else frozenset()
    return _classes(head.lemma, head.text.lower()) | living


@functools.lru_cache(maxsize=65_536)
def _classes(lemma: str, word: str) -> frozenset[str]:
    known = closed_classes("object").groups
    groups = {*known.get(lemma, ()), *known.get(word, ())}
    files = {_FILES.get(group, "artifact") for group in groups}
    if not files:
        with WORDNET_LOCK:
            senses = open_wordnet().synsets(lemma, "n")[:_SENSES]
        names = [sense.lexname().removeprefix("noun.") for sense in senses]
        files = set([*(name for name in names if name in _VISIBLE), *names][:1])
    shapeless = {"shapeless"} if lemma in _shapeless() else set()
    return frozenset({lemma, *groups, *files, *shapeless})


@functools.cache
def _shapeless() -> frozenset[str]:
    return frozenset(read_word_list(DATA / "shapeless_nouns.txt"))


def fitting_words(analysis: Analysis, span: Range, kind: ClassKind, name: str) -> tuple[str, ...]:
    alternatives = closed_classes(kind).alternatives.get(name, {})
    contexts = _contexts(kind)
    found = [
        set(words)
        for group, words in alternatives.items()
        if group not in contexts or fits_context(analysis, span, contexts[group])
    ]
    return tuple(sorted(set().union(*found)))


def suits_group(analysis: Analysis, index: int, group: str) -> bool:
    return fits_context(analysis, (index, index + 1), _contexts("attribute").get(group, {}))


def is_excluded(analysis: Analysis, span: Range, kind: ClassKind, name: str, other: str) -> bool:
    """Return True if words, called `name` in the classes, exclude others: "red" excludes "blue"."""
    senses = closed_classes(kind).senses
    name_senses, other_senses = senses.get(name, frozenset()), senses.get(other, frozenset())
    contexts = _contexts(kind)
    shared = {group for group, _ in name_senses} & {group for group, _ in other_senses}
    return not name_senses & other_senses and any(
        group not in contexts or fits_context(analysis, span, contexts[group]) for group in shared
    )


@functools.cache
def _contexts(kind: ClassKind) -> Mapping[str, Context]:
    rows = read_rows("hard_negative_contexts.tsv", kind)
    return {row["group"]: parse_context(row["where"]) for row in rows}
