"""Load a diffusion pipeline from a folder or the hub: safetensors only, no code from the model."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError, first_line, importing
from eqforge.core.files import storage
from eqforge.core.files.source_file import unchanged
from eqforge.core.identity import fingerprint
from eqforge.generators.diffusion.settings import (
    DEFAULT_MODEL,
    DEFAULT_REVISION,
    TINY,
    DiffusionSettings,
    ModelIdentity,
    ModelSettings,
    Scheduler,
)

_PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_DRAWS = ("StableDiffusionPipeline", "StableDiffusionXLPipeline")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LIBRARIES = frozenset({"diffusers", "transformers", "stable_diffusion", "stable_diffusion_xl"})
_FILES = frozenset({".json", ".txt", ".safetensors", ".model", ".jinja"})


def load_pipeline(settings: DiffusionSettings) -> tuple[Any, ModelIdentity]:
    import_libraries()
    folder = find_folder(settings)
    index = read_index(folder, settings.model)
    if index.pipeline not in _DRAWS:
        raise InputError(
            f"{settings.model}: a {index.pipeline} does not draw from text alone; choose a "
            f"{' or '.join(_DRAWS)}. To use a model that edits images, run `eqforge build eq-edit`."
        )
    pipeline, identity = load_weights(folder, index, settings)
    check_texts(pipeline, settings.model)
    pipeline.scheduler = make_scheduler(settings.scheduler, pipeline.scheduler)
    # One image at a time: the decoder takes the most memory, and an image's bytes then do not
    # depend on its neighbour.
    pipeline.vae.enable_slicing()
    pipeline.watermark = None
    pipeline.set_progress_bar_config(disable=True)
    return pipeline, identity


def import_libraries() -> None:
    # Required for deterministic matrix products on a GPU, before the first of them.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with importing("torch, diffusers or transformers", "models"):
        import diffusers  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401


def revision_of(settings: ModelSettings) -> str | None:
    if settings.model == TINY:
        if settings.revision is not None:
            raise InputError("--revision: the model `tiny` has no revision; leave out this option")
        return None
    if Path(settings.model).is_dir():
        if settings.revision is not None:
            raise InputError(
                f"{settings.model} is a folder, so it has no revision; omit --revision "
                f"{settings.revision!r}"
            )
        return None
    if Path(settings.model).is_file():
        raise InputError(
            f"{settings.model} is a file; expected a pipeline folder. To convert the file, call "
            "`StableDiffusionPipeline.from_single_file(FILE).save_pretrained(FOLDER)`."
        )
    if settings.revision is None and settings.model == DEFAULT_MODEL:
        return DEFAULT_REVISION
    if settings.revision is None:
        raise InputError(
            f"{settings.model!r} is not a folder. For a model on the Hugging Face Hub, also pass "
            "its commit: --revision COMMIT or ID@COMMIT."
        )
    if _COMMIT.fullmatch(settings.revision) is None:
        raise InputError(
            f"{settings.model}: expected a commit of 40 hexadecimal digits, found "
            f"{settings.revision!r}; branches and tags can change"
        )
    return settings.revision


def find_folder(settings: ModelSettings) -> Path:
    from diffusers import DiffusionPipeline

    revision = revision_of(settings)
    if revision is None:
        return Path(settings.model)
    try:
        with quiet_libraries():
            found = DiffusionPipeline.download(
                settings.model,
                revision=revision,
                use_safetensors=True,
                local_files_only=settings.local_files_only,
            )
    except (OSError, ValueError) as error:
        raise InputError(
            f"the model {settings.model!r} is not a folder, and cannot be read from the Hugging "
            f"Face Hub: {first_line(error)}. Go online and run `hf download {settings.model} "
            f"--revision {revision}`, or pass a folder saved by diffusers."
        ) from error
    return Path(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelIndex:
    """The content of a pipeline's model_index.json: its class in diffusers and its folders."""

    pipeline: str
    parts: tuple[str, ...]


def read_index(folder: Path, model: str) -> ModelIndex:
    """Read a pipeline's model_index.json, after checking that no part has code of its own."""
    try:
        index = json.loads((folder / "model_index.json").read_bytes())
        parts = {key: value for key, value in index.items() if not key.startswith("_")}
        libraries = {value[0] for value in parts.values() if isinstance(value, list)}
        pipeline = index["_class_name"]
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        why = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else "is not valid"
        raise InputError(
            f"{model}: expected a pipeline saved by diffusers, but model_index.json {why}"
        ) from error
    if not isinstance(pipeline, str) or not libraries <= {*_LIBRARIES, None}:
        raise InputError(f"{model}: the pipeline requires custom code, which eqforge never runs")
    return ModelIndex(
        pipeline=pipeline, parts=tuple(sorted(key for key in parts if (folder / key).is_dir()))
    )


def load_weights(
    folder: Path,
    index: ModelIndex,
    settings: ModelSettings,
    pipeline: str = "DiffusionPipeline",
    offload: bool = False,
) -> tuple[Any, ModelIdentity]:
    """Load a pipeline of a class of diffusers, and return it with the identity of its weights.

    `DiffusionPipeline` loads the class of the index. With `offload`, each part is on the device
    only while it works.
    """
    import diffusers
    import torch

    dtype = getattr(torch, _PRECISIONS[settings.precision])
    _check_device(settings, dtype)
    with unchanged([folder]):
        try:
            with quiet_libraries():
                loaded: Any = getattr(diffusers, pipeline).from_pretrained(
                    folder, dtype=dtype, use_safetensors=True, local_files_only=True
                )
            if offload:
                loaded.enable_model_cpu_offload(device=settings.device)
            else:
                loaded.to(settings.device)
        except (OSError, ValueError, RuntimeError, LookupError, AttributeError) as error:
            raise InputError(
                f"the model {settings.model!r} cannot be loaded on {settings.device!r}: "
                f"{first_line(error)}. Pass a pipeline whose weights diffusers saved as "
                "safetensors."
            ) from error
        identity = _identity(folder, index.parts, settings.model, type(loaded).__name__)
    return loaded, identity


def _check_device(settings: ModelSettings, dtype: Any) -> None:
    import torch

    try:
        numbers = torch.ones(2, 2, device=settings.device, dtype=dtype)
        numbers.mm(numbers).cpu()
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"the model {settings.model!r} cannot be loaded on {settings.device!r} in "
            f"{settings.precision}. Error from PyTorch: {first_line(error)}"
        ) from error


def check_texts(pipeline: Any, model: str) -> None:
    for suffix in ("", "_2"):
        tokenizer = getattr(pipeline, f"tokenizer{suffix}", None)
        encoder = getattr(pipeline, f"text_encoder{suffix}", None)
        if tokenizer is None or encoder is None:
            continue
        embeddings = encoder.get_input_embeddings().num_embeddings
        # Only the embeddings of T5 and Qwen are padded to more than their tokens.
        fewest = embeddings if type(encoder).__name__.startswith("CLIP") else embeddings / 2
        # transformers 5 silently makes an empty tokenizer from files it does not understand.
        if not fewest <= len(tokenizer) <= embeddings or not tokenizer.is_fast:
            raise InputError(
                f"{model}: tokenizer{suffix} has {len(tokenizer)} tokens, but its text encoder has "
                f"{embeddings}; use the tokenizer that was saved with the model"
            )


def _identity(folder: Path, parts: Sequence[str], model: str, pipeline: str) -> ModelIdentity:
    files = [folder / "model_index.json"]
    for part in parts:
        files += sorted(file for file in (folder / part).rglob("*") if file.suffix in _FILES)
    digest = fingerprint(
        {file.relative_to(folder).as_posix(): storage.digest(str(file))[1] for file in files}
    )
    is_local = Path(model).is_dir()
    return ModelIdentity(
        # A folder's local path says nothing about the model.
        name=folder.resolve().name if is_local else model,
        revision=f"sha256:{digest[:16]}" if is_local else folder.name,
        digest=digest,
        pipeline=pipeline,
    )


@contextmanager
def deterministic(threads: int) -> Iterator[None]:
    """Make torch compute bit-reproducibly for the block, and restore its settings.

    On the CPU the number of threads decides how an image is split, and the ends of a part are
    rounded differently. If torch has no deterministic GPU algorithm for an operation, it warns.
    """
    import torch

    threads_before = torch.get_num_threads()
    enabled = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    fills = memory.fill_uninitialized_memory
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory = False
    try:
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_num_threads(threads_before)
        torch.use_deterministic_algorithms(enabled, warn_only=warns)
        memory.fill_uninitialized_memory = fills


@contextmanager
def quiet_libraries() -> Iterator[None]:
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    levels = [(log, log.get_verbosity()) for log in (diffusers_logging, transformers_logging)]
    for log, _ in levels:
        log.set_verbosity_error()
        log.disable_progress_bar()
    try:
        yield
    finally:
        for log, level in levels:
            log.set_verbosity(level)
            log.enable_progress_bar()


_CLASSES: dict[Scheduler, str] = {
    "ddim": "DDIMScheduler",
    "pndm": "PNDMScheduler",
    "euler": "EulerDiscreteScheduler",
    "euler-ancestral": "EulerAncestralDiscreteScheduler",
    "ddpm": "DDPMScheduler",
    "dpm-solver": "DPMSolverMultistepScheduler",
}


def make_scheduler(name: Scheduler, default: Any) -> Any:
    if name == "model":
        return default
    import diffusers

    # Schedulers that clip by default were made for pixels in [-1, 1]; a latent goes beyond.
    clips = {"clip_sample": False} if name in ("ddim", "ddpm") else {}
    return getattr(diffusers, _CLASSES[name]).from_config(default.config, **clips)
