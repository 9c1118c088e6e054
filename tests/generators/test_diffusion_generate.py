"""Whole pairs by tiny real pipelines."""

import functools
import hashlib
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.diffusion import generate
from eqforge.generators.diffusion.generate import (
    PairGenerator,
    blend,
    blend_mask,
    initial_latents,
    map_sides,
)
from eqforge.generators.diffusion.settings import DiffusionSettings, EditSettings
from tests.optional import optional
from tests.prompted import ADD, ANIMAL, SWAP, make_prudish, pair_of

torch = optional("torch")
optional("diffusers")

# diffusers turns tensors into arrays the way NumPy had before version 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

FREE = EditSettings(local_blend=False)
LOOSE = EditSettings(cross_replace=0, self_replace=0, local_blend=False)
BLEND = EditSettings(blend_threshold=0.8)
BLENDED = pair_of(blended=ANIMAL)


@pytest.fixture(scope="module")
def make(tiny_sd, tiny_sdxl):
    folders = {"sd": tiny_sd, "sdxl": tiny_sdxl}

    @functools.cache
    def make_generator(family="sd", **settings):
        settings = {"steps": 4, "cpu_threads": 1, **settings}
        return PairGenerator(DiffusionSettings(model=str(folders[family]), **settings))

    return make_generator


def digest(pair):
    return hashlib.sha256(b"".join(image.tobytes() for image in pair.images)).hexdigest()


def digests(folder):
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file()
    }


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
def test_control_at_no_step_draws_both_as_the_plain_pipeline(make, family):
    generator = make(family)
    pair = generator.generate(pair_of(), LOOSE)
    expected = plain_pipeline(generator, SWAP, 5)
    assert pair.images[0].shape == (64, 64, 3)
    assert pair.images[0].dtype == np.uint8
    assert np.abs(pair.images[0].astype(int) - expected[0]).max() <= 1
    assert np.abs(pair.images[1].astype(int) - expected[1]).max() <= 1
    assert pair.blend_mask is None


@pytest.mark.parametrize("family", ["sd", "sdxl"])
@pytest.mark.parametrize("prompts", [SWAP, ADD])
def test_the_control_leaves_the_first_alone_and_moves_the_second_to_it(make, family, prompts):
    generator = make(family)
    pair = generator.generate(pair_of(prompts), FREE)
    first, second = plain_pipeline(generator, prompts, 5)
    assert np.abs(pair.images[0].astype(int) - first).max() <= 1
    controlled = np.abs(pair.images[1].astype(int) - first).mean()
    assert 0 < controlled < np.abs(second.astype(int) - first).mean()


@pytest.mark.parametrize("family", ["sd", "sdxl"])
def test_the_same_seed_gives_the_same_bytes(make, family):
    generator = make(family)
    first = generator.generate(BLENDED, BLEND)
    generator.generate(pair_of(ADD, seed=9), FREE)
    again = generator.generate(BLENDED, BLEND)
    assert digest(first) == digest(again)
    other = generator.generate(pair_of(blended=ANIMAL, seed=6), BLEND)
    assert digest(first) != digest(other)


def test_bytes_do_not_depend_on_the_threads_of_the_process(make, tiny_sd, tiny_sdxl, tmp_path):
    """Neither those of the pictures nor those of the tiny models, which it makes itself."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from test_diffusion_generate import *\n"
        "from eqforge.generators.diffusion.tiny import make_tiny_pipeline\n"
        "for name in ('', 'XL'):\n"
        "    make_tiny_pipeline(f'{sys.argv[1]}/sd{name}', f'StableDiffusion{name}Pipeline')\n"
        "settings = DiffusionSettings(model=f'{sys.argv[1]}/sd', steps=4, cpu_threads=1)\n"
        "print(digest(PairGenerator(settings).generate(pair_of(), FREE)))"
    )
    expected = digest(make().generate(pair_of(), FREE))
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert digest(make().generate(pair_of(), FREE)) == expected
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    environment = {**os.environ, "OMP_NUM_THREADS": "3", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code, str(tmp_path), os.path.dirname(__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
    assert digests(tmp_path / "sd") == digests(tiny_sd)
    assert digests(tmp_path / "sdXL") == digests(tiny_sdxl)


def test_torch_is_as_it_was_afterwards(make):
    state = torch.get_rng_state()
    make().generate(pair_of(), FREE)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("scheduler", ["euler-ancestral", "ddpm"])
def test_both_pictures_get_the_same_noise(make, scheduler):
    generator = make(scheduler=scheduler)
    same = pair_of((SWAP[0], SWAP[0]))
    alike = generator.generate(same, LOOSE)
    assert np.array_equal(alike.images[0], alike.images[1])
    assert digest(alike) == digest(generator.generate(same, LOOSE))


@pytest.mark.parametrize("scheduler", ["pndm", "euler", "dpm-solver", "model"])
def test_every_scheduler_draws(make, scheduler):
    pair = make(scheduler=scheduler).generate(pair_of(), FREE)
    assert pair.images[0].std() > 5
    assert not np.array_equal(*pair.images)


def test_without_guidance_there_are_two_rows(make):
    pair = make(guidance_scale=1.0).generate(pair_of(), FREE)
    assert not np.array_equal(*pair.images)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_other_precisions_draw_nearly_the_same(make, precision):
    pair = make(precision=precision, steps=1).generate(pair_of(), FREE)
    exact = make(steps=1).generate(pair_of(), FREE)
    assert np.abs(pair.images[0].astype(int) - exact.images[0]).mean() < 5


def test_local_blend_leaves_outside_pixels_equal_bit_by_bit(make, monkeypatch):
    seen = []

    def watched(*arguments):
        seen.append(blend(*arguments))
        return seen[-1]

    monkeypatch.setattr(generate, "blend", watched)
    pair = make().generate(BLENDED, BLEND)
    assert len(seen) == 4
    (first, second), mask = seen[-1][0].numpy(), seen[-1][1].numpy()
    assert mask.shape == (32, 32)
    assert np.array_equal(mask, pair.blend_mask)
    assert 0 < mask.mean() < 1
    same = (first.view(np.int32) == second.view(np.int32)).all(axis=0)
    assert same[~mask].all()
    assert not same[mask].any()


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
    found, mask = blend(latents, torch.zeros(2, 4), 0.3)
    assert not mask.any()
    assert torch.equal(found[1], latents[0])


@pytest.mark.parametrize("family", ["sd", "sdxl"])
@pytest.mark.parametrize("fitting", [2, 1])
def test_a_want_of_memory_halves_the_rows(make, family, fitting, monkeypatch):
    generator = make(family)
    expected = generator.generate(BLENDED, BLEND)
    plain, seen = generator.pipeline.unet.forward, []

    def forward(sample, *args, **kwargs):
        seen.append(sample.shape[0])
        if sample.shape[0] > fitting:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(sample, *args, **kwargs)

    monkeypatch.setattr(generator.pipeline.unet, "forward", forward)
    pair = generator.generate(BLENDED, BLEND)
    assert expected.batch_rows == 4
    assert pair.batch_rows == fitting
    assert seen[:2] == [4, 2]
    assert seen[-1] == fitting
    for found, image in zip(pair.images, expected.images, strict=True):
        assert np.abs(found.astype(int) - image).max() <= 3  # rounding by batch alone


def test_rows_asked_for_are_the_rows_after_a_want_of_memory(make, monkeypatch):
    asked = make(batch_rows=2).generate(pair_of(), FREE)
    generator = make()
    plain = generator.pipeline.unet.forward

    def forward(sample, *args, **kwargs):
        if sample.shape[0] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(sample, *args, **kwargs)

    monkeypatch.setattr(generator.pipeline.unet, "forward", forward)
    assert digest(generator.generate(pair_of(), FREE)) == digest(asked)


@pytest.mark.parametrize("size", [60, 0])
def test_a_size_the_model_cannot_draw_is_an_error(tiny_sd, size):
    with pytest.raises(InputError, match="multiple of 8"):
        PairGenerator(DiffusionSettings(model=str(tiny_sd), size_px=size))


def test_local_blend_works_at_a_size_without_maps_of_side_16(make):
    """48 latent pixels a side and their halves, 24, are all the network has."""
    pair = make(size_px=96, steps=2).generate(BLENDED, BLEND)
    assert pair.images[0].shape == (96, 96, 3)
    assert pair.blend_mask is not None


def test_the_sides_of_the_maps_of_stable_diffusion():
    levels = [*["CrossAttnDownBlock2D"] * 3, "DownBlock2D"]
    config = types.SimpleNamespace(down_block_types=levels)
    pipeline = types.SimpleNamespace(unet=types.SimpleNamespace(config=config))
    assert map_sides(pipeline, 64) == (64, 32, 16)  # 512 pixels
    assert map_sides(pipeline, 41) == (41, 21, 11)


@pytest.mark.parametrize(("above", "expected"), [(-1.0, (True, True)), (1.0, (False, False))])
def test_the_safety_checker_is_kept_and_its_word_passed_on(tmp_path, above, expected):
    folder = make_prudish(tmp_path / "checked", above)
    generator = PairGenerator(DiffusionSettings(model=str(folder), steps=1, cpu_threads=1))
    pair = generator.generate(pair_of(), FREE)
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
