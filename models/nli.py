"""Whether one sentence follows from another: classifiers of natural language inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from eqforge.core.errors import InputError
from eqforge.core.late import numpy as np
from eqforge.models.pretrained import (
    Weights,
    import_torch,
    load_model,
    load_tokenizer,
    tokenizer_digest,
)
from eqforge.schemas.records.scores import Identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ARCHITECTURE: Final = "AutoModelForSequenceClassification"
CLASSES: Final = ("entailment", "neutral", "contradiction")
"""What a classifier tells apart, in the order of its probabilities here."""

_BEGINNINGS: Final = ("entail", "neutral", "contradict")


class NliModel:
    """A classifier of pairs of a premise and a hypothesis, by transformers.

    Args:
      weights: where it is.

    Raises:
      InputError: it cannot be loaded, or its classes are not those of inference.
      MissingExtra: torch or transformers is not installed.
    """

    def __init__(self, weights: Weights) -> None:
        self._tokenizer = load_tokenizer(weights)
        self._model = load_model(weights, ARCHITECTURE)
        self._places = class_places(self._model.config.id2label, weights.source)
        self.identity = Identity(
            kind="nli",
            family=self._model.config.model_type,
            model=weights.name,
            revision=weights.digest(),
            precision=weights.precision,
            preprocessing=tokenizer_digest(self._tokenizer),
            calibration="none",
        )

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Returns P(class) of each pair, float64 of shape (pairs, 3), classes as CLASSES.

        Args:
          pairs: premise and hypothesis of each, one batch.

        Raises:
          ValueError: the model cannot read one of them.
        """
        torch = import_torch()
        premises, hypotheses = zip(*pairs, strict=True)
        inputs = self._tokenizer(
            list(premises), list(hypotheses), padding="longest", return_tensors="pt"
        )
        length, limit = inputs["input_ids"].shape[1], self._limit
        if limit is not None and length > limit:
            raise ValueError(f"{length} tokens, the model reads {limit}")
        with torch.inference_mode():
            logits = self._model(**inputs.to(self._model.device)).logits
        return np.asarray(torch.softmax(logits.double(), dim=1)[:, self._places].cpu().numpy())

    @property
    def _limit(self) -> int | None:
        """How many tokens the model reads."""
        limits = (
            self._tokenizer.model_max_length,
            getattr(self._model.config, "max_position_embeddings", None),
        )
        return min((limit for limit in limits if limit is not None), default=None)


def class_places(names: dict[Any, str], model: str) -> list[int]:
    """Returns where a classifier has the three classes, by their names in any order and case.

    Raises:
      InputError: it has others.
    """
    found = [
        [place for place, name in names.items() if name.strip().lower().startswith(beginning)]
        for beginning in _BEGINNINGS
    ]
    if len(names) != len(CLASSES) or any(len(places) != 1 for places in found):
        raise InputError(
            f"{model}: its classes are {', '.join(map(str, names.values()))}; expected a model of "
            f"natural language inference, whose config names {', '.join(CLASSES)} (id2label)"
        )
    return [int(places[0]) for places in found]
