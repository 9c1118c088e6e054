"""Draws a pair and where it differs, for a page: python scripts/picture.py DATASET ID FILE.jpg."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import eqforge

SIDE_PX, GAP_PX, TEXT_PX = 384, 8, 17


def difference(first: Image.Image, second: Image.Image) -> Image.Image:
    """Returns the second picture in grey, red where it differs from the first."""
    pixels = np.asarray(second.convert("L").convert("RGB"), dtype=np.float64)
    change = np.abs(np.asarray(first, dtype=np.float64) - np.asarray(second)).max(axis=2) / 255
    share = np.clip(change * 4 - 0.1, 0, 1)[..., None]
    return Image.fromarray((pixels * (1 - share) + np.array([220, 30, 30]) * share).astype("uint8"))


def draw(dataset: str, sample_id: str, file: Path) -> None:
    """Writes the picture."""
    (sample,) = (
        each for each in eqforge.open(dataset).samples() if each.record.sample_id == sample_id
    )
    first, second = (sample.images[name].convert("RGB") for name in ("image_0", "image_1"))
    texts = (sample.record.caption_0, sample.record.caption_1, "what differs")
    sheet = Image.new("RGB", (3 * SIDE_PX + 2 * GAP_PX, SIDE_PX + 2 * TEXT_PX), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(TEXT_PX)
    panels = zip((first, second, difference(first, second)), texts, strict=True)
    for number, (panel, text) in enumerate(panels):
        left = number * (SIDE_PX + GAP_PX)
        sheet.paste(panel.resize((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS), (left, 0))
        pen.text((left + 4, SIDE_PX + TEXT_PX // 2), text, fill="black", font=font)
    sheet.save(file, quality=88)


if __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
