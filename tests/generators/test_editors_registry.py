import inspect
import json
import shutil
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.generate import PairGenerator
from eqforge.generators.diffusion.load import load_pipeline
from eqforge.generators.diffusion.settings import DiffusionSettings
from eqforge.generators.editors.editor import EDITORS, editor_of, load_editor
from eqforge.generators.editors.settings import EditorSettings
from tests.optional import optional

optional("torch")
diffusers = optional("diffusers")


@pytest.fixture
def relabelled(tiny_editor, tmp_path):
    """Copies a tiny model whose index says another class."""

    def copy(pipeline, other):
        folder = Path(shutil.copytree(tiny_editor(pipeline), tmp_path / "copy"))
        index = json.loads((folder / "model_index.json").read_text())
        (folder / "model_index.json").write_text(json.dumps({**index, "_class_name": other}))
        return folder

    return copy


def test_every_pipeline_is_a_class_of_diffusers_with_the_arguments_that_settings_become():
    for editor in EDITORS.values():
        for pipeline in editor.runs.values():
            arguments = inspect.signature(getattr(diffusers, pipeline).__call__).parameters
            assert {*editor.knobs.values()} <= {*arguments}, pipeline


@pytest.mark.parametrize(
    ("pipeline", "editor"),
    [
        ("StableDiffusionPipeline", "inpaint"),
        ("FluxFillPipeline", "inpaint"),
        ("StableDiffusionXLInstructPix2PixPipeline", "instruct-pix2pix"),
        ("FluxKontextPipeline", "flux-kontext"),
        ("QwenImageEditPlusPipeline", "qwen-image-edit"),
    ],
)
def test_the_class_of_a_model_says_what_it_edits_by(pipeline, editor):
    assert editor_of(EditorSettings(), pipeline) == editor
    assert editor_of(EditorSettings(editor=editor), pipeline) == editor


@pytest.mark.parametrize("name", [None, "inpaint", "instruct-pix2pix"])
def test_the_tiny_model_is_made_for_editors_with_a_unet(name):
    editor = load_editor(EditorSettings(model="tiny", editor=name, steps=2))
    assert editor.name == (name or "inpaint")
    assert editor.identity.name == "tiny"
    assert editor.parameters["resolution"] == 64


def test_there_is_no_tiny_model_of_a_large_editor():
    with pytest.raises(InputError, match="no tiny model for FluxKontextPipeline"):
        load_editor(EditorSettings(model="tiny", editor="flux-kontext"))


def test_a_model_that_edits_nothing_names_all_that_do(relabelled):
    folder = relabelled("StableDiffusionPipeline", "StableAudioPipeline")
    with pytest.raises(InputError) as caught:
        load_editor(EditorSettings(model=str(folder)))
    assert "a StableAudioPipeline cannot edit images. Choose a pipeline of" in str(caught.value)
    assert all(name in str(caught.value) for name in EDITORS)


def test_another_editor_than_the_model_s_names_those_it_runs_with(tiny_editor):
    folder = tiny_editor("FluxKontextPipeline")
    expected = "needs --editor flux-kontext, not --editor inpaint"
    with pytest.raises(InputError, match=expected):
        load_editor(EditorSettings(model=str(folder), editor="inpaint"))


def test_a_network_of_another_kind_than_its_index_says_is_an_error(relabelled):
    other = "StableDiffusionInstructPix2PixPipeline"
    folder = relabelled("StableDiffusionPipeline", other)
    with pytest.raises(InputError, match="has 4 input channels, but the editor"):
        load_editor(EditorSettings(model=str(folder)))


def test_a_mislabelled_inpainting_model_is_still_one(relabelled):
    folder = relabelled("StableDiffusionInpaintPipeline", "StableDiffusionPipeline")
    assert load_editor(EditorSettings(model=str(folder))).name == "inpaint"
    with pytest.raises(InputError, match=r"9 input channels, not 4\. .*eq-edit --editor inpaint"):
        PairGenerator(DiffusionSettings(model=str(folder)))


def test_drawing_pairs_with_a_model_that_edits_names_the_command_for_it(tiny_editor):
    folder = str(tiny_editor("FluxFillPipeline"))
    with pytest.raises(InputError, match=r"a FluxFillPipeline does not .* edits images, .*eq-edit"):
        load_pipeline(DiffusionSettings(model=folder))


@pytest.mark.parametrize("load", [load_editor, load_pipeline])
def test_a_single_file_of_weights_is_an_error_that_says_how_to_make_a_folder(tmp_path, load):
    file = tmp_path / "v1-5.safetensors"
    file.touch()
    kind = EditorSettings if load is load_editor else DiffusionSettings
    with pytest.raises(InputError, match=r"is a file; .*from_single_file"):
        load(kind(model=str(file)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "fp16"}, "fp16 needs a GPU"),
        ({"precision": "fp16", "device": "cpu:0"}, "fp16 needs a GPU"),
        ({"offload": True}, "--offload needs a GPU"),
        ({"steps": 0}, "--steps 0"),
        ({"strength": 0.0}, "--strength 0"),
        ({"strength": 1.5}, "--strength 1.5"),
        ({"image_guidance": 0.5}, "--image-guidance 0.5"),
        ({"guidance": float("nan")}, "--guidance nan"),
    ],
)
def test_settings_that_cannot_be_are_errors(settings, message):
    with pytest.raises(InputError, match=message):
        EditorSettings(**settings)


@pytest.mark.parametrize(
    ("pipeline", "settings", "message"),
    [
        ("FluxKontextPipeline", {"strength": 0.5}, "flux-kontext does not use this option"),
        ("StableDiffusionPipeline", {"image_guidance": 2.0}, "inpaint does not use"),
        ("FluxPipeline", {"steps": 1, "strength": 0.5}, "no denoising step"),
        ("FluxKontextPipeline", {"device": "nowhere"}, "on 'nowhere' in fp32"),
    ],
)
def test_settings_that_do_not_fit_the_model_are_errors(tiny_editor, pipeline, settings, message):
    with pytest.raises(InputError, match=message):
        load_editor(EditorSettings(model=str(tiny_editor(pipeline)), **settings))


def test_a_launching_machine_without_the_gpu_tries_the_model_on_its_cpu():
    settings = EditorSettings(device="cuda:0", precision="fp16", offload=True).on("cpu")
    assert (settings.device, settings.precision, settings.offload) == ("cpu", "fp32", False)
    assert EditorSettings(precision="bf16").on("cpu").precision == "bf16"
