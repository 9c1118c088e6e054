"""OSCAR as a scorer of captions: the oracle of SIMAT."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import fingerprint
from eqforge.core.late import numpy as np
from eqforge.models.heads import match_classes
from eqforge.models.oscar.network import load_network
from eqforge.models.oscar.regions import RegionFiles, Regions
from eqforge.models.pretrained import Precision, check_vocabulary, folder_digest, import_torch
from eqforge.models.scorer import Identity, IndexPairs, Matches, Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_TOKENS, MAX_REGIONS = 70, 50
"""How much the authors' retrieval reads of caption and tags together, and of the regions."""

CAPTION_SEGMENT, TAGS_SEGMENT = 0, 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OscarFiles:
    """What OSCAR reads, and how much of it.

    Attributes:
      checkpoint: folder with config.json, vocab.txt and weights.
      features: TSV file of region features.
      tags: TSV file of object tags; None for a model trained without them.
      max_tokens: the most tokens of caption and tags together.
      max_regions: how many regions are read at most, from the first.
      precision: type of the weights.
      device: as torch names it.
    """

    checkpoint: Path
    features: Path
    tags: Path | None
    max_tokens: int = MAX_TOKENS
    max_regions: int = MAX_REGIONS
    precision: Precision = "float32"
    device: str = "cpu"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OscarImage:
    """What the network computes of an image before it reads a caption.

    Attributes:
      states: embedded regions, a tensor of shape (max_regions, hidden), padded.
      regions: how many there are.
      tag_ids: tokens of the tags.
    """

    states: Any
    regions: int
    tag_ids: tuple[int, ...]


class OscarScorer:
    """Scores captions by their words, an image's object tags and its region features.

    The image itself is not read: its key must be in the files of features and tags.

    Args:
      files: what is read.

    Raises:
      InputError: a file is missing or malformed.
      MissingExtra: torch or transformers is not installed.

    Source: microsoft/Oscar, oscar/run_retrieval.py: sequence and full attention mask.
    """

    reads_pixels = False
    gives_log_odds = True

    def __init__(self, files: OscarFiles) -> None:
        self._torch = import_torch()
        self._files = files
        self._regions = RegionFiles(files.features, files.tags)
        self._tokenizer = _tokenizer(files.checkpoint)
        self._network = load_network(files.checkpoint, files.precision, files.device)
        embeddings = self._network.bert.embeddings
        words = embeddings.word_embeddings.num_embeddings
        check_vocabulary(str(files.checkpoint), len(self._tokenizer), words)
        places = embeddings.position_embeddings.num_embeddings
        if not 3 <= files.max_tokens <= places or files.max_regions < 1:
            raise InputError(
                f"tokens={files.max_tokens}, regions={files.max_regions}: expected 3 to {places} "
                "tokens and at least 1 region"
            )

    @functools.cached_property
    def identity(self) -> Identity:
        """Which model and which features; computed on first use, since it hashes all of them."""
        files = self._files
        read = [files.features] if files.tags is None else [files.features, files.tags]
        detected = [storage.digest(str(file))[1] for file in read]
        return Identity(
            kind="oscar",
            family="oscar",
            model=files.checkpoint.resolve().name,
            revision=folder_digest(files.checkpoint),
            precision=files.precision,
            preprocessing=fingerprint([detected, files.max_tokens, files.max_regions]),
            calibration="softmax of the matching head",
        )

    def prepare(self, picture: Picture) -> Regions:
        """Returns the regions and tags listed under the picture's key.

        Raises:
          ValueError: there are none, or this model reads features of another length.
        """
        regions = self._regions[picture.key]
        found, expected = regions.features.shape[1], self._network.num_features
        if found != expected:
            raise ValueError(
                f"{picture.key}: {found} features a region; this model reads {expected}"
            )
        return regions

    def encode_images(self, prepared: Sequence[Regions]) -> list[OscarImage]:
        """Returns each image's embedded regions and the tokens of its tags."""
        return [self._encode(regions) for regions in prepared]

    def _encode(self, regions: Regions) -> OscarImage:
        torch, files = self._torch, self._files
        features = regions.features[: files.max_regions]
        padded = np.zeros((files.max_regions, features.shape[1]), np.float32)
        padded[: len(features)] = features
        dtype = self._network.image_embedding.weight.dtype
        with torch.inference_mode():
            states = self._network.embed_regions(torch.from_numpy(padded).to(files.device, dtype))
        tags = tuple(self._ids(regions.tags))
        return OscarImage(states=states, regions=len(features), tag_ids=tags)

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        """Scores pairs of encoded images and captions, in one batch."""
        torch, device = self._torch, self._files.device
        sequences = [
            self._sequence(self._ids(captions[caption]), images[image]) for image, caption in pairs
        ]
        token_ids, segment_ids, attended = (
            torch.from_numpy(np.stack(rows)).to(device) for rows in zip(*sequences, strict=True)
        )
        with torch.inference_mode():
            states = torch.stack([images[image].states for image, _ in pairs])
            return match_classes(self._network.classify(token_ids, segment_ids, states, attended))

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.convert_tokens_to_ids(self._tokenizer.tokenize(text))
        return ids

    def _sequence(
        self, caption: list[int], image: OscarImage
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Returns token ids and segment ids, (max_tokens,), and the mask of tokens and regions."""
        files, tokenizer = self._files, self._tokenizer
        text = [tokenizer.cls_token_id, *caption[: files.max_tokens - 2], tokenizer.sep_token_id]
        segments = [CAPTION_SEGMENT] * len(text)
        room = files.max_tokens - len(text) - 1
        if image.tag_ids and room >= 0:
            text += [*image.tag_ids[:room], tokenizer.sep_token_id]
            segments += [TAGS_SEGMENT] * (len(text) - len(segments))
        padding = files.max_tokens - len(text)
        token_ids = np.array([*text, *[tokenizer.pad_token_id] * padding])
        segment_ids = np.array([*segments, *[CAPTION_SEGMENT] * padding])
        attended = np.zeros(files.max_tokens + files.max_regions, np.int64)
        attended[: len(text)] = 1
        attended[files.max_tokens : files.max_tokens + image.regions] = 1
        return token_ids, segment_ids, attended


def _tokenizer(checkpoint: Path) -> Any:
    from transformers import BertTokenizer

    if not (checkpoint / "vocab.txt").is_file():
        raise InputError(f"{checkpoint}: holds no vocab.txt")
    return BertTokenizer.from_pretrained(checkpoint)
