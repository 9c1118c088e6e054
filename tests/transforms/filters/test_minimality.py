"""Measures of how little two images differ."""

import dataclasses
import io
from pathlib import Path
from typing import Any

import av
import imagehash
import numpy as np
import pytest
import scipy.signal  # type: ignore[import-untyped]
import skimage.data
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from PIL import Image
from skimage.color import rgb2lab

from eqforge.pipelines import eq_sd
from eqforge.transforms.filters.minimality import (
    REASONS,
    GateSettings,
    PairMeasures,
    gate_pair,
    is_changed,
    measure_pair,
    perceptual_hash,
    view,
)
from tests.recoloured import OBJECTS, painted, region

PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket")

SAME = PairMeasures(
    changed_area_fraction=0.0, ssim=1.0, background_ssim=1.0, luminance_shift=0.0, phash_distance=0
)


def measure(pixels_0: np.ndarray, pixels_1: np.ndarray) -> PairMeasures:
    return measure_pair(view(pixels_0), view(pixels_1))


def photograph(name: str) -> np.ndarray:
    return getattr(skimage.data, name)()


def wang_ssim(first: np.ndarray, second: np.ndarray) -> float:
    """SSIM as section III of Wang et al. 2004 writes it, in float64, over whole windows."""
    steps = np.arange(-5, 6)
    line = np.exp(-(steps**2) / (2 * 1.5**2))
    window = np.outer(line, line) / line.sum() ** 2

    def mean(values: np.ndarray) -> np.ndarray:
        return scipy.signal.convolve2d(values, window, mode="valid")

    x, y = first.astype(float), second.astype(float)
    mu_x, mu_y = mean(x), mean(y)
    var_x, var_y = mean(x * x) - mu_x**2, mean(y * y) - mu_y**2
    cov = mean(x * y) - mu_x * mu_y
    c_1, c_2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    map_ = ((2 * mu_x * mu_y + c_1) * (2 * cov + c_2)) / (
        (mu_x**2 + mu_y**2 + c_1) * (var_x + var_y + c_2)
    )
    return float(map_.mean())


def test_an_image_and_itself_differ_in_nothing() -> None:
    image = skimage.data.astronaut()
    assert measure(image, image) == SAME


def test_a_changed_square_is_the_changed_area_and_the_rest_is_untouched() -> None:
    first = skimage.data.astronaut()[:256, :256]
    second = first.copy()
    second[64:128, 96:160] = 255 - second[64:128, 96:160]
    found = measure(first, second)
    assert (60 / 256) ** 2 <= found.changed_area_fraction <= (68 / 256) ** 2
    assert found.background_ssim == 1.0
    assert found.ssim < 0.95


def test_a_large_change_does_not_count_the_rest_as_changed() -> None:
    """Subtracting the mean difference, in place of the median, would mark the whole image."""
    first = np.full((256, 256, 3), 30, np.uint8)
    second = first.copy()
    second[:, :100] = 250
    found = measure(first, second)
    assert found.changed_area_fraction == pytest.approx(100 / 256, abs=2.01 / 256)
    assert found.background_ssim == 1.0


def test_a_change_of_exposure_is_a_luminance_shift_and_not_a_changed_area() -> None:
    first = skimage.data.coffee() // 2
    found = measure(first, first + 40)
    assert found.luminance_shift == pytest.approx(40, abs=0.5)
    assert found.changed_area_fraction == 0.0
    assert found.phash_distance <= 6
    assert found.ssim < 0.98


@pytest.mark.parametrize("name", PHOTOGRAPHS)
@pytest.mark.parametrize("gains", [(1.06, 1.0, 0.94), (0.95, 1.0, 1.05)])
def test_another_white_balance_changes_no_area(name: str, gains: tuple[float, ...]) -> None:
    first = photograph(name)
    found = measure(first, np.clip(np.rint(first * gains), 0, 255).astype(np.uint8))
    assert found.changed_area_fraction == 0.0


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("colour", ["blue", "purple", "brown"])
def test_colours_of_equal_brightness_are_a_change(name: str, colour: str) -> None:
    """In luma their changed area was 0, their SSIM above 0.9998 and the hash distance 0."""
    red, other, (_, mask) = painted(name, "red"), painted(name, colour), region(name)
    found = measure(red, other)
    assert abs(found.luminance_shift) < 0.02
    assert 0.9 * mask.mean() < found.changed_area_fraction < 2.1 * mask.mean()
    assert found.ssim < 0.99
    assert found.background_ssim is not None
    assert found.background_ssim > 0.998
    assert found.phash_distance >= 4


def test_eq_sd_keeps_pairs_of_equal_brightness_and_drops_compressed_copies() -> None:
    gates = eq_sd.EqSd.defaults("corrected")["settings"].gates
    for name in OBJECTS:
        red = painted(name, "red")
        assert gate_pair(measure(red, painted(name, "blue")), gates) is None, name
        dropped = gate_pair(measure(red, compressed(red)), gates)
        assert dropped is not None
        assert dropped.reason == "change_too_small"


@pytest.mark.parametrize("quarters", [1, 2])
def test_a_turned_picture_is_another_picture(quarters: int) -> None:
    first = skimage.data.coffee()
    found = measure(first, np.rot90(first, quarters))
    assert found.changed_area_fraction > 0.5
    assert found.ssim < 0.6
    assert found.phash_distance > 60


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_the_noise_of_a_static_camera_changes_no_area(name: str) -> None:
    found = measure(*static_shot(photograph(name)))
    assert found.changed_area_fraction == 0.0
    assert found.ssim > 0.95


def static_shot(pixels: np.ndarray) -> list[np.ndarray]:
    height, width = (side // 2 * 2 for side in pixels.shape[:2])
    rng, file = np.random.default_rng(0), io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=25, options={"crf": "28"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for _ in range(10):
            noisy = pixels[:height, :width] + rng.normal(0, 6, (height, width, 3))
            shown = np.clip(noisy, 0, 255).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(shown, format="rgb24")))
        container.mux(stream.encode())
    file.seek(0)
    with av.open(file, "r") as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return [frames[1], frames[-1]]


def test_nothing_is_outside_an_image_that_changed_all_over() -> None:
    ramp = np.broadcast_to(np.arange(256, dtype=np.uint8)[:, None], (200, 256, 3))
    found = measure(ramp, ramp[:, ::-1])
    assert found.background_ssim is None
    assert found.changed_area_fraction > 0.9


def test_ssim_equals_the_published_formula() -> None:
    """Of a grey picture L* alone differs; of one in colours, the plane that differs most counts."""
    image = np.asarray(Image.fromarray(skimage.data.chelsea()).convert("L").resize((256, 170)))
    noise = np.random.default_rng(0).normal(0, 12, image.shape)
    noisy = np.clip(image + noise, 0, 255).astype(np.uint8)
    grey = [np.stack([luma] * 3, axis=-1) for luma in (image, noisy)]
    expected = wang_ssim(*(np.rint(rgb2lab(pixels)[..., 0] * 2.55) for pixels in grey))
    assert measure(*grey).ssim == pytest.approx(expected, abs=1e-4)

    views = [view(painted("suit", colour)) for colour in ("red", "blue")]
    planes = zip(*(each.planes for each in views), strict=True)
    expected = min(wang_ssim(*plane) for plane in planes)
    assert measure_pair(*views).ssim == pytest.approx(expected, abs=1e-5)


def test_the_hash_is_imagehash_of_each_channel_and_its_distance_counts_bits() -> None:
    first, second = (Image.fromarray(photograph(name)) for name in ("coffee", "rocket"))
    expected = [[imagehash.phash(one) for one in image.split()] for image in (first, second)]
    for image, hashes in zip((first, second), expected, strict=True):
        assert view(np.asarray(image)).phash == "".join(map(str, hashes))
        assert len(perceptual_hash(np.asarray(image))) == 48
    distance = measure(np.asarray(first), np.asarray(second)).phash_distance
    assert distance == sum(one - other for one, other in zip(*expected, strict=True))


def test_the_order_turns_the_sign_of_the_luminance_shift_only() -> None:
    first, second = skimage.data.chelsea(), skimage.data.chelsea()[::-1] // 2
    there, back = measure(first, second), measure(second, first)
    assert there.luminance_shift == -back.luminance_shift < 0
    assert there.changed_area_fraction == back.changed_area_fraction
    assert there.ssim == pytest.approx(back.ssim, abs=1e-6)


def test_the_same_image_at_two_sizes_hardly_differs() -> None:
    image = Image.fromarray(skimage.data.astronaut())
    wide = np.asarray(image.resize((900, 640)))
    found = measure(np.asarray(image), wide)
    assert found.changed_area_fraction < 0.01
    assert found.ssim > 0.9
    assert found.phash_distance <= 6


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (900, 1), (3, 2)])
def test_images_of_any_size_are_measured(shape: tuple[int, int]) -> None:
    image = np.full((*shape, 3), 90, np.uint8)
    assert measure(image, image) == SAME
    assert measure(image, skimage.data.coffee()).changed_area_fraction > 0.5


@settings(max_examples=25)
@given(arrays(np.uint8, (16, 24, 3)), arrays(np.uint8, (16, 24, 3)))
def test_measures_stay_in_their_ranges(first: np.ndarray, second: np.ndarray) -> None:
    found = measure(first, second)
    assert 0 <= found.changed_area_fraction <= 1
    assert -1 <= found.ssim <= 1
    assert found.background_ssim is None or -1 <= found.background_ssim <= 1
    assert -255 <= found.luminance_shift <= 255
    assert 0 <= found.phash_distance <= 192


@pytest.mark.parametrize(("step", "expected"), [(4.9, False), (5.1, True)])
def test_a_pixel_changed_above_a_difference_of_five_in_lightness(
    step: float, expected: bool
) -> None:
    lightness, same = np.zeros((40, 40), np.float32), np.zeros((20, 20), np.float32)
    lightness[:10] = step * 255 / 100
    for sign in (1, -1):
        found = is_changed(sign * lightness, same, same)
        assert bool(found[2, 20]) is expected
        assert not found[20, 20]


@pytest.mark.parametrize(("step", "expected"), [((7.1, 9.5), False), ((7.3, 9.7), True)])
def test_a_pixel_changed_above_a_distance_of_twelve_in_colour(
    step: tuple[float, float], expected: bool
) -> None:
    """Wherever the colour lies: 7.2 and 9.6 make 12."""
    same = np.zeros((41, 40), np.float32)
    green_red, blue_yellow = (np.zeros((20, 20), np.float32) for _ in step)
    green_red[:5], blue_yellow[:5] = -step[0], step[1]
    found = is_changed(same, green_red, blue_yellow)
    assert found.shape == (41, 40)
    assert bool(found[2, 20]) is expected
    assert not found[20, 20]


def compressed(pixels: np.ndarray) -> np.ndarray:
    """A picture as JPEG of quality 30."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=30)
    return np.asarray(Image.open(buffer).convert("RGB"))


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_compression_changes_no_area(name: str) -> None:
    found = measure(photograph(name), compressed(photograph(name)))
    assert found.changed_area_fraction == 0.0
    assert found.ssim > 0.94


def test_compression_changes_no_area_of_other_photographs(data_folder: Path) -> None:
    """On every second one; the limits were set on those between them."""
    files = sorted((data_folder / "photos/coco_mini/train2017").glob("*.jpg"))[1::2]
    assert len(files) == 40
    for file in files:
        with Image.open(file) as image:
            pixels = np.asarray(image.convert("RGB"))
        found = measure(pixels, compressed(pixels))
        assert found.changed_area_fraction == 0.0, file.name
        assert found.ssim > 0.94


SOME = PairMeasures(
    changed_area_fraction=0.2, ssim=0.8, background_ssim=0.9, luminance_shift=-7.0, phash_distance=9
)


@pytest.mark.parametrize(
    ("gate", "passes", "fails", "reason"),
    [
        ("min_changed_area", 0.2, 0.21, "change_too_small"),
        ("max_changed_area", 0.2, 0.19, "change_too_large"),
        ("max_ssim", 0.8, 0.79, "change_too_small"),
        ("min_ssim", 0.8, 0.81, "change_too_large"),
        ("min_phash_distance", 9, 10, "change_too_small"),
        ("max_phash_distance", 9, 8, "change_too_large"),
        ("min_background_ssim", 0.9, 0.91, "background_changed"),
        ("max_luminance_shift", 7.0, 6.9, "luminance_shift"),
    ],
)
def test_a_gate_lets_its_limit_pass(gate: str, passes: float, fails: float, reason: str) -> None:
    kept: dict[str, Any] = {gate: passes}
    refused: dict[str, Any] = {gate: fails}
    assert gate_pair(SOME, GateSettings(**kept)) is None
    found = gate_pair(SOME, GateSettings(**refused))
    assert found is not None
    assert (found.reason, found.threshold) == (reason, fails)
    assert found.reason in REASONS
    assert found.value == getattr(SOME, found.detail)


def test_every_gate_is_off_by_default() -> None:
    assert gate_pair(SOME, GateSettings()) is None
    assert all(value is None for value in dataclasses.asdict(GateSettings()).values())


def test_a_limit_of_zero_is_a_limit() -> None:
    assert gate_pair(SOME, GateSettings(max_changed_area=0.0)) is not None
    assert gate_pair(SAME, GateSettings(max_changed_area=0.0, max_luminance_shift=0.0)) is None


def test_a_pair_without_background_fails_the_gate_on_the_background_alone() -> None:
    none_left = dataclasses.replace(SOME, background_ssim=None)
    found = gate_pair(none_left, GateSettings(min_background_ssim=-1.0))
    assert found is not None
    assert (found.reason, found.value) == ("background_changed", None)
    assert gate_pair(none_left, GateSettings()) is None
