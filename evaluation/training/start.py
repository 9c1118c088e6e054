"""The model that a training starts from, and how it is written when it has been trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqforge.evaluation.training.feeds import Kind, Tokenizer
from eqforge.models.pretrained import (
    Preprocessor,
    Weights,
    check_vocabulary,
    import_torch,
    load_model,
    load_preprocessor,
)
from eqforge.models.spec import parse_specs
from eqforge.schemas.errors import InputError

ARCHITECTURES: Mapping[Kind, str] = {"clip": "CLIPModel", "siglip": "SiglipModel"}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Start:
    """What a training starts from.

    Attributes:
      kind: of the model.
      weights: where it is.
      preprocessor: of its images and texts.
      model: of transformers, in float32 on the CPU.
      tokenizer: cuts texts as the model was trained on them.
    """

    kind: Kind
    weights: Weights
    preprocessor: Preprocessor
    model: Any
    tokenizer: Tokenizer


def load_start(model: str, heads: bool) -> Start:
    """Loads the model that is trained.

    Args:
      model: as on a command line, such as `clip:FOLDER`.
      heads: whether heads are going to become a part of it.

    Raises:
      InputError: it is not one CLIP or SigLIP in float32, or cannot be loaded.
      MissingExtra: torch or transformers is not installed.
    """
    import_torch()
    specs = parse_specs(model)
    kind = next((kind for kind in ARCHITECTURES if kind == specs[0].kind), None)
    if kind is None or len(specs) != 1 or specs[0].options:
        known = " or ".join(f"{kind}:FOLDER" for kind in ARCHITECTURES)
        raise InputError(f"--model {model}: expected {known}, without options")
    weights = specs[0].weights()
    preprocessor = load_preprocessor(weights)
    loaded = load_model(weights, ARCHITECTURES[kind])
    text = loaded.config.text_config
    check_vocabulary(weights.source, len(preprocessor.tokenizer), text.vocab_size)
    if heads:
        from eqforge.evaluation.training.networks import check_foldable

        check_foldable(loaded)
    tokenizer = Tokenizer(
        kind=kind,
        tokenizer=preprocessor.tokenizer,
        max_tokens=int(text.max_position_embeddings),
    )
    return Start(
        kind=kind, weights=weights, preprocessor=preprocessor, model=loaded, tokenizer=tokenizer
    )


def save_trained(folder: Path, start: Start, network: Any) -> None:
    """Writes model, image processor and tokenizer as transformers does; heads in a file too.

    Args:
      folder: an empty one.
      start: what was started from; its model is changed.
      network: a DualNetwork of that model, or a HeadsNetwork behind it.
    """
    if not hasattr(network, "model"):
        from safetensors.torch import save_file

        from eqforge.evaluation.training.networks import fold_heads

        heads = {name: part.cpu().contiguous() for name, part in network.state_dict().items()}
        save_file(heads, folder / "heads.safetensors")
        fold_heads(start.model, network)
    start.model.to("cpu").eval().save_pretrained(folder, safe_serialization=True)
    # As they were loaded: a tokenizer that was used would save how long its last texts were.
    preprocessor = load_preprocessor(start.weights)
    preprocessor.image.save_pretrained(folder)
    preprocessor.tokenizer.save_pretrained(folder)
