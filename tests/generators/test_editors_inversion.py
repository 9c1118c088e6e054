"""Inversion of a picture, and prompt-to-prompt on it, by a tiny Stable Diffusion and SDXL."""

import functools
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.editors.records import EditRequest
from eqforge.generators.editors.settings import EditorSettings

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from eqforge.generators.editors.invert import ddim_path, encode  # noqa: E402
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
        editor: Any = load_editor(EditorSettings(model=str(tiny_editor(pipeline)), **settings))
        if gentle:  # as a trained network is: what it gives hardly changes from step to step
            editor.pipeline.unet.conv_out.weight.data.mul_(0.002)
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
    assert found["latent"] < 0.01
    assert found["pixels"] == pytest.approx(found["autoencoder"], abs=1)


@pytest.mark.parametrize("pipeline", FAMILIES)
def test_null_text_optimisation_brings_the_picture_nearer_under_guidance(load, pipeline):
    ddim = load(pipeline, inversion="ddim", steps=3)
    few, many = (load(pipeline, null_text_steps=number, steps=3) for number in (2, 12))
    errors = [error_of(editor) for editor in (ddim, few, many)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.9 * errors[0]
    assert [editor.parameters["null_text_steps"] for editor in (ddim, few, many)] == [0, 2, 12]


@pytest.mark.parametrize("pipeline", FAMILIES)
def test_the_photograph_guides_the_edited_picture(load, pipeline, monkeypatch):
    drawn = []

    def edit(**control):
        editor = load(pipeline, inversion="ddim", **control)
        generate = editor.generator.generate

        def keep(*args):
            drawn.append(generate(*args))
            return drawn[-1]

        with monkeypatch.context() as patch:
            patch.setattr(editor.generator, "generate", keep)
            return editor.edit(request_of())

    free = {"cross_replace": 0.0, "self_replace": 0.0, "local_blend": False}
    assert edit(**free).parameters["control"] == "replace"
    edit(cross_replace=1.0, self_replace=1.0, local_blend=False)
    edit()
    changes = [float(np.abs(pair.latents[1] - pair.latents[0]).mean()) for pair in drawn]
    assert changes[1] < 0.9 * changes[0]
    blended = drawn[2]
    assert 0 < blended.blend_mask.mean() < 1
    outside = ~blended.blend_mask
    assert np.array_equal(blended.latents[0][:, outside], blended.latents[1][:, outside])


def test_no_seed_changes_it_and_no_edit_the_next(load):
    editor = load(null_text_steps=1, steps=2)
    assert not editor.is_random
    first = editor.edit(request_of(seed=1))
    assert not editor.pipeline.unet._forward_pre_hooks
    assert type(editor.pipeline.scheduler).__name__ == "DDIMScheduler"
    other = editor.edit(request_of(target="a painting of a big dog on the grass"))
    assert other.parameters["control"] == "refine"
    assert np.array_equal(editor.edit(request_of(seed=2)).image, first.image)


def test_a_want_of_memory_changes_only_how_many_rows_are_drawn_at_a_time(load, monkeypatch):
    editor = load(null_text_steps=2, steps=3)
    expected = editor.edit(request_of())
    plain = editor.pipeline.unet.forward

    def forward(sample, *args, **kwargs):
        if sample.shape[0] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(sample, *args, **kwargs)

    monkeypatch.setattr(editor.pipeline.unet, "forward", forward)
    found = editor.edit(request_of())
    assert (expected.parameters["batch_rows"], found.parameters["batch_rows"]) == (4, 2)
    assert np.abs(found.image.astype(int) - expected.image).max() <= 3  # rounding by batch alone


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
