from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import pyarrow as pa
import pytest

from eqforge.schemas.records.values import Int32, PictureSuffix
from eqforge.schemas.tables.columns import IMAGE, schema_of


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Part:
    start: Int32
    end: int | None


@dataclass(frozen=True, kw_only=True)
class Whole:
    text: str
    suffix: PictureSuffix
    number: float | None
    small: Int32 | None = None
    is_so: bool = True
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    parts: tuple[Part, ...] = ()
    part: Part | None = None


def test_the_columns_follow_from_the_annotations() -> None:
    struct = pa.struct([pa.field("start", pa.int32(), nullable=False), pa.field("end", pa.int64())])

    assert schema_of(Whole) == pa.schema(
        [
            pa.field("text", pa.string(), nullable=False),
            pa.field("image", IMAGE),
            pa.field("number", pa.float64()),
            pa.field("small", pa.int32()),
            pa.field("is_so", pa.bool_(), nullable=False),
            pa.field("colour", pa.string(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("parts", pa.list_(pa.field("item", struct, nullable=False)), nullable=False),
            pa.field("part", struct),
        ]
    )


@pytest.mark.parametrize("hint", [dict[str, int], tuple[int, int], object])
def test_a_field_that_no_column_can_hold_is_refused(hint: object) -> None:
    @dataclass
    class Odd:
        value: hint  # type: ignore[valid-type]

    Odd.__annotations__["value"] = hint
    with pytest.raises(TypeError, match="no column type for"):
        schema_of(Odd)
