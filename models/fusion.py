"""Fusion encoders of transformers with their matching heads: BLIP, BLIP-2, ViLT and LXMERT.

A head is computed in float32: bfloat16 keeps 8 significant bits, so between 4 and 8 there are 128
numbers, 0.03 apart, and the scores of a minimal pair often round to the same one. A head is cheap,
so it computes in float32 whatever the type of the rest of the model.
"""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import fingerprint
from eqforge.models.dual_encoders import CaptionTokenizer
from eqforge.models.pretrained import (
    Preprocessor,
    Weights,
    check_vocabulary,
    import_torch,
    load_auto,
    load_model,
    load_preprocessor,
    prepare_pixels,
    stack_pixels,
    tokenizer_digest,
)
from eqforge.models.regions import RegionFiles
from eqforge.models.scorer import Identity, IndexPairs, Matches, Picture, sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST = 1333 / 800
"""The longer side of ViLT's resized image is at most this times the shorter side's setting."""


def run_head(head: Any, states: Any) -> Any:
    """Apply a torch module in float32, within any autocast; its weights become float32."""
    with import_torch().autocast(states.device.type, enabled=False):
        return head.float()(states.float())


def subtract_classes(classes: Any) -> Any:
    """Return the logits [pairs] of a head's two classes (pairs, [no match, match])."""
    return classes[:, 1] - classes[:, 0]


def match_classes(classes: Any) -> Matches:
    """Return the difference of a head's classes (pairs, [no match, match]), and their softmax."""
    logits: NDArray[np.float32] = subtract_classes(classes).cpu().numpy()
    return Matches(logits=logits, probabilities=sigmoid(logits))


class FusionScorer(ABC):
    """A network that reads caption tokens together with an encoded image.

    Subclasses set the tokenizer `captions` and the weights `_weights`.
    """

    gives_log_odds = True
    captions: CaptionTokenizer
    _weights: Weights

    def count_tokens(self, captions: Sequence[str]) -> list[int]:
        return self.captions.count(captions)

    def count_truncated(self, captions: Sequence[str]) -> int:
        return self.captions.count_truncated(captions)

    def match(
        self,
        images: Sequence[Any],
        captions: Sequence[str],
        pairs: IndexPairs,
        length: int | None = None,
    ) -> Matches:
        with import_torch().inference_mode():
            read = [captions[index] for index in pairs[:, 1]]
            tokens = self.captions.encode(read, self._weights.device, length)
            return self._fuse([images[index] for index in pairs[:, 0]], tokens)

    @abstractmethod
    def _fuse(self, images: Sequence[Any], tokens: Any) -> Matches:
        """Score encoded images with the tokens of one caption each."""


class PixelFusion(FusionScorer):
    """A fusion encoder from transformers with its tokenizer and image processor.

    Args:
        reader: the part of the configuration with the vocabulary and context sizes.
        vocabulary: number of tokens that the model must know.
    """

    reads_pixels = True

    def __init__(
        self,
        weights: Weights,
        architecture: str,
        *,
        kind: str,
        family: str,
        calibration: str = "softmax of the matching head",
        reader: str = "",
        vocabulary: Callable[[Preprocessor], int] = lambda found: len(found.tokenizer),
    ) -> None:
        self._torch = import_torch()
        self._weights = weights
        self.preprocessor = load_preprocessor(weights)
        self.model = load_model(weights, architecture)
        read = getattr(self.model.config, reader) if reader else self.model.config
        check_vocabulary(weights.source, vocabulary(self.preprocessor), read.vocab_size)
        self.captions = CaptionTokenizer(
            tokenizer=self.preprocessor.tokenizer, max_tokens=int(read.max_position_embeddings)
        )
        self.preparer: Callable[[Picture], NDArray[np.float32]] = partial(
            prepare_pixels, self.preprocessor.image
        )
        self.identity = weights.identity(kind, family, self.preprocessor.digest, calibration)

    def prepare(self, picture: Picture) -> NDArray[np.float32]:
        return self.preparer(picture)

    def encode_images(self, prepared: Sequence[Any]) -> list[Any]:
        """Return each image's patch states, a tensor of shape (patches + 1, hidden)."""
        with self._torch.inference_mode():
            vision = self.model.vision_model
            pixels = stack_pixels(prepared, self._weights.device, vision.dtype)
            return list(vision(pixel_values=pixels).last_hidden_state)


class TrainedFusion(PixelFusion):
    """A fusion encoder with one matching logit for an image and a caption, which can be trained.

    Attributes:
      fused: parts of the names of the weights in the matching head and in cross-attention.
    """

    fused: tuple[str, ...]

    def encode_images(self, prepared: Sequence[Any]) -> list[Any]:
        """Return each image's patch states, a tensor of shape (patches + 1, hidden)."""
        with self._torch.inference_mode():
            return self.states([self._torch.as_tensor(each) for each in prepared])

    @abstractmethod
    def states(self, pixels: Sequence[Any]) -> list[Any]:
        """Return the states of images [3, height, width], each [patches + 1, hidden]."""

    @abstractmethod
    def logits(self, images: Sequence[Any], tokens: Any) -> Any:
        """Return the matching logits of image states with one caption each, float32 [pairs]."""

    def _fuse(self, images: Sequence[Any], tokens: Any) -> Matches:
        logits: NDArray[np.float32] = self.logits(images, tokens).cpu().numpy()
        return Matches(logits=logits, probabilities=sigmoid(logits))


class BlipItmScorer(TrainedFusion):
    """BLIP with its matching head, a fusion encoder (Li et al. 2022, section 3.2).

    P(match) is the softmax over the head's two classes; as log-odds, their difference.
    """

    fused = ("itm_head.", "crossattention.")

    def __init__(self, weights: Weights) -> None:
        super().__init__(
            weights,
            "BlipForImageTextRetrieval",
            kind="blip-itm",
            family="blip",
            reader="text_config",
        )

    def states(self, pixels: Sequence[Any]) -> list[Any]:
        vision = self.model.vision_model
        stacked = stack_pixels(self._torch.stack(list(pixels)), self.model.device, vision.dtype)
        return list(vision(pixel_values=stacked).last_hidden_state)

    def logits(self, images: Sequence[Any], tokens: Any) -> Any:
        states = self._torch.stack(list(images))
        fused = self.model.text_encoder(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            encoder_hidden_states=states,
            encoder_attention_mask=self._torch.ones(states.shape[:2], device=states.device),
        )
        return subtract_classes(run_head(self.model.itm_head, fused.last_hidden_state[:, 0, :]))


class Blip2ItmScorer(PixelFusion):
    """BLIP-2's first stage with its matching head, a fusion encoder (Li et al. 2023, section 3.2).

    Learnt queries attend to an image and a caption; the head's logits are averaged over the
    queries. P(match) is the softmax over the two classes; as log-odds, their difference.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__(
            weights,
            "Blip2ForImageTextRetrieval",
            kind="blip2-itm",
            family="blip2",
            reader="qformer_config",
            # Checkpoints add an image placeholder token, which the Q-Former never reads.
            vocabulary=lambda found: int(found.tokenizer.vocab_size),
        )

    def _fuse(self, images: Sequence[Any], tokens: Any) -> Matches:
        torch, model = self._torch, self.model
        states = torch.stack(list(images))
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


class ViltScorer(TrainedFusion):
    """ViLT fine-tuned for retrieval, a fusion encoder (Kim et al. 2021, section 3.1).

    One transformer reads a caption's words and an image's patches. The score is the ranking head's
    one logit, which training compares among captions by a softmax; its sigmoid is therefore no
    probability that a caption is true.

    transformers' own forward pass draws the order of an image's patches from torch's global random
    generator, and pads images of a batch to the largest. The order changes only the last bits of a
    score; here patches stay in order and every image is padded to the most patches there can be.
    """

    gives_log_odds = False
    fused = ("rank_output.",)

    def __init__(self, weights: Weights) -> None:
        super().__init__(
            weights,
            "ViltForImageAndTextRetrieval",
            kind="vilt",
            family="vilt",
            calibration="sigmoid of the ranking head",
        )
        side = int(self.preprocessor.image.size["shortest_edge"])
        patch = int(self.model.config.patch_size)
        self._states = 1 + (side // patch) * (int(_LONGEST * side) // patch)

    def states(self, pixels: Sequence[Any]) -> list[Any]:
        """Return each image's patch embeddings, a tensor of shape (patches + 1, hidden).

        Images are embedded one by one, as their sizes differ.
        """
        return [self._embed(each) for each in pixels]

    def _embed(self, pixels: Any) -> Any:
        torch, embeddings = self._torch, self.model.vilt.embeddings
        tensor = pixels.to(self.model.device, self.model.dtype)
        patches = embeddings.patch_embeddings(tensor[None])
        _, hidden, height, width = patches.shape
        places = embeddings.position_embeddings
        side = self.model.config.image_size // self.model.config.patch_size
        grid = places[:, 1:].transpose(1, 2).reshape(1, hidden, side, side)
        grid = torch.nn.functional.interpolate(
            grid, size=(height, width), mode="bilinear", align_corners=True
        )
        embedded = (patches + grid).flatten(2).transpose(1, 2)[0]
        return torch.cat([(embeddings.cls_token + places[:, :1])[0], embedded])

    def logits(self, images: Sequence[Any], tokens: Any) -> Any:
        longest = max(self._states, *(len(states) for states in images))
        padded = images[0].new_zeros((len(images), longest, images[0].shape[1]))
        attended = self._torch.zeros(padded.shape[:2], dtype=self._torch.long, device=padded.device)
        for row, states in enumerate(images):
            padded[row, : len(states)] = states
            attended[row, : len(states)] = 1
        # Given patch embeddings, ViLT takes the mask of patches as `pixel_mask`.
        fused = self.model.vilt(image_embeds=padded, pixel_mask=attended, **tokens)
        return run_head(self.model.rank_output, fused.pooler_output)[:, 0]


REGIONS = 36
"""Regions per image in LXMERT's training."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LxmertImage:
    """The regions of an image, padded with zeros, float32 of shapes (regions, ...).

    `boxes` are x1, y1, x2, y2 as shares of width and height; `attended` is 1 for real regions.
    """

    features: NDArray[np.float32]
    boxes: NDArray[np.float32]
    attended: NDArray[np.float32]


class Lxmert:
    """LXMERT, a fusion encoder with one of its heads (Tan and Bansal 2019).

    The image itself is not read: its key must be in the file of region features.

    Args:
      weights: a checkpoint of the class `architecture` of Transformers.
      features: TSV file as OSCAR reads it; each region's features are followed by its box as shares
        of width and height, x1, y1, x2, y2, and optionally by width and height, which are ignored.
      regions: maximum number of regions, from the first.
    """

    reads_pixels = False
    kind: ClassVar[str]
    architecture: ClassVar[str]
    calibration = "none"

    def __init__(self, weights: Weights, features: Path, regions: int = REGIONS) -> None:
        if regions < 1:
            raise InputError(f"regions={regions}: expected at least 1")
        self._torch = import_torch()
        self._weights, self._features, self._count = weights, features, regions
        self._files = RegionFiles(features, None)
        self._tokenizer = load_auto("AutoTokenizer", weights)
        self.model = load_model(weights, self.architecture)
        config = self.model.config
        check_vocabulary(weights.source, len(self._tokenizer), config.vocab_size)
        self.captions = CaptionTokenizer(
            tokenizer=self._tokenizer, max_tokens=int(config.max_position_embeddings)
        )

    @functools.cached_property
    def identity(self) -> Identity:
        """Identity of model and features; computed on first use, since it hashes all of them."""
        detected = storage.digest(str(self._features))[1]
        return self._weights.identity(
            self.kind,
            "lxmert",
            fingerprint([detected, tokenizer_digest(self._tokenizer), self._count]),
            self.calibration,
        )

    def prepare(self, picture: Picture) -> LxmertImage:
        """Return the regions of the image's key.

        Raises:
          ValueError: there are none, or their features have the wrong length.
        """
        found = self._files[picture.key].features[: self._count]
        config = self.model.config
        wide = int(config.visual_feat_dim)
        if found.shape[1] not in (wide + 4, wide + 6):
            raise ValueError(
                f"{picture.key}: found {found.shape[1]} numbers per region; expected {wide + 4} "
                f"({wide} features and 4 box coordinates), or {wide + 6} (with width and height)"
            )
        padded = np.zeros((self._count, wide + 4), np.float32)
        padded[: len(found)] = found[:, : wide + 4]
        attended = (np.arange(self._count) < len(found)).astype(np.float32)
        return LxmertImage(features=padded[:, :wide], boxes=padded[:, wide:], attended=attended)

    def fuse(self, images: Sequence[LxmertImage], tokens: Any) -> Any:
        """Return the pooled states of images with one text each, a tensor (pairs, hidden)."""
        torch, device, dtype = self._torch, self._weights.device, self.model.dtype
        features, boxes, attended = (
            torch.from_numpy(np.stack([getattr(image, name) for image in images])).to(device, dtype)
            for name in ("features", "boxes", "attended")
        )
        return self.model.lxmert(
            visual_feats=features, visual_pos=boxes, visual_attention_mask=attended, **tokens
        ).pooled_output


class LxmertScorer(Lxmert, FusionScorer):
    """LXMERT's cross-modality matching (Tan and Bansal 2019, section 3.1).

    P(match) is the softmax over the head's two classes; as log-odds, their difference.
    """

    kind, architecture = "lxmert", "LxmertForPreTraining"
    calibration = "softmax of the matching head"

    def encode_images(self, prepared: Sequence[LxmertImage]) -> Sequence[LxmertImage]:
        return list(prepared)

    def _fuse(self, images: Sequence[Any], tokens: Any) -> Matches:
        # The head that predicts masked words is skipped.
        states = self.fuse(images, tokens)
        return match_classes(run_head(self.model.cls.seq_relationship, states))
