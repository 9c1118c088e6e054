"""Which pixels masks of users name, in whatever form they come."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.core.files.source_folder import SourceFolder
from eqforge.schemas.records.frames import StoredImage
from eqforge.schemas.tables.generated import MaskRow
from eqforge.sources.edit_captions import EditCaption
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.generated.edit_masks import MaskFolder, read_region

PHOTOGRAPH = StoredImage(image_id="0" * 64, suffix=".png", width_px=12, height_px=8, num_bytes=1)


@pytest.fixture
def region() -> np.ndarray:
    """A region that holds the first pixel, whose colour many palettes begin with."""
    found = np.zeros((8, 12), bool)
    found[:5, :7] = True
    return found


def indexed(region: np.ndarray, colours: list[int]) -> Image.Image:
    """A mask with a palette: 0 where it may change."""
    picture = Image.fromarray(np.where(region, 0, 1).astype(np.uint8), "P")
    picture.putpalette(colours)
    return picture


def forms(region: np.ndarray) -> dict[str, Image.Image]:
    grey = Image.fromarray(region.astype(np.uint8) * 255)
    turned = Image.fromarray(np.rot90(np.asarray(grey)).copy())
    turned.getexif()[274] = 6
    return {
        "grey.png": grey,
        "bits.png": Image.fromarray(region),
        "deep.png": Image.fromarray(region.astype(np.uint16) * 700),
        "float.tiff": Image.fromarray(region.astype(np.float32)),
        "alpha.png": Image.merge("LA", [grey, Image.new("L", grey.size, 255)]),
        "white-first.png": indexed(region, [255, 255, 255, 0, 0, 0]),
        "red-first.gif": indexed(region, [200, 0, 0, 0, 0, 0]),
        "ink.tiff": grey.convert("RGB").convert("CMYK"),
        "turned.png": turned,
        "larger.png": grey.resize((24, 16), Image.Resampling.NEAREST),
    }


def test_a_photograph_may_change_where_its_mask_is_not_black(
    region: np.ndarray, tmp_path: Path
) -> None:
    media = MediaStore(str(tmp_path / "media"))
    for name, picture in forms(region).items():
        options: dict[str, Any] = {"exif": picture.getexif()} if name == "turned.png" else {}
        picture.save(tmp_path / name, **options)
        caption = EditCaption(caption_id="c", image="p.jpg", caption="a cup", mask=name)
        found = MaskFolder(SourceFolder(str(tmp_path))).find(caption, PHOTOGRAPH, media)
        assert isinstance(found, MaskRow), (name, found)
        assert (read_region(found, media) == region).all(), name
        with Image.open(io.BytesIO(media.get(found.mask_id, found.suffix))) as stored:
            assert stored.size == (12, 8)
