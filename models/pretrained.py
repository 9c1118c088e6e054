"""Load image-text models with transformers, from a folder or a commit on the hub, never code."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import re
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eqforge.core.errors import InputError, first_line, importing
from eqforge.core.files import storage
from eqforge.core.files.checked import shown
from eqforge.core.identity import fingerprint, sha256_hex
from eqforge.core.visible import counted
from eqforge.models.scorer import Identity, Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

Precision = Literal["float32", "bfloat16", "float16"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_READ = frozenset({".json", ".safetensors", ".bin", ".txt", ".model"})
"""Suffixes of model files that the digest covers."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """A pretrained model: a folder that transformers saved, or an id and a commit on the hub."""

    source: str
    revision: str | None = None
    precision: Precision = "float32"
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.folder is not None and self.revision is not None:
            raise InputError(
                f"{self.source} is a folder, which has no revision; remove the revision "
                f"{self.revision!r}"
            )
        if self.folder is None and _COMMIT.fullmatch(self.revision or "") is None:
            found = "" if self.revision is None else f", not {self.revision!r}"
            raise InputError(
                f"{self.source}: no such folder. For a model on the Hugging Face Hub, write "
                f"ID@COMMIT with the full commit hash (40 digits){found}. Branches and tags can "
                "change, so eqforge does not accept them."
            )

    @property
    def folder(self) -> Path | None:
        return Path(self.source) if Path(self.source).is_dir() else None

    @property
    def name(self) -> str:
        return self.source if self.folder is None else self.folder.resolve().name

    @classmethod
    def of(cls, model: str, precision: Precision, device: str) -> Weights:
        """Return the weights of a folder, or of `ID@COMMIT`."""
        source, at, revision = model.rpartition("@")
        if not at or Path(model).is_dir():
            source, revision = model, ""
        return cls(source=source, revision=revision or None, precision=precision, device=device)

    def digest(self) -> str:
        """Return the commit, or `sha256:` and a digest of the names and bytes of the files."""
        if self.folder is None:
            return str(self.revision)
        return folder_digest(self.folder)

    def identity(
        self, kind: str, family: str, preprocessing: str, calibration: str = "none"
    ) -> Identity:
        return Identity(
            kind=kind,
            family=family,
            model=self.name,
            revision=self.digest(),
            precision=self.precision,
            preprocessing=preprocessing,
            calibration=calibration,
        )


def folder_digest(folder: Path) -> str:
    files = sorted(file for file in folder.rglob("*") if file.suffix in _READ and file.is_file())
    digests = [
        (file.relative_to(folder).as_posix(), storage.digest(str(file))[1]) for file in files
    ]
    return f"sha256:{sha256_hex(repr(digests).encode())}"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Preprocessor:
    """Image processor and tokenizer of transformers, with the SHA-256 of their configuration."""

    image: Any
    tokenizer: Any
    digest: str


def import_torch() -> Any:
    with importing("torch and transformers", "models"):
        importlib.import_module("transformers")
        torch = importlib.import_module("torch")
    return torch


def exact_convolutions() -> Any:
    """Return a context in which GPU convolutions keep 24 bits, and always take one algorithm.

    By default they use TF32 (a 10-bit mantissa) and the fastest algorithm.
    """
    if "torch" not in sys.modules:
        return contextlib.nullcontext()
    return import_torch().backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    )


@contextlib.contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Set the number of torch's CPU threads, which changes the last bits of a sum.

    With one thread, several workers do not compete for cores either.
    """
    if "torch" not in sys.modules or count is None:
        yield
        return
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_elsewhere = ContextVar("elsewhere", default=False)


@contextlib.contextmanager
def devices_elsewhere() -> Iterator[None]:
    """Assume in the block that models run on other machines, on their devices."""
    token = _elsewhere.set(True)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def device_here(device: str) -> str:
    """Return a device to test a model on here: the CPU if the device is another machine's."""
    return "cpu" if _elsewhere.get() else device


def check_device(device: str) -> None:
    """Check that torch can put a tensor on a device, unless it is another machine's."""
    torch = import_torch()
    try:
        torch.empty(1, device=device_here(device))
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device={device}: error from PyTorch: {first_line(error)}") from error


def onto_device(model: Any, device: str) -> Any:
    torch = import_torch()
    try:
        return model.to(device).eval()
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"device={device}: the model does not fit in memory: {first_line(error)}"
        ) from error


def load_preprocessor(weights: Weights) -> Preprocessor:
    image = load_auto("AutoImageProcessor", weights)
    tokenizer = load_auto("AutoTokenizer", weights)
    parts = [image.to_json_string(), *_tokenizer_parts(tokenizer)]
    return Preprocessor(image=image, tokenizer=tokenizer, digest=fingerprint(parts))


def load_auto(kind: str, weights: Weights) -> Any:
    import_torch()
    auto = getattr(importlib.import_module("transformers"), kind)
    # Always Pillow's resampling: torchvision's, the default if installed, gives other pixels.
    resampling = {"backend": "pil"} if kind == "AutoImageProcessor" else {}
    try:
        return auto.from_pretrained(
            weights.source, revision=weights.revision, trust_remote_code=False, **resampling
        )
    except Exception as error:
        raise unloadable(weights, error) from error


def tokenizer_digest(tokenizer: Any) -> str:
    return fingerprint(_tokenizer_parts(tokenizer))


def _tokenizer_parts(tokenizer: Any) -> list[Any]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    vocabulary = (
        backend.to_str() if backend is not None else repr(sorted(tokenizer.get_vocab().items()))
    )
    return [vocabulary, tokenizer.model_max_length]


def prepare_pixels(processor: Any, picture: Picture) -> NDArray[np.float32]:
    """Return an image processor's pixel values, float32 (3, height, width)."""
    from PIL import Image

    if picture.pixels is None:
        raise ValueError(f"{picture.key}: the image has no pixels")
    image = Image.fromarray(picture.pixels, "RGB")
    values = processor(images=image, return_tensors="np")["pixel_values"][0]
    return np.asarray(values, dtype=np.float32)


def stack_pixels(prepared: Any, device: str, dtype: Any) -> Any:
    torch = import_torch()
    if not isinstance(prepared, torch.Tensor):
        prepared = torch.from_numpy(np.stack(prepared))
    return prepared.to(device, non_blocking=True).to(dtype)


def load_model(weights: Weights, architecture: str) -> Any:
    """Load a transformers model of a class such as `CLIPModel` from safetensors, for inference."""
    torch = import_torch()
    check_device(weights.device)
    transformers = importlib.import_module("transformers")
    transformers.utils.logging.disable_progress_bar()  # it would break our own
    kind = getattr(transformers, architecture)
    try:
        _check_index(weights.folder)
        with _quiet(transformers):
            model, found = kind.from_pretrained(
                weights.source,
                revision=weights.revision,
                dtype=getattr(torch, weights.precision),
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except Exception as error:
        raise unloadable(weights, error, architecture) from error
    if missing := sorted(found["missing_keys"]):
        raise InputError(
            f"{weights.source}: the model lacks {counted(len(missing), 'tensors')} of "
            f"{architecture}, such as {missing[0]!r}; choose a complete model"
        )
    return onto_device(model, weights.device)


def _check_index(folder: Path | None) -> None:
    """Check that an index's weights lie in its folder; transformers would open any file."""
    for index in folder.glob("*.index.json") if folder else ():
        for name in json.loads(index.read_bytes())["weight_map"].values():
            if name != Path(name).name:
                raise ValueError(f"{index.name} lists {shown(name)}, which is not in the folder")


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    # transformers lists every unused head of a checkpoint; missing weights are checked here.
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def check_vocabulary(model: str, tokens: int, embeddings: int) -> None:
    # transformers makes an almost empty tokenizer where files are missing.
    if not embeddings / 2 <= tokens <= embeddings:
        raise InputError(
            f"{model}: the tokenizer has {tokens} tokens, but the model has {embeddings}; use "
            "the tokenizer that was saved with the model"
        )


def unloadable(weights: Weights, error: Exception, architecture: str = "") -> InputError:
    if weights.folder is not None:
        advice = "Pass a folder saved by Transformers, with weights in safetensors."
    else:
        advice = (
            f"Commit {weights.revision} on the Hugging Face Hub must have weights in safetensors. "
            "If you are offline, pass a folder or a model in the cache."
        )
    first = first_line(error)
    if "ignore_mismatched_sizes" in first:  # the report that transformers points to is not shown
        first = f"the tensor shapes do not match the class {architecture}"
    return InputError(f"{weights.source}: the model cannot be loaded. {advice} Details: {first}")
