"""BLIP-2's image-text matching head: learnt queries attend to an image and a caption."""

from collections.abc import Sequence
from typing import Any

from eqforge.models.fusion import PixelFusion
from eqforge.models.heads import match_classes, run_head
from eqforge.models.pretrained import Weights, stack_pixels
from eqforge.models.scorer import IndexPairs, Matches


class Blip2ItmScorer(PixelFusion):
    """BLIP-2's first stage with its matching head, a fusion encoder (Li et al. 2023, section 3.2).

    The head's logits are averaged over the queries. P(match) is the softmax over the two classes;
    as log-odds, their difference.

    Args:
      weights: a checkpoint of Blip2ForImageTextRetrieval.

    Raises:
      InputError: the model cannot be loaded, or is a BLIP-2 without matching head.
      MissingExtra: torch or transformers is not installed.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__(
            weights,
            "Blip2ForImageTextRetrieval",
            kind="blip2-itm",
            family="blip2",
            calibration="softmax of the matching head",
            reader="qformer_config",
            # Checkpoints add an image placeholder token, which the Q-Former never reads.
            vocabulary=lambda found: int(found.tokenizer.vocab_size),
        )

    def encode_images(self, prepared: Sequence[Any]) -> list[Any]:
        """Returns each image's patch states, a tensor of shape (patches + 1, hidden)."""
        with self._torch.inference_mode():
            dtype = self._model.vision_model.dtype
            pixels = stack_pixels(prepared, self._weights.device, dtype)
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
        torch, model = self._torch, self._model
        with torch.inference_mode():
            states = torch.stack([images[index] for index in pairs[:, 0]])
            read = [captions[index] for index in pairs[:, 1]]
            tokens = self._captions.encode(read, self._weights.device, length)
            queries = model.query_tokens.expand(len(states), -1, -1)
            count, attended = queries.shape[1], tokens["attention_mask"]
            fused = model.qformer(
                query_embeds=model.embeddings(input_ids=tokens["input_ids"], query_embeds=queries),
                query_length=count,
                attention_mask=torch.cat([attended.new_ones((len(states), count)), attended], 1),
                encoder_hidden_states=states,
                encoder_attention_mask=attended.new_ones(states.shape[:2]),
            ).last_hidden_state[:, :count]
            return match_classes(run_head(model.itm_head, fused).mean(dim=1))
