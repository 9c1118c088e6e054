"""Makes the floor textures and their part of the manifest.

They are committed as files, so that their bytes do not depend on a user's package versions; a test
compares them with what this makes.

Example:
    python -m tools.textures.build    # from the root of the repository
"""

import io
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.core.files import storage
from eqforge.generators.scenes.assets import Place
from tools.stage_manifest import FOLDER, picture_entry, replace_entries
from tools.textures import laid, mineral, photographs
from tools.textures.noise import Field

QUALITY = 86
OWN = "eqforge"
ANYWHERE: tuple[Place, ...] = ("indoors", "outdoors")


@dataclass(frozen=True, kw_only=True, slots=True)
class Texture:
    """A floor texture.

    Attributes:
      draw: makes it, float64 [size, size, 3], sRGB in [0, 255].
      tile_m: least and greatest side of a tile.
      albedo: mean of the linear luminance.
      places: where there are such floors.
      author: who made the picture.
      laid: how many pieces of the same size lie across it and down it, which may change places; 0
        for one that may be moved by any length; (1, 1) for none. None for grain without a
        direction, which may be turned.
    """

    draw: Callable[[np.random.Generator], Field]
    tile_m: tuple[float, float]
    albedo: float
    places: tuple[Place, ...] = ("outdoors",)
    author: str = OWN
    laid: tuple[int, int] | None = None


TEXTURES: Mapping[str, Texture] = {
    "asphalt": Texture(draw=mineral.asphalt, tile_m=(1.4, 2.0), albedo=0.14),
    "cloth": Texture(
        draw=laid.cloth, tile_m=(1.2, 1.8), albedo=0.26, places=("indoors",), laid=(1, 1)
    ),
    "cobbles": Texture(draw=laid.cobbles, tile_m=(2.0, 2.8), albedo=0.2),
    "concrete": Texture(draw=mineral.concrete, tile_m=(2.6, 3.6), albedo=0.33, places=ANYWHERE),
    "grass": Texture(
        draw=photographs.grass,
        tile_m=(1.2, 1.7),
        albedo=0.15,
        author="linolafett, by way of scikit-image",
    ),
    "gravel": Texture(
        draw=photographs.gravel,
        tile_m=(1.2, 1.8),
        albedo=0.27,
        author="CC0Textures (Gravel04), by way of scikit-image",
    ),
    "planks": Texture(
        draw=laid.planks, tile_m=(1.6, 2.4), albedo=0.2, places=ANYWHERE, laid=(8, 0)
    ),
    "sand": Texture(draw=mineral.sand, tile_m=(1.6, 2.4), albedo=0.34),
    "tiles": Texture(draw=laid.tiles, tile_m=(1.8, 2.6), albedo=0.42, places=ANYWHERE, laid=(4, 4)),
}


def texture_pixels(name: str) -> NDArray[np.uint8]:
    """Returns a texture of the wanted brightness, uint8 [size, size, 3], sRGB."""
    texture = TEXTURES[name]
    rng = np.random.default_rng([19, *name.encode()])
    light = linear(np.clip(texture.draw(rng), 0, 255) / 255)
    light *= texture.albedo / (light @ [0.2126, 0.7152, 0.0722]).mean()
    shown = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.rint(np.clip(shown, 0, 1) * 255).astype(np.uint8)


def linear(shown: Field) -> Field:
    """Returns the linear values of sRGB ones in [0, 1]."""
    return np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)


def mean_colour(pixels: NDArray[np.uint8]) -> list[float]:
    """Returns the mean of the linear red, green and blue."""
    return [round(float(part), 4) for part in linear(pixels / 255).mean(axis=(0, 1))]


def encoded(pixels: NDArray[np.uint8]) -> bytes:
    """Returns a texture as a JPEG file."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "jpeg", quality=QUALITY, optimize=True)
    return stream.getvalue()


def main() -> None:
    """Writes the textures and their part of the manifest."""
    entries = {}
    for name, texture in TEXTURES.items():
        pixels = texture_pixels(name)
        data, filename = encoded(pixels), f"textures/{name}.jpg"
        storage.write_bytes(str(FOLDER / filename), data)
        metadata = {"author": texture.author, "category": "floor"}
        floor = {
            "colour": mean_colour(pixels),
            "laid": texture.laid,
            "places": texture.places,
            "tile_m": texture.tile_m,
        }
        entries[f"stage_{name}"] = picture_entry(
            f"stage_{name}", filename, data, metadata, {"floor": floor}
        )
        print(f"{name:<10}{len(pixels)} px{len(data):>9,} bytes", file=sys.stderr)
    replace_entries("floor", entries)


if __name__ == "__main__":
    main()
