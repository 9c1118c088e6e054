"""The gate of materials, on boxes with the colours that things of each material have."""

from itertools import permutations
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from eqforge.schemas.records.scenes import SurfaceMaterial
from eqforge.transforms.generated.scene_colours import material_contrast

MATERIALS: tuple[SurfaceMaterial, ...] = get_args(SurfaceMaterial)
FLOOR = (118, 120, 112)
WHERE = np.zeros((40, 40), bool)
WHERE[10:30, 12:30] = True
Picture = NDArray[np.uint8]


def shown(material: SurfaceMaterial) -> Picture:
    """A box on a floor: brown, black, a darker and greener floor, or grey with light and shade."""
    picture = np.full((40, 40, 3), FLOOR, np.uint8)
    looks = {"wooden": (150, 105, 70), "rubber": (34, 34, 36), "glass": (92, 104, 94)}
    picture[WHERE] = looks.get(material, (150, 151, 153))
    if material == "metal":
        picture[10:30, 12:16], picture[10:30, 16:19] = 245, 60
    return picture


def contrast(first: SurfaceMaterial, second: SurfaceMaterial, *seen: Picture) -> float | None:
    pictures = (seen[0], seen[1]) if seen else (shown(first), shown(second))
    return material_contrast((first, second), pictures, (WHERE, WHERE))


@pytest.mark.parametrize(("first", "second"), list(permutations(MATERIALS, 2)))
def test_what_is_shown_as_named_is_plain_and_exchanged_it_is_negative(
    first: SurfaceMaterial, second: SurfaceMaterial
) -> None:
    plain = contrast(first, second)
    exchanged = contrast(first, second, shown(second), shown(first))
    assert plain is not None
    assert exchanged is not None
    assert plain > 1
    assert exchanged == pytest.approx(-plain)
    assert contrast(second, first) == pytest.approx(plain)


@pytest.mark.parametrize(("first", "second"), list(permutations(MATERIALS, 2)))
def test_what_does_not_change_is_not_plain(first: SurfaceMaterial, second: SurfaceMaterial) -> None:
    assert contrast(first, second, shown(first), shown(first)) == 0


def test_a_thing_that_is_not_seen_or_stays_is_not_judged() -> None:
    pictures = shown("metal"), shown("glass")
    hidden = np.zeros_like(WHERE)
    assert material_contrast(("metal", "glass"), pictures, (WHERE, hidden)) is None
    assert material_contrast(("metal", "metal"), pictures, (WHERE, WHERE)) is None


def test_a_thing_of_a_few_pixels_is_judged_by_all_of_them() -> None:
    few = np.zeros_like(WHERE)
    few[20:22, 14:20] = True
    pictures = shown("wooden"), shown("rubber")
    found = material_contrast(("wooden", "rubber"), pictures, (few, few))
    assert found == pytest.approx(contrast("wooden", "rubber"))
