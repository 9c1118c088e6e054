"""The demo's cooking videos, with one sentence per shot, as in YouCook2.

They include the faces the paper drops, a black frame (the shadow behind the astronaut), a rotated
video, a truncated one, and a missing one.
"""

from dataclasses import dataclass
from typing import Literal

from eqforge.generators.demo.scenes import Clip, Shot, View


@dataclass(frozen=True, kw_only=True, slots=True)
class CookingVideo:
    """A clip and its annotations.

    Attributes:
      clip: the video; each of its shots is a segment.
      subset: the split.
      recipe_type: YouCook2's number of the recipe.
      sentences: one per shot.
    """

    clip: Clip
    subset: Literal["training", "validation"]
    recipe_type: str
    sentences: tuple[str, ...]


def _shot(photograph: str, x: float, y: float, zoom: float, seconds: int = 3) -> Shot:
    # Whole seconds, because the published segments are in whole seconds.
    return Shot(photograph=photograph, view=View(x=x, y=y, zoom=zoom), seconds=seconds)


COFFEE = CookingVideo(
    clip=Clip(
        file="demoCoffee1.mp4",
        shots=(
            _shot("coffee", 0.5, 0.5, 1.0),
            _shot("coffee", 0.48, 0.36, 2.4),
            _shot("coffee", 0.62, 0.68, 2.2),
            _shot("coffee", 0.38, 0.68, 2.2),
            _shot("coffee", 0.9, 0.45, 2.4),
        ),
    ),
    subset="training",
    recipe_type="101",
    sentences=(
        "place the red cup and saucer on the wooden table",
        "zoom in on the coffee in the cup",
        "lay the silver spoon on the saucer",
        "turn the handle of the cup to the front",
        "wipe the wooden table beside the saucer",
    ),
)

KITCHEN = CookingVideo(
    clip=Clip(
        file="demoKitchn2.webm",
        codec="vp9",
        shots=(
            _shot("coffee", 0.4, 0.5, 1.3),
            _shot("gravel", 0.5, 0.5, 1.5),
            _shot("coins", 0.3, 0.6, 1.6),
            _shot("coins", 0.9, 0.12, 2.4),
            _shot("chelsea", 0.6, 0.5, 1.0, seconds=2),
            _shot("astronaut", 0.905, 0.605, 10.0, seconds=2),
        ),
    ),
    subset="validation",
    recipe_type="214",
    sentences=(
        "serve the coffee in a red cup",
        "spread the small grey stones in one layer",
        "lay the coins out in rows on the dark tray",
        "pick the largest coin from the corner of the tray",
        "keep the cat away from the food",
        "turn off the light in the kitchen",
    ),
)

GUEST = CookingVideo(
    clip=Clip(
        file="demoGuests3.mp4",
        size=(640, 480),
        fps=15,
        shots=(
            _shot("astronaut", 0.5, 0.3, 1.0),
            _shot("astronaut", 0.45, 0.24, 1.7),
            _shot("astronaut", 0.05, 0.4, 2.6),
            _shot("astronaut", 0.82, 0.32, 2.4),
            _shot("astronaut", 0.78, 0.85, 2.2),
            _shot("astronaut", 0.35, 0.76, 2.6, seconds=2),
        ),
    ),
    subset="validation",
    recipe_type="101",
    sentences=(
        "welcome the guest in the orange suit",
        "ask the smiling guest to taste the coffee",
        "hang the striped flag on the wall",
        "set the white rocket against the wall",
        "put the black and white helmet on the table",
        "pin the round patch to the orange suit",
    ),
)

TURNED = CookingVideo(
    clip=Clip(
        file="demoTurned4.mp4",
        codec="hevc",
        size=(360, 480),
        fps=10,
        is_turned=True,
        shots=(
            _shot("chelsea", 0.5, 0.5, 1.0),
            _shot("chelsea", 0.385, 0.39, 2.0),
            _shot("chelsea", 0.575, 0.8, 2.0),
            _shot("coffee", 0.48, 0.36, 1.4),
        ),
    ),
    subset="training",
    recipe_type="214",
    sentences=(
        "wait until the cat looks at the camera",
        "check the left green eye of the cat",
        "offer some milk in front of the pink nose of the cat",
        "pour the coffee into the white cup",
    ),
)

CUT_OFF = CookingVideo(
    clip=Clip(
        file="demoCutOff5.mp4",
        condition="truncated",
        shots=(
            _shot("coffee", 0.3, 0.7, 1.5),
            _shot("coffee", 0.6, 0.3, 1.5),
            _shot("coins", 0.5, 0.5, 1.0),
            _shot("gravel", 0.5, 0.5, 1.0),
        ),
    ),
    subset="training",
    recipe_type="101",
    sentences=(
        "warm the red saucer on the table",
        "fill the cup with coffee to the white rim",
        "count the coins on the tray",
        "cover the tray with small stones",
    ),
)

ABSENT = CookingVideo(
    clip=Clip(
        file="demoAbsent6.mp4",
        condition="missing",
        shots=(
            _shot("coffee", 0.5, 0.5, 1.0),
            _shot("coffee", 0.48, 0.36, 2.0),
            _shot("coffee", 0.62, 0.68, 2.0),
            _shot("coffee", 0.9, 0.45, 2.0),
        ),
    ),
    subset="training",
    recipe_type="101",
    sentences=(
        "bring the cup to the table",
        "stir the coffee",
        "put the spoon down",
        "clean the table",
    ),
)

COOKING_VIDEOS = (COFFEE, KITCHEN, GUEST, TURNED, CUT_OFF, ABSENT)
