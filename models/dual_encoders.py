"""The families of dual encoders in transformers, and the differences in how they are called.

All have an encoder for images and one for captions, whose unit vectors are compared by their
cosine. What differs: the class, where its output holds the vector, how long captions may be, and
the scale that training put on the cosine.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

from eqforge.models.captions import CaptionTokenizer


def _pooled(output: Any) -> Any:
    # transformers 5 returns an object, earlier releases the tensor itself.
    return getattr(output, "pooler_output", output)


def _image_features(model: Any, pixels: Any) -> Any:
    return _pooled(model.get_image_features(pixel_values=pixels))


def _text_features(model: Any, tokens: Mapping[str, Any]) -> Any:
    return _pooled(model.get_text_features(**tokens))


def _flava_image(model: Any, pixels: Any) -> Any:
    # The output has a vector for every patch; the contrastive loss reads the first.
    return _image_features(model, pixels)[:, 0]


def _flava_text(model: Any, tokens: Mapping[str, Any]) -> Any:
    return _text_features(model, tokens)[:, 0]


def _blip_image(model: Any, pixels: Any) -> Any:
    return model.vision_proj(model.vision_model(pixel_values=pixels).last_hidden_state[:, 0])


def _blip_text(model: Any, tokens: Mapping[str, Any]) -> Any:
    return model.text_proj(model.text_encoder(**tokens).last_hidden_state[:, 0])


def _exponent(model: Any) -> Any:
    return model.logit_scale.float().exp()


def _inverse_temperature(model: Any) -> Any:
    return 1 / model.temperature.float()


def _trained_at_first(model: Any) -> Any:
    # BLIP's checkpoints come without the temperature; this is its initial value.
    return 1 / 0.07


def _places(text: Any) -> int:
    return int(text.max_position_embeddings)


def _places_behind_padding(text: Any) -> int:
    # RoBERTa's positions begin after the padding token's id.
    return int(text.max_position_embeddings) - int(text.pad_token_id) - 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """How one family is called.

    Attributes:
      model: name of the class in transformers.
      family: models of one family share architecture and training.
      image: model and pixels to unnormalised vectors, a tensor of shape (images, dimensions).
      text: model and tokens to such vectors of captions.
      scale: model to the factor that training put on the cosine, a number or a tensor of one.
      max_tokens: configuration of the text encoder to the most tokens it reads.
      inputs: names of the text encoder's inputs.
      fill: whether captions are padded to the full length, the padding not masked.
    """

    model: str
    family: str
    image: Callable[[Any, Any], Any] = _image_features
    text: Callable[[Any, Mapping[str, Any]], Any] = _text_features
    scale: Callable[[Any], Any] = _exponent
    max_tokens: Callable[[Any], int] = _places
    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    fill: bool = False

    def tokenizer(self, tokenizer: Any, text: Any) -> CaptionTokenizer:
        """Wraps a transformers tokenizer for a model with this text configuration."""
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
    "align": Architecture(model="AlignModel", family="align", scale=_inverse_temperature),
    # Its image encoder is CLIP's.
    "altclip": Architecture(model="AltCLIPModel", family="clip", max_tokens=_places_behind_padding),
    "groupvit": Architecture(model="GroupViTModel", family="groupvit"),
    "flava": Architecture(model="FlavaModel", family="flava", image=_flava_image, text=_flava_text),
    "blip-itc": Architecture(
        model="BlipForImageTextRetrieval",
        family="blip",
        image=_blip_image,
        text=_blip_text,
        scale=_trained_at_first,
    ),
}
"""By their names on the command line; used for scoring, as oracles and in training."""
