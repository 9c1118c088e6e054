"""The audit: every probe, on held-out images, with a confidence interval to compare with chance."""

import dataclasses
import heapq
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from eqforge.core import visible
from eqforge.core.console import ticked
from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.identity import picture_key, sample_rank
from eqforge.evaluation.shortcuts.judges import (
    CONTRASTS,
    Contrast,
    Judge,
    Question,
    blind_judges,
    probe_judges,
    unasked,
)
from eqforge.evaluation.shortcuts.probes import Clue
from eqforge.evaluation.statistics.bootstrap import resample_means
from eqforge.evaluation.statistics.shares import LEVEL
from eqforge.schemas.dataset.manifest import BlindProbe, Certificate
from eqforge.schemas.dataset.reader import Dataset
from eqforge.sources.text_pairs import TextPair

VERSION = 2
"""Version of how the numbers are computed; 2 has exact intervals."""
CHANCE = 0.5
CERTIFIED_ROWS = 10_000
"""Number of rows to certify: those with the lowest hashes of their ids."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeResult:
    """How often one probe answers one question correctly.

    Attributes:
      probe: a key of PROBES, "likelihood", "transformer", "language_model_total" or
        "language_model_per_token".
      accuracy: share of correct answers in [0, 1]; a tie counts one half.
      low, high: exact 95% confidence interval, for the number of independent trials with the
        variance of a bootstrap over images; widened for probes, whose folds share training data.
      joint_low, joint_high: the same at Bonferroni's level, for all questions and probes together.
      ties: share of pairs with a tie, in [0, 1].
      clues: for `words` and `letters`, the pieces of text with the largest weights.
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
        return self.low > CHANCE

    @property
    def separation(self) -> float:
        """Accuracy of the probe or of its opposite: at least one half."""
        return max(self.accuracy, 1 - self.accuracy)

    @property
    def separation_interval(self) -> tuple[float, float]:
        bounds = (self.joint_low, self.joint_high)
        return bounds if self.accuracy >= CHANCE else (1 - bounds[1], 1 - bounds[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """The results of an audit of captions.

    Attributes:
      one_image: number of audited pairs of one image and two captions.
      two_by_two: number of pairs of two images and two captions, which are not audited.
      left_out: number of captions without a false one.
      unasked: the probes that could not run, with the reason.
    """

    results: tuple[ProbeResult, ...]
    one_image: int
    two_by_two: int
    folds: int
    seed: int
    left_out: int = 0
    unasked: tuple[str, ...] = ()
    version: int = VERSION


def audit_pairs(
    pairs: Iterable[TextPair],
    judges: Mapping[str, Judge] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    resamples: int = 1000,
    contrasts: Collection[Contrast] = tuple(CONTRASTS),
) -> Audit:
    everything = list(pairs)
    audited = [pair for pair in everything if pair.design == "one_image"]
    judges = probe_judges(folds=folds) if judges is None else judges
    tasks = [
        (question, name, judge)
        for question in _questions(audited, folds)
        if question.contrast in contrasts
        for name, judge in judges.items()
    ]
    joint = 1 - (1 - LEVEL) / max(len(tasks), 1)
    results = [
        _judged(*each, seed, resamples, joint)
        for each in ticked(tasks, len(tasks), "answers of probes", "audit")
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
            advice = "lower --folds" if len(names) > 1 else "add images"
            raise InputError(
                f"{folds} folds need at least {folds} images. Found only {len(names)}; {advice}"
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
    found = resample_means(wins, question.images, seed=seed, resamples=resamples)
    share = found.share(widening=judge.widening)
    low, high = share.interval()
    joint_low, joint_high = share.interval(joint)
    return ProbeResult(
        contrast=question.contrast,
        probe=name,
        pairs=len(wins),
        images=len(np.unique(question.images)),
        accuracy=float(wins.mean()),
        low=low,
        high=high,
        joint_low=joint_low,
        joint_high=joint_high,
        ties=float((margins == 0).mean()),
        clues=judge.clues(question),
    )


def certify(dataset: Dataset) -> Certificate:
    folds = 5
    columns = ("sample_id", "image", "caption", "hard_positive", "hard_negative")
    rows = dataset.rows("samples", columns)
    chosen = heapq.nsmallest(
        CERTIFIED_ROWS, rows, key=lambda row: (sample_rank(row["sample_id"]), row["sample_id"])
    )
    pairs = [
        TextPair(
            pair_id=row["sample_id"],
            image=row["image"],
            positive=row["caption"],
            negative=row["hard_negative"],
            hard_positive=row["hard_positive"],
        )
        for row in chosen
    ]
    found = len({picture_key(pair.image, pair.pair_id) for pair in pairs})
    if found < folds:
        return Certificate(
            version=VERSION,
            rows=len(pairs),
            folds=folds,
            probes=[],
            best=None,
            unasked=[f"all: the audit needs rows of at least {folds} images, but found {found}"],
        )
    contrasts: tuple[Contrast, ...] = ("negative", "hard_positive_or_negative")
    audit = audit_pairs(pairs, blind_judges(folds), folds=folds, contrasts=contrasts)
    best = max(audit.results, key=lambda result: result.separation)
    return Certificate(
        version=VERSION,
        rows=len(pairs),
        folds=folds,
        probes=[_stated(each, each.accuracy, (each.low, each.high)) for each in audit.results],
        best=_stated(best, best.separation, best.separation_interval),
        unasked=unasked(),
    )


def _stated(result: ProbeResult, right: float, interval: tuple[float, float]) -> BlindProbe:
    low, high = interval
    return BlindProbe(
        question=CONTRASTS[result.contrast][2],
        probe=result.probe,
        accuracy=round(right, 4),
        low=round(low, 4),
        high=round(high, 4),
    )


_SEEN = {
    "length": "sees how many characters and words a caption has",
    "rarity": "sees how rare a caption's words are",
    "position": "sees the first and last words of a caption, and the words in each third",
    "words": "sees the words of a caption and pairs of neighbouring words",
    "letters": "sees sequences of two to four letters",
    "likelihood": "knows the three-word sequences of true captions; sees no false captions",
    "transformer": "reads the words of a caption in order, with attention",
    "language_model_total": "a language model's probability of the whole caption",
    "language_model_per_token": "the same probability per token, so that length does not matter",
}


def as_text(name: str, audit: Audit, parts: Mapping[str, Audit] = MappingProxyType({})) -> str:
    lines = [f"{name}: {audit.one_image:,} pairs of one image and two captions were audited."]
    if audit.two_by_two:
        lines.append(
            f"{audit.two_by_two:,} pairs of two images and two captions were not audited. Each "
            "caption is true of one image and false of the other, so text alone is right at most "
            "half the time."
        )
    if audit.left_out:
        lines.append(f"{audit.left_out:,} captions have no false counterpart and were left out.")
    lines += _contrasts(audit)
    for part, found in parts.items():
        lines += ["", f"{part}: {found.one_image:,} pairs", *_contrasts(found)]
    if audit.results:
        probes = {result.probe for result in audit.results}
        lines += ["", *(f"{name}: {text}" for name, text in _SEEN.items() if name in probes)]
        lines += audit.unasked
        lines += ["", *method_lines(audit)]
    return visible.in_lines(lines)


def _contrasts(audit: Audit) -> Iterator[str]:
    for contrast, (_, _, question) in CONTRASTS.items():
        results = [result for result in audit.results if result.contrast == contrast]
        if not results:
            continue
        found = results[0]
        yield from ("", f"{question} ({found.pairs:,} pairs of {found.images:,} images)")
        yield from map(result_line, results)
        best = max(results, key=lambda result: result.separation)
        low, high = best.separation_interval
        by = f"{best.probe} with reversed answers" if best.accuracy < CHANCE else best.probe
        yield f"  best of {len(results)}: {best.separation:.2%} [{low:.2%}, {high:.2%}] by {by}"
        for result in results:
            # If the interval includes chance, the largest weights are due to chance too.
            if result.is_shortcut and result.clues:
                yield (
                    f"  most revealing {result.probe} (number of right and wrong captions that "
                    "contain them):"
                )
                yield from clue_lines(result.clues, ("right", "wrong"))


def as_json(name: str, audit: Any, parts: Mapping[str, Audit] | None = None) -> str:
    def plain(audit: Any) -> dict[str, Any]:
        results = [
            {**dataclasses.asdict(result), "is_shortcut": result.is_shortcut}
            for result in audit.results
        ]
        return {**dataclasses.asdict(audit), "results": results}

    chance = {"chance": CHANCE} if isinstance(audit, Audit) else {}
    by = {"parts": {part: plain(found) for part, found in parts.items()}} if parts else {}
    return visible.json_text({"name": name, **chance, **plain(audit), **by})


def clue_lines(found: Sequence[Clue], sides: tuple[str, str]) -> Iterator[str]:
    for clue in found:
        side = sides[clue.weight <= 0]
        yield (
            f"    {side}  {clue.weight:+8.4f}  {shown(clue.text)} "
            f"({clue.right:,} and {clue.wrong:,})"
        )


def result_line(result: Any) -> str:
    return (
        f"  {result.probe:<25} {result.accuracy:7.2%}  [{result.low:.2%}, {result.high:.2%}]"
        f"{'  shortcut' if result.is_shortcut else ''}"
    )


def method_lines(audit: Any) -> list[str]:
    unit, chance, best = "group", "", ""
    if isinstance(audit, Audit):
        unit, chance = "image", f"Chance is {CHANCE:.0%}. "
        best = " The interval of the best probe is corrected for all questions and probes"
        best += " (Bonferroni)."
    return textwrap.wrap(
        f"{chance}Intervals are exact 95% confidence intervals (Clopper-Pearson). Their number of "
        f"trials matches the variance of a bootstrap over {unit}s (seed {audit.seed}; Korn and "
        "Graubard 1998). Probes have wider intervals (Nadeau and Bengio 2003), because each one is "
        f"trained: it judges one {unit} after training on other {unit}s, in {audit.folds} folds. "
        "Language models are not trained. 'shortcut' means that the whole interval is above "
        f"chance. Then text alone can explain part of a model's score.{best}",
        width=92,
    )
