"""What a perturbation is called, what may keep it from being applied, and what it returns."""

import dataclasses
import enum
from typing import Literal

from eqforge.generators.text.edits import Span

Mode = Literal["corrected", "paper"]

VERSIONS: dict[Mode, int] = {"corrected": 1, "paper": 1}
"""Raised whenever the same caption and seed would be perturbed otherwise."""


class Reason(enum.StrEnum):
    """Why a perturbation was not applied; the list is closed."""

    NO_WORD_TO_EDIT = "no_word_to_edit"
    """Typos: no word of two or more characters could be damaged."""

    NO_SYNONYM = "no_synonym"
    """Synonyms: no word of the part of speech has one that fits."""

    NO_WORDS = "no_words"
    """Distractions: the caption has no word to add a statement to."""

    ONE_ORDER_ONLY = "one_order_only"
    """Shuffles: the words concerned are fewer than two, or read the same in every order."""

    UNCHANGED = "unchanged"
    """Paper mode: the published code returned the caption itself."""

    CODE_FAILED = "code_failed"
    """Paper mode: the published code raised an exception and evaluated the caption itself."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PerturbationSettings:
    """How captions are perturbed.

    Attributes:
      mode: "corrected", or "paper" for what the published code does.
      max_synonyms: words of a caption that are replaced at most, the paper's k; 1 or more.
        Corrected mode only: the published code always replaces one.
    """

    mode: Mode = "corrected"
    max_synonyms: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Perturbation:
    """A caption after one perturbation.

    Attributes:
      name: see `catalogue`.
      mode: "corrected" or "paper".
      version: version of the rules of that mode.
      text: the perturbed caption; the caption itself where nothing was applied.
      applied: whether `text` differs from the caption, in more than letter case (corrected mode)
        or at all (paper mode). Rows that do not are left out of every contrast, and counted.
      reason: why not, where `applied` is false.
      spans_before: the parts of the caption that were edited.
      spans_after: the same parts in `text`; outside of them the two are equal.
    """

    name: str
    mode: Mode
    version: int
    text: str
    applied: bool
    reason: Reason | None
    spans_before: tuple[Span, ...]
    spans_after: tuple[Span, ...]
