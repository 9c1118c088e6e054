"""Models of open_clip, from a folder or a commit on the hub, or from a published checkpoint."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.core.errors import InputError, MissingExtra, first_line
from eqforge.core.files import storage
from eqforge.core.identity import fingerprint
from eqforge.core.visible import series
from eqforge.models.dual_encoders import CENTRE, Sigmoid, VectorScorer, unit_vectors
from eqforge.models.pretrained import (
    Weights,
    check_device,
    import_torch,
    onto_device,
    stack_pixels,
)
from eqforge.models.scorer import Identity, Picture, Vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CONFIG = "open_clip_config.json"
_WEIGHTS = (".safetensors", ".pt", ".pth", ".bin")
_FILES = [_CONFIG, "*.safetensors", "*.json", "*.txt", "*.model"]


class OpenClipScorer(VectorScorer):
    """A dual encoder from open_clip: a CLIP or a model trained with SigLIP's loss.

    Captions are padded to the model's full length, as its tokenizer does.

    Args:
      source: a folder or an id on the hub with `open_clip_config.json` and safetensors; or, with
        `checkpoint`, open_clip's name of the architecture, such as `ViT-B-32`.
      revision: the commit on the hub; None for a folder or an architecture.
      checkpoint: the file of an architecture's weights: safetensors, or a `.pt` checkpoint as
        open_clip trains it and NegCLIP publishes it, of which torch reads tensors and runs no code.
        LoRA layers, as in the checkpoints of SVLC and DAC, are merged into the weights.
    """

    def __init__(
        self,
        source: str,
        revision: str | None,
        checkpoint: Path | None,
        precision: str,
        device: str,
    ) -> None:
        self._torch = import_torch()
        library = import_open_clip()
        check_device(device)
        name, weights, revision = _find(source, revision, checkpoint)
        with _quiet(), _loading(source):
            has_lora = False
            if checkpoint is not None and checkpoint.suffix != ".safetensors":
                # open_clip reads a file that this rejects once more, and then runs its code.
                state = self._torch.load(checkpoint, map_location="meta", weights_only=True)
                has_lora = any(key.endswith("lora_A") for key in state.get("state_dict", state))
            if has_lora:
                model = library.create_model(name)
                model.load_state_dict(_merge_lora(library.factory.load_state_dict(str(checkpoint))))
            else:
                model = library.create_model(
                    name, pretrained=weights, require_pretrained=True, weights_only=True
                )
            self._tokenizer = library.get_tokenizer(name)
        self._device, self._dtype = device, getattr(self._torch, precision)
        self._model = onto_device(model.to(self._dtype), device)
        settings = library.transform.PreprocessCfg(**model.visual.preprocess_cfg)
        transform = library.transform.image_transform_v2(settings, is_train=False)
        self.preparer = partial(_prepare, transform)
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
            model=_model_name(source, checkpoint),
            revision=revision,
            precision=precision,
            preprocessing=fingerprint([*prepared, library.__version__]),
            calibration=str(self.calibration),
        )

    def encode_images(self, prepared: Sequence[Any]) -> list[NDArray[np.float32]]:
        with self._torch.inference_mode():
            pixels = stack_pixels(prepared, self._device, self._dtype)
            return list(unit_vectors(self._model.encode_image(pixels)))

    def encode_captions(self, captions: Sequence[str]) -> Vectors:
        with self._torch.inference_mode():
            tokens = self._tokenizer(list(captions)).to(self._device)
            return unit_vectors(self._model.encode_text(tokens))


def import_open_clip() -> Any:
    try:
        importlib.import_module("torchvision")
        return importlib.import_module("open_clip")
    except ImportError as error:
        raise MissingExtra(
            f"{error.name or 'open_clip'}, which open_clip's models need,", "models"
        ) from error


def _merge_lora(state: dict[str, Any]) -> dict[str, Any]:
    """Add the product of each pair of LoRA matrices, divided by their rank, to its weight.

    The weight `x.weight` has the matrices `x.lora_A` and `x.lora_B`. An attention's
    `in_proj_weight` has `in_proj_weight_lora_A` and `in_proj_weight_lora_B`. In a convolution,
    lora_A has a row for each rank and each row of the kernel.

    Source: `loralib/layers.py` of SVLC (Doveh et al. 2023), with its `lora_alpha` of 1.
    """
    merged = {key: tensor for key, tensor in state.items() if "lora_" not in key}
    for key in (key for key in state if key.endswith("lora_A")):
        stem = key.removesuffix("lora_A")
        target = stem.removesuffix("_") if stem.endswith("_") else f"{stem}weight"
        weight = merged[target]
        kernel = weight.shape[-1] if weight.ndim == 4 else 1
        product = state[f"{stem}lora_B"].float() @ state[key].float() * kernel / len(state[key])
        if weight.ndim == 4:
            product = product.view(weight.shape)
        if product.shape != weight.shape:
            raise ValueError(f"the shape of {stem}lora_A does not match {target}")
        merged[target] = weight.detach() + product.to(weight)
    return merged


def _prepare(transform: Any, picture: Picture) -> NDArray[np.float32]:
    from PIL import Image

    if picture.pixels is None:
        raise ValueError(f"{picture.key}: the image has no pixels")
    values = transform(Image.fromarray(picture.pixels, "RGB"))
    return np.asarray(values, dtype=np.float32)


def _model_name(source: str, checkpoint: Path | None) -> str:
    if checkpoint is not None:
        return f"{source},weights={checkpoint.name}"
    return Path(source).name if Path(source).is_dir() else source


def _find(
    source: str, revision: str | None, checkpoint: Path | None
) -> tuple[str, str | None, str]:
    if checkpoint is not None:
        if checkpoint.suffix not in _WEIGHTS or not checkpoint.is_file():
            raise InputError(
                f"weights={checkpoint}: expected an existing {series(_WEIGHTS, 'or')} file"
            )
        digest = storage.digest(str(checkpoint))[1]
        return source, str(checkpoint), f"sha256:{digest}"
    weights = Weights(source=source, revision=revision)
    folder = weights.folder
    if folder is None:
        hub: Any = importlib.import_module("huggingface_hub")
        with _loading(source):
            folder = Path(hub.snapshot_download(source, revision=revision, allow_patterns=_FILES))
    _check_folder(folder)
    return f"local-dir:{folder}", None, weights.digest()


def _check_folder(folder: Path) -> None:
    try:
        config = json.loads((folder / _CONFIG).read_text())
        text = config["model_cfg"]["text_cfg"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{folder}: cannot read model_cfg in {_CONFIG}: {error}") from error
    if not list(folder.glob("*.safetensors")):
        raise InputError(f"{folder} contains no .safetensors file with weights")
    if text.get("hf_model_name"):
        raise InputError(
            f"{folder} does not contain its text encoder, {text['hf_model_name']!r}. eqforge does "
            f"not download it, because {_CONFIG} gives no commit. Choose a different model."
        )


@contextlib.contextmanager
def _loading(source: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"{error.name}, which {source} needs,", "models") from error
    except Exception as error:
        raise InputError(
            f"{source}: the model cannot be loaded: {first_line(error)}. Pass a folder or Hub "
            f"commit with {_CONFIG} and safetensors, or append ,weights=FILE to an open_clip name."
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
