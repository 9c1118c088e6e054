"""Corrections of single samples: what somebody found wrong with them, and what is done about it."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Action = Literal["drop", "correct", "note"]
By = Literal["errata", "review"]


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Erratum:
    """What is wrong with a sample, and what is done about it.

    Attributes:
      id: of the sample.
      action: `drop` makes it a reject, `correct` gives a text another wording, `note` leaves it as
        it is and says something about it.
      reason: what is wrong, for a person.
      who: who found it: a person, or a program and its version.
      when: the day it was found, as 2026-11-23; empty where nobody says.
      column: the column of the text that is corrected; empty for the other actions.
      text: what the text should be; empty for the other actions.
      stage: whether a file of errata says so, or people who reviewed the dataset.
    """

    id: str
    action: Action
    reason: str
    who: str
    when: str = ""
    column: str = ""
    text: str = ""
    stage: By = "errata"


Verdict = Literal["keep", "drop", "unsure"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Tally:
    """How many people gave each answer on a sample; all 0 where nobody says."""

    keep: int = 0
    drop: int = 0
    unsure: int = 0

    @property
    def total(self) -> int:
        """How many people answered."""
        return self.keep + self.drop + self.unsure

    @property
    def is_split(self) -> bool:
        """Whether not all answered alike."""
        return sum(count > 0 for count in (self.keep, self.drop, self.unsure)) > 1


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Decision:
    """What people decided on a sample.

    Attributes:
      id: of the sample.
      decision: `drop` makes it a reject; `keep` and `unsure` leave it.
      reason: why it is dropped; empty where nobody says.
      who: who decided, and by which rule, such as `majority of 3`.
      votes: how many voted how.
      asked: how many were asked; 0 where nobody says.
    """

    id: str
    decision: Verdict
    reason: str = ""
    who: str = ""
    votes: Tally = Tally()
    asked: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it needs another look: people are unsure, do not agree, or did not all vote."""
        return self.decision == "unsure" or self.votes.is_split or self.votes.total < self.asked
