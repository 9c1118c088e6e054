"""Corrections of single samples: what somebody found wrong with them, and what is done about it."""

from dataclasses import dataclass
from typing import Literal

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
