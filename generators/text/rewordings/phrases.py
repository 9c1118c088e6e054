"""Words and phrases of which either stands for the other where the words around them allow it.

`data/rewordings.tsv` has the columns word, replacement, ways, tag, where and ground. With "both" as
ways the replacement may become the word, too. `tag` names tags of the first word, or how they
start; V stands for a verb in any form. `where` is a context, as `contexts` has it.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.contexts import Context, parse_context, stands_in
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.parts import inflect_word
from eqforge.generators.text.perturbations.synonyms import article_edits, match_case
from eqforge.generators.text.rewordings.records import Edits, Rule, exchange_name, has_plain_spacing
from eqforge.generators.text.words import is_fixed_expression, is_in_fixed_expression, read_table


@dataclass(frozen=True, kw_only=True, slots=True)
class _Phrase:
    """A row of the list, in one direction."""

    word: tuple[str, ...]
    replacement: str
    tags: tuple[str, ...]
    where: Context

    @property
    def is_verb(self) -> bool:
        return self.tags == ("V",)


def _find(phrase: _Phrase, analysis: Analysis) -> Iterator[Edits]:
    first, *rest = phrase.word
    longer = phrase.replacement.split()  # such as "laptop computer" for "laptop"
    is_longer = len(longer) > len(phrase.word) and longer[: len(phrase.word)] == [first, *rest]
    for index, token in enumerate(analysis.tokens):
        if (token.lemma if phrase.is_verb else token.text.lower()) != first:
            continue
        if phrase.tags and not token.tag.startswith(phrase.tags):
            continue
        span = (index, index + len(phrase.word))
        behind = analysis.words((index + 1, index + len(longer)))
        if analysis.words((index + 1, span[1])) != tuple(rest):
            continue
        if (is_longer and behind == tuple(longer[1:])) or not has_plain_spacing(analysis, *span):
            continue
        end = analysis.tokens[span[1] - 1].end
        if not is_fixed_expression(" ".join(phrase.word)) and is_in_fixed_expression(
            analysis.text, token.start, end
        ):
            continue
        if stands_in(analysis, span, phrase.where) and (edits := _edits(analysis, *span, phrase)):
            yield edits


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
            reverse = exchange_name(other, word) if is_both else None
            find = functools.partial(_find, phrase)
            yield Rule(exchange_name(word, other), reverse, row["ground"], find)


PHRASES: Final = tuple(_rules())
