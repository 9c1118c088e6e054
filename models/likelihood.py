"""How likely a text is by a causal language model: the mean over its tokens."""

from __future__ import annotations

import math
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
from eqforge.models.pretrained import (
    Weights,
    check_vocabulary,
    import_torch,
    load_model,
    load_tokenizer,
    tokenizer_digest,
)
from eqforge.models.yes_no import ARCHITECTURE
from eqforge.schemas.records.scores import Identity


class CausalLikelihood:
    """A causal language model of transformers that says how likely texts are.

    Every token is predicted from those before it, the first one from the token that a text begins
    with, or, where the model has none, that the text before ended with, as GPT-2 was trained.

    Args:
      weights: where it is.

    Raises:
      InputError: it cannot be loaded, or has no token that a text begins or ends with.
      MissingExtra: torch or transformers is not installed.
    """

    def __init__(self, weights: Weights) -> None:
        self._tokenizer = load_tokenizer(weights)
        self._start = _start_of(self._tokenizer, weights.source)
        self._model = load_model(weights, ARCHITECTURE)
        embeddings = self._model.get_input_embeddings().num_embeddings
        check_vocabulary(weights.source, len(self._tokenizer), embeddings)
        self.identity = Identity(
            kind="likelihood",
            family=self._model.config.model_type,
            model=weights.name,
            revision=weights.digest(),
            precision=weights.precision,
            preprocessing=fingerprint([tokenizer_digest(self._tokenizer), self._start]),
            calibration="none",
        )

    def surprise(self, text: str) -> float:
        """Returns the mean negative log likelihood of the tokens of a text, in nats, 0 or more.

        A text is read by itself, so that its number does not depend on others.

        Raises:
          ValueError: the text has no token, or more than the model reads, or what the model says is
            not a number.
        """
        torch = import_torch()
        ids = list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        limit = getattr(self._model.config, "max_position_embeddings", None)
        if not ids:
            raise ValueError("the text has no token")
        if limit is not None and len(ids) > limit:
            raise ValueError(f"{len(ids)} tokens, the model reads {limit}")
        before = torch.tensor([[self._start, *ids[:-1]]], device=self._model.device)
        with torch.inference_mode():
            logits = self._model(input_ids=before).logits[0].double().cpu()
        found = float(torch.nn.functional.cross_entropy(logits, torch.tensor(ids)))
        if not math.isfinite(found):
            raise ValueError(f"the likelihood is {found}")
        return found


def _start_of(tokenizer: Any, source: str) -> int:
    for name in ("bos_token_id", "cls_token_id", "eos_token_id"):
        token = getattr(tokenizer, name, None)
        if token is not None:
            return int(token)
    raise InputError(
        f"{source}: its tokenizer has no token that a text begins or ends with, so that the first "
        "word cannot be predicted; name another model"
    )
