"""Blind answerers: they answer questions by their texts, and never see an image.

A language model gives the likeliest answer, and prefers the likelier of two captions.
"""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eqforge.core.errors import InputError, importing
from eqforge.evaluation.shortcuts.judges import Judge, Question, split_folds, widening
from eqforge.evaluation.shortcuts.probes import (
    PROBES,
    Clue,
    Counts,
    fit_classifier,
    train_pairs,
    weightiest,
)
from eqforge.models.pretrained import check_device, onto_device
from eqforge.schemas.records.lettered import LETTERS
from eqforge.schemas.records.questions import short_answer

PRIOR: Final = "prior"
OPTIONS: Final = "options"
_NAMED: Final = {
    **dict.fromkeys(("yes", "no"), "yes/no"),
    **dict.fromkeys(("true", "false"), "true/false"),
}
_LETTER: Final = "letter"


@dataclass(frozen=True, kw_only=True, slots=True)
class Posed:
    """A question as a blind answerer sees it, and its right answer.

    Attributes:
      options: the texts of the options A, B, …; empty if the question names its answers.
      form: OPTIONS; `yes/no`, `true/false`; or `letter`, if the question itself lists the options.
      answer: a letter, or one of the two words, in lower case.
    """

    question: str
    options: tuple[str, ...]
    form: str
    answer: str
    group: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answerer:
    """Returns an answer to each question, in its form; `widening` is as in `Judge`."""

    answers: Callable[[Sequence[Posed]], list[str]]
    widening: float = 1.0


def blind_answerers(folds: int = 5) -> dict[str, Answerer]:
    """Return the answerers that learn from the questions of other groups, by cross-validation.

    PRIOR gives the most frequent right answer; the probes also read the question or its options.
    """
    return {
        probe: Answerer(
            answers=functools.partial(_by_folds, probe, folds), widening=widening(folds)
        )
        for probe in (PRIOR, *PROBES)
    }


def posed(row: Mapping[str, Any]) -> Posed:
    options = tuple(row["options"])
    answer = short_answer(row["answer"], options) or ""
    form = OPTIONS if options else _NAMED.get(answer.lower(), _LETTER)
    return Posed(
        question=row["question"],
        options=options,
        form=form,
        answer=answer.lower() if form in _NAMED.values() else answer,
        group=row["group_id"],
    )


def _by_folds(probe: str, folds: int, questions: Sequence[Posed]) -> list[str]:
    answers = [""] * len(questions)
    for train, test in split_folds(np.array([each.group for each in questions]), folds):
        for form in {questions[place].form for place in test}:
            seen = [questions[place] for place in train if questions[place].form == form]
            places = [place for place in test if questions[place].form == form]
            predictions = _learnt(probe, seen, [questions[place] for place in places])
            for place, answer in zip(places, predictions, strict=True):
                answers[place] = answer
    return answers


def _learnt(probe: str, seen: Sequence[Posed], questions: Sequence[Posed]) -> list[str]:
    """Answer questions of one form after training on others; with empty texts if there are none."""
    counts = Counter(each.answer for each in seen)
    usual = sorted(counts, key=lambda answer: (-counts[answer], answer))
    if not usual or probe == PRIOR:
        return [(usual or [""])[0]] * len(questions)
    if questions[0].form == OPTIONS:
        right, wrong = option_pairs(seen)
        featurize = PROBES[probe]([*right, *wrong])
        model = train_pairs(featurize, (right, wrong)) if right else None
        options = [option for each in questions for option in each.options]
        scores = np.zeros(len(options))
        if model is not None:
            scores = np.round(model.decision_function(featurize(options)), 6)
        ends = np.cumsum([len(each.options) for each in questions])
        return [_best(group.tolist(), usual) for group in np.split(scores, ends[:-1])]
    if len(usual) == 1:
        return usual * len(questions)
    featurize = PROBES[probe]([each.question for each in seen])
    learnt = featurize([each.question for each in seen])
    model = fit_classifier(learnt, [each.answer for each in seen])
    likely = model.predict_proba(featurize([each.question for each in questions]))
    # If the texts say nothing, all answers are equally likely up to rounding.
    return [str(model.classes_[place]) for place in np.round(likely, 6).argmax(axis=1)]


def _best(scores: Sequence[float], usual: Sequence[str]) -> str:
    letters = [LETTERS[place] for place, score in enumerate(scores) if score == max(scores)]
    return next((letter for letter in usual if letter in letters), letters[0])


def option_pairs(questions: Sequence[Posed]) -> tuple[list[str], list[str]]:
    pairs = [
        (each.options[LETTERS.index(each.answer)], option)
        for each in questions
        for letter, option in zip(LETTERS, each.options, strict=False)
        if letter != each.answer
    ]
    return [right for right, _ in pairs], [wrong for _, wrong in pairs]


def answer_clues(probe: str, questions: Sequence[str], answers: Sequence[str]) -> tuple[Clue, ...]:
    """Return the clues for one of two answers, as `clues` does for captions.

    A weight above 0 supports the answer that is last in the alphabet; `Clue.right` counts its
    questions.
    """
    featurize = PROBES[probe](questions)
    if not isinstance(featurize, Counts):
        return ()
    model = fit_classifier(featurize(questions), answers)
    pairs = list(zip(questions, answers, strict=True))
    first, last = ([text for text, answer in pairs if answer == n] for n in model.classes_)
    return weightiest(featurize, model, (last, first))


class LanguageModelProbe:
    """Scores captions by their likelihood under a causal language model of transformers."""

    def __init__(
        self, model: str, revision: str | None = None, device: str = "cpu", batch_size: int = 64
    ) -> None:
        with importing("torch and transformers", "models"):
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
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
        return {
            "language_model_total": Judge(margins=lambda question: self._margins(question, 0)),
            "language_model_per_token": Judge(margins=lambda question: self._margins(question, 1)),
        }

    def answerers(self) -> dict[str, Answerer]:
        return {
            "language_model_total": Answerer(answers=lambda questions: self._answers(questions, 0)),
            "language_model_per_token": Answerer(
                answers=lambda questions: self._answers(questions, 1)
            ),
        }

    def _answers(self, questions: Sequence[Posed], column: int) -> list[str]:
        known = sorted({(each.form, each.answer) for each in questions})
        answers = []
        for each in questions:
            named = [answer for form, answer in known if form == each.form]
            names = list(LETTERS[: len(each.options)]) or named
            words = each.options or [name.capitalize() for name in names]
            scores = self.score([f"{each.question} {word}" for word in words])[:, column]
            answers.append(names[int(scores.argmax())])
        return answers

    def score(self, captions: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return log likelihoods in nats: [captions, 2], in total and per token.

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
        margins = self.score(question.right) - self.score(question.wrong)
        return np.asarray(margins[:, column])
