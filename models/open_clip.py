"""Models of open_clip, from a folder or a commit on the hub, in safetensors."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.files import storage
from eqforge.core.identity import fingerprint
from eqforge.models.dual_encoders import CENTRE, Sigmoid, compare_vectors
from eqforge.models.pretrained import Weights, check_device, import_torch, onto_device, stack_pixels
from eqforge.models.scorer import Identity, IndexPairs, Matches, Picture, Vectors, match_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CONFIG = "open_clip_config.json"
_FILES = [_CONFIG, "*.safetensors", "*.json", "*.txt", "*.model"]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OpenClipFiles:
    """Which model, and from where.

    Attributes:
      source: a folder or an id on the hub with `open_clip_config.json` and safetensors; or, with
        `checkpoint`, open_clip's name of the architecture, such as `ViT-B-32`.
      revision: the commit on the hub; None for a folder or an architecture.
      checkpoint: the safetensors file of an architecture's weights.
      precision: type of the weights.
      device: as torch names it.
    """

    source: str
    revision: str | None = None
    checkpoint: Path | None = None
    precision: str = "float32"
    device: str = "cpu"


class OpenClipScorer:
    """A dual encoder from open_clip, a CLIP or a model trained with SigLIP's loss.

    Captions are padded to the model's full length, as its tokenizer does.
    """

    reads_pixels = True

    def __init__(self, files: OpenClipFiles) -> None:
        self._torch = import_torch()
        library = import_open_clip()
        check_device(files.device)
        name, checkpoint, revision = _find(files)
        with _quiet(), _loading(files.source):
            model = library.create_model(
                name, pretrained=checkpoint, require_pretrained=True, weights_only=True
            )
            self._tokenizer = library.get_tokenizer(name)
        self._device, dtype = files.device, getattr(self._torch, files.precision)
        self._model = onto_device(model.to(dtype), files.device)
        self._dtype = dtype
        settings = library.transform.PreprocessCfg(**model.visual.preprocess_cfg)
        transform = library.transform.image_transform_v2(settings, is_train=False)
        self.preparer: Callable[[Picture], NDArray[np.float32]] = partial(_prepare, transform)
        bias = getattr(model, "logit_bias", None)
        scale = float(model.logit_scale.detach().float().exp())
        self.calibration = Sigmoid(
            scale=scale, bias=-scale * CENTRE if bias is None else float(bias.detach().float())
        )
        context = int(self._tokenizer.context_length)
        prepared = [dataclasses.asdict(settings), type(self._tokenizer).__name__, context]
        self.identity = Identity(
            kind="open-clip",
            family="clip" if bias is None else "siglip",
            model=Path(files.source).name if Path(files.source).is_dir() else files.source,
            revision=revision,
            precision=files.precision,
            preprocessing=fingerprint([*prepared, library.__version__]),
            calibration=str(self.calibration),
        )

    def prepare(self, picture: Picture) -> NDArray[np.float32]:
        return self.preparer(picture)

    def encode_images(self, prepared: Sequence[Any]) -> list[NDArray[np.float32]]:
        with self._torch.inference_mode():
            pixels = stack_pixels(prepared, self._device, self._dtype)
            return list(self._unit(self._model.encode_image(pixels)))

    def encode_captions(self, captions: Sequence[str]) -> Vectors:
        with self._torch.inference_mode():
            tokens = self._tokenizer(list(captions)).to(self._device)
            return self._unit(self._model.encode_text(tokens))

    def compare(self, images: Vectors, captions: Vectors) -> Matches:
        return compare_vectors(self.calibration, images, captions)

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        return match_vectors(self, images, captions, pairs)

    def _unit(self, features: Any) -> Vectors:
        unit = self._torch.nn.functional.normalize(features.float(), dim=-1)
        vectors: Vectors = unit.cpu().numpy()
        return vectors


def import_open_clip() -> Any:
    try:
        importlib.import_module("torchvision")
        return importlib.import_module("open_clip")
    except ImportError as error:
        raise MissingExtra(
            f"{error.name or 'open_clip'}, of open_clip's models,", "models"
        ) from error


def _prepare(transform: Any, picture: Picture) -> NDArray[np.float32]:
    from PIL import Image

    if picture.pixels is None:
        raise ValueError(f"{picture.key}: no pixels")
    values = transform(Image.fromarray(picture.pixels, "RGB"))
    return np.asarray(values, dtype=np.float32)


def _find(files: OpenClipFiles) -> tuple[str, str | None, str]:
    """Return open_clip's name of the model, its file of weights or None, and its revision."""
    if files.checkpoint is not None:
        if files.checkpoint.suffix != ".safetensors" or not files.checkpoint.is_file():
            raise InputError(f"weights={files.checkpoint}: expected a file in safetensors")
        digest = storage.digest(str(files.checkpoint))[1]
        return files.source, str(files.checkpoint), f"sha256:{digest}"
    weights = Weights(source=files.source, revision=files.revision)
    folder = weights.folder
    if folder is None:
        hub: Any = importlib.import_module("huggingface_hub")
        with _loading(files.source):
            found = hub.snapshot_download(
                files.source, revision=files.revision, allow_patterns=_FILES
            )
        folder = Path(found)
    _check_folder(folder)
    return f"local-dir:{folder}", None, weights.digest()


def _check_folder(folder: Path) -> None:
    try:
        config = json.loads((folder / _CONFIG).read_text())
        text = config["model_cfg"]["text_cfg"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder}: expected {_CONFIG} with a model_cfg: {error}") from error
    if not list(folder.glob("*.safetensors")):
        raise InputError(f"{folder}: holds no weights in safetensors")
    if text.get("hf_model_name"):
        raise InputError(
            f"{folder}: its text encoder {text['hf_model_name']!r} would be fetched from the hub "
            "without a commit; models with a text encoder of their own are read"
        )


@contextlib.contextmanager
def _loading(source: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"{error.name}, of which {source} is made,", "models") from error
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{source}: the model cannot be loaded: {first} (expected {_CONFIG} and safetensors in "
            "a folder or at a commit on the hub, or a name of open_clip with ,weights=FILE)"
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    # open_clip logs every step to the root logger.
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
