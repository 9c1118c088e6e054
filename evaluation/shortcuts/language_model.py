"""A language model as a probe: the more likely of two captions is taken for the true one.

Of questions it says the likeliest answer.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from eqforge.core.errors import InputError, MissingExtra
from eqforge.evaluation.shortcuts.answerers import Answerer, Posed
from eqforge.evaluation.shortcuts.judges import Judge, Question
from eqforge.models.pretrained import check_device, onto_device
from eqforge.schemas.records.lettered import LETTERS


class LanguageModelProbe:
    """Scores captions by their likelihood under a causal language model of transformers.

    Args:
      model: folder of a saved model, or its id on the Hugging Face hub.
      revision: branch, tag or commit on the hub.
      device: its device, as torch names it.
      batch_size: captions scored at a time.

    Raises:
      InputError: the model or its tokenizer cannot be loaded, or there is no such device.
      MissingExtra: torch or transformers is not installed.
    """

    def __init__(
        self, model: str, revision: str | None = None, device: str = "cpu", batch_size: int = 64
    ) -> None:
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise MissingExtra("torch and transformers", "models") from error
        check_device(device)
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(model, revision=revision)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                model, revision=revision, dtype=torch.float32
            )
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"the language model {model!r} cannot be loaded: {error}") from error
        self._model = onto_device(loaded, device)
        self._batch_size = batch_size

    def judges(self) -> dict[str, Judge]:
        """Returns two judges: by the likelihood of the whole caption, and by that per token."""
        return {
            "language_model_total": Judge(margins=lambda question: self._margins(question, 0)),
            "language_model_per_token": Judge(margins=lambda question: self._margins(question, 1)),
        }

    def answerers(self) -> dict[str, Answerer]:
        """Returns two blind answerers: they say what is likeliest behind the question."""
        return {
            "language_model_total": Answerer(answers=lambda asked: self._answers(asked, 0)),
            "language_model_per_token": Answerer(answers=lambda asked: self._answers(asked, 1)),
        }

    def _answers(self, asked: Sequence[Posed], column: int) -> list[str]:
        known = sorted({(each.form, each.answer) for each in asked})
        said = []
        for each in asked:
            named = [answer for form, answer in known if form == each.form]
            names = list(LETTERS[: len(each.options)]) or named
            words = each.options or [name.capitalize() for name in names]
            scores = self.score([f"{each.question} {word}" for word in words])[:, column]
            said.append(names[int(scores.argmax())])
        return said

    def score(self, captions: Sequence[str]) -> npt.NDArray[np.float64]:
        """Returns log likelihoods in nats: [captions, 2], in total and per token.

        The first token is conditioned on the model's BOS token (or, without one, its EOS token).
        Equal texts get equal scores.
        """
        distinct = sorted(set(captions), key=lambda caption: (len(caption), caption))
        scores: dict[str, tuple[float, float]] = {}
        for start in range(0, len(distinct), self._batch_size):
            batch = distinct[start : start + self._batch_size]
            scores.update(zip(batch, self._score_batch(batch), strict=True))
        return np.array([scores[caption] for caption in captions])

    def _score_batch(self, captions: Sequence[str]) -> list[tuple[float, float]]:
        import torch

        begin = self._tokenizer.bos_token_id
        begin = self._tokenizer.eos_token_id if begin is None else begin
        encoded = [self._tokenizer(c, add_special_tokens=False)["input_ids"] for c in captions]
        longest = max(map(len, encoded))
        ids = [[begin, *tokens, *[begin] * (longest - len(tokens))] for tokens in encoded]
        mask = [[1] * (len(tokens) + 1) + [0] * (longest - len(tokens)) for tokens in encoded]
        inputs = torch.tensor(ids, device=self._model.device)
        attention = torch.tensor(mask, device=self._model.device)
        with torch.inference_mode():
            logits = self._model(input_ids=inputs, attention_mask=attention).logits
            logs = torch.log_softmax(logits[:, :-1].double(), dim=-1)
        chosen = logs.gather(2, inputs[:, 1:, None])[..., 0] * attention[:, 1:]
        totals = chosen.sum(dim=1).tolist()
        return [
            (total, total / max(1, len(tokens)))
            for total, tokens in zip(totals, encoded, strict=True)
        ]

    def _margins(self, question: Question, column: int) -> npt.NDArray[np.float64]:
        right, wrong = (
            self.score(captions)[:, column] for captions in (question.right, question.wrong)
        )
        return np.asarray(right - wrong)
