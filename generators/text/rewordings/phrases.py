"""Words and phrases of which either stands for the other where the words around them allow it.

`data/rewordings.tsv` has the columns word, replacement, ways, tag, where and ground. With "both" as
ways the replacement may become the word, too. `tag` names tags of the first word, or how they
start; V stands for a verb in any form. `where` is a context, as `contexts` has it.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis, Range
from eqforge.generators.text.contexts import Context, parse_context, stands_in
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.parts import inflect_word
from eqforge.generators.text.perturbations.synonyms import article_edits, match_case
from eqforge.generators.text.rewordings.records import Edits, Rule, exchange_name, has_plain_spacing
from eqforge.generators.text.words import is_fixed_expression, is_in_fixed_expression, read_table


@dataclass(frozen=True, kw_only=True, slots=True)
class _Phrase:
    """A row of the list, in one direction.

    Attributes:
      word, replacement, tags: see above; "V" among the tags means any form of a verb.
      where: what must stand around it.
    """

    word: tuple[str, ...]
    replacement: str
    tags: tuple[str, ...]
    where: Context

    @property
    def is_verb(self) -> bool:
        """Whether the first word is a verb in any form, inflected like the one it replaces."""
        return self.tags == ("V",)

    @property
    def is_longer(self) -> bool:
        """Whether the replacement begins with the words: "laptop computer" for "laptop"."""
        return self.replacement.startswith(f"{' '.join(self.word)} ")


def _find(phrase: _Phrase, analysis: Analysis) -> Iterator[Edits]:
    first, is_verb = phrase.word[0], phrase.is_verb
    for index, token in enumerate(analysis.tokens):
        if (token.lemma if is_verb else token.text.lower()) != first:
            continue
        span = (index, index + len(phrase.word))
        if not (_is_at(analysis, index, phrase) and _fits(analysis, span, phrase)):
            continue
        if edits := _edits(analysis, *span, phrase):
            yield edits


def _is_at(analysis: Analysis, index: int, phrase: _Phrase) -> bool:
    """Say whether a phrase stands at a token whose word is its first."""
    token, words = analysis.tokens[index], phrase.word
    if phrase.tags and not token.tag.startswith(phrase.tags):
        return False
    return _stands_at(analysis, index, words) and not (
        phrase.is_longer and _stands_at(analysis, index, tuple(phrase.replacement.split()))
    )


def _stands_at(analysis: Analysis, index: int, words: tuple[str, ...]) -> bool:
    return all(analysis.word(index + place) == word for place, word in enumerate(words) if place)


def _fits(analysis: Analysis, span: Range, phrase: _Phrase) -> bool:
    start, end = analysis.tokens[span[0]].start, analysis.tokens[span[1] - 1].end
    is_fixed = not is_fixed_expression(" ".join(phrase.word)) and is_in_fixed_expression(
        analysis.text, start, end
    )
    is_plain = has_plain_spacing(analysis, *span)
    return is_plain and not is_fixed and stands_in(analysis, span, phrase.where)


def _edits(analysis: Analysis, first: int, last: int, phrase: _Phrase) -> tuple[Edit, ...]:
    """Return the edit, after that of an article before it; nothing if a form is not known."""
    opening = analysis.tokens[first]
    replacement = phrase.replacement
    if phrase.is_verb:
        if opening.tag == "VBN":
            return ()  # "is prepared to" is another verb than "prepare to"
        verb, _, rest = replacement.partition(" ")
        form = inflect_word(verb, "VB" if opening.tag == "VBP" else opening.tag)
        if form is None:
            return ()
        replacement = f"{form} {rest}".strip()
    end = analysis.tokens[last - 1].end
    edit = Edit(start=opening.start, end=end, replacement=match_case(replacement, opening.text))
    return (*article_edits(analysis.tokens, first, replacement), edit)


def _rules() -> Iterator[Rule]:
    for row in read_table("rewordings.tsv"):
        pairs = [(row["word"], row["replacement"]), (row["replacement"], row["word"])]
        is_both = row["ways"] == "both"
        for word, other in pairs if is_both else pairs[:1]:
            phrase = _Phrase(
                word=tuple(word.split()),
                replacement=other,
                tags=tuple(filter(None, row["tag"].split(","))),
                where=parse_context(row["where"]),
            )
            name = exchange_name(word, other)
            yield Rule(
                name=name,
                reverse=exchange_name(other, word) if is_both else None,
                ground=row["ground"],
                find=functools.partial(_find, phrase),
            )


PHRASES: Final = tuple(_rules())
