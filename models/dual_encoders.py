"""The families of dual encoders in transformers, and the differences in how they are called.

An image encoder and a caption encoder return unit vectors, compared by their cosine. Families
differ in class, place of the vector in the output, caption length, and scale of the cosine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
from eqforge.models.pretrained import (
    Weights,
    check_vocabulary,
    import_torch,
    load_auto,
    load_model,
    load_preprocessor,
    prepare_pixels,
    stack_pixels,
)
from eqforge.models.scorer import IndexPairs, Matches, Picture, Vectors, sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CaptionTokenizer:
    """A tokenizer and the form in which a model takes captions.

    A batch is padded to its longest caption, so the last bits of a caption's results depend on its
    neighbours: sums over more padding round differently. For scores that depend on image and
    caption alone, count the tokens first, batch captions of similar length, and pass the padded
    length.

    Attributes:
      max_tokens: longer captions are truncated to this many, special tokens included.
      inputs: the names of the model's inputs.
      fill: whether every caption is padded to `max_tokens`, as the model was trained.
    """

    tokenizer: Any
    max_tokens: int
    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    fill: bool = False

    def count(self, captions: Sequence[str]) -> list[int]:
        if self.fill:
            return [self.max_tokens] * len(captions)
        tokens = self.tokenizer(list(captions), truncation=True, max_length=self.max_tokens)
        return [len(ids) for ids in tokens["input_ids"]]

    def count_truncated(self, captions: Sequence[str]) -> int:
        """Return the number of captions longer than `max_tokens`."""
        tokens = self.tokenizer(list(captions), verbose=False)
        return sum(len(ids) > self.max_tokens for ids in tokens["input_ids"])

    def encode(
        self, captions: Sequence[str], device: str = "cpu", length: int | None = None
    ) -> Any:
        """Return the model's inputs by name, tensors of shape (captions, tokens).

        Captions are padded or truncated to `length` tokens, or padded to the longest.
        """
        if self.fill:
            length = None
        tokens = self.tokenizer(
            list(captions),
            padding="longest" if length is None and not self.fill else "max_length",
            truncation=True,
            max_length=self.max_tokens if length is None else min(length, self.max_tokens),
            return_tensors="pt",
        ).to(device)
        return {name: tokens[name] for name in self.inputs}


# transformers 5 returns an object with the vectors, earlier releases the vectors themselves.


def _image_features(model: Any, pixels: Any) -> Any:
    output = model.get_image_features(pixel_values=pixels)
    return getattr(output, "pooler_output", output)


def _text_features(model: Any, tokens: Mapping[str, Any]) -> Any:
    output = model.get_text_features(**tokens)
    return getattr(output, "pooler_output", output)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """Calling conventions of one family; its models share architecture and training.

    Attributes:
      model: name of the class in transformers.
      image, text: model and pixels, or tokens, to unnormalised vectors, (items, dimensions).
      scale: model to the factor that training put on the cosine.
      max_tokens: configuration of the text encoder to its maximum number of tokens.
      fill: whether captions are padded to the full length, the padding not masked.
    """

    model: str
    family: str
    image: Callable[[Any, Any], Any] = _image_features
    text: Callable[[Any, Mapping[str, Any]], Any] = _text_features
    scale: Callable[[Any], Any] = lambda model: model.logit_scale.float().exp()
    max_tokens: Callable[[Any], int] = lambda text: int(text.max_position_embeddings)
    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    fill: bool = False

    def tokenizer(self, tokenizer: Any, text: Any) -> CaptionTokenizer:
        return CaptionTokenizer(
            tokenizer=tokenizer,
            max_tokens=self.max_tokens(text),
            inputs=self.inputs,
            fill=self.fill,
        )


ARCHITECTURES: Final[Mapping[str, Architecture]] = {
    "clip": Architecture(model="CLIPModel", family="clip"),
    # SigLIP was trained on captions padded to the full length, the padding not masked.
    "siglip": Architecture(model="SiglipModel", family="siglip", inputs=("input_ids",), fill=True),
    "align": Architecture(
        model="AlignModel", family="align", scale=lambda model: 1 / model.temperature.float()
    ),
    # Its image encoder is CLIP's; RoBERTa's positions begin after the padding token's id.
    "altclip": Architecture(
        model="AltCLIPModel",
        family="clip",
        max_tokens=lambda text: int(text.max_position_embeddings) - int(text.pad_token_id) - 1,
    ),
    "groupvit": Architecture(model="GroupViTModel", family="groupvit"),
    # An image and a text encoder, trained apart; ResNet's pooled vectors have two sides of 1.
    # RoBERTa's positions begin after the padding token's id, 1.
    "vision-text": Architecture(
        model="VisionTextDualEncoderModel",
        family="vision-text",
        image=lambda model, pixels: model.visual_projection(
            model.vision_model(pixel_values=pixels).pooler_output.flatten(1)
        ),
        max_tokens=lambda text: int(text.max_position_embeddings) - 2,
    ),
    # The output has a vector for every patch and word; the contrastive loss reads the first.
    "flava": Architecture(
        model="FlavaModel",
        family="flava",
        image=lambda model, pixels: _image_features(model, pixels)[:, 0],
        text=lambda model, tokens: _text_features(model, tokens)[:, 0],
    ),
    "blip-itc": Architecture(
        model="BlipForImageTextRetrieval",
        family="blip",
        image=lambda model, pixels: model.vision_proj(
            model.vision_model(pixel_values=pixels).last_hidden_state[:, 0]
        ),
        text=lambda model, tokens: model.text_proj(
            model.text_encoder(**tokens).last_hidden_state[:, 0]
        ),
        # Checkpoints come without the temperature; this is its initial value.
        scale=lambda model: 1 / 0.07,
    ),
}
"""By command-line name; used for scoring, as oracles and in training."""


CENTRE = 0.3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Sigmoid:
    """P(match) = sigmoid(scale * cosine + bias)."""

    scale: float
    bias: float

    def __str__(self) -> str:
        return f"sigmoid({self.scale:.9g} * cosine {self.bias + 0.0:+.9g})"


class VectorScorer:
    """Base of dual encoders: compare unit vectors by their cosine, and calibrate it."""

    reads_pixels = True
    preparer: Callable[[Picture], NDArray[np.float32]]
    calibration: Sigmoid

    def prepare(self, picture: Picture) -> NDArray[np.float32]:
        return self.preparer(picture)

    def encode_captions(self, captions: Sequence[str]) -> Vectors:
        raise NotImplementedError

    def compare(self, images: Vectors, captions: Vectors) -> Matches:
        calibration = self.calibration
        cosines = np.einsum("nd,nd->n", images, captions, dtype=np.float32)
        # The sum is in float64: the scale is large and the bias nearly cancels it.
        exact = calibration.scale * cosines.astype(np.float64) + calibration.bias
        return Matches(
            logits=exact.astype(np.float32), probabilities=sigmoid(exact), cosines=cosines
        )

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        vectors = self.encode_captions(captions)
        return self.compare(np.stack(list(images))[pairs[:, 0]], vectors[pairs[:, 1]])


def unit_vectors(features: Any) -> Vectors:
    unit = import_torch().nn.functional.normalize(features.float(), dim=-1)
    vectors: Vectors = unit.cpu().numpy()
    return vectors


class ContrastiveScorer(VectorScorer):
    """A dual encoder from transformers.

    CLIP's own softmax gives the share of one caption among those of a batch, not a probability that
    a caption is true. Here P(match) = sigmoid(scale * (cosine - centre)): `scale` is by default the
    model's own, 100 in the published ones, and `centre` the cosine at which P is one half. Its
    default is 0.3, the threshold that LAION-400M (Schuhmann et al. 2021, section 2) chose by human
    inspection for ViT-B/32; other models need another. SigLIP is trained with a sigmoid for each
    pair (Zhai et al. 2023, section 3.2), whose scale and bias come with its weights.

    Args:
      kind: a key of ARCHITECTURES.
      scale, centre: of the sigmoid; None takes the model's own scale, and the model's own bias if
        it has one (SigLIP), otherwise a centre of 0.3.
    """

    def __init__(
        self, kind: str, weights: Weights, scale: float | None = None, centre: float | None = None
    ) -> None:
        self._torch = import_torch()
        self._weights = weights
        self._architecture = ARCHITECTURES[kind]
        preprocessor = load_preprocessor(weights)
        self._model = load_model(weights, self._architecture.model)
        text = self._model.config.text_config
        check_vocabulary(weights.source, len(preprocessor.tokenizer), text.vocab_size)
        self._captions = self._architecture.tokenizer(preprocessor.tokenizer, text)
        self.preparer = partial(prepare_pixels, preprocessor.image)
        with self._torch.no_grad():
            self.calibration = _calibration(self._architecture, self._model, scale, centre)
        self.identity = weights.identity(
            kind, self._architecture.family, preprocessor.digest, str(self.calibration)
        )

    def encode_images(self, prepared: Sequence[Any]) -> list[NDArray[np.float32]]:
        with self._torch.inference_mode():
            pixels = stack_pixels(prepared, self._weights.device, self._model.dtype)
            return list(unit_vectors(self._architecture.image(self._model, pixels)))

    def count_tokens(self, captions: Sequence[str]) -> list[int]:
        return self._captions.count(captions)

    def count_truncated(self, captions: Sequence[str]) -> int:
        return self._captions.count_truncated(captions)

    def encode_captions(self, captions: Sequence[str], length: int | None = None) -> Vectors:
        """Return unit vectors; each caption is padded to `length` tokens, or to the longest."""
        with self._torch.inference_mode():
            tokens = self._captions.encode(captions, self._weights.device, length)
            return unit_vectors(self._architecture.text(self._model, tokens))


def _calibration(
    architecture: Architecture, model: Any, scale: float | None, centre: float | None
) -> Sigmoid:
    scale = float(architecture.scale(model)) if scale is None else scale
    if not scale > 0:
        raise InputError(f"scale={scale}: expected more than 0")
    own_bias = getattr(model, "logit_bias", None)
    if centre is None and own_bias is not None:
        return Sigmoid(scale=scale, bias=own_bias.detach().float().item())
    return Sigmoid(scale=scale, bias=-scale * (CENTRE if centre is None else centre))


DINOV2: Final = "dinov2"


class Dinov2Encoder:
    """DINOv2 (Oquab et al. 2023), by its class token."""

    def __init__(self, weights: Weights) -> None:
        self._torch, self._weights = import_torch(), weights
        self._processor = load_auto("AutoImageProcessor", weights)
        self._model = load_model(weights, "Dinov2Model")
        sizes = (getattr(self._processor, name, None) or {} for name in ("crop_size", "size"))
        side = next((size["height"] for size in sizes if "height" in size), None)
        if side is None:
            raise InputError(f"{weights.source}: preprocessor_config.json sets no image height")
        self._side = int(side)
        self.identity = weights.identity(
            DINOV2, DINOV2, fingerprint([self._processor.to_json_string(), "whole picture"])
        )

    def prepare(self, picture: Picture) -> NDArray[np.float32]:
        """Return the resized and normalised image, float32 of shape (3, side, side).

        The whole image becomes a square, so that changes at its edge count. DINOv2's own
        preparation crops the middle.
        """
        from PIL import Image

        if picture.pixels is None:
            raise ValueError(f"{picture.key}: the image has no pixels")
        square = {"height": self._side, "width": self._side}
        image = Image.fromarray(picture.pixels, "RGB")
        values = self._processor(images=image, size=square, do_center_crop=False)["pixel_values"]
        return np.asarray(values[0], dtype=np.float32)

    def encode_images(self, prepared: Sequence[Any]) -> list[NDArray[np.float32]]:
        with self._torch.inference_mode():
            pixels = stack_pixels(prepared, self._weights.device, self._model.dtype)
            return list(unit_vectors(self._model(pixel_values=pixels).pooler_output))
