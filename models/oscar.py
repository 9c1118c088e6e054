"""OSCAR as a scorer of captions, from its authors' checkpoints: SIMAT's oracle.

Caption and tags are embedded as in BERT, with positions. Each region's features pass through one
linear layer, without position, and a layer norm if the checkpoint has one (VinVL's do). The encoder
reads both in one sequence, and a head on the pooled first state decides whether they match.

Source: microsoft/Oscar, oscar/modeling/modeling_bert.py, ImageBertForSequenceClassification; Li et
al. 2020, section 3.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.core.errors import InputError, first_line, readable
from eqforge.core.files import storage
from eqforge.core.identity import fingerprint
from eqforge.models.fusion import match_classes, run_head
from eqforge.models.pretrained import (
    Precision,
    check_device,
    check_vocabulary,
    folder_digest,
    import_torch,
)
from eqforge.models.regions import RegionFiles, Regions
from eqforge.models.scorer import Identity, IndexPairs, Matches, Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_TOKENS, MAX_REGIONS = 70, 50
"""Limits of the authors' retrieval: caption and tags together, and regions."""

CAPTION_SEGMENT, TAGS_SEGMENT = 0, 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OscarImage:
    """Encoding of an image before the network reads a caption.

    `states` are the embedded regions, padded, a tensor of shape (max_regions, hidden); `regions` is
    their number.
    """

    states: Any
    regions: int
    tag_ids: tuple[int, ...]


class OscarScorer:
    """Scores captions by their words, an image's object tags and its region features.

    The image itself is not read: its key must be in the files of features and tags.

    Args:
      checkpoint: folder with config.json, vocab.txt and weights.
      tags: TSV file of object tags; None for a model trained without them.
      max_tokens: maximum number of tokens of caption and tags together.
      max_regions: maximum number of regions, from the first.

    Source: microsoft/Oscar, oscar/run_retrieval.py: sequence and full attention mask.
    """

    reads_pixels = False
    gives_log_odds = True

    def __init__(
        self,
        checkpoint: Path,
        features: Path,
        tags: Path | None,
        max_tokens: int = MAX_TOKENS,
        max_regions: int = MAX_REGIONS,
        precision: Precision = "float32",
        device: str = "cpu",
    ) -> None:
        self._torch = import_torch()
        transformers: Any = importlib.import_module("transformers")
        self._checkpoint, self._precision, self._device = checkpoint, precision, device
        self._detected = [features] if tags is None else [features, tags]
        self._max_tokens, self._max_regions = max_tokens, max_regions
        self._regions = RegionFiles(features, tags)
        if not (checkpoint / "vocab.txt").is_file():
            raise InputError(f"{checkpoint} contains no vocab.txt")
        self._tokenizer = transformers.BertTokenizer.from_pretrained(checkpoint)
        self._network = load_network(checkpoint, precision, device)
        embeddings = self._network.bert.embeddings
        words = embeddings.word_embeddings.num_embeddings
        check_vocabulary(str(checkpoint), len(self._tokenizer), words)
        places = embeddings.position_embeddings.num_embeddings
        if not 3 <= max_tokens <= places or max_regions < 1:
            raise InputError(
                f"tokens={max_tokens}, regions={max_regions}: expected 3 to {places} tokens and at "
                "least 1 region"
            )

    @functools.cached_property
    def identity(self) -> Identity:
        """Identity of model and features; computed on first use, since it hashes all of them."""
        detected = [storage.digest(str(file))[1] for file in self._detected]
        return Identity(
            kind="oscar",
            family="oscar",
            model=self._checkpoint.resolve().name,
            revision=folder_digest(self._checkpoint),
            precision=self._precision,
            preprocessing=fingerprint([detected, self._max_tokens, self._max_regions]),
            calibration="softmax of the matching head",
        )

    def prepare(self, picture: Picture) -> Regions:
        """Return the regions and tags of the image's key."""
        regions = self._regions[picture.key]
        # 2,054 in the published models.
        found, expected = regions.features.shape[1], self._network.image_embedding.in_features
        if found != expected:
            raise ValueError(
                f"{picture.key}: found {found} features per region, but this model reads {expected}"
            )
        return regions

    def encode_images(self, prepared: Sequence[Regions]) -> list[OscarImage]:
        return [self._encode(regions) for regions in prepared]

    def _encode(self, regions: Regions) -> OscarImage:
        torch = self._torch
        features = regions.features[: self._max_regions]
        padded = np.zeros((self._max_regions, features.shape[1]), np.float32)
        padded[: len(features)] = features
        dtype = self._network.image_embedding.weight.dtype
        with torch.inference_mode():
            states = self._network.embed_regions(torch.from_numpy(padded).to(self._device, dtype))
        tags = tuple(self._ids(regions.tags))
        return OscarImage(states=states, regions=len(features), tag_ids=tags)

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        torch, device = self._torch, self._device
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
        """Return token ids and segment ids, (max_tokens,), and the mask of tokens and regions."""
        tokenizer, longest = self._tokenizer, self._max_tokens
        text = [tokenizer.cls_token_id, *caption[: longest - 2], tokenizer.sep_token_id]
        segments = [CAPTION_SEGMENT] * len(text)
        room = longest - len(text) - 1
        if image.tag_ids and room >= 0:
            text += [*image.tag_ids[:room], tokenizer.sep_token_id]
            segments += [TAGS_SEGMENT] * (len(text) - len(segments))
        padding = longest - len(text)
        token_ids = np.array([*text, *[tokenizer.pad_token_id] * padding])
        segment_ids = np.array([*segments, *[CAPTION_SEGMENT] * padding])
        attended = np.zeros(longest + self._max_regions, np.int64)
        attended[: len(text)] = 1
        attended[longest : longest + image.regions] = 1
        return token_ids, segment_ids, attended


_ARCHITECTURE = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
)
_MASKED = -10_000.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OscarNetwork:
    """The parts of the network, modules of torch; not every checkpoint has an `image_norm`."""

    bert: Any
    image_embedding: Any
    image_norm: Any
    classifier: Any

    def embed_regions(self, features: Any) -> Any:
        """Embed features, (..., dimensions), as hidden states, (..., hidden)."""
        states = self.image_embedding(features)
        return states if self.image_norm is None else self.image_norm(states)

    def classify(self, token_ids: Any, segment_ids: Any, regions: Any, attended: Any) -> Any:
        """Return logits, float32 of shape (batch, 2).

        Args:
          token_ids: int64 of shape (batch, tokens).
          segment_ids: of the same shape; 0 for the caption, 1 for the tags.
          regions: embedded regions, (batch, regions, hidden).
          attended: 0 for padding and 1 for the rest, (batch, tokens + regions).
        """
        torch = import_torch()
        text = self.bert.embeddings(input_ids=token_ids, token_type_ids=segment_ids)
        states = torch.cat((text, regions), dim=1)
        mask = (1.0 - attended.to(states.dtype)) * _MASKED
        encoded = self.bert.encoder(states, attention_mask=mask[:, None, None, :])
        return run_head(self.classifier, self.bert.pooler(encoded.last_hidden_state))


def load_network(folder: Path, precision: str, device: str) -> OscarNetwork:
    """Load the network of a checkpoint: config.json with model.safetensors or pytorch_model.bin.

    The latter is a pickle, of which torch reads tensors and nothing else. The classifier stays in
    float32 whatever the precision of the rest.
    """
    torch = import_torch()
    check_device(device)
    tensors = _read_tensors(folder)
    network = _build(folder, tensors)
    for prefix, module in {
        "bert": network.bert,
        "bert.img_embedding": network.image_embedding,
        "bert.LayerNorm": network.image_norm,
        "classifier": network.classifier,
    }.items():
        if module is not None:
            names = [name for name in module.state_dict() if f"{prefix}.{name}" in tensors]
            try:
                module.load_state_dict({name: tensors[f"{prefix}.{name}"] for name in names})
            except RuntimeError as error:
                raise InputError(
                    f"{folder}: the tensors of {prefix!r} do not match config.json. Error from "
                    f"PyTorch: {error}"
                ) from error
            dtype = "float32" if module is network.classifier else precision
            module.to(device=device, dtype=getattr(torch, dtype)).eval()
    return network


def _read_tensors(folder: Path) -> dict[str, Any]:
    torch = import_torch()
    safe, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    try:
        if safe.is_file():
            from safetensors.torch import load_file

            tensors: Mapping[str, Any] = load_file(safe)
        else:
            tensors = torch.load(pickled, map_location="cpu", weights_only=True)
    except Exception as error:
        raise InputError(
            f"{folder}: cannot read OSCAR's weights from model.safetensors or pytorch_model.bin: "
            f"{first_line(error)}"
        ) from error
    # Early BERTs named the tensors of a layer norm differently.
    return {
        name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias"): tensor
        for name, tensor in tensors.items()
    }


def _build(folder: Path, tensors: Mapping[str, Any]) -> OscarNetwork:
    torch = import_torch()
    transformers: Any = importlib.import_module("transformers")
    file = folder / "config.json"
    try:
        with readable(file):
            found = json.loads(file.read_text())
        # The file also holds training settings, which transformers would take as its own.
        architecture = {name: found[name] for name in _ARCHITECTURE}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"{file} does not describe an OSCAR model ({why})") from error
    config = transformers.BertConfig(**architecture, attn_implementation="eager")
    hidden = int(config.hidden_size)
    with_norm = "bert.LayerNorm.weight" in tensors
    if "classifier.0.weight" in tensors:
        wide, middle = (_width(folder, f"classifier.{layer}", tensors) for layer in (0, 2))
        classifier = torch.nn.Sequential(
            torch.nn.Linear(wide, middle), torch.nn.ReLU(), torch.nn.Linear(middle, 2)
        )
    else:
        classifier = torch.nn.Linear(_width(folder, "classifier", tensors), 2)
    return OscarNetwork(
        bert=transformers.BertModel(config),
        image_embedding=torch.nn.Linear(_width(folder, "bert.img_embedding", tensors), hidden),
        image_norm=torch.nn.LayerNorm(hidden, eps=1e-12) if with_norm else None,
        classifier=classifier,
    )


def _width(folder: Path, layer: str, tensors: Mapping[str, Any]) -> int:
    if f"{layer}.weight" not in tensors:
        raise InputError(
            f"{folder} contains no tensor '{layer}.weight'; expected an OSCAR model fine-tuned for "
            "image-text retrieval"
        )
    return int(tensors[f"{layer}.weight"].shape[1])
