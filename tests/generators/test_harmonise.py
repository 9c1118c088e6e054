"""A diffusion model draws renderings anew, held to their depth or edges by a ControlNet."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.generators.harmonise.settings import TINY, HarmoniseSettings, named

pytest.importorskip("torch", reason="the extra `models` is not installed")

from eqforge.generators.harmonise.harmoniser import Harmoniser, edges, load_harmoniser
from eqforge.generators.harmonise.tiny import make_tiny_harmoniser

SETTINGS = HarmoniseSettings(
    harmonise=TINY, harmonise_steps=2, harmonise_style="a photograph", harmonise_threads=1
)


@pytest.fixture(scope="module")
def model() -> Harmoniser:
    return load_harmoniser(SETTINGS)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_harmoniser(tmp_path_factory.mktemp("models") / "both")


def picture(height: int = 40, width: int = 48) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)


def depth(height: int = 40, width: int = 48) -> NDArray[np.uint8]:
    rows = np.linspace(0, 255, height).astype(np.uint8)
    return np.repeat(np.repeat(rows[:, None, None], width, axis=1), 3, axis=2)


def drawn(
    model: Harmoniser,
    image: NDArray[np.uint8] | None = None,
    held: NDArray[np.uint8] | None = None,
    caption: str = "A red mug.",
    seed: int = 3,
) -> NDArray[np.uint8]:
    made = model.draw(
        picture() if image is None else image, depth() if held is None else held, caption, seed
    )
    assert made is not None
    return made


def test_a_picture_keeps_its_size_and_comes_again_from_its_seed(model: Harmoniser) -> None:
    first = drawn(model)
    assert first.shape == (40, 48, 3)
    assert np.array_equal(first, drawn(model))
    assert not np.array_equal(first, drawn(model, seed=4))


def test_rendering_depth_and_caption_decide_the_picture(model: Harmoniser) -> None:
    first = drawn(model)
    for other in (
        drawn(model, 255 - picture()),
        drawn(model, held=depth()[::-1]),
        drawn(model, caption="A blue box."),
    ):
        assert not np.array_equal(first, other)


def test_with_less_strength_more_of_the_rendering_is_left(saved: Path) -> None:
    apart = []
    for strength in (0.2, 0.9):
        settings = replace(
            SETTINGS, harmonise=str(saved), harmonise_steps=10, harmonise_strength=strength
        )
        freely = drawn(load_harmoniser(settings))
        near = drawn(load_harmoniser(replace(settings, harmonise_strength=0.1)))
        apart.append(np.abs(freely.astype(int) - near).mean())
    assert apart[0] < apart[1]


def test_what_the_checker_of_a_model_flags_is_no_picture(tmp_path: Path) -> None:
    for above, is_flagged in ((-1.0, True), (1.0, False)):
        folder = make_tiny_harmoniser(tmp_path / str(above), flag_above=above)
        strict = load_harmoniser(replace(SETTINGS, harmonise=str(folder)))
        assert (strict.draw(picture(), depth(), "A mug.", 1) is None) == is_flagged


def test_a_model_and_a_controlnet_of_their_own_are_those_saved_together(
    saved: Path, tmp_path: Path
) -> None:
    from diffusers import StableDiffusionPipeline

    plain = tmp_path / "plain"
    parts: Any = StableDiffusionPipeline.from_pretrained(
        saved, safety_checker=None, requires_safety_checker=False
    )
    parts.save_pretrained(plain)
    shutil.copytree(saved / "controlnet", tmp_path / "held")
    together = load_harmoniser(replace(SETTINGS, harmonise=str(saved)))
    apart = load_harmoniser(
        replace(SETTINGS, harmonise=str(plain), controlnet=str(tmp_path / "held"))
    )
    assert np.array_equal(drawn(together), drawn(apart))
    held = apart.parameters["controlnet"]
    assert (held["name"], held["pipeline"]) == ("held", "ControlNetModel")
    assert held["revision"] == f"sha256:{held['digest'][:16]}"
    assert together.parameters["controlnet"] is None
    assert apart.fingerprint != together.fingerprint
    with pytest.raises(InputError, match="no ControlNet of its own: name one with --controlnet"):
        load_harmoniser(replace(SETTINGS, harmonise=str(plain)))


def test_what_decides_a_picture_is_in_its_fingerprint(saved: Path, tmp_path: Path) -> None:
    known = load_harmoniser(replace(SETTINGS, harmonise=str(saved))).fingerprint
    other = make_tiny_harmoniser(tmp_path / "other", seed=1)
    for settings in (
        replace(SETTINGS, harmonise=str(other)),
        replace(SETTINGS, harmonise=str(saved), control="canny"),
        replace(SETTINGS, harmonise=str(saved), harmonise_guidance=2.0),
    ):
        assert load_harmoniser(settings).fingerprint != known
    assert load_harmoniser(replace(SETTINGS, harmonise=str(saved))).fingerprint == known


def test_a_folder_that_is_the_present_one_has_its_name(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved)
    assert load_harmoniser(replace(SETTINGS, harmonise=".")).identity.name == "both"


def test_a_folder_called_tiny_is_not_taken_for_the_model_of_that_name(
    model: Harmoniser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / TINY).mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_harmoniser(SETTINGS).identity == model.identity
    assert model.identity.name == TINY
    assert model.identity.revision == f"sha256:{model.identity.digest[:16]}"


def test_edges_need_no_depth() -> None:
    assert SETTINGS.reads_depth
    assert not replace(SETTINGS, control="canny").reads_depth


def test_edges_are_white_on_black() -> None:
    half = np.zeros((32, 32, 3), np.uint8)
    half[:, 16:] = 255
    found = edges(half)
    assert set(np.unique(found)) == {0, 255}
    assert found[:, 14:18].any(axis=(1, 2)).mean() > 0.9
    assert not found[:, :12].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"harmonise_strength": 1.5}, "--harmonise-strength 1.5: expected 0 to 1"),
        ({"control_scale": 3.0}, "--control-scale 3.0: expected 0 to 2"),
        ({"harmonise_steps": 0}, "--harmonise-steps 0: expected 1 or more"),
        ({"harmonise_steps": 2, "harmonise_strength": 0.3}, "not even one step"),
        ({"harmonise": None, "controlnet": "folder"}, "--controlnet needs a model"),
        ({"harmonise_precision": "fp16"}, "fp16 needs a GPU"),
        (
            {"harmonise_precision": "fp16", "harmonise_device": "cpu:0"},
            r"--harmonise-device cuda:0",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SETTINGS, **changes)  # type: ignore[arg-type]


def test_a_model_that_cannot_be_held_is_told_so(tmp_path: Path) -> None:
    from tests.tiny_transformers import make_tiny_editor

    folder = make_tiny_editor(tmp_path / "flux", "FluxKontextPipeline")
    with pytest.raises(InputError, match="cannot be held to a rendering by a ControlNet"):
        load_harmoniser(replace(SETTINGS, harmonise=str(folder)))
    with pytest.raises(InputError, match="name the commit too"):
        load_harmoniser(replace(SETTINGS, harmonise="somebody/model"))
    with pytest.raises(InputError, match="no ControlNetModel of diffusers"):
        load_harmoniser(
            replace(
                SETTINGS,
                harmonise=str(make_tiny_harmoniser(tmp_path / "m")),
                controlnet=str(folder),
            )
        )


@pytest.mark.parametrize(
    ("text", "model", "revision"),
    [
        ("/data/a@b/model", "/data/a@b/model", None),
        ("./a@b", "./a@b", None),
        ("there@all", "there@all", None),
        ("someone/depth@0123abc", "someone/depth", "0123abc"),
        ("someone/depth", "someone/depth", None),
    ],
)
def test_a_folder_may_hold_an_at_and_an_id_has_its_commit_behind_it(
    text: str, model: str, revision: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there@all").mkdir()
    monkeypatch.chdir(tmp_path)
    found = named(text, HarmoniseSettings())
    assert (found.model, found.revision) == (model, revision)
