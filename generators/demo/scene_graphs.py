"""The demo's scene graphs: who does what with which object in which frame, as in Action Genome.

The people stand still; prints that move around them change the relations. Boxes are measured from
what the clip draws, so they fit the pixels.
"""

from dataclasses import dataclass
from typing import Literal

from eqforge.generators.demo.scenes import Box, Clip, Place, Print, Shot, View

MIN_SEEN = 0.25
"""Minimum share of an object inside the frame for it to count as visible."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Relations:
    """How the person relates to an object from a time on."""

    from_s: float
    attention: tuple[str, ...]
    spatial: tuple[str, ...]
    contacting: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneObject:
    """An object of a video.

    Attributes:
      name: Action Genome's name of its class.
      where: a part of the photograph in fractions of its sides, or a print.
      relations: by ascending time, the first at 0.
    """

    name: str
    where: Box | Print
    relations: tuple[Relations, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphVideo:
    """A clip and its annotations.

    Attributes:
      clip: the video.
      person: the person's box in fractions of the photograph's sides.
      objects: the objects the person interacts with.
      times_s: times of the annotated frames.
      late_frames: annotated frame numbers after the clip's end.
      split: Action Genome's name of the split.
    """

    clip: Clip
    person: Box
    objects: tuple[SceneObject, ...]
    times_s: tuple[float, ...]
    late_frames: tuple[int, ...] = ()
    split: Literal["train", "test"]


def _always(attention: str, spatial: str, contacting: str) -> tuple[Relations, ...]:
    return (_from(0.0, attention, (spatial,), contacting),)


def _from(from_s: float, attention: str, spatial: tuple[str, ...], contacting: str) -> Relations:
    return Relations(
        from_s=from_s, attention=(attention,), spatial=spatial, contacting=(contacting,)
    )


_CAT_PICTURE = Print(
    photograph="chelsea",
    width=0.24,
    places=(
        Place(from_s=0.0, x=0.15, y=0.2),
        Place(from_s=3.0, x=0.42, y=0.8),
        Place(from_s=6.0, x=0.66, y=0.6),
        Place(from_s=9.0, x=1.3, y=0.5),
    ),
)

ASTRONAUT = GraphVideo(
    clip=Clip(
        file="DEMO1.mp4",
        shots=(Shot(photograph="astronaut", view=View(x=0.5, y=0.4), seconds=12),),
        prints=(_CAT_PICTURE,),
    ),
    person=(0.03, 0.03, 0.72, 1.0),
    objects=(
        SceneObject(
            name="picture",
            where=_CAT_PICTURE,
            relations=(
                _from(0.0, "not_looking_at", ("on_the_side_of",), "not_contacting"),
                _from(3.0, "unsure", ("in_front_of",), "holding"),
                _from(6.0, "not_looking_at", ("on_the_side_of", "in_front_of"), "touching"),
            ),
        ),
        SceneObject(
            name="clothes",
            where=(0.03, 0.3, 0.72, 1.0),
            relations=_always("not_looking_at", "in_front_of", "wearing"),
        ),
    ),
    times_s=(0.5, 1.25, 2.0, 4.0, 4.75, 5.5, 7.5, 8.25, 10.5, 11.5),
    split="train",
)

_NOTE = Print(
    photograph="text",
    width=0.3,
    places=(
        Place(from_s=0.0, x=0.17, y=0.25),
        Place(from_s=3.0, x=0.82, y=0.3),
        Place(from_s=6.0, x=0.5, y=0.62),
    ),
)

CAMERAMAN = GraphVideo(
    clip=Clip(
        file="DEMO2.mp4",
        fps=10,
        shots=(
            Shot(photograph="camera", view=View(x=0.5, y=0.35), seconds=9),
            Shot(photograph="camera", view=View(x=0.1, y=0.7, zoom=2.2), seconds=3),
        ),
        prints=(_NOTE,),
    ),
    person=(0.0, 0.12, 0.6, 1.0),
    objects=(
        SceneObject(
            name="phone/camera",
            where=(0.5, 0.26, 0.66, 0.37),
            relations=_always("looking_at", "in_front_of", "holding"),
        ),
        SceneObject(
            name="paper/notebook",
            where=_NOTE,
            relations=(
                _from(0.0, "not_looking_at", ("behind",), "not_contacting"),
                _from(3.0, "looking_at", ("in_front_of",), "not_contacting"),
                _from(6.0, "not_looking_at", ("in_front_of",), "holding"),
            ),
        ),
    ),
    times_s=(0.5, 1.5, 2.5, 4.0, 5.0, 5.8, 7.0, 8.0, 10.0, 11.0),
    late_frames=(999,),
    split="test",
)

GRAPH_VIDEOS = (ASTRONAUT, CAMERAMAN)
