"""BLIP's image-text matching head, on captions encoded with cross-attention to the image."""

from collections.abc import Sequence
from typing import Any

from eqforge.models.fusion import PixelFusion
from eqforge.models.heads import match_classes, run_head
from eqforge.models.pretrained import Weights, stack_pixels
from eqforge.models.scorer import IndexPairs, Matches


class BlipItmScorer(PixelFusion):
    """BLIP with its matching head, a fusion encoder (Li et al. 2022, section 3.2).

    P(match) is the softmax over the head's two classes; as log-odds, their difference.

    Args:
      weights: a checkpoint of BlipForImageTextRetrieval.

    Raises:
      InputError: the model cannot be loaded, or is a BLIP without matching head.
      MissingExtra: torch or transformers is not installed.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__(
            weights,
            "BlipForImageTextRetrieval",
            kind="blip-itm",
            family="blip",
            calibration="softmax of the matching head",
            reader="text_config",
        )

    def encode_images(self, prepared: Sequence[Any]) -> list[Any]:
        """Returns each image's patch states, a tensor of shape (patches + 1, hidden)."""
        with self._torch.inference_mode():
            pixels = stack_pixels(prepared, self._weights.device, self._model.dtype)
            return list(self._model.vision_model(pixel_values=pixels).last_hidden_state)

    def match(
        self,
        images: Sequence[Any],
        captions: Sequence[str],
        pairs: IndexPairs,
        length: int | None = None,
    ) -> Matches:
        """Scores pairs of encoded images and captions, in one batch.

        For `length`, see ContrastiveScorer.encode_captions.
        """
        torch = self._torch
        with torch.inference_mode():
            states = torch.stack([images[index] for index in pairs[:, 0]])
            read = [captions[index] for index in pairs[:, 1]]
            tokens = self._captions.encode(read, self._weights.device, length)
            fused = self._model.text_encoder(
                input_ids=tokens["input_ids"],
                attention_mask=tokens["attention_mask"],
                encoder_hidden_states=states,
                encoder_attention_mask=torch.ones(states.shape[:2], device=states.device),
            )
            return match_classes(run_head(self._model.itm_head, fused.last_hidden_state[:, 0, :]))
