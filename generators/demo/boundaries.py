"""The demo's event videos: what is seen before and after each boundary, as in GEB+.

They include what Eq-GEBC has to drop: action words, an unchanged description, several annotators
of one boundary, and an empty video file.
"""

import itertools
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eqforge.generators.demo.scenes import Clip, Shot, View

Label: TypeAlias = Literal[
    "Change of Action",
    "Change of Subject",
    "Change of Object Being Interacted",
    "Change of Color",
    "Multiple",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What one annotator wrote about one boundary.

    Attributes:
      shot: the boundary is where the shot of this index ends.
      annotator: A, B or C.
      subject: who or what changes.
      before: the subject's status before the boundary.
      after: the subject's status after it.
      cause: the action that caused the change, or None.
      label: the kind of change.
    """

    shot: int
    subject: str
    before: str
    after: str
    label: Label = "Change of Action"
    cause: str | None = None
    annotator: Literal["A", "B", "C"] = "A"


@dataclass(frozen=True, kw_only=True, slots=True)
class EventVideo:
    """A clip and what was written about its boundaries, by boundary and annotator."""

    clip: Clip
    changes: tuple[Change, ...]


def _shot(photograph: str, x: float, y: float, zoom: float, seconds: float) -> Shot:
    return Shot(photograph=photograph, view=View(x=x, y=y, zoom=zoom), seconds=seconds)


def _story(subject: str, statuses: tuple[str, ...], cause: str | None = None) -> tuple[Change, ...]:
    """Returns one change per boundary: a shot's status before it, the next one's after."""
    steps = itertools.pairwise(statuses)
    return tuple(
        Change(shot=shot, subject=subject, before=before, after=after, cause=cause)
        for shot, (before, after) in enumerate(steps)
    )


ROCKET = EventVideo(
    clip=Clip(
        file="demoRocket1.mp4",
        rhythm="11010",
        fps=15,
        shots=(
            _shot("rocket", 0.5, 0.5, 1.0, 2.2),
            _shot("rocket", 0.5, 0.6, 1.8, 2.4),
            _shot("rocket", 0.5, 0.3, 2.0, 2.2),
            _shot("rocket", 0.3, 0.6, 1.8, 2.6),
            _shot("rocket", 0.3, 0.95, 2.2, 2.2),
            _shot("rocket", 0.85, 0.5, 1.8, 2.4),
            _shot("rocket", 0.5, 0.5, 1.1, 2.0),
        ),
    ),
    changes=(
        *_story(
            "white rocket",
            (
                "standing between the steel towers under a dark blue sky",
                "standing large in the middle with lamps at its foot",
                "moving up until only its tip is seen against the sky",
                "standing at the edge beside a thin steel tower",
                "out of sight behind bright yellow lamps",
                "out of sight beside the steel tower on the right",
                "standing between the steel towers with the sky above",
            ),
        ),
        Change(
            shot=3,
            annotator="B",
            subject="yellow lamps",
            before="shining small at the foot of a thin tower",
            after="filling the lower half of the picture",
            label="Multiple",
            cause="camera turns to the ground",
        ),
    ),
)

CAT = EventVideo(
    clip=Clip(
        file="demoGebCat2.mp4",
        fps=10,
        shots=(
            _shot("chelsea", 0.5, 0.5, 1.0, 2.3),
            _shot("chelsea", 0.385, 0.39, 1.9, 2.4),
            _shot("chelsea", 0.55, 0.5, 1.0, 2.2),
            _shot("chelsea", 0.5, 0.45, 1.1, 2.3),
            _shot("chelsea", 0.575, 0.75, 1.9, 2.1),
            _shot("brick", 0.5, 0.5, 1.0, 2.0),
        ),
    ),
    changes=(
        *_story(
            "brown striped cat",
            (
                "looking at the camera with both eyes",
                "showing its left green eye from close by",
                "looking at the camera with both eyes",
                "looking at the camera with both eyes",
                "showing its pink nose and white whiskers",
            ),
        ),
        Change(
            shot=4,
            subject="whole scene",
            before="filled by the nose of a cat",
            after="filled by a grey brick wall",
            label="Change of Subject",
            cause="cat leaves the scene",
        ),
        Change(
            shot=4,
            annotator="B",
            subject="brown striped cat",
            before="showing its nose",
            after="gone",
            label="Change of Subject",
        ),
    ),
)

PEOPLE = EventVideo(
    clip=Clip(
        file="demoPeople3.mp4",
        shots=(
            _shot("astronaut", 0.5, 0.3, 1.0, 2.5),
            _shot("astronaut", 0.78, 0.8, 1.8, 2.5),
            _shot("camera", 0.5, 0.4, 1.0, 2.5),
            _shot("camera", 0.6, 0.75, 1.7, 2.5),
        ),
    ),
    changes=(
        Change(
            shot=0,
            subject="woman in an orange suit",
            before="smiling in front of a flag",
            after="hidden except for the helmet on her arm",
            label="Change of Object Being Interacted",
        ),
        Change(
            shot=1,
            subject="person in the scene",
            before="holding a black and white helmet",
            after="looking through a camera in a dark coat",
            label="Change of Subject",
            cause="scene changes",
        ),
        Change(
            shot=2,
            subject="man in a dark coat",
            before="looking through a camera",
            after="out of sight except for his coat behind the tripod",
        ),
    ),
)

NOTHING = EventVideo(
    clip=Clip(
        file="demoNothin4.mp4",
        condition="empty",
        shots=(
            _shot("rocket", 0.5, 0.5, 1.0, 2.5),
            _shot("rocket", 0.5, 0.4, 1.8, 2.5),
            _shot("rocket", 0.2, 0.6, 1.8, 2.5),
        ),
    ),
    changes=_story(
        "white rocket",
        (
            "standing far away between two towers",
            "standing close by",
            "out of sight beside a tower",
        ),
    ),
)

EVENT_VIDEOS = (ROCKET, CAT, PEOPLE, NOTHING)
