"""Rendered pairs are harmonised: drawn anew, and locked outside what changes."""

import io
import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from eqforge.commands import verify
from eqforge.pipelines import eq_kubric
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.transforms.generated.harmonise import DIFFERENT, MARGIN_SHARE
from tests.builds import rows
from tests.renders import BALL, CAMERA, SIZE, needs_blender, open_renderer, rays, scene

pytestmark = [
    needs_blender,
    pytest.mark.skipif(find_spec("torch") is None, reason="the extra `models` is not installed"),
]

KINDS = ("attribute", "location")
SETTINGS = [
    *("--pairs", "4", "--resolution", "64", "--samples", "2", "--kinds", *KINDS),
    *("--min-named-colour", "None", "--min-change", "None", "--min-lightness", "None"),
    *("--max-blown-out", "None", "--min-unchanged-ssim", "None"),
]
DRAWN = [
    *("--harmonise", "tiny", "--harmonise-steps", "2", "--harmonise-strength", "0.6"),
    *("--harmonise-threads", "1"),
]


def built(folder: Path, *more: str) -> Path:
    assert eq_kubric.main([*SETTINGS, *more, "--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("plain") / "d")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("drawn") / "d", *DRAWN)


def pictures(dataset: Path) -> dict[str, list[NDArray[np.int16]]]:
    images = {row["image_id"]: row["image"]["bytes"] for row in rows(dataset, "images")}
    return {
        row["sample_id"]: [
            np.asarray(Image.open(io.BytesIO(images[row[f"image_{n}_id"]])), np.int16)
            for n in (0, 1)
        ]
        for row in rows(dataset, "samples")
    }


def test_outside_what_changes_the_second_picture_is_the_first(
    dataset: Path, rendered: Path
) -> None:
    masks = {row["mask_id"]: row["image"]["bytes"] for row in rows(dataset, "masks")}
    before, after = pictures(rendered), pictures(dataset)
    assert set(before) == set(after)
    for row in rows(dataset, "samples"):
        first, second = after[row["sample_id"]]
        numbers = [np.asarray(Image.open(io.BytesIO(masks[row[f"mask_{n}_id"]]))) for n in (0, 1)]
        was, became = before[row["sample_id"]]
        differs = (numbers[0] != numbers[1]) | (np.abs(was - became).max(axis=-1) >= DIFFERENT)
        y, x = np.nonzero(differs)
        reach = round(MARGIN_SHARE * 64) + 1
        allowed = np.zeros((64, 64), bool)
        for dy in range(-reach, reach + 1):
            for dx in range(-reach, reach + 1):
                allowed[(y + dy).clip(0, 63), (x + dx).clip(0, 63)] = True
        changed = (first != second).any(axis=-1)
        assert changed.any()
        assert not (changed & ~allowed).any()
        assert not np.array_equal(first, was)


def test_a_row_says_which_model_drew_and_verify_proves_what_is_left(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for row in rows(dataset, "samples"):
        generation = row["generation"]
        assert generation["generator"] == "kubric"
        assert generation["model"] == "tiny"
        parameters = json.loads(generation["parameters"])
        assert parameters["harmonise"]["control"] == "depth"
        assert parameters["harmonise"]["strength"] == 0.6
        assert parameters["engine"] == "cycles"
    assert verify.main([str(dataset)]) == 0
    assert "ok          proofs" in capsys.readouterr().out
    warnings = open_dataset(str(dataset)).manifest.warnings
    assert any(text.startswith("--harmonise: what captions say holds") for text in warnings)
    assert any("tiny model with random weights" in text for text in warnings)


def test_a_pair_of_which_the_checker_flags_a_picture_is_a_reject_and_a_changed_model_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from eqforge.generators.harmonise.tiny import make_tiny_harmoniser

    model = make_tiny_harmoniser(tmp_path / "strict", flag_above=-1.0)
    name = "eq-kubric/location/000000"
    built(tmp_path / "d", *DRAWN, "--harmonise", str(model), "--only", name)
    found = {
        (row["stage"], row["reason"], row["detail"]) for row in rows(tmp_path / "d", "rejects")
    }
    assert found == {("renders", "safety_checker", "image 0, 1")}
    capsys.readouterr()
    (model / "unet" / "config.json").write_text((model / "vae" / "config.json").read_text())
    with pytest.raises(SystemExit):
        built(tmp_path / "d", *DRAWN, "--harmonise", str(model), "--only", name)
    assert "files of the model" in capsys.readouterr().err


def test_two_workers_draw_the_same_bytes(dataset: Path, tmp_path: Path) -> None:
    some = list(pictures(dataset))[:2]
    other = pictures(built(tmp_path / "d", *DRAWN, "--workers", "2", "--only", *some))
    assert list(other) == some
    for name in some:
        assert np.array_equal(other[name], pictures(dataset)[name])
    of_both = [row for row in rows(dataset, "samples") if row["sample_id"] in some]
    assert rows(tmp_path / "d", "samples") == of_both


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kinds", "cube"], "the pairs of a cube share their scenes"),
        (["--harmonise-device", "cuda:0", "--workers", "2"], "every worker would load the model"),
        (["--harmonise", "tests@x"], "tests is a folder, which has no revision"),
        (["--harmonise-style", "a " * 80], "tokens"),
    ],
)
def test_what_cannot_be_harmonised_is_one_message_before_any_work(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        eq_kubric.main([*SETTINGS, *DRAWN, *arguments, "--output", str(tmp_path / "d")])
    assert message in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_edges_give_other_pictures(dataset: Path, tmp_path: Path) -> None:
    only = next(iter(pictures(dataset)))
    other = built(tmp_path / "d", *DRAWN, "--control", "canny", "--only", only)
    assert not np.array_equal(pictures(other)[only][0], pictures(dataset)[only][0])


def test_the_depth_is_that_of_the_things_in_the_picture(tmp_path: Path) -> None:
    renderer = open_renderer(tmp_path, depth=True)
    try:
        (render,) = renderer.render([scene(BALL)])
    finally:
        renderer.close()
    assert render.depth_png is not None
    near = np.asarray(Image.open(io.BytesIO(render.depth_png)), float) / 255
    start, directions = rays(CAMERA)
    forward = np.subtract(CAMERA.look_at, CAMERA.position)
    forward = forward / np.linalg.norm(forward)
    ahead = directions @ forward
    # The floor, by hand: z is 0 where the ray has gone so far, along the view.
    down = directions[..., 2] < -0.05
    far = np.where(down, -start[2] / np.where(down, directions[..., 2], -1.0) * ahead, np.inf)
    plain = (far < 15) & (np.asarray(Image.open(io.BytesIO(render.mask_png))) == 0)
    inverse = 1 / far[plain]
    fit = np.polyfit(inverse, near[plain], 1)
    assert fit[0] > 0
    apart = np.abs(np.polyval(fit, inverse) - near[plain])
    assert np.quantile(apart, 0.97) < 0.02  # but at the rims of the ball
    assert near.shape == (SIZE, SIZE)


def test_without_a_model_rows_are_those_of_renderings(rendered: Path) -> None:
    for row in rows(rendered, "samples"):
        assert row["generation"]["model"] is None
        assert "harmonise" not in json.loads(row["generation"]["parameters"])
