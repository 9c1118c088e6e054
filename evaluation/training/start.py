"""Loads the model that training starts from, and saves the trained one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.visible import nearest
from eqforge.models.captions import CaptionTokenizer
from eqforge.models.dual_encoders import ARCHITECTURES, Architecture
from eqforge.models.pretrained import (
    Preprocessor,
    Weights,
    check_vocabulary,
    import_torch,
    load_model,
    load_preprocessor,
)
from eqforge.models.spec import parse_specs


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Start:
    """The model that training starts from.

    Attributes:
      kind: kind of the model, a key of ARCHITECTURES.
      called: how to call a model of this kind.
      weights: where it is.
      preprocessor: preprocesses its images and texts.
      model: the transformers model, in float32 on the CPU.
      tokenizer: tokenizes texts as in the model's training.
    """

    kind: str
    called: Architecture
    weights: Weights
    preprocessor: Preprocessor
    model: Any
    tokenizer: CaptionTokenizer


def load_start(model: str, heads: bool) -> Start:
    """Loads the model to train.

    Args:
      model: as on a command line, such as `clip:FOLDER`.
      heads: whether heads will be folded into it.

    Raises:
      InputError: it is not a single dual encoder in float32, or cannot be loaded.
      MissingExtra: torch or transformers is not installed.
    """
    import_torch()
    specs = parse_specs(model)
    kind = specs[0].kind
    if kind not in ARCHITECTURES or len(specs) != 1 or specs[0].options:
        known = f"expected KIND:FOLDER without options, a KIND of {', '.join(ARCHITECTURES)}"
        hint = "" if kind in ARCHITECTURES else nearest(kind, ARCHITECTURES)
        raise InputError(f"--model {model}: {known}{hint}")
    if heads and kind != "clip":
        raise InputError(
            "--train heads: expected a model of kind clip, whose projections they join"
        )
    called = ARCHITECTURES[kind]
    weights = specs[0].weights()
    preprocessor = load_preprocessor(weights)
    loaded = load_model(weights, called.model)
    text = loaded.config.text_config
    check_vocabulary(weights.source, len(preprocessor.tokenizer), text.vocab_size)
    if heads:
        from eqforge.evaluation.training.networks import check_foldable

        check_foldable(loaded)
    return Start(
        kind=kind,
        called=called,
        weights=weights,
        preprocessor=preprocessor,
        model=loaded,
        tokenizer=called.tokenizer(preprocessor.tokenizer, text),
    )


def save_trained(folder: Path, start: Start, network: Any) -> None:
    """Writes model, image processor and tokenizer as transformers does; heads also separately.

    Args:
      folder: an empty folder.
      start: what training started from; its model is modified.
      network: a DualNetwork of that model, or a HeadsNetwork on top of it.
    """
    if not hasattr(network, "model"):
        from safetensors.torch import save_file

        from eqforge.evaluation.training.networks import fold_heads

        heads = {name: part.cpu().contiguous() for name, part in network.state_dict().items()}
        save_file(heads, folder / "heads.safetensors")
        fold_heads(start.model, network)
    start.model.to("cpu").eval().save_pretrained(folder, safe_serialization=True)
    # Loaded anew: a used tokenizer would save the padding and truncation of its last call.
    preprocessor = load_preprocessor(start.weights)
    preprocessor.image.save_pretrained(folder)
    preprocessor.tokenizer.save_pretrained(folder)
