"""What people decided on samples that they looked at."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

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
