"""Language models that judge texts: yes or no, likelihood, and inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
from eqforge.models.pretrained import (
    Weights,
    check_vocabulary,
    import_torch,
    load_auto,
    load_model,
    tokenizer_digest,
)

_FORMS: Final = ("{}", "{}.", " {}")
_SPELLINGS: Final = (str.lower, str.capitalize, str.upper)


class YesNoTokens:
    """First tokens of a yes and a no; `model` is named in the error."""

    def __init__(self, tokenizer: Any, model: str) -> None:
        yes, no = set[int](), set[int]()
        for word, firsts in (("yes", yes), ("no", no)):
            texts = [form.format(spell(word)) for form in _FORMS for spell in _SPELLINGS]
            found = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts)
            firsts.update({ids[0] for ids in found if ids} - {tokenizer.unk_token_id})
        self.yes, self.no = sorted(yes - no), sorted(no - yes)
        if not self.yes or not self.no:
            raise InputError(
                f"{model}: 'yes' and 'no' begin with the same token, so the model cannot judge; "
                "choose another model"
            )

    def share(self, logits: Any) -> float:
        """Return P(yes) among answers that begin with yes or no, from the first token's logits."""
        torch = import_torch()
        exact = logits.double().cpu()
        yes, no = (torch.logsumexp(exact[ids], dim=0) for ids in (self.yes, self.no))
        return float(torch.sigmoid(yes - no))


class TextYesNo:
    """A causal language model that answers questions with yes or no."""

    def __init__(self, weights: Weights) -> None:
        self._tokenizer = load_auto("AutoTokenizer", weights)
        self._tokens = YesNoTokens(self._tokenizer, weights.source)
        self._model = load_model(weights, "AutoModelForCausalLM")
        self.identity = weights.identity(
            "llm",
            self._model.config.model_type,
            fingerprint([tokenizer_digest(self._tokenizer), str(self._tokenizer.chat_template)]),
        )

    def shares(self, questions: Sequence[str]) -> list[float]:
        """Return P(yes) for each question, in one batch.

        Raises:
          ValueError: the model cannot read one of them.
        """
        torch = import_torch()
        rows = [self._ids(question) for question in questions]
        limit = getattr(self._model.config, "max_position_embeddings", None)
        longest = max(map(len, rows))
        if limit is not None and longest > limit:
            raise ValueError(f"{longest} tokens exceed the limit of {limit}")
        device = self._model.device
        # What follows a text is never seen by a causal model, so that padding changes nothing.
        ids = torch.tensor([[*each, *[0] * (longest - len(each))] for each in rows], device=device)
        with torch.inference_mode():
            logits = self._model(input_ids=ids).logits
        return [
            self._tokens.share(row[len(each) - 1]) for row, each in zip(logits, rows, strict=True)
        ]

    def _ids(self, question: str) -> list[int]:
        if not self._tokenizer.chat_template:
            return list(self._tokenizer(f"{question}\nAnswer:")["input_ids"])
        messages = [{"role": "user", "content": question}]
        return list(
            self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_dict=False
            )
        )


class CausalLikelihood:
    """A causal language model of transformers that scores how likely texts are.

    Each token is predicted from the tokens before it. The first follows the model's start token
    or, without one, its end-of-text token, as GPT-2 was trained.
    """

    def __init__(self, weights: Weights) -> None:
        self._tokenizer = load_auto("AutoTokenizer", weights)
        names = ("bos_token_id", "cls_token_id", "eos_token_id")
        starts = [getattr(self._tokenizer, name, None) for name in names]
        start = next((token for token in starts if token is not None), None)
        if start is None:
            raise InputError(
                f"{weights.source}: its tokenizer has no start or end token, so the first word "
                "cannot be predicted; choose a different model"
            )
        self._start = int(start)
        self._model = load_model(weights, "AutoModelForCausalLM")
        embeddings = self._model.get_input_embeddings().num_embeddings
        check_vocabulary(weights.source, len(self._tokenizer), embeddings)
        self.identity = weights.identity(
            "likelihood",
            self._model.config.model_type,
            fingerprint([tokenizer_digest(self._tokenizer), self._start]),
        )

    def surprise(self, text: str) -> float:
        """Return the mean negative log likelihood of the tokens of a text, in nats, 0 or more.

        Raises:
          ValueError: the text has no token or too many, or the likelihood is not a number.
        """
        torch = import_torch()
        ids = list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        limit = getattr(self._model.config, "max_position_embeddings", None)
        if not ids:
            raise ValueError("the text has no tokens")
        if limit is not None and len(ids) > limit:
            raise ValueError(f"{len(ids)} tokens exceed the limit of {limit}")
        before = torch.tensor([[self._start, *ids[:-1]]], device=self._model.device)
        with torch.inference_mode():
            logits = self._model(input_ids=before).logits[0].double().cpu()
        found = float(torch.nn.functional.cross_entropy(logits, torch.tensor(ids)))
        if not math.isfinite(found):
            raise ValueError(f"the likelihood is {found}")
        return found


CLASSES: Final = ("entailment", "neutral", "contradiction")
"""Classes in the order of the probabilities returned here."""


class NliModel:
    """A transformers classifier of premise and hypothesis pairs."""

    def __init__(self, weights: Weights) -> None:
        self._tokenizer = load_auto("AutoTokenizer", weights)
        self._model = load_model(weights, "AutoModelForSequenceClassification")
        self._places = class_places(self._model.config.id2label, weights.source)
        self.identity = weights.identity(
            "nli", self._model.config.model_type, tokenizer_digest(self._tokenizer)
        )

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return P(class) of each pair, float64 of shape (pairs, 3), classes as CLASSES.

        Raises:
          ValueError: the model cannot read one of them.
        """
        torch = import_torch()
        premises, hypotheses = zip(*pairs, strict=True)
        inputs = self._tokenizer(
            list(premises), list(hypotheses), padding="longest", return_tensors="pt"
        )
        length = inputs["input_ids"].shape[1]
        reads = getattr(self._model.config, "max_position_embeddings", None)
        limits = self._tokenizer.model_max_length, reads
        limit = min((each for each in limits if each is not None), default=None)
        if limit is not None and length > limit:
            raise ValueError(f"{length} tokens exceed the limit of {limit}")
        with torch.inference_mode():
            logits = self._model(**inputs.to(self._model.device)).logits
        return np.asarray(torch.softmax(logits.double(), dim=1)[:, self._places].cpu().numpy())


def class_places(names: dict[Any, str], model: str) -> list[int]:
    found = [
        [place for place, name in names.items() if name.strip().lower().startswith(beginning)]
        for beginning in ("entail", "neutral", "contradict")
    ]
    if len(names) != len(CLASSES) or any(len(places) != 1 for places in found):
        raise InputError(
            f"{model}: its classes are {', '.join(map(str, names.values()))}; expected a natural "
            f"language inference model with the classes {', '.join(CLASSES)} in its config "
            "(id2label)"
        )
    return [int(places[0]) for places in found]
