"""Whole pairs by tiny real pipelines."""

import dataclasses
import functools
import hashlib
import os
import subprocess
import sys
import types

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.generate import (
    PairGenerator,
    blend,
    blend_mask,
    initial_latents,
    map_sides,
)
from eqforge.generators.diffusion.settings import (
    DiffusionSettings,
    EditControl,
    LocalBlend,
    PairRequest,
)
from eqforge.generators.diffusion.tiny import make_tiny_pipeline
from tests.optional import optional

torch = optional("torch")
optional("diffusers")

# diffusers turns tensors into arrays the way NumPy had before version 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

SWAP = ("a photo of a horse on the grass", "a photo of a hippopotamus on the grass")
ADD = ("a photo of a beach", "a photo of a beach at sunset")
REPLACE = EditControl(method="replace")
WORDS = (("horse",), ("hippopotamus",))


@pytest.fixture(scope="module")
def make(tiny_sd, tiny_sdxl):
    """Makes a generator, the same one for the same settings."""
    folders = {"sd": tiny_sd, "sdxl": tiny_sdxl}

    @functools.cache
    def make_generator(family="sd", **settings):
        settings = {"steps": 4, "cpu_threads": 1, **settings}
        return PairGenerator(DiffusionSettings(model=str(folders[family]), **settings))

    return make_generator


def request_of(prompts=SWAP, seed=5, control=REPLACE):
    return PairRequest(prompts=prompts, seed=seed, control=control)


def digest(pair):
    data = b"".join(image.tobytes() for image in pair.images)
    return hashlib.sha256(data + pair.latents.tobytes()).hexdigest()


def plain_pipeline(generator, prompts, seed):
    """What diffusers draws by itself from the same latent."""
    latents = initial_latents(generator.pipeline, generator.size_px, seed)[: len(prompts)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    output = generator.pipeline(
        prompt=list(prompts),
        latents=latents,
        num_inference_steps=generator.settings.steps,
        guidance_scale=generator.settings.guidance_scale,
        output_type="pil",
    )
    torch.set_num_threads(threads)
    return [np.asarray(image) for image in output.images]


@pytest.mark.parametrize("family", ["sd", "sdxl"])
def test_without_control_both_are_the_plain_pipelines(make, family):
    generator = make(family)
    pair = generator.generate(request_of(control=None))
    expected = plain_pipeline(generator, SWAP, 5)
    assert pair.images[0].shape == (64, 64, 3)
    assert pair.images[0].dtype == np.uint8
    assert np.array_equal(pair.images[0], expected[0])
    assert np.array_equal(pair.images[1], expected[1])
    assert pair.attention is None
    assert pair.blend_mask is None


@pytest.mark.parametrize("family", ["sd", "sdxl"])
@pytest.mark.parametrize(("method", "prompts"), [("replace", SWAP), ("refine", ADD)])
def test_the_control_leaves_the_first_alone_and_moves_the_second_to_it(
    make, family, method, prompts
):
    generator = make(family)
    pair = generator.generate(request_of(prompts, control=EditControl(method=method)))
    first, second = plain_pipeline(generator, prompts, 5)
    assert np.abs(pair.images[0].astype(int) - first).max() <= 1
    controlled = np.abs(pair.images[1].astype(int) - first).mean()
    assert 0 < controlled < np.abs(second.astype(int) - first).mean()


def test_the_first_picture_alone_is_the_same_picture(make):
    generator = make()
    pair = generator.generate(request_of())
    alone = plain_pipeline(generator, SWAP[:1], 5)[0]
    assert np.abs(pair.images[0].astype(int) - alone).max() <= 1


def test_control_at_no_step_does_nothing(make):
    generator = make()
    control = EditControl(method="replace", cross_replace_steps=0.0, self_replace_steps=0.0)
    pair = generator.generate(request_of(control=control))
    expected = plain_pipeline(generator, SWAP, 5)
    assert np.abs(pair.images[1].astype(int) - expected[1]).max() <= 1
    assert (pair.attention.cross_steps, pair.attention.self_steps) == (0, 0)
    assert (pair.attention.cross_layers, pair.attention.self_layers) == (0, 0)


def test_what_the_control_did_is_counted(make):
    attention = make().generate(request_of()).attention
    assert attention.cross_steps == 4  # int(0.8 * 5)
    assert attention.self_steps == 1  # int(0.4 * 4)
    assert attention.cross_layers == 7  # 2 down, 1 middle, 4 up
    assert attention.self_layers == 4  # those of 16x16
    assert attention.changed_tokens[0] < attention.changed_tokens[1]


@pytest.mark.parametrize("family", ["sd", "sdxl"])
def test_the_same_seed_gives_the_same_bytes(make, family):
    control = EditControl(method="replace", blend=LocalBlend(words=WORDS))
    generator = make(family)
    first = generator.generate(request_of(control=control))
    generator.generate(request_of(ADD, seed=9, control=EditControl(method="refine")))
    again = generator.generate(request_of(control=control))
    assert digest(first) == digest(again)
    assert digest(first) != digest(generator.generate(request_of(seed=6, control=control)))


def test_bytes_do_not_depend_on_the_threads_of_the_process(make, tiny_sd):
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from test_diffusion_generate import *\n"
        "settings = DiffusionSettings(model=sys.argv[1], steps=4, cpu_threads=1)\n"
        "print(digest(PairGenerator(settings).generate(request_of())))"
    )
    expected = digest(make().generate(request_of()))
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert digest(make().generate(request_of())) == expected
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    environment = {**os.environ, "OMP_NUM_THREADS": "3", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code, str(tiny_sd), os.path.dirname(__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_torch_is_as_it_was_afterwards(make):
    state = torch.get_rng_state()
    make().generate(request_of())
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("scheduler", ["euler-ancestral", "ddpm"])
def test_both_pictures_get_the_same_noise(make, scheduler):
    generator = make(scheduler=scheduler)
    alike = generator.generate(request_of((SWAP[0], SWAP[0]), control=None))
    assert np.array_equal(alike.images[0], alike.images[1])
    assert digest(alike) == digest(generator.generate(request_of((SWAP[0],) * 2, control=None)))


@pytest.mark.parametrize("scheduler", ["pndm", "euler", "dpm-solver", "model"])
def test_every_scheduler_draws(make, scheduler):
    pair = make(scheduler=scheduler).generate(request_of())
    calls = 5 if scheduler in ("pndm", "model") else 4
    assert pair.attention.cross_steps == min(4, calls)
    assert pair.images[0].std() > 5
    assert not np.array_equal(*pair.images)


def test_without_guidance_there_are_two_rows(make):
    pair = make(guidance_scale=1.0).generate(request_of())
    assert pair.attention.cross_layers == 7
    assert not np.array_equal(*pair.images)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_other_precisions_draw_nearly_the_same(make, precision):
    pair = make(precision=precision, steps=1).generate(request_of())
    exact = make(steps=1).generate(request_of())
    assert np.abs(pair.images[0].astype(int) - exact.images[0]).mean() < 5


def test_local_blend_leaves_outside_pixels_equal_bit_by_bit(make):
    control = EditControl(method="replace", blend=LocalBlend(words=WORDS, threshold=0.8))
    pair = make().generate(request_of(control=control))
    assert pair.blend_mask.shape == (32, 32)
    assert 0 < pair.blend_mask.mean() < 1
    first, second = pair.latents
    same = (first.view(np.int32) == second.view(np.int32)).all(axis=0)
    assert same[~pair.blend_mask].all()
    assert not same[pair.blend_mask].any()


def test_local_blend_starts_when_it_should(make):
    late = LocalBlend(words=WORDS, threshold=0.8, start=1.0)
    pair = make().generate(request_of(control=EditControl(method="replace", blend=late)))
    assert pair.blend_mask is None
    assert digest(pair) == digest(make().generate(request_of()))


def test_the_blend_mask_is_the_authors():
    rng = np.random.default_rng(0)
    heat = rng.random((2, 256)).astype(np.float32) ** 60
    found = blend_mask(torch.from_numpy(heat), 0.3, (32, 32)).numpy()
    expected = np.zeros((32, 32), dtype=bool)
    for picture in range(2):
        grid = heat[picture].reshape(16, 16)
        padded = np.pad(grid, 1, constant_values=-np.inf)
        wide = np.array(
            [[padded[y : y + 3, x : x + 3].max() for x in range(16)] for y in range(16)]
        )
        large = wide.repeat(2, axis=0).repeat(2, axis=1)
        expected |= large / large.max() > 0.3
    assert 0 < expected.mean() < 1
    assert np.array_equal(found, expected)


def test_nothing_attended_blends_nothing():
    latents = torch.arange(2 * 4 * 4 * 4.0).reshape(2, 4, 4, 4)
    found, mask = blend(latents, torch.zeros(2, 4), LocalBlend(words=((), ())), 0, 4)
    assert mask is not None
    assert not mask.any()
    assert torch.equal(found[1], latents[0])


@pytest.mark.parametrize("family", ["sd", "sdxl"])
@pytest.mark.parametrize("fitting", [2, 1])
def test_a_want_of_memory_halves_the_rows(make, family, fitting, monkeypatch):
    control = EditControl(method="replace", blend=LocalBlend(words=WORDS, threshold=0.8))
    generator = make(family)
    expected = generator.generate(request_of(control=control))
    plain, seen = generator.pipeline.unet.forward, []

    def forward(sample, *args, **kwargs):
        seen.append(sample.shape[0])
        if sample.shape[0] > fitting:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(sample, *args, **kwargs)

    monkeypatch.setattr(generator.pipeline.unet, "forward", forward)
    pair = generator.generate(request_of(control=control))
    assert expected.batch_rows == 4
    assert pair.batch_rows == fitting
    assert seen[:2] == [4, 2]
    assert seen[-1] == fitting
    assert pair.attention.cross_layers == expected.attention.cross_layers
    for found, image in zip(pair.images, expected.images, strict=True):
        assert np.abs(found.astype(int) - image).max() <= 3  # rounding by batch alone


def test_rows_asked_for_are_the_rows_after_a_want_of_memory(make, monkeypatch):
    asked = make(batch_rows=2).generate(request_of())
    generator = make()
    plain = generator.pipeline.unet.forward

    def forward(sample, *args, **kwargs):
        if sample.shape[0] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(sample, *args, **kwargs)

    monkeypatch.setattr(generator.pipeline.unet, "forward", forward)
    assert digest(generator.generate(request_of())) == digest(asked)


def test_a_row_that_does_not_fit_is_an_error(make, monkeypatch):
    def forward(sample, *args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(make().pipeline.unet, "forward", forward)
    with pytest.raises(torch.OutOfMemoryError):
        make().generate(request_of())


def test_maps_that_are_not_there_are_an_error(make):
    blend = LocalBlend(words=WORDS)
    control = EditControl(method="replace", heat_side=24, blend=blend)
    with pytest.raises(InputError, match="24x24"):
        make().generate(request_of(control=control))
    control = dataclasses.replace(control, blend=None)
    assert make().generate(request_of(control=control)).blend_mask is None


@pytest.mark.parametrize("size", [60, 0])
def test_a_size_the_model_cannot_draw_is_an_error(tiny_sd, size):
    with pytest.raises(InputError, match="multiple of 8"):
        PairGenerator(DiffusionSettings(model=str(tiny_sd), size_px=size))


def test_another_size_draws(make):
    pair = make(size_px=96, steps=1).generate(request_of())
    assert pair.images[0].shape == (96, 96, 3)


def test_local_blend_works_at_a_size_without_maps_of_side_16(make):
    """48 latent pixels a side and their halves, 24, are all the network has."""
    control = EditControl(method="replace", blend=LocalBlend(words=WORDS))
    pair = make(size_px=96, steps=2).generate(request_of(control=control))
    assert pair.blend_mask is not None


def test_the_sides_of_the_maps_of_stable_diffusion():
    levels = [*["CrossAttnDownBlock2D"] * 3, "DownBlock2D"]
    config = types.SimpleNamespace(down_block_types=levels)
    pipeline = types.SimpleNamespace(unet=types.SimpleNamespace(config=config))
    assert map_sides(pipeline, 64) == (64, 32, 16)  # 512 pixels
    assert map_sides(pipeline, 41) == (41, 21, 11)


@pytest.mark.parametrize(("above", "expected"), [(-1.0, (True, True)), (1.0, (False, False))])
def test_the_safety_checker_is_kept_and_its_word_passed_on(tmp_path, above, expected):
    folder = make_tiny_pipeline(tmp_path / "checked", flag_above=above)
    generator = PairGenerator(DiffusionSettings(model=str(folder), steps=1, cpu_threads=1))
    pair = generator.generate(request_of())
    assert pair.flagged == expected
    assert all((image == 0).all() == expected[0] for image in pair.images)


def test_the_fingerprint_names_what_decides_a_picture(make):
    assert make().fingerprint == make().fingerprint
    others = {
        make(steps=2).fingerprint,
        make(scheduler="pndm").fingerprint,
        make("sdxl").fingerprint,
    }
    assert len({make().fingerprint, *others}) == 4
