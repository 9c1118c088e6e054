"""Tasks as they are dealt to reviewers, whatever these answer in."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eqforge.core.visible import counted
from eqforge.evaluation.review.assign import Task
from eqforge.evaluation.review.protocols import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Dealt:
    """Tasks as they are dealt to reviewers.

    Attributes:
      protocol: what is asked.
      about: what a file of votes says of them: dataset, sha256, protocol, form, plan, overlap, of,
        fields.
      tasks: of each reviewer.
      minutes: about how long each takes.
      answers: the answers that may be given, where the protocol has them listed; empty for any.
      show: returns what some tasks of a reviewer show, as `blinded` gives it.
    """

    protocol: Protocol
    about: Mapping[str, Any]
    tasks: Mapping[str, Sequence[Task]]
    minutes: Mapping[str, float]
    answers: Sequence[str]
    show: Callable[[str, Sequence[Task]], list[dict[str, Any]]]

    @property
    def plan(self) -> str:
        """The digest of the plan."""
        return str(self.about["plan"])

    @property
    def busy(self) -> dict[str, Sequence[Task]]:
        """The tasks of those who have any."""
        return {name: own for name, own in self.tasks.items() if own}

    @property
    def shared(self) -> dict[str, Any]:
        """What all templates say."""
        title = f"Review of {self.about['dataset']}"
        return {"name": title, "title": title, "nav": [], "protocol": self.protocol}

    @property
    def reviewers(self) -> list[dict[str, str]]:
        """Each reviewer with the tasks and the time they take, in words."""
        return [
            {
                "name": name,
                "page": f"{name}.html" if own else "",
                "tasks": counted(len(own), "tasks") if own else "no tasks",
                "minutes": told_minutes(self.minutes[name]) if own else "",
            }
            for name, own in self.tasks.items()
        ]


def told_minutes(minutes: float) -> str:
    """Returns how long tasks take, in whole minutes rounded up, as `review.js` tells it too."""
    return f"about {math.ceil(minutes):,} min"
