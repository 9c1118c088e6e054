"""Define modes, settings and results of perturbations, and reasons for not applying one."""

import dataclasses
import enum
from typing import Literal

from eqforge.generators.text.edits import Span

Mode = Literal["corrected", "paper"]

VERSIONS: dict[Mode, int] = {"corrected": 4, "paper": 1}
"""Increase it when the same caption and seed would be perturbed differently."""


class Reason(enum.StrEnum):
    """Why a perturbation was not applied."""

    NO_WORD_TO_EDIT = "no_word_to_edit"
    """Typos: no word of two or more characters can be changed."""

    NO_SYNONYM = "no_synonym"
    """Synonyms: no word of the part of speech has a synonym that fits."""

    NO_WORDS = "no_words"
    """Distractions: the caption has no word to add a statement to."""

    ONE_ORDER_ONLY = "one_order_only"
    """Shuffles: there are fewer than two words to shuffle, or every order reads the same."""

    UNCHANGED = "unchanged"
    """Paper mode: the published code returned the caption itself."""

    CODE_FAILED = "code_failed"
    """Paper mode: the published code fails on the caption and evaluates it unperturbed."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PerturbationSettings:
    """How captions are perturbed; `max_synonyms` is the paper's k, which paper mode ignores."""

    mode: Mode = "corrected"
    max_synonyms: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Perturbation:
    """A caption after one perturbation.

    Attributes:
      version: version of the rules of the mode.
      text: the perturbed caption; the caption itself if nothing was applied.
      applied: whether `text` differs from the caption, in more than letter case (corrected mode)
        or at all (paper mode).
      words_changed: whether its words differ from the caption's, not only their case, spacing and
        punctuation. Other rows are left out of every contrast, and counted.
      reason: why it is not applied.
      spans_before, spans_after: the edited parts of the caption and of `text`.
    """

    name: str
    mode: Mode
    version: int
    text: str
    applied: bool
    words_changed: bool
    reason: Reason | None
    spans_before: tuple[Span, ...]
    spans_after: tuple[Span, ...]
