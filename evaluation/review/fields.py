"""The texts that reviewers write, and the rules that these keep."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

RULES: Final[Mapping[str, str]] = {
    "empty": "Nothing is written.",
    "few_words": "The text has fewer words than it has to have.",
    "never": "The text has words that it must not have.",
    "not_first": "The text starts with words that it must not start with.",
    "same_answer": "The answers for two pictures are the same.",
    "not_listed": "The answer is not in the list of answers.",
}
"""What is asked of texts, by the name of each rule."""


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text to write.

    Attributes:
      name: of the text, as answers have it.
      label: what stands beside it.
      min_words: so many words at least.
      never: words that it must not have, whatever their capitals.
      not_first: words that it must not start with.
      per_picture: whether one is written for each picture; no two may be the same.
      listed: whether it has to be in the list of answers, where there is one.
    """

    name: str
    label: str
    min_words: int = 1
    never: tuple[str, ...] = ()
    not_first: tuple[str, ...] = ()
    per_picture: bool = False
    listed: bool = False

    def names(self, pictures: int) -> list[str]:
        """Returns the names of the texts that are written for some pictures."""
        if not self.per_picture:
            return [self.name]
        return [f"{self.name}_{place}" for place in range(pictures)]


def broken(
    texts: Mapping[str, str],
    fields: Sequence[Field],
    pictures: int,
    answers: Collection[str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yields each text that breaks a rule, as its name and the rule's, a key of RULES.

    Args:
      texts: what was written, by name.
      fields: what was to be written.
      pictures: how many were shown.
      answers: the list of answers; None for none.

    Source: Zhou et al. 2022 (VLUE), section 3.2, as `fields.js` has it too.
    """
    for field in fields:
        names = field.names(pictures)
        written = [" ".join(texts.get(name, "").split()) for name in names]
        for name, text in zip(names, written, strict=True):
            if rule := _broken(text, field, answers):
                yield name, rule
        if field.per_picture and len({text.lower() for text in written}) < len(written):
            yield names[-1], "same_answer"


def _broken(text: str, field: Field, answers: Collection[str] | None) -> str:
    """Returns the rule that a text breaks; empty for none."""
    if not text:
        return "empty"
    if len(text.split(" ")) < field.min_words:
        return "few_words"
    if any(_has(text, each) for each in field.never):
        return "never"
    if any(_has(text, each, "^") for each in field.not_first):
        return "not_first"
    return "not_listed" if field.listed and answers is not None and text not in answers else ""


def _has(text: str, words: str, before: str = r"(?<!\w)") -> bool:
    """Tells whether a text has some words, whatever their capitals."""
    return re.search(rf"{before}{re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None
