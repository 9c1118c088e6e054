"""The main colour of a texture is found, and replaced without what else is printed on it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eqforge.generators.scenes.palette import (
    PALETTE,
    are_distinct,
    decoded,
    encoded,
    recoloured,
    recoloured_pixels,
    sampled,
    shown_colours,
)

SIZE = 64
SQUARE = np.array([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]])
HALVES = np.array([0.5, 0.5])


def texture(name: str, print_of: str | None = None) -> NDArray[np.float64]:
    """A colour with grain, and a square of another one on a sixteenth of it."""
    grain = np.random.default_rng(1).uniform(0.7, 1.1, (SIZE, SIZE, 1))
    linear = np.clip(grain * np.array(PALETTE[name]), 0, 1)
    if print_of is not None:
        linear[20:36, 20:36] = PALETTE[print_of]
    return encoded(linear)


def shown(seen: NDArray[np.floating]) -> str:
    return shown_colours(*sampled(SQUARE, HALVES, seen)).name


@pytest.mark.parametrize("name", PALETTE)
def test_the_main_colour_is_found_in_any_grain(name: str) -> None:
    found = shown_colours(*sampled(SQUARE, HALVES, texture(name)))
    alike = sum(share for other, share in found.shares.items() if not are_distinct(name, other))
    assert alike > 0.99
    assert found.name == name
    assert sum(found.shares.values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", PALETTE)
@pytest.mark.parametrize("to", PALETTE)
def test_a_texture_gets_another_colour_and_keeps_its_print(name: str, to: str) -> None:
    seen = texture(name, "yellow" if are_distinct("yellow", name) and name != "white" else "blue")
    found = shown_colours(*sampled(SQUARE, HALVES, seen))
    made = recoloured(seen, found, PALETTE[to])
    assert not are_distinct(shown(made), to)
    kept = np.abs(made[22:34, 22:34] - seen[22:34, 22:34]).max()
    assert kept < 0.02 or name in ("red", "orange", "brown", "pink", "green")  # nearer in hue


def test_each_colour_of_a_texture_is_changed_but_once() -> None:
    pixels = np.rint(255 * texture("red", "yellow")).astype(np.uint8)
    found = shown_colours(*sampled(SQUARE, HALVES, pixels / 255))
    made = recoloured_pixels(pixels, found, PALETTE["blue"])
    assert np.array_equal(made, recoloured(pixels / 255, found, PALETTE["blue"]))


def test_of_a_fine_mesh_fewer_points_are_looked_at_and_tell_the_same() -> None:
    steps = np.linspace(0, 1, 151)
    low = np.stack(np.meshgrid(steps[:-1], steps[:-1]), axis=-1).reshape(-1, 1, 2)
    corners = low + np.array([[0, 0], [1, 0], [1, 1]]) / 150 * 0.99
    texels, areas = sampled(corners, np.ones(len(corners)), texture("green"))
    assert len(texels) == len(areas) <= 60_000
    assert areas.sum() == pytest.approx(len(corners))
    assert shown_colours(texels, areas).name == "green"


def test_the_grain_is_kept() -> None:
    seen = texture("red")
    made = recoloured(seen, shown_colours(*sampled(SQUARE, HALVES, seen)), PALETTE["blue"])
    before, after = decoded(seen)[..., 0].ravel(), decoded(made)[..., 2].ravel()
    assert np.corrcoef(before, after)[0, 1] > 0.99
    assert made.dtype == np.float32


@pytest.mark.parametrize("to", ["red", "yellow", "blue"])
def test_black_print_stays_black_and_a_fold_in_shadow_gets_the_colour(to: str) -> None:
    seen = texture("white")
    seen[22:34, 22:34] = 0.06
    seen[:8, :8] *= 0.6
    found = shown_colours(*sampled(SQUARE, HALVES, seen))
    made = recoloured(seen, found, PALETTE[to])
    assert np.abs(made[22:34, 22:34] - 0.06).max() < 0.01
    assert not are_distinct(shown(made[:8, :8]), to)


def test_a_black_thing_with_few_lighter_texels_becomes_as_light_as_its_colour() -> None:
    seen = np.full((SIZE, SIZE, 3), 0.02)
    seen[:, : SIZE // 4] = 0.14
    made = recoloured(seen, shown_colours(*sampled(SQUARE, HALVES, seen)), PALETTE["white"])
    assert shown(made) == "white"
    assert decoded(made[:, SIZE // 4 :]).mean() > 0.6 * np.mean(PALETTE["white"])


def test_what_has_no_main_colour_gets_the_colour_as_a_whole() -> None:
    seen = texture("red")
    seen[: SIZE // 2] = texture("green")[: SIZE // 2]
    made = recoloured(seen, shown_colours(*sampled(SQUARE, HALVES, seen)), PALETTE["blue"])
    share = shown_colours(*sampled(SQUARE, HALVES, made.astype(np.float64))).shares["blue"]
    assert share > 0.99


def test_a_colour_counts_by_the_surface_that_shows_it_not_by_the_texture() -> None:
    seen = texture("red")
    seen[:, : SIZE // 2] = texture("blue")[:, : SIZE // 2]  # its left half
    right = np.array([[[0.6, 0.1], [0.9, 0.1], [0.9, 0.9]]])
    left = np.array([[[0.1, 0.1], [0.4, 0.1], [0.4, 0.9]]])
    both = np.concatenate([right, left])
    found = shown_colours(*sampled(both, np.array([3.0, 1.0]), seen))
    assert found.name == "red"
    assert found.shares["red"] == pytest.approx(0.75, abs=0.01)


def test_beyond_its_edge_a_texture_repeats_and_its_first_row_is_on_top() -> None:
    seen = texture("white")
    seen[: SIZE // 2] = texture("black")[: SIZE // 2]
    upper = np.array([[[0.1, 0.6], [0.9, 0.6], [0.5, 0.9]]])
    assert shown_colours(*sampled(upper, np.array([1.0]), seen)).name == "black"
    assert shown_colours(*sampled(upper + 3, np.array([1.0]), seen)).name == "black"
    assert shown_colours(*sampled(upper - 0.5, np.array([1.0]), seen)).name == "white"
