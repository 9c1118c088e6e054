"""The command `eqforge pareto`: models on the front of score against time, with probabilities."""

import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import tyro

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.shell import Command
from eqforge.core.visible import in_lines, visible
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import RESAMPLES
from eqforge.evaluation.tables.render import Rules
from eqforge.evaluation.tables.settings import reject_unread

if TYPE_CHECKING:
    from eqforge.evaluation.efficiency.contest import Contest

FORMAT = "eqforge pareto"


@dataclass(frozen=True, kw_only=True, slots=True)
class ParetoSettings:
    """Find the Pareto front of score against time, and each model's probability of being on it."""

    results: tyro.conf.Positional[tuple[Path, ...]]
    """One file from `eqforge efficiency` per model, or one CSV table with all models. A table needs
    the columns model, score and seconds. For 95% intervals, add the columns score_low, score_high,
    seconds_low and seconds_high. With --metrics, a table needs no score columns."""

    dataset: Path | None = None
    """Dataset to which the scores belong. Required if you pass --scores."""

    scores: tuple[Path, ...] = ()
    """Model scores for the dataset, in the same order as the results files."""

    metrics: tuple[Path, ...] = ()
    """Read the scores from these metrics.json or metrics.csv files. Do not combine this option with
    --dataset or --scores. A model's score is the mean of --metric over all --subsets."""

    subsets: tuple[str, ...] = ("nlvr2", "vqa")
    """Average the score over these subsets. The VLUE paper averages over NLVR2 and VQA."""

    metric: str | None = None
    """Name of a metric from `eqforge metrics` (default: group, or accuracy with --metrics)."""

    ties: TieRule = "strict"
    """Credit for a tie. `strict` gives 0, `half` gives 0.5, and `expectation` gives the average
    over random orders."""

    strict: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Exclude a model from the Pareto front only if another model is better in both score and
    time."""

    seed: int = 0
    """Random seed for the bootstrap."""

    resamples: int = RESAMPLES
    """Number of bootstrap resamples."""

    output: Path | None = None
    """JSON file to write. To plot it, run `eqforge plot pareto`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contestant:
    """One model of a front."""

    model: str
    score: float
    score_low: float
    score_high: float
    seconds: float
    seconds_low: float
    seconds_high: float
    on_front: bool
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Front:
    """All models, fastest first."""

    format: str = FORMAT
    what: str
    strict: bool
    seed: int
    resamples: int
    models: list[Contestant] = field(default_factory=list)


def pareto_command(settings: ParetoSettings) -> int:
    if not settings.results:
        raise InputError("pass at least one results file")
    if settings.resamples < 1 or settings.seed < 0:
        raise InputError("--resamples must be at least 1, and --seed at least 0")
    _check_applies(settings)
    front = make_front(_contest(settings), settings)
    if settings.output is not None:
        data = msgspec.json.format(msgspec.json.encode(front), indent=2) + b"\n"
        storage.write_bytes(str(settings.output), data)
    print(as_text(front))
    return 0


def _check_applies(settings: ParetoSettings) -> None:
    """Check that no option was passed that the inputs do not use."""
    if settings.metrics:
        source, unused = "--metrics", ["ties"]
    elif settings.results[0].suffix == ".csv":
        source, unused = "a CSV table of scores", ["ties", "subsets", "metric"]
    else:
        source, unused = "files from eqforge efficiency", ["subsets"]
    usual = {each.name: each.default for each in fields(settings)}
    for name in unused:
        if getattr(settings, name) != usual[name]:
            raise InputError(f"--{name} cannot be used with {source}; omit --{name}")


def _contest(settings: ParetoSettings) -> "Contest":
    from eqforge.evaluation.efficiency.contest import from_measurements, from_numbers, from_table
    from eqforge.schemas.dataset.reader import open_dataset

    def reject_others(read: str, source: str) -> None:
        always = "results strict seed resamples output"
        reject_unread(settings, f"{always} {read}".split(), source)

    rules = Rules(ties=settings.ties, seed=settings.seed, resamples=settings.resamples)
    if settings.metrics:
        if settings.dataset is not None or settings.scores:
            raise InputError("pass either --metrics, or --dataset and --scores")
        reject_others("metrics subsets metric", "scores from --metrics")
        metric = settings.metric or "accuracy"
        return from_numbers(settings.results, settings.metrics, metric, settings.subsets, rules)
    if settings.results[0].suffix == ".csv":
        if len(settings.results) > 1 or settings.dataset is not None or settings.scores:
            raise InputError(f"{settings.results[0]}: a CSV table must be the only input")
        reject_others("", "a CSV table of scores")
        return from_table(settings.results[0], rules)
    if settings.dataset is None:
        raise InputError("pass the scored dataset with --dataset, and its scores with --scores")
    reject_others("dataset scores metric ties", "scores for --dataset")
    dataset = open_dataset(str(settings.dataset))
    metric = settings.metric or "group"
    return from_measurements(settings.results, dataset, settings.scores, metric, rules)


def make_front(contest: "Contest", settings: ParetoSettings) -> Front:
    import numpy as np

    from eqforge.evaluation.efficiency.contest import membership, on_front

    chosen = on_front(contest.scores, contest.seconds, strict=settings.strict)
    shares = membership(contest.score_draws, contest.second_draws, strict=settings.strict)
    models = []
    for place in np.lexsort((np.array(contest.models), -contest.scores, contest.seconds)):
        score = contest.score_bounds[place].tolist()
        seconds = contest.second_bounds[place].tolist()
        models.append(
            Contestant(
                model=contest.models[place],
                score=float(contest.scores[place]),
                score_low=score[0],
                score_high=score[1],
                seconds=float(contest.seconds[place]),
                seconds_low=seconds[0],
                seconds_high=seconds[1],
                on_front=bool(chosen[place]),
                probability=float(shares[place]),
            )
        )
    return Front(
        what=contest.what,
        strict=settings.strict,
        seed=settings.seed,
        resamples=settings.resamples,
        models=models,
    )


def read_front(path: Path) -> Front:
    found = decode(read_bytes(path), Front, f"{path} was not written by eqforge pareto")
    if found.format != FORMAT:
        raise InputError(
            f"{path}: expected the format {FORMAT}, found {found.format}; run eqforge pareto again"
        )
    return found


def as_text(front: Front) -> str:
    rows = [["model", visible(front.what), "ms per pair", "on the front", "probability"]]
    for model in front.models:
        rows.append(
            [
                visible(model.model),
                _bracketed(4, model.score, model.score_low, model.score_high),
                _bracketed(
                    2, 1000 * model.seconds, 1000 * model.seconds_low, 1000 * model.seconds_high
                ),
                "yes" if model.on_front else "no",
                f"{model.probability:.3f}",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    rule = "better in both" if front.strict else "better in one and at least as good in the other"
    return in_lines(
        [
            *(line.rstrip() for line in lines),
            "Models are compared by score and time. A model is on the front if no other model is",
            f"{rule}. The probability is the fraction of {front.resamples:,} resamples (seed",
            f"{front.seed}) in which the model is on the front. Brackets show 95% intervals.",
            "Numbers without brackets have no interval, or one of width 0.",
        ]
    )


def _bracketed(digits: int, value: float, low: float, high: float) -> str:
    if not low < high:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


main = Command(
    "eqforge pareto",
    ParetoSettings,
    pareto_command,
    example="eqforge pareto a.json b.json --dataset out/eq-video --scores out/a out/b",
    basics=("dataset", "scores", "metrics", "metric", "output"),
    keeps_output=True,
)

if __name__ == "__main__":
    sys.exit(main())
