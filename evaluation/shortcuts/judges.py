"""Judges that read captions without seeing an image."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eqforge.core.errors import importing
from eqforge.core.word_model import WordModel
from eqforge.evaluation.shortcuts.probes import PROBES, Clue, clues, train_and_judge, words_of
from eqforge.models.pretrained import torch_threads

WITH_CLUES = ("words", "letters")

Numbers = npt.NDArray[np.float64]
Texts = tuple[Sequence[str], Sequence[str]]

Contrast = Literal["negative", "hard_positive_or_negative", "hard_positive"]
CONTRASTS: dict[Contrast, tuple[str, str, str]] = {
    "negative": ("positive", "negative", "Which is true, the positive or the negative?"),
    "hard_positive_or_negative": (
        "hard_positive",
        "negative",
        "Which is true, the hard positive or the negative?",
    ),
    "hard_positive": (
        "positive",
        "hard_positive",
        "Which is the original, the positive or the hard positive?",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """The true and false captions of one contrast, in pairs, with the number of their image."""

    contrast: Contrast
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    images: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """Answers a question.

    Attributes:
      margins: returns by how much the right caption looks truer [pairs]: positive if the judge is
        right, 0 for a tie.
      widening: factor on the standard deviation of the accuracy, at least 1. Cross-validated
        judgements are not independent: a plain bootstrap missed chance in one of five cases instead
        of one of twenty.
    """

    margins: Callable[[Question], Numbers]
    widening: float = 1.0
    clues: Callable[[Question], tuple[Clue, ...]] = lambda question: ()


def blind_judges(folds: int = 5) -> dict[str, Judge]:
    judges = probe_judges(folds=folds) | {"likelihood": likelihood_judge(folds)}
    return judges | ({"transformer": transformer_judge(folds)} if can_train() else {})


def unasked() -> list[str]:
    return (
        []
        if can_train()
        else ["transformer: not run, because torch is missing; run pip install 'eqforge[models]'"]
    )


def probe_judges(probes: Sequence[str] = tuple(PROBES), folds: int = 5) -> dict[str, Judge]:
    """Return judges trained on the pairs themselves, by cross-validation over images."""
    return {
        probe: Judge(
            margins=_by_folds(partial(train_and_judge, probe), folds),
            widening=widening(folds),
            clues=partial(_clues, probe),
        )
        for probe in probes
    }


def _clues(probe: str, question: Question) -> tuple[Clue, ...]:
    return clues(probe, question.right, question.wrong) if probe in WITH_CLUES else ()


def likelihood_judge(folds: int) -> Judge:
    """Judge the likelier caption true; the model learns from the other folds' true captions."""

    def margins(train: Texts, test: Texts) -> Numbers:
        model = WordModel()
        model.learn(train[0])
        right, wrong = ([model.score(text) for text in texts] for texts in test)
        return np.subtract(right, wrong).round(9)

    # The model is not trained on test captions, but its folds share captions.
    return Judge(margins=_by_folds(margins, folds))


def transformer_judge(folds: int) -> Judge:
    """Read whole captions: unlike counts, a transformer sees combinations and order of words."""
    return Judge(margins=_by_folds(train_transformer, folds), widening=widening(folds))


def _by_folds(
    judge: Callable[[Texts, Texts], Numbers], folds: int
) -> Callable[[Question], Numbers]:
    def margins(question: Question) -> Numbers:
        found = np.zeros(len(question.right))
        for places in split_folds(question.images, folds):
            train, test = (
                ([question.right[i] for i in fold], [question.wrong[i] for i in fold])
                for fold in places
            )
            found[places[1]] = judge(train, test)
        return found

    return margins


def widening(folds: int) -> float:
    """Return the factor on the standard deviation of a mean over folds, which are not independent.

    Source: Nadeau and Bengio 2003, "Inference for the generalization error": the variance of a mean
    over k folds grows by 1 + k * test / train.
    """
    return (1 + folds / (folds - 1)) ** 0.5


def split_folds(
    groups: npt.NDArray[Any], folds: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield indices to train on and to judge for each fold; no group [n] is in both."""
    with importing("scikit-learn", "text"):
        from sklearn.model_selection import GroupKFold
    yield from GroupKFold(n_splits=folds).split(groups, groups=groups)


_WIDTH = 32
_WORDS = 48
_EPOCHS = 6
_BATCH = 64
_RATE = 1e-3
_PADDING, _UNKNOWN, _KNOWN = 0, 1, 2


def train_transformer(
    train: Sequence[Sequence[str]], test: Sequence[Sequence[str]]
) -> npt.NDArray[np.float64]:
    """Return the test pairs' margins; run on one core, as threaded sums differ between runs."""
    import torch
    from torch.nn.functional import softplus

    counts = Counter(word for texts in train for text in texts for word in words_of(text))
    known = sorted(word for word, count in counts.items() if count > 1)
    numbers = {word: number for number, word in enumerate(known, start=_KNOWN)}
    with torch_threads(1), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = _network(len(known) + _KNOWN)
        right, wrong = (_encoded(texts, numbers) for texts in train)
        steps = _EPOCHS * -(-len(right) // _BATCH)
        optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
        network.train()
        for _ in range(_EPOCHS):
            for batch in torch.split(torch.randperm(len(right)), _BATCH):
                loss = softplus(network(wrong[batch]) - network(right[batch])).mean()
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
                schedule.step()
        network.eval()
        with torch.inference_mode():
            scores = [network(_encoded(texts, numbers)) for texts in test]
    return (scores[0] - scores[1]).double().numpy().round(6)


def _encoded(texts: Sequence[str], numbers: dict[str, int]) -> Any:
    import torch

    rows = [
        torch.tensor([numbers.get(word, _UNKNOWN) for word in words_of(text)[:_WORDS]] or [1])
        for text in texts
    ]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=_PADDING)


def _network(words: int) -> Any:
    import torch
    from torch import nn

    class Scorer(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may be missing
        """Embeds the words, lets each see the others, and scores the mean."""

        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(words, _WIDTH, padding_idx=_PADDING)
            self.places = nn.Embedding(_WORDS, _WIDTH)
            layer = nn.TransformerEncoderLayer(
                _WIDTH, 4, 4 * _WIDTH, batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.score = nn.Linear(_WIDTH, 1)

        def forward(self, texts: torch.Tensor) -> torch.Tensor:
            padding = texts == _PADDING
            inputs = self.words(texts) + self.places(torch.arange(texts.shape[1]))
            seen = self.layers(inputs, src_key_padding_mask=padding)
            kept = (~padding)[..., None]
            return self.score((seen * kept).sum(dim=1) / kept.sum(dim=1))[:, 0]

    return Scorer()


def can_train() -> bool:
    return find_spec("torch") is not None
