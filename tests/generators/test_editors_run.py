"""Every editor on tiny pipelines of every class it runs with; what they draw is noise."""

import functools

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.editors.editor import EDITORS, EditRequest, load_editor
from eqforge.generators.editors.settings import EditorSettings
from tests.optional import optional
from tests.prompted import make_prudish

torch = optional("torch")
optional("diffusers")

# diffusers turns tensors into arrays the way NumPy had before version 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

CASES = [(name, pipeline) for name, editor in EDITORS.items() for pipeline in editor.runs]
KEEPS_AROUND = ("StableDiffusionPipeline", "StableDiffusionXLPipeline", "FluxPipeline")


@pytest.fixture(scope="module")
def load(tiny_editor):

    @functools.cache
    def load_once(pipeline, **settings):
        settings = {"steps": 2, "resolution": 64, "cpu_threads": 1, **settings}
        return load_editor(EditorSettings(model=str(tiny_editor(pipeline)), **settings))

    return load_once


def picture(height=50, width=70):
    y, x = np.mgrid[:height, :width]
    return np.stack([y * 5 % 256, x * 3 % 256, (x + y) * 2 % 256], axis=-1).astype(np.uint8)


def request_of(**changes):
    image = changes.pop("image", picture())
    mask = np.zeros(image.shape[:2], dtype=bool)
    mask[10:30, 20:50] = True
    parts = {
        "image": image,
        "target": "a photo of a cat on the grass",
        "instruction": "make the dog a cat",
        "mask": mask,
        "seed": 5,
    }
    return EditRequest(**{**parts, **changes})


def difference(one, other):
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


@pytest.mark.parametrize(("name", "pipeline"), CASES)
def test_an_editor_gives_the_original_s_size_and_follows_its_request(load, name, pipeline):
    editor = load(pipeline, editor=name)
    edited = editor.edit(request_of())
    assert edited.image.shape == (50, 70, 3)
    assert edited.image.dtype == np.uint8
    assert edited.image.std() > 1
    assert np.array_equal(editor.edit(request_of()).image, edited.image)
    seeded = editor.edit(request_of(seed=6))
    assert difference(seeded.image, edited.image) > 0.1
    words = {"target": "a photo of a house on the grass", "instruction": "a red house, at night"}
    assert difference(editor.edit(request_of(**words)).image, edited.image) > 0.1
    other = editor.edit(request_of(image=255 - picture()))
    assert difference(other.image, edited.image) > 0.1


@pytest.mark.parametrize(("name", "pipeline"), CASES)
def test_parameters_name_everything_that_decides_an_edit(load, name, pipeline):
    editor = load(pipeline, editor=name)
    parameters = editor.parameters
    assert parameters["editor"] == editor.name == name
    assert parameters["pipeline"] == EDITORS[name].runs[pipeline]
    assert parameters["weights"] == editor.identity.digest
    assert {*editor.knobs} <= {*parameters}
    assert parameters["steps"] == 2
    assert all(isinstance(value, str | int | float | bool) for value in parameters.values())
    assert load(pipeline, editor=name, steps=3).fingerprint != editor.fingerprint


@pytest.mark.parametrize("pipeline", KEEPS_AROUND)
def test_a_model_that_draws_from_text_inpaints_by_keeping_what_is_around(load, pipeline):
    mask = np.zeros((64, 64), dtype=bool)
    mask[:24, :24] = True
    editor = load(pipeline, editor="inpaint", strength=1.0, steps=4)
    wanted = [request_of(image=picture(64, 64), mask=mask, seed=seed) for seed in (1, 2)]
    one, other = (editor.edit(request).image for request in wanted)
    inside, outside = np.s_[:20, :20], np.s_[32:, 32:]
    assert difference(one[inside], other[inside]) > 3 * difference(one[outside], other[outside])


@pytest.mark.parametrize("name", EDITORS["inpaint"].runs)
def test_where_the_mask_is_decides_the_picture(load, name):
    editor = load(name, editor="inpaint")
    mask = np.zeros((50, 70), dtype=bool)
    mask[25:45, 5:15] = True
    edits = [editor.edit(request_of()).image, editor.edit(request_of(mask=mask)).image]
    assert difference(*edits) > 1


@pytest.mark.parametrize("size", [(37, 91), (9, 120), (130, 128)])
def test_pictures_of_any_size_are_edited(load, size):
    editor = load("StableDiffusionInstructPix2PixPipeline")
    edited = editor.edit(request_of(image=picture(*size), mask=None))
    assert edited.image.shape == (*size, 3)
    assert all(side % 8 == 0 for side in edited.parameters["canvas"])


@pytest.mark.parametrize(
    ("pipeline", "changes", "message"),
    [
        ("StableDiffusionInpaintPipeline", {"mask": None}, "needs a mask"),
        ("StableDiffusionInpaintPipeline", {"mask": np.ones((9, 9), bool)}, "9x9 pixels, but the"),
        ("StableDiffusionInpaintPipeline", {"mask": np.zeros((50, 70), bool)}, "mask is empty"),
        ("StableDiffusionInstructPix2PixPipeline", {"instruction": None}, "needs an instruction"),
        ("FluxKontextPipeline", {"instruction": " "}, "needs an instruction"),
        ("StableDiffusionInpaintPipeline", {"target": "cat " * 200}, "encoder reads at most 77"),
        ("FluxKontextPipeline", {"instruction": "cat " * 200}, "encoder reads at most 512"),
    ],
)
def test_a_request_without_what_the_editor_needs_is_an_error(load, pipeline, changes, message):
    with pytest.raises(InputError, match=message):
        load(pipeline).edit(request_of(**changes))


@pytest.mark.parametrize(("flag_above", "flagged"), [(-2.0, True), (2.0, False)])
def test_the_safety_checker_of_a_model_is_heard(tmp_path, flag_above, flagged):
    pipeline = "StableDiffusionInpaintPipeline"
    folder = make_prudish(tmp_path / "model", flag_above, pipeline)
    editor = load_editor(EditorSettings(model=str(folder), steps=1, cpu_threads=1))
    edited = editor.edit(request_of())
    assert edited.flagged is flagged
    assert not edited.image.any() if flagged else edited.image.std() > 1


def test_the_weights_type_is_that_of_the_settings(load):
    editor = load("FluxKontextPipeline", precision="bf16")
    assert {editor.pipeline.transformer.dtype, editor.pipeline.vae.dtype} == {torch.bfloat16}
    assert editor.edit(request_of()).image.std() > 1
