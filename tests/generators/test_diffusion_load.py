import json
import shutil
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.load import load_pipeline
from eqforge.generators.diffusion.settings import DEFAULT_REVISION, DiffusionSettings
from eqforge.generators.diffusion.tiny import make_tiny_pipeline
from tests.optional import optional

torch = optional("torch")
optional("diffusers")


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch, tmp_path):
    """No test asks the hub, and none finds a model in the cache."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def copy(tiny_sd, tmp_path):
    """A copy of the tiny model that a test may spoil."""
    return Path(shutil.copytree(tiny_sd, tmp_path / "copy"))


def load(model, **settings):
    return load_pipeline(DiffusionSettings(model=str(model), **settings))


def test_a_folder_is_named_by_its_content(tiny_sd, copy):
    _, first = load(tiny_sd)
    _, second = load(copy)
    assert first.digest == second.digest
    assert first.revision == f"sha256:{first.digest[:16]}" == second.revision
    assert (first.name, second.name) == ("tiny-sd", "copy")
    assert first.pipeline == "StableDiffusionPipeline"
    weights = copy / "unet" / "diffusion_pytorch_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    assert load(copy)[1].digest != first.digest


def test_the_scheduler_keeps_the_noise_the_model_was_trained_with(tiny_sd):
    pipeline, _ = load(tiny_sd, scheduler="ddim")
    assert type(pipeline.scheduler).__name__ == "DDIMScheduler"
    assert pipeline.scheduler.config.beta_schedule == "scaled_linear"
    assert pipeline.scheduler.config.clip_sample is False
    assert type(load(tiny_sd, scheduler="model")[0].scheduler).__name__ == "PNDMScheduler"


def test_a_model_of_the_hub_needs_a_commit():
    with pytest.raises(InputError, match="also pass its commit: --revision"):
        load("someone/some-model")


@pytest.mark.parametrize("revision", ["main", "v1.0", "0" * 39, "0" * 39 + "G"])
def test_a_branch_or_a_tag_is_no_commit(revision):
    with pytest.raises(InputError, match="expected a commit of 40 hexadecimal digits"):
        load("someone/some-model", revision=revision)


def test_a_folder_has_no_revision(tiny_sd):
    with pytest.raises(
        InputError, match="is a folder, so it has no revision; omit --revision 'abc'"
    ):
        load(tiny_sd, revision="abc")


@pytest.mark.parametrize("pipeline", ["StableDiffusionImg2ImgPipeline", "KandinskyPipeline"])
def test_a_pipeline_that_does_not_draw_from_text_alone_is_refused(copy, pipeline):
    index = json.loads((copy / "model_index.json").read_text())
    (copy / "model_index.json").write_text(json.dumps({**index, "_class_name": pipeline}))
    with pytest.raises(InputError, match=f"a {pipeline} does not draw from text alone"):
        load(copy)


def test_the_default_model_is_pinned_and_the_error_says_how_to_get_it():
    expected = f"hf download CompVis/stable-diffusion-v1-4 --revision {DEFAULT_REVISION}"
    with pytest.raises(InputError, match=expected):
        load_pipeline(DiffusionSettings(local_files_only=True))


@pytest.mark.parametrize("content", [None, "not json", "[]", '{"unet": ["diffusers", "X"]}'])
def test_a_folder_without_pipeline_is_an_error(tmp_path, content):
    if content is not None:
        (tmp_path / "model_index.json").write_text(content)
    with pytest.raises(InputError, match="a pipeline saved by diffusers, but model_index"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"), [("_class_name", ["pipeline", "MyPipeline"]), ("unet", ["my_unet", "MyUNet"])]
)
def test_code_that_comes_with_a_model_is_never_run(copy, key, value):
    index = json.loads((copy / "model_index.json").read_text())
    (copy / "model_index.json").write_text(json.dumps({**index, key: value}))
    for name in ("pipeline", "my_unet"):
        (copy / f"{name}.py").write_text("raise SystemExit('code of the model was run')")
    with pytest.raises(InputError, match="eqforge never runs"):
        load(copy)


def test_pickled_weights_are_refused(copy):
    weights = copy / "unet" / "diffusion_pytorch_model.safetensors"
    torch.save({}, weights.with_suffix(".bin"))
    weights.unlink()
    with pytest.raises(InputError, match="safetensors"):
        load(copy)


def test_a_tokenizer_of_another_model_is_refused(copy):
    file = copy / "tokenizer" / "tokenizer.json"
    content = json.loads(file.read_text())
    content["model"] |= {"vocab": {"<|endoftext|>": 0, "a</w>": 1}, "merges": []}
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"tokenizer has .* use the tokenizer"):
        load(copy)


@pytest.mark.parametrize("device", ["nowhere", "meta"])
def test_a_device_that_is_not_there_is_an_error(tiny_sd, device):
    with pytest.raises(InputError, match=f"cannot be loaded on '{device}'"):
        load(tiny_sd, device=device)


def test_making_a_model_leaves_the_random_state(tmp_path):
    state = torch.get_rng_state()
    make_tiny_pipeline(tmp_path)
    assert torch.equal(torch.get_rng_state(), state)
