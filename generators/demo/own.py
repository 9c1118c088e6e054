"""The demo's stand-in for a user's own captioned videos."""

from dataclasses import dataclass

from eqforge.generators.demo.cooking import COFFEE
from eqforge.generators.demo.scenes import Clip, Place, Print, Shot, View


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnCaption:
    """One caption: of a moment when end_s is None, else of the time between."""

    clip: Clip
    start_s: float
    end_s: float | None = None
    caption: str


def _shot(photograph: str, x: float, y: float, zoom: float) -> Shot:
    return Shot(photograph=photograph, view=View(x=x, y=y, zoom=zoom), seconds=2.5)


TOUR = Clip(
    file="own/tour.mkv",
    shots=(
        _shot("brick", 0.5, 0.5, 1.0),
        _shot("coins", 0.5, 0.5, 1.0),
        _shot("coins", 0.85, 0.2, 2.2),
        _shot("chelsea", 0.5, 0.5, 1.0),
        _shot("chelsea", 0.385, 0.39, 1.9),
    ),
)

DESK = Clip(
    file="own/desk.mp4",
    shots=(Shot(photograph="gravel", view=View(x=0.5, y=0.5, zoom=2.0), seconds=12.0, drift=1.0),),
    prints=(
        Print(photograph="coffee", width=0.3, places=(Place(from_s=0.0, x=0.72, y=0.35),)),
        Print(
            photograph="chelsea",
            width=0.3,
            places=(
                Place(from_s=0.0, x=0.25, y=0.35),
                Place(from_s=3.0, x=0.72, y=0.75),
                Place(from_s=6.0, x=1.3, y=0.75),
            ),
        ),
        Print(
            photograph="rocket",
            width=0.3,
            places=(Place(from_s=0.0, x=-0.3, y=0.35), Place(from_s=9.0, x=0.25, y=0.35)),
        ),
    ),
)
"""A camera that stands still above photographs that are moved: its pairs are minimal."""

OWN_CAPTIONS = (
    OwnCaption(clip=TOUR, start_s=0.0, end_s=2.5, caption="a wall of grey bricks"),
    OwnCaption(clip=TOUR, start_s=2.5, end_s=5.0, caption="rows of old coins on a dark cloth"),
    OwnCaption(clip=TOUR, start_s=5.0, end_s=7.5, caption="one large coin on a dark cloth"),
    OwnCaption(clip=TOUR, start_s=9.0, caption="a cat that looks at the camera"),
    OwnCaption(clip=TOUR, start_s=11.5, caption="the green eye of a cat"),
    OwnCaption(clip=COFFEE.clip, start_s=0.0, end_s=3.0, caption="a red cup on a saucer"),
    OwnCaption(clip=COFFEE.clip, start_s=7.5, caption="a silver spoon on a saucer"),
    OwnCaption(
        clip=COFFEE.clip, start_s=12.0, end_s=15.0, caption="a wooden table beside a saucer"
    ),
    OwnCaption(
        clip=DESK, start_s=1.0, end_s=3.0, caption="a photo of a cat left of a photo of a cup"
    ),
    OwnCaption(
        clip=DESK, start_s=4.0, end_s=6.0, caption="a photo of a cat below a photo of a cup"
    ),
    OwnCaption(clip=DESK, start_s=7.0, end_s=9.0, caption="nothing but a photo of a cup"),
    OwnCaption(
        clip=DESK, start_s=10.0, end_s=12.0, caption="a photo of a rocket left of a photo of a cup"
    ),
)
