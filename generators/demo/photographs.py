"""The photographs the demo is filmed from: those that scikit-image carries inside its wheel.

Only files of the installed wheel are opened, by path. scikit-image's own loading functions are
avoided because they may download what they do not find.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType

from PIL import Image

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import open_rgb


@dataclass(frozen=True, kw_only=True, slots=True)
class Photograph:
    """One photograph and the terms it is used under.

    Attributes:
      file: name in scikit-image's data folder.
      shows: what is seen, in a few words.
      credit: who made it, in the words of scikit-image's documentation.
      licence: under what terms, in the words of scikit-image's documentation.
    """

    file: str
    shows: str
    credit: str
    licence: str


_CC0 = "CC0"
_PUBLIC_DOMAIN = "No known copyright restrictions, released into the public domain"

PHOTOGRAPHS: Mapping[str, Photograph] = MappingProxyType(
    {
        "astronaut": Photograph(
            file="astronaut.png",
            shows="the astronaut Eileen Collins",
            credit="NASA Great Images database",
            licence=_PUBLIC_DOMAIN,
        ),
        "brick": Photograph(
            file="brick.png", shows="a brick wall", credit="CC0Textures, Bricks25", licence=_CC0
        ),
        "camera": Photograph(
            file="camera.png", shows="a man with a camera", credit="Lav Varshney", licence=_CC0
        ),
        "chelsea": Photograph(
            file="chelsea.png",
            shows="Chelsea the cat",
            credit="Stefan van der Walt",
            licence=_CC0,
        ),
        "coffee": Photograph(
            file="coffee.png",
            shows="a cup of coffee",
            credit="Rachel Michetti, courtesy of Pikolo Espresso Bar",
            licence=_CC0,
        ),
        "coins": Photograph(
            file="coins.png",
            shows="Greek coins from Pompeii",
            credit="Brooklyn Museum Collection",
            licence="No known copyright restrictions",
        ),
        "gravel": Photograph(
            file="gravel.png", shows="gravel", credit="CC0Textures, Gravel04", licence=_CC0
        ),
        "rocket": Photograph(
            file="rocket.jpg",
            shows="a Falcon 9 rocket before its launch",
            credit="SpaceX Photos",
            licence="Released into the public domain by SpaceX",
        ),
        "text": Photograph(
            file="text.png",
            shows="handwriting on paper",
            credit="Wikipedia",
            licence=_PUBLIC_DOMAIN,
        ),
    }
)


@functools.cache
def load_photograph(name: str) -> Image.Image:
    """Returns one photograph as an RGB image, which callers must not change.

    Args:
      name: a key of PHOTOGRAPHS.

    Raises:
      InputError: the installed scikit-image lacks the file.
    """
    file = resources.files("skimage").joinpath("data", PHOTOGRAPHS[name].file)
    try:
        return open_rgb(file.read_bytes())
    except FileNotFoundError as error:
        raise InputError(
            f"scikit-image lacks its photograph {PHOTOGRAPHS[name].file}: reinstall it"
        ) from error
