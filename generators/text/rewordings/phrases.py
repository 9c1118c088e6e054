"""Words and phrases that may stand for each other where the words around them allow it.

`data/rewordings.tsv` has the columns group, word, replacement, ways, tag and where. With "both" as
ways the replacement may become the word, too. `tag` names tags of the first word, or how they
start; V stands for a verb in any form. `where` is a context, as `contexts` has it.
"""

import csv
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.articles import article_for
from eqforge.generators.text.contexts import Context, parse_context, stands_in
from eqforge.generators.text.coordination.conjuncts import Range, word_at
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.inflection import inflect_word
from eqforge.generators.text.perturbations.synonyms import match_case
from eqforge.generators.text.rewordings.records import Rewording


@dataclass(frozen=True, kw_only=True, slots=True)
class _Phrase:
    """A row of the list, in one direction.

    Attributes:
      group, word, replacement, tags: see above; "V" among the tags means lemmas.
      where: what must stand around it.
    """

    group: str
    word: tuple[str, ...]
    replacement: str
    tags: tuple[str, ...]
    where: Context

    @property
    def is_verb(self) -> bool:
        """Whether the first word is a verb in any form, inflected like the one it replaces."""
        return self.tags == ("V",)


def phrase_rewordings(analysis: Analysis) -> Iterator[Rewording]:
    """Yields each exchange of a word or phrase, in order.

    Args:
      analysis: the caption's analysis.

    Raises:
      InputError: WordNet is not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    taken = 0
    for index, token in enumerate(analysis.tokens):
        if index < taken:
            continue
        for key in dict.fromkeys((token.text.lower(), token.lemma)):
            for phrase in _phrases().get(key, ()):
                last = index + len(phrase.word)
                if not _is_at(analysis, index, phrase):
                    continue
                taken = max(taken, last)
                edits = _edits(analysis, index, last, phrase)
                if edits and _fits(analysis, (index, last), phrase):
                    yield Rewording(
                        rule=f"replace/{phrase.group}",
                        edits=edits,
                        original=" ".join(phrase.word),
                        replacement=phrase.replacement,
                    )


def _is_at(analysis: Analysis, index: int, phrase: _Phrase) -> bool:
    token, words = analysis.tokens[index], phrase.word
    first = token.lemma if phrase.is_verb else token.text.lower()
    if first != words[0] or (phrase.tags and not token.tag.startswith(phrase.tags)):
        return False
    return all(
        word_at(analysis, index + place) == word for place, word in enumerate(words) if place
    )


def _fits(analysis: Analysis, span: Range, phrase: _Phrase) -> bool:
    start, end = analysis.tokens[span[0]].start, analysis.tokens[span[1] - 1].end
    is_fixed = is_in_fixed_expression(analysis.text, start, end)
    return not is_fixed and stands_in(analysis, span, phrase.where)


def _edits(analysis: Analysis, first: int, last: int, phrase: _Phrase) -> tuple[Edit, ...]:
    """Returns the edit, after that of an article before it; nothing if a form is not known."""
    opening = analysis.tokens[first]
    replacement = phrase.replacement
    if phrase.is_verb:
        verb, _, rest = replacement.partition(" ")
        form = inflect_word(verb, "VB" if opening.tag == "VBP" else opening.tag)
        if form is None:
            return ()
        replacement = f"{form} {rest}".strip()
    end = analysis.tokens[last - 1].end
    edit = Edit(start=opening.start, end=end, replacement=match_case(replacement, opening.text))
    before = analysis.tokens[first - 1] if first else None
    right = article_for(replacement.split()[0])
    if before is None or before.text.lower() not in ("a", "an") or right is None:
        return (edit,)
    if right == before.text.lower():
        return (edit,)
    cased = match_case(right, before.text)
    return (Edit(start=before.start, end=before.end, replacement=cased), edit)


@functools.cache
def _phrases() -> Mapping[str, tuple[_Phrase, ...]]:
    """Returns the phrases by their first word, the longest first."""
    resource = files("eqforge.generators.text") / "data" / "rewordings.tsv"
    found: dict[str, list[_Phrase]] = {}
    for row in csv.DictReader(resource.read_text(encoding="utf-8").splitlines(), delimiter="\t"):
        pairs = [(row["word"], row["replacement"])]
        if row["ways"] == "both":
            pairs.append((row["replacement"], row["word"]))
        for word, replacement in pairs:
            words = tuple(word.split())
            found.setdefault(words[0], []).append(
                _Phrase(
                    group=row["group"],
                    word=words,
                    replacement=replacement,
                    tags=tuple(filter(None, row["tag"].split(","))),
                    where=parse_context(row["where"]),
                )
            )
    return {key: tuple(sorted(own, key=lambda p: -len(p.word))) for key, own in found.items()}
