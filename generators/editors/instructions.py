"""Derive an editor's instruction, and the things to find in the image, from two captions."""

from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.perturbations.synonyms import sentence_capitals
from eqforge.generators.text.words import Span, word_edit

_ARTICLES = frozenset({"the", "an", "a"})
_DETERMINERS = _ARTICLES.union(
    ("my", "your", "his", "her", "its", "our", "their"),
    ("this", "that", "these", "those", "some", "several", "many"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The difference between a caption and the target caption.

    Attributes:
      before: the phrases of the caption that the edit touches, in order: noun phrases if a tagger
        finds them around the words, else the words; empty if words are only added.
      after: the same for the target caption.
      things: things to find in the image for the edit, without determiners. If the edit touches
        none, as from "on" to "under", they are the things next to the words.
      is_named: whether the edit touches noun phrases alone, so that an instruction can name them.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    things: tuple[str, ...]
    is_named: bool


def find_change(caption: str, target: str, analyses: tuple[Analysis, Analysis] | None) -> Change:
    edit = word_edit(caption, target)
    nouns_0, nouns_1 = ({}, {}) if analyses is None else map(_noun_phrases, analyses)
    around = [span for span in nouns_0 if _touches(span, edit.spans_0)]
    if not around:  # the nearest noun phrase before the words, and the nearest behind them
        first, last = (len(caption), len(caption))
        if edit.spans_0:
            first, last = edit.spans_0[0][0], edit.spans_0[-1][1]
        around = [span for span in nouns_0 if span[1] <= first][-1:]
        around += [span for span in nouns_0 if span[0] >= last][:1]
    before = _phrases(caption, edit.spans_0, nouns_0)
    after = _phrases(target, edit.spans_1, nouns_1)
    things = [nouns_0[span] for span in around] or before
    named = {*nouns_0.values(), *nouns_1.values()}
    return Change(
        before=before,
        after=after,
        things=tuple(dict.fromkeys(map(_bare, things))),
        is_named=named.issuperset(before + after),
    )


def make_instruction(target: str, change: Change) -> str:
    """Return an instruction in English for editors that follow one.

    Examples: "replace the dog with a cat", "add a hat", "remove the hat". If several things differ,
    or words that name no thing, the instruction describes the whole image.
    """
    is_same = [*map(_bare, change.before)] == [*map(_bare, change.after)]
    if is_same or not change.is_named or max(len(change.before), len(change.after)) != 1:
        return f"change the picture so that it shows: {target.strip()}"
    if not change.before:
        return f"add {change.after[0]}"
    old = change.before[0]
    first, _, rest = old.partition(" ")
    if rest and first.lower() in _ARTICLES:
        old = f"the {rest}"
    elif _bare(old) == old and "'s" not in first:  # nothing says whose it is
        old = f"the {old}"
    return f"replace {old} with {change.after[0]}" if change.after else f"remove {old}"


def _phrases(text: str, spans: tuple[Span, ...], nouns: dict[Span, str]) -> tuple[str, ...]:
    found: list[str] = []
    for span in spans:
        around = [phrase for noun, phrase in nouns.items() if _touches(noun, (span,))]
        found += around or [text[slice(*span)]]
    return tuple(dict.fromkeys(found))


def _touches(span: Span, others: tuple[Span, ...]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


def _noun_phrases(analysis: Analysis) -> dict[Span, str]:
    tokens, capitals = analysis.tokens, sentence_capitals(analysis)
    found: dict[Span, str] = {}
    for first, last in analysis.noun_phrases:
        start, end = tokens[first].start, tokens[last - 1].end
        phrase = analysis.text[start:end]
        is_raised = start in capitals and not capitals[start]
        found[start, end] = phrase[0].lower() + phrase[1:] if is_raised else phrase
    return found


def _bare(phrase: str) -> str:
    first, _, rest = phrase.partition(" ")
    return rest if rest and first.lower() in _DETERMINERS else phrase
