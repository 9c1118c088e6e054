"""Yes or no by the first token of a model's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
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

ARCHITECTURE: Final = "AutoModelForCausalLM"
_FORMS: Final = ("{}", "{}.", " {}")
_SPELLINGS: Final = (str.lower, str.capitalize, str.upper)


class YesNoTokens:
    """The tokens that a yes and a no begin with.

    Args:
      tokenizer: of transformers.
      model: its name, for the message.

    Raises:
      InputError: no token tells a yes from a no.
    """

    def __init__(self, tokenizer: Any, model: str) -> None:
        yes, no = (_first_tokens(tokenizer, word) for word in ("yes", "no"))
        self.yes, self.no = sorted(yes - no), sorted(no - yes)
        if not self.yes or not self.no:
            raise InputError(
                f"{model}: its tokenizer does not tell 'yes' from 'no' by the first token, which "
                "is what a judge is asked for; name another model"
            )

    def share(self, logits: Any) -> float:
        """Returns P(yes), of all that begins with a yes or a no.

        Args:
          logits: of the first token of the answer, a tensor of shape (vocabulary,).
        """
        torch = import_torch()
        exact = logits.double().cpu()
        yes, no = (torch.logsumexp(exact[ids], dim=0) for ids in (self.yes, self.no))
        return float(torch.sigmoid(yes - no))


def _first_tokens(tokenizer: Any, word: str) -> set[int]:
    texts = [form.format(spell(word)) for form in _FORMS for spell in _SPELLINGS]
    found = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts)
    return {ids[0] for ids in found if ids} - {tokenizer.unk_token_id}


class TextYesNo:
    """A causal language model that answers questions with yes or no.

    Args:
      weights: where it is.

    Raises:
      InputError: it cannot be loaded, or its tokenizer does not tell yes from no.
      MissingExtra: torch or transformers is not installed.
    """

    def __init__(self, weights: Weights) -> None:
        self._tokenizer = load_tokenizer(weights)
        self._tokens = YesNoTokens(self._tokenizer, weights.source)
        self._model = load_model(weights, ARCHITECTURE)
        self.identity = Identity(
            kind="llm",
            family=self._model.config.model_type,
            model=weights.name,
            revision=weights.digest(),
            precision=weights.precision,
            preprocessing=fingerprint(
                [tokenizer_digest(self._tokenizer), str(self._tokenizer.chat_template)]
            ),
            calibration="none",
        )

    def shares(self, questions: Sequence[str]) -> list[float]:
        """Returns P(yes) for each question, in one batch.

        Raises:
          ValueError: the model cannot read one of them.
        """
        torch = import_torch()
        asked = [self._ids(question) for question in questions]
        limit = getattr(self._model.config, "max_position_embeddings", None)
        longest = max(map(len, asked))
        if limit is not None and longest > limit:
            raise ValueError(f"{longest} tokens, the model reads {limit}")
        device = self._model.device
        # What follows a text is never seen by a causal model, so that padding changes nothing.
        ids = torch.tensor([[*each, *[0] * (longest - len(each))] for each in asked], device=device)
        with torch.inference_mode():
            logits = self._model(input_ids=ids).logits
        return [
            self._tokens.share(row[len(each) - 1]) for row, each in zip(logits, asked, strict=True)
        ]

    def _ids(self, question: str) -> list[int]:
        if not self._tokenizer.chat_template:
            return list(self._tokenizer(f"{question}\nAnswer:")["input_ids"])
        said = [{"role": "user", "content": question}]
        return list(
            self._tokenizer.apply_chat_template(said, add_generation_prompt=True, return_dict=False)
        )
