"""The audit: every probe, on held-out images, with a confidence interval to compare with chance."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.identity import picture_key
from eqforge.core.ticker import ticked
from eqforge.evaluation.shortcuts.probes import PROBES, Clue, clues, train_and_judge
from eqforge.evaluation.statistics.bootstrap import resample_means
from eqforge.evaluation.statistics.shares import LEVEL
from eqforge.sources.text_pairs import TextPair

VERSION = 2
"""Version of how the numbers are computed; 2 has exact intervals."""
CHANCE = 0.5
WITH_CLUES = ("words", "letters")
"""Probes of which the report names what they go by."""

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
"""The questions put to a probe: the right caption, the wrong one, and the question in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeResult:
    """How often one probe answers one question correctly.

    Attributes:
      contrast: a key of CONTRASTS.
      probe: a key of PROBES, "likelihood", "transformer", "language_model_total" or
        "language_model_per_token".
      pairs, images: number of pairs judged, and of their images.
      accuracy: share of correct answers in [0, 1]; a tie counts one half.
      low, high: 95 % confidence interval of the accuracy: exact for the number of independent
        trials that has its variance in a bootstrap over images; widened for probes, whose folds
        share training data.
      joint_low, joint_high: the same at the level at which the intervals of all questions and
        probes of the audit hold together with 95 % (Bonferroni's): that of the best of them.
      ties: share of pairs that the probe cannot tell apart, in [0, 1].
      clues: the pieces of text that it goes by most, of the probes `words` and `letters`.
    """

    contrast: Contrast
    probe: str
    pairs: int
    images: int
    accuracy: float
    low: float
    high: float
    joint_low: float
    joint_high: float
    ties: float
    clues: tuple[Clue, ...] = ()

    @property
    def is_shortcut(self) -> bool:
        """Whether the probe does better than chance: its interval lies above one half."""
        return self.low > CHANCE

    @property
    def told(self) -> float:
        """How often it is right if it may be turned round: at least one half."""
        return max(self.accuracy, 1 - self.accuracy)

    @property
    def told_between(self) -> tuple[float, float]:
        """The joint interval of `told`."""
        bounds = (self.joint_low, self.joint_high)
        return bounds if self.accuracy >= CHANCE else (1 - bounds[1], 1 - bounds[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What the text alone tells.

    Attributes:
      results: one per question and probe.
      one_image: number of pairs of one image and two captions, which were audited.
      two_by_two: number of pairs of two images and two captions, to which the audit does not
        apply: each caption is true once and false once, so text alone is right half the time.
      folds: number of folds the images were split into.
      seed: seed of the bootstrap.
      left_out: number of captions without a false one.
      unasked: the probes that could not be asked, with the reason.
      version: VERSION.
    """

    results: tuple[ProbeResult, ...]
    one_image: int
    two_by_two: int
    folds: int
    seed: int
    left_out: int = 0
    unasked: tuple[str, ...] = ()
    version: int = VERSION


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """The captions of one contrast, in pairs.

    Attributes:
      contrast: a key of CONTRASTS.
      right, wrong: the captions [pairs].
      images: the number of each pair's image [pairs].
    """

    contrast: Contrast
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    images: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """Answers a question.

    Attributes:
      margins: returns by how much the right caption looks truer [pairs]: above 0 where the judge is
        right, 0 for a tie.
      widening: factor on the standard deviation of the accuracy, at least 1. Cross-validated
        judgements are not independent: a plain bootstrap missed chance one time in five instead
        of one in twenty.
      clues: returns the pieces of text that it goes by most.
    """

    margins: Callable[[Question], npt.NDArray[np.float64]]
    widening: float = 1.0
    clues: Callable[[Question], tuple[Clue, ...]] = lambda question: ()


def probe_judges(probes: Sequence[str] = tuple(PROBES), folds: int = 5) -> dict[str, Judge]:
    """Returns the judges that are trained on the pairs themselves, by cross-validation.

    Args:
      probes: keys of PROBES.
      folds: number of folds the images are split into; a probe judges each fold after training on
        the others, so it never judges an image it was trained on.
    """
    return {
        probe: Judge(
            margins=functools.partial(_judge_by_folds, probe, folds),
            widening=widening(folds),
            clues=functools.partial(_clues, probe),
        )
        for probe in probes
    }


def widening(folds: int) -> float:
    """Returns the factor on the standard deviation of a mean over folds, which are not independent.

    Source: Nadeau and Bengio 2003, "Inference for the generalization error", for the factor
      1 + k * test / train on the variance of a mean over k folds.
    """
    return (1 + folds / (folds - 1)) ** 0.5


def split_folds(
    groups: npt.NDArray[Any], folds: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yields the places to train on, and those to judge, for each fold; no group is in both.

    Args:
      groups: the group of each place [n], such as its image.
      folds: number of folds, at most as many as there are groups.

    Raises:
      MissingExtra: scikit-learn is not installed.
    """
    try:
        from sklearn.model_selection import GroupKFold
    except ImportError as error:
        raise MissingExtra("scikit-learn", "text") from error
    yield from GroupKFold(n_splits=folds).split(groups, groups=groups)


def _judge_by_folds(probe: str, folds: int, question: Question) -> npt.NDArray[np.float64]:
    margins = np.zeros(len(question.right))
    for train, test in split_folds(question.images, folds):
        margins[test] = train_and_judge(
            probe, *(_take(question, indices) for indices in (train, test))
        )
    return margins


def _clues(probe: str, question: Question) -> tuple[Clue, ...]:
    return clues(probe, question.right, question.wrong) if probe in WITH_CLUES else ()


def _take(question: Question, indices: npt.NDArray[np.int64]) -> tuple[list[str], list[str]]:
    return [question.right[i] for i in indices], [question.wrong[i] for i in indices]


def audit_pairs(
    pairs: Iterable[TextPair],
    judges: Mapping[str, Judge] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    resamples: int = 1000,
    contrasts: Collection[Contrast] = tuple(CONTRASTS),
) -> Audit:
    """Audits the text pairs of one dataset.

    Args:
      pairs: the pairs.
      judges: judges by name; None for all probes.
      folds: number of folds the images are split into.
      seed: seed of the bootstrap.
      resamples: number of bootstrap resamples of images.
      contrasts: the questions that are asked.

    Raises:
      InputError: there are fewer images than folds.
      MissingExtra: scikit-learn is not installed.
    """
    everything = list(pairs)
    audited = [pair for pair in everything if pair.design == "one_image"]
    judges = probe_judges(folds=folds) if judges is None else judges
    asked = [
        (question, name, judge)
        for question in _questions(audited, folds)
        if question.contrast in contrasts
        for name, judge in judges.items()
    ]
    joint = 1 - (1 - LEVEL) / max(len(asked), 1)
    results = [
        _judged(*each, seed, resamples, joint)
        for each in ticked(asked, len(asked), "answers of probes", "audit")
    ]
    return Audit(
        results=tuple(results),
        one_image=len(audited),
        two_by_two=len(everything) - len(audited),
        folds=folds,
        seed=seed,
    )


def _questions(pairs: Sequence[TextPair], folds: int) -> Iterator[Question]:
    for contrast, (right, wrong, _) in CONTRASTS.items():
        chosen = [p for p in pairs if None not in (getattr(p, right), getattr(p, wrong))]
        if not chosen:
            continue
        images = [picture_key(pair.image, pair.pair_id) for pair in chosen]
        names = sorted(set(images))
        if len(names) < folds:
            advice = "lower --folds" if len(names) > 1 else "it takes at least two"
            raise InputError(
                f"the audit deals images into {folds} folds, but found {len(names)}: {advice}"
            )
        numbers = {name: number for number, name in enumerate(names)}
        yield Question(
            contrast=contrast,
            right=tuple(str(getattr(pair, right)) for pair in chosen),
            wrong=tuple(str(getattr(pair, wrong)) for pair in chosen),
            images=np.array([numbers[image] for image in images]),
        )


def _judged(
    question: Question, name: str, judge: Judge, seed: int, resamples: int, joint: float
) -> ProbeResult:
    margins = judge.margins(question)
    wins = np.where(margins > 0, 1.0, np.where(margins == 0, CHANCE, 0.0))
    accuracy = float(wins.mean())
    found = resample_means(wins, question.images, seed=seed, resamples=resamples)
    share = found.share(widening=judge.widening)
    low, high = share.interval()
    joint_low, joint_high = share.interval(joint)
    return ProbeResult(
        contrast=question.contrast,
        probe=name,
        pairs=len(wins),
        images=len(np.unique(question.images)),
        accuracy=accuracy,
        low=low,
        high=high,
        joint_low=joint_low,
        joint_high=joint_high,
        ties=float((margins == 0).mean()),
        clues=judge.clues(question),
    )
