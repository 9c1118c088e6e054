"""What must stand around some words so that they have the sense that is meant.

A context is written as places separated by ";": `subject:living;object:room,-garage`. The places:

  object    a noun phrase starts behind the words
  alone     none does
  subject   a noun phrase ends before them, or before a "be", "that" or "that is" there
  besides   no noun phrase of these classes ends there
  noun      they are adjectives in a noun phrase, before its head
  end       nothing but punctuation follows
  clause    a noun phrase and a finite verb of what happens follow: not "a man is there"

After a colon come the classes (see `noun_classes`) of which the noun must have one, and after a
minus those of which it must have none; after "=" the noun phrase must be one of these texts alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import Range, tag_at, word_at, words_of
from eqforge.generators.text.noun_classes import classes_of

_FINITE: Final = ("VBZ", "VBP", "VBD")
_BE: Final = frozenset(("is", "are", "was", "were"))
_RELATIVE: Final = frozenset(("that", "which", "who"))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """What a place asks of its noun phrase.

    Attributes:
      any_of: classes of which it must have one; empty for any.
      none_of: classes of which it must have none.
      texts: the texts that it may be; empty for any.
    """

    any_of: frozenset[str]
    none_of: frozenset[str]
    texts: frozenset[str]


Context = Mapping[str, _Wanted]


def parse_context(text: str) -> Context:
    """Returns a context as it is written, by place.

    Raises:
      ValueError: there is no such place.
    """
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


def stands_in(analysis: Analysis, span: Range, context: Context) -> bool:
    """Tells whether some words stand in a context.

    Args:
      analysis: the caption's analysis.
      span: the words: first and last token, `last` exclusive.
      context: what must stand around them.

    Raises:
      InputError: WordNet is needed and not on this machine.
    """
    return all(_PLACES[place](analysis, span, wanted) for place, wanted in context.items())


def _is_object(analysis: Analysis, span: Range, wanted: _Wanted) -> bool:
    phrase = _starting(analysis, span[1])
    if phrase is None or _is_modifier(analysis, phrase):
        return False
    return _suits(analysis, phrase, wanted)


def _is_modifier(analysis: Analysis, phrase: Range) -> bool:
    """Tells whether a noun phrase belongs to what follows: "a horse drawn carriage"."""
    after = tag_at(analysis, phrase[1] + 1)
    return tag_at(analysis, phrase[1]) == "VBN" and after.startswith("NN")


def _is_alone(analysis: Analysis, span: Range, wanted: _Wanted) -> bool:
    return _starting(analysis, span[1]) is None


def _is_subject(analysis: Analysis, span: Range, wanted: _Wanted) -> bool:
    end = span[0] - (word_at(analysis, span[0] - 1) in _BE)
    end -= word_at(analysis, end - 1) in _RELATIVE
    phrase = next((each for each in analysis.noun_phrases if each[1] == end), None)
    return _suits(analysis, phrase, wanted)


def _is_besides(analysis: Analysis, span: Range, wanted: _Wanted) -> bool:
    return not _is_subject(analysis, span, wanted)


def _is_of_noun(analysis: Analysis, span: Range, wanted: _Wanted) -> bool:
    first, last = span
    phrase = next((p for p in analysis.noun_phrases if p[0] <= first and last < p[1]), None)
    return _suits(analysis, phrase, wanted)


def _is_at_end(analysis: Analysis, span: Range, wanted: _Wanted) -> bool:
    rest = range(span[1], len(analysis.tokens))
    return all(tag_at(analysis, index) in (".", ",") for index in rest)


def _is_before_clause(analysis: Analysis, span: Range, wanted: _Wanted) -> bool:
    phrase = _starting(analysis, span[1])
    if phrase is None or tag_at(analysis, phrase[1]) not in _FINITE:
        return False
    is_state = word_at(analysis, phrase[1]) in _BE and tag_at(analysis, phrase[1] + 1) != "VBG"
    return not is_state


def _starting(analysis: Analysis, index: int) -> Range | None:
    return next((each for each in analysis.noun_phrases if each[0] == index), None)


def _suits(analysis: Analysis, phrase: Range | None, wanted: _Wanted) -> bool:
    if phrase is None:
        return False
    if wanted.texts:
        return " ".join(words_of(analysis, phrase)) in wanted.texts
    if not wanted.any_of and not wanted.none_of:
        return True
    classes = classes_of(analysis, phrase)
    return not classes & wanted.none_of and (not wanted.any_of or bool(classes & wanted.any_of))


_PLACES: Final[Mapping[str, Callable[[Analysis, Range, _Wanted], bool]]] = {
    "object": _is_object,
    "alone": _is_alone,
    "subject": _is_subject,
    "besides": _is_besides,
    "noun": _is_of_noun,
    "end": _is_at_end,
    "clause": _is_before_clause,
}
