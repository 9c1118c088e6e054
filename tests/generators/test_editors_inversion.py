"""Inversion of a picture, and prompt-to-prompt on it, by a tiny Stable Diffusion and SDXL."""

import functools

import numpy as np
import pytest

from eqforge.generators.editors.records import EditRequest
from eqforge.generators.editors.settings import EditorSettings
from eqforge.schemas.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from eqforge.generators.editors.invert import ddim_path, encode, null_texts  # noqa: E402
from eqforge.generators.editors.prompt_to_prompt import changed_words  # noqa: E402
from eqforge.generators.editors.registry import load_editor  # noqa: E402

# diffusers turns tensors into arrays the way NumPy had before version 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

FAMILIES = ["StableDiffusionPipeline", "StableDiffusionXLPipeline"]
CAPTION, TARGET = "a photo of a dog on the grass", "a photo of a cat on the grass"


@pytest.fixture(scope="module")
def load(tiny_editor):
    """Loads an editor, the same one for the same settings."""

    @functools.cache
    def load_once(pipeline=FAMILIES[0], gentle=False, **settings):
        settings = {"steps": 4, "cpu_threads": 1, **settings}
        editor = load_editor(EditorSettings(model=str(tiny_editor(pipeline)), **settings))
        if gentle:  # as a trained network is: what it gives hardly changes from step to step
            editor.pipeline.unet.conv_out.weight.data.mul_(0.02)
        return editor

    return load_once


def request_of(caption=CAPTION, target=TARGET, seed=5):
    y, x = np.mgrid[:48, :64]
    image = np.stack([y * 5, x * 3, (x + y) * 2], axis=-1).astype(np.uint8)
    return EditRequest(image=image, caption=caption, target=target, seed=seed)


def error_of(editor):
    return editor.edit(request_of()).parameters["reconstruction"]["latent"]


def network(pipeline, latent, timestep, prompt):
    """The noise that a Stable Diffusion sees in a latent, told a prompt."""
    tokens = pipeline.tokenizer(
        prompt, padding="max_length", max_length=77, truncation=True, return_tensors="pt"
    )
    text = pipeline.text_encoder(tokens.input_ids)[0]
    return pipeline.unet(latent, timestep, encoder_hidden_states=text).sample


@torch.no_grad()
def test_the_path_is_that_of_the_authors_notebook(load):
    """`next_step` and `ddim_loop` of null_text_w_ptp.ipynb, written again."""
    pipeline = load().pipeline
    latent = encode(pipeline, np.asarray(request_of().image)[:48, :48])
    path, _ = ddim_path(pipeline, latent, CAPTION, 4)
    alphas, steps = pipeline.scheduler.alphas_cumprod, 4
    timesteps = [1 + 250 * number for number in range(steps)]  # steps_offset 1
    assert len(path) == steps + 1
    assert torch.equal(path[0], latent)
    for before, after, timestep in zip(path[:-1], path[1:], timesteps, strict=True):
        now = alphas[timestep - 250] if timestep >= 250 else pipeline.scheduler.final_alpha_cumprod
        noise = network(pipeline, before, timestep, CAPTION)
        original = (before - (1 - now) ** 0.5 * noise) / now**0.5
        expected = alphas[timestep] ** 0.5 * original + (1 - alphas[timestep]) ** 0.5 * noise
        assert torch.allclose(after, expected, atol=1e-4)


@pytest.mark.parametrize("pipeline", FAMILIES)
def test_without_guidance_the_picture_is_drawn_again(load, pipeline):
    editor = load(pipeline, gentle=True, guidance=1.0, steps=10)
    edited = editor.edit(request_of())
    found = edited.parameters["reconstruction"]
    assert edited.parameters["inversion"] == "ddim"
    assert found["latent"] < 0.02
    assert found["pixels"] == pytest.approx(found["autoencoder"], abs=0.5)


@pytest.mark.parametrize("pipeline", FAMILIES)
def test_null_text_optimisation_brings_the_picture_nearer_under_guidance(load, pipeline):
    ddim, optimised = (load(pipeline, inversion=name) for name in ("ddim", "null-text"))
    before, after = error_of(ddim), error_of(optimised)
    assert after < 0.9 * before
    assert optimised.parameters["null_text_steps"] == 10
    assert ddim.parameters["null_text_steps"] == 0


def test_a_step_of_optimisation_more_is_nearer_still(load):
    found = [error_of(load(null_text_steps=number)) for number in (1, 25)]
    assert found[1] < found[0]


def test_nothing_is_optimised_where_the_path_is_walked_back_anyway(load):
    """With the caption's own embedding as no text, guidance changes nothing."""
    editor = load(gentle=True, guidance=1.5, steps=4)
    latent = encode(editor.pipeline, np.zeros((64, 64, 3), dtype=np.uint8))
    path, text = ddim_path(editor.pipeline, latent, "", 4)
    found = null_texts(editor.pipeline, path, text, 1.5, 1)
    assert len(found) == 4
    assert all(torch.allclose(one, text.hidden, atol=0.02) for one in found)


@pytest.mark.parametrize("pipeline", FAMILIES)
def test_the_edited_picture_is_guided_by_the_photograph(load, pipeline):
    """With full control and local blend, less changes than without both."""
    none = {"cross_replace": 0.0, "self_replace": 0.0, "local_blend": False}
    guided, free = (
        load(pipeline, inversion="ddim", **control).edit(request_of())
        for control in ({"cross_replace": 1.0, "self_replace": 1.0}, none)
    )
    first = load(pipeline, inversion="ddim", **none).edit(request_of(target=CAPTION + " now"))
    assert guided.parameters["control"] == "replace"
    assert first.parameters["control"] == "refine"
    assert not np.array_equal(guided.image, free.image)


def test_no_seed_changes_it_and_no_edit_the_next(load):
    editor = load()
    assert not editor.is_random
    first = editor.edit(request_of(seed=1))
    assert not editor.pipeline.unet._forward_pre_hooks
    assert type(editor.pipeline.scheduler).__name__ == "DDIMScheduler"
    editor.edit(request_of(target="a painting of a dog on the grass"))
    assert np.array_equal(editor.edit(request_of(seed=2)).image, first.image)


@pytest.mark.parametrize(
    ("caption", "target", "changed"),
    [
        (CAPTION, TARGET, ((4,), (4,))),
        ("a dog", "a big dog", ((), (1,))),
        ("a big dog", "a dog", ((1,), ())),
        ("A dog, a cat.", "a dog, a bird.", ((3,), (3,))),
    ],
)
def test_the_words_that_differ_are_found(caption, target, changed):
    assert changed_words(caption, target) == changed


def test_texts_of_the_same_words_are_an_error(load):
    with pytest.raises(InputError, match="nothing changes"):
        load().edit(request_of(target=CAPTION.upper()))
