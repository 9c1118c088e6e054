"""Small values of records: ranges of columns, spans of text, and boxes in images.

Builds write only values in the range of their column, and `eqforge verify` rejects others. `RULES`
of a record say by column whether it fits the others of its row.

Boxes are in pixels, (0, 0) the upper left corner of the image, in the three forms in use.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

SCHEMA_VERSION = "1"

Int32 = Annotated[int, "int32"]
"""A whole number that a column stores in 32 bits; others have 64."""

Whole = Annotated[int, Meta(ge=0)]
Whole32 = Annotated[Int32, Meta(ge=0)]
Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Positive = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Share = Annotated[float, Meta(ge=0, le=1)]
Similarity = Annotated[float, Meta(ge=-1, le=1)]
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Text = Annotated[str, Meta(min_length=1)]

PictureSuffix = Annotated[str, "picture", Meta(pattern=r"\A\.(jpg|png|webp|gif|bmp|tif)\Z")]
"""The suffix of a picture's file, `.jpg` or `.png`. Its column holds the picture itself. It is
never null, but Hugging Face shows pictures only in nullable columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The characters text[start:end], in code points; empty where start == end."""

    start: Whole
    end: Whole

    RULES: ClassVar = {"end": lambda span: span.start <= span.end}


def spans_of(pairs: Iterable[tuple[int, int]]) -> tuple[Span, ...]:
    return tuple(Span(start=start, end=end) for start, end in pairs)


@dataclass(frozen=True, kw_only=True, slots=True)
class PixelBox:
    """A box of whole pixels: its left and top pixel, and its width and height."""

    x: Whole32
    y: Whole32
    width: Whole32
    height: Whole32


@dataclass(frozen=True, kw_only=True, slots=True)
class XywhBox:
    """A box as annotators draw it, between pixels: left and top edge, width and height."""

    x: Finite
    y: Finite
    width: Finite
    height: Finite


@dataclass(frozen=True, kw_only=True, slots=True)
class CornerBox:
    """A box by its corners, which may lie outside the image: x0 <= x < x1, y0 <= y < y1."""

    x0: Int32
    y0: Int32
    x1: Int32
    y1: Int32

    RULES: ClassVar = {"x1": lambda box: not box.is_empty}

    @property
    def width(self) -> int:
        return self.x1 - self.x0

    @property
    def height(self) -> int:
        return self.y1 - self.y0

    @property
    def is_empty(self) -> bool:
        return self.width <= 0 or self.height <= 0

    def clip(self, size: tuple[int, int] | None) -> "CornerBox":
        """Return the part that lies in an image, empty if none does.

        Args:
          size: the image's width and height; None if unknown: then only the part left of the image
            or above it is cut off.
        """
        width, height = (self.x1, self.y1) if size is None else size
        return CornerBox(
            x0=max(0, self.x0),
            y0=max(0, self.y0),
            x1=min(width, self.x1),
            y1=min(height, self.y1),
        )

    def union(self, other: "CornerBox") -> "CornerBox":
        return CornerBox(
            x0=min(self.x0, other.x0),
            y0=min(self.y0, other.y0),
            x1=max(self.x1, other.x1),
            y1=max(self.y1, other.y1),
        )
