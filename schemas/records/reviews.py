"""What people decided on samples that they looked at."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["keep", "drop", "unsure"]


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Decision:
    """What people decided on a sample.

    Attributes:
      id: of the sample.
      decision: `drop` makes it a reject; `keep` and `unsure` leave it.
      reason: why it is dropped; empty where nobody says.
      who: who decided, and by which rule, such as `majority of 3`.
    """

    id: str
    decision: Verdict
    reason: str = ""
    who: str = ""
