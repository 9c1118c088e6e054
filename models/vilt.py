"""ViLT with its retrieval head: one transformer over a caption's words and an image's patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eqforge.core.late import numpy as np
from eqforge.models.fusion import PixelFusion
from eqforge.models.heads import run_head
from eqforge.models.pretrained import Weights
from eqforge.models.scorer import IndexPairs, Matches, sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST = 1333 / 800
"""The longer side of a resized image is at most this times the shorter side's setting."""


class ViltScorer(PixelFusion):
    """ViLT fine-tuned for retrieval, a fusion encoder (Kim et al. 2021, section 3.1).

    The score is the ranking head's one logit, which training compares among captions by a softmax;
    its sigmoid is therefore no probability that a caption is true.

    transformers' own forward pass draws the order of an image's patches from torch's global random
    generator, and pads images of a batch to the largest. The order changes only the last bits of a
    score; here patches stay in order and every image is padded to the most patches there can be.

    Args:
      weights: a checkpoint of ViltForImageAndTextRetrieval.

    Raises:
      InputError: the model cannot be loaded, or is a ViLT without ranking head.
      MissingExtra: torch or transformers is not installed.
    """

    gives_log_odds = False

    def __init__(self, weights: Weights) -> None:
        super().__init__(
            weights,
            "ViltForImageAndTextRetrieval",
            kind="vilt",
            family="vilt",
            calibration="sigmoid of the ranking head",
        )
        side = int(self._preprocessor.image.size["shortest_edge"])
        patch = int(self._model.config.patch_size)
        self._states = 1 + (side // patch) * (int(_LONGEST * side) // patch)

    def encode_images(self, prepared: Sequence[Any]) -> list[Any]:
        """Returns each image's patch embeddings, a tensor of shape (patches + 1, hidden).

        Images are embedded one by one, as their sizes differ.
        """
        with self._torch.inference_mode():
            return [self._embed(pixels) for pixels in prepared]

    def _embed(self, pixels: Any) -> Any:
        torch, embeddings = self._torch, self._model.vilt.embeddings
        tensor = torch.as_tensor(pixels).to(self._weights.device, self._model.dtype)
        patches = embeddings.patch_embeddings(tensor[None])
        _, hidden, height, width = patches.shape
        places = embeddings.position_embeddings
        side = self._model.config.image_size // self._model.config.patch_size
        grid = places[:, 1:].transpose(1, 2).reshape(1, hidden, side, side)
        grid = torch.nn.functional.interpolate(
            grid, size=(height, width), mode="bilinear", align_corners=True
        )
        embedded = (patches + grid).flatten(2).transpose(1, 2)[0]
        return torch.cat([(embeddings.cls_token + places[:, :1])[0], embedded])

    def match(
        self,
        images: Sequence[Any],
        captions: Sequence[str],
        pairs: IndexPairs,
        length: int | None = None,
    ) -> Matches:
        """Scores pairs of embedded images and captions, in one batch.

        For `length`, see ContrastiveScorer.encode_captions.
        """
        torch = self._torch
        with torch.inference_mode():
            states, attended = self._padded([images[index] for index in pairs[:, 0]])
            read = [captions[index] for index in pairs[:, 1]]
            tokens = self._captions.encode(read, self._weights.device, length)
            # Given patch embeddings, ViLT takes the mask of patches as `pixel_mask`.
            fused = self._model.vilt(image_embeds=states, pixel_mask=attended, **tokens)
            answer = run_head(self._model.rank_output, fused.pooler_output)
            logits: NDArray[np.float32] = answer[:, 0].cpu().numpy()
        return Matches(logits=logits, probabilities=sigmoid(logits))

    def _padded(self, images: Sequence[Any]) -> tuple[Any, Any]:
        longest = max(self._states, *(len(states) for states in images))
        padded = images[0].new_zeros((len(images), longest, images[0].shape[1]))
        attended = self._torch.zeros(padded.shape[:2], dtype=self._torch.long, device=padded.device)
        for row, states in enumerate(images):
            padded[row, : len(states)] = states
            attended[row, : len(states)] = 1
        return padded, attended
