"""Environment pictures of one's own: OpenEXR and Radiance files."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.scenes.environments import (
    draw_environment,
    environment_ids,
    measure_environment,
    measured_of,
    read_high_range,
)
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.schemas.records.scenes import SceneCamera
from tests.skies import EVEN, own_library, radiance, sky_with_sun

HEAD = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe"
CAMERA = SceneCamera(position=(0.0, -4.0, 1.5), look_at=(0.0, 0.0, 0.3))


@pytest.mark.parametrize("is_packed", [True, False])
def test_a_picture_of_ones_own_is_measured(tmp_path: Path, is_packed: bool) -> None:
    picture = sky_with_sun(30, 40)
    picture[130:] = 0.25
    library = own_library(tmp_path, "sky.hdr", radiance(picture, is_packed))
    file = library.unpack("sky").render
    assert np.allclose(read_high_range(file), picture, rtol=1 / 128)
    measured = measured_of(library, "sky")
    assert measured.sun is not None
    assert measured.exposure == pytest.approx(measure_environment(picture).exposure, rel=0.01)
    for named, wanted in ((("sky",), {"sky"}), ((), set(environment_ids()))):
        settings = SceneSettings(hdri=named)
        drawn = [draw_environment(Random(n), library, settings, CAMERA) for n in range(40)]
        assert {each.asset for each in drawn} == wanted
    assert list(library.assets) == ["sky"]


def test_an_exr_of_ones_own_is_measured(tmp_path: Path) -> None:
    exr = pytest.importorskip("OpenEXR")
    picture = sky_with_sun(30, 40)
    with exr.File({"type": exr.scanlineimage}, {"RGB": picture}) as file:
        file.write(str(tmp_path / "made.exr"))
    library = own_library(tmp_path, "sky.exr", (tmp_path / "made.exr").read_bytes())
    assert measured_of(library, "sky") == measure_environment(picture)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "sky.hdr",
            b"#?RADIANCE\n",
            "sky.hdr: the environment image cannot be read: expected a Radiance",
        ),
        (
            "sky.hdr",
            radiance(EVEN, True)[:-9],
            "environment image cannot be read: a scan line is damaged",
        ),
        ("sky.hdr", radiance(EVEN, True).replace(b"+X 128\n", b"+X 127\n"), "is damaged"),
        ("sky.exr", b"P6", "sky.exr: the environment image cannot be read"),
        ("sky.png", b"P6", "sky.png: expected an environment image in .exr or .hdr format"),
        (
            "sky.hdr",
            radiance(1e-30 * EVEN, False)[:-9],
            "sky.hdr: the environment image cannot be read",
        ),
        (
            "sky.hdr",
            HEAD + b"\n\n-Y 99999 +X 99999\n" + bytes(900),
            "are too few for 99999 x 99999",
        ),
        (
            "sky.hdr",
            HEAD.replace(b"rgb", b"xyz") + b"\n\n-Y 2 +X 4\n" + bytes(32),
            "found XYZ colours",
        ),
    ],
)
def test_a_picture_that_cannot_be_read_stops_the_build_at_once(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    library = own_library(tmp_path, name, data)
    with pytest.raises(InputError, match=message):
        SceneProposer(SceneSettings(hdri=("sky",)), library, "corrected", 0)
