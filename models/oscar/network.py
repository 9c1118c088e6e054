"""OSCAR's network, loaded from a checkpoint as its authors' code saves it.

Caption and tags are embedded as by any BERT, with positions; each region's features go through one
linear layer, without position, and through a layer norm if the checkpoint has one (VinVL's do).
The encoder reads both in one sequence, and a head on the pooled first state tells whether they
match.

Source: microsoft/Oscar, oscar/modeling/modeling_bert.py, ImageBertForSequenceClassification; Li et
al. 2020, section 3.
"""

import dataclasses
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.models.heads import run_head
from eqforge.models.pretrained import check_device, import_torch

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
_NORM_EPSILON = 1e-12


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OscarNetwork:
    """The parts of the network, modules of torch.

    Attributes:
      bert: embeddings, encoder and pooler.
      image_embedding: from region features to hidden states.
      image_norm: the layer norm after it; None if the checkpoint has none.
      classifier: from the pooled state to the classes `no match` and `match`.
    """

    bert: Any
    image_embedding: Any
    image_norm: Any
    classifier: Any

    @property
    def num_features(self) -> int:
        """Length of a region's features, 2,054 in the published models."""
        return int(self.image_embedding.in_features)

    def embed_regions(self, features: Any) -> Any:
        """Embeds features, (..., num_features), as hidden states, (..., hidden)."""
        states = self.image_embedding(features)
        return states if self.image_norm is None else self.image_norm(states)

    def classify(self, token_ids: Any, segment_ids: Any, regions: Any, attended: Any) -> Any:
        """Returns logits, float32 of shape (batch, 2).

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
    """Loads the network of a checkpoint: config.json with model.safetensors or pytorch_model.bin.

    The latter is a pickle, of which torch reads tensors and nothing else. The classifier stays in
    float32 whatever the precision of the rest.

    Raises:
      InputError: a file is missing or unreadable, a tensor is missing or of another shape, or the
        head does not have two classes.
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
            _fill(folder, prefix, module, tensors)
            held = "float32" if module is network.classifier else precision
            module.to(device=device, dtype=getattr(torch, held)).eval()
    return network


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "config.json").read_text())
        # The file also holds training settings, which transformers would take as its own.
        return {name: found[name] for name in _ARCHITECTURE}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder}: config.json is not that of an OSCAR: {error}") from error


def _read_tensors(folder: Path) -> dict[str, Any]:
    torch = import_torch()
    safe, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    try:
        if safe.is_file():
            from safetensors.torch import load_file

            tensors: Mapping[str, Any] = load_file(safe)
        else:
            tensors = torch.load(pickled, map_location="cpu", weights_only=True)
        return {_modern(name): tensor for name, tensor in tensors.items()}
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{folder}: expected OSCAR's weights as model.safetensors or pytorch_model.bin: {first}"
        ) from error


def _modern(name: str) -> str:
    """Returns the current name of a tensor; early BERTs named those of a layer norm differently."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


def _build(folder: Path, tensors: Mapping[str, Any]) -> OscarNetwork:
    torch = import_torch()
    transformers: Any = importlib.import_module("transformers")
    config = transformers.BertConfig(**_read_config(folder), attn_implementation="eager")
    hidden = int(config.hidden_size)
    with_norm = "bert.LayerNorm.weight" in tensors
    return OscarNetwork(
        bert=transformers.BertModel(config),
        image_embedding=torch.nn.Linear(_width(folder, "bert.img_embedding", tensors), hidden),
        image_norm=torch.nn.LayerNorm(hidden, eps=_NORM_EPSILON) if with_norm else None,
        classifier=_classifier(folder, tensors),
    )


def _classifier(folder: Path, tensors: Mapping[str, Any]) -> Any:
    """Returns the head: one linear layer, or two with a ReLU between."""
    torch = import_torch()
    if "classifier.0.weight" not in tensors:
        return torch.nn.Linear(_width(folder, "classifier", tensors), 2)
    wide, middle = (_width(folder, f"classifier.{layer}", tensors) for layer in (0, 2))
    return torch.nn.Sequential(
        torch.nn.Linear(wide, middle), torch.nn.ReLU(), torch.nn.Linear(middle, 2)
    )


def _width(folder: Path, layer: str, tensors: Mapping[str, Any]) -> int:
    """Returns the input dimension of a linear layer of the checkpoint."""
    if f"{layer}.weight" not in tensors:
        raise InputError(
            f"{folder}: holds no '{layer}.weight'; expected an OSCAR that was fine-tuned to "
            "image-text retrieval"
        )
    return int(tensors[f"{layer}.weight"].shape[1])


def _fill(folder: Path, prefix: str, module: Any, tensors: Mapping[str, Any]) -> None:
    names = [name for name in module.state_dict() if f"{prefix}.{name}" in tensors]
    try:
        module.load_state_dict({name: tensors[f"{prefix}.{name}"] for name in names})
    except RuntimeError as error:
        raise InputError(f"{folder}: the weights of {prefix!r} do not fit: {error}") from error
