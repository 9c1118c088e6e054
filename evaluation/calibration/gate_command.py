"""`eqforge review calibrate`: fits the limits of gates to pairs that people looked at."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import tyro

from eqforge.core.errors import InputError
from eqforge.core.visible import counted
from eqforge.evaluation.review.rules import RULES, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eqforge.schemas.dataset.reader import Dataset
    from eqforge.schemas.records.reviews import Decision
    from eqforge.sources.gate_limits import FittedLimit, GateLimits, Held

_RULE: Final = "What follows from several votes.\n\n" + "\n\n".join(
    f"{name}: {text}" for name, text in RULES.items()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibrate:
    """Fit limits of gates to pairs that people kept or dropped, for --calibration of a build.

    A limit is the loosest value at which the wanted share of the labelled pairs that it keeps is
    right. What it keeps of pairs that it was not fitted to is told with an interval.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset of pairs that was reviewed, built with open gates: no limit can
    be fitted beyond those of the build."""

    output: Path
    """The file to write."""

    votes: tuple[Path, ...] = ()
    """The files that reviewers saved, or that Label Studio exported as JSON, one each."""

    decisions: Path | None = None
    """A file of decisions that review import wrote, in place of votes."""

    rule: Annotated[Rule, tyro.conf.arg(help=_RULE)] = "majority"

    precision: float = 0.95
    """The share of the kept pairs that is to be right."""

    limits: tuple[str, ...] = ()
    """The limits to fit and to write, such as min-background-ssim. Without it all that the pairs
    have a measure of are fitted, and the one is written that keeps the most right pairs."""

    folds: int = 5
    """How many the sources are dealt into for the checks."""

    resamples: int = 1000
    """How often the bootstrap of the intervals draws."""

    seed: int = 0
    """Seed of the bootstrap."""

    overwrite: bool = False
    """Replace an existing file."""


def calibrate_gates(arguments: Calibrate) -> "GateLimits":
    """Fits limits of gates and writes them.

    Raises:
      InputError: a setting is wrong, the votes cannot be taken, the pairs do not do, no limit
        reaches the precision, or the file is there.
    """
    from eqforge.core.files import storage
    from eqforge.evaluation.calibration.gate_rows import labelled_pairs
    from eqforge.evaluation.calibration.gates import GateFitSettings, fit_limits, loosest
    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.sources.gate_limits import GateLimits, gate_limits_json

    _check(arguments)
    dataset = open_dataset(arguments.dataset)
    decisions = _decisions(dataset, arguments)
    pairs = labelled_pairs(dataset, decisions)
    settings = GateFitSettings(
        precision=arguments.precision,
        folds=arguments.folds,
        resamples=arguments.resamples,
        seed=arguments.seed,
    )
    names = [name.replace("-", "_") for name in arguments.limits]
    fits = fit_limits(pairs, names, settings)
    best = loosest(fits)
    chosen = fits if names else ([] if best is None else [best])
    taken = {each.limit: each.value for each in chosen if each.value is not None}
    if not taken:
        raise InputError(
            f"--precision {arguments.precision}: no limit reaches it; of the labelled pairs "
            f"{sum(pair.is_right for pair in pairs)} of {len(pairs)} are right. Ask for less, or "
            "measure more (--oracle, --perceptual)"
        )
    found = GateLimits(
        dataset=dataset.manifest.dataset,
        sha256=dataset.sha256,
        precision=arguments.precision,
        pairs=len(pairs),
        right=sum(pair.is_right for pair in pairs),
        unsure=sum(each.decision == "unsure" for each in decisions),
        limits=taken,
        fits=fits,
    )
    storage.write_bytes(str(arguments.output), gate_limits_json(found))
    return found


def _check(arguments: Calibrate) -> None:
    if bool(arguments.votes) == (arguments.decisions is not None):
        raise InputError("name what people decided: --votes FILE..., or --decisions FILE")
    if arguments.decisions is not None and arguments.rule != "majority":
        raise InputError("--rule: decisions are made already; it is for --votes")
    if not 0 < arguments.precision <= 1:
        raise InputError(f"--precision {arguments.precision}: expected above 0, up to 1")
    if arguments.folds < 2 or arguments.resamples < 1 or arguments.seed < 0:
        raise InputError("expected --folds of at least 2, --resamples of 1 and --seed of 0")
    if arguments.output.exists() and not arguments.overwrite:
        raise InputError(f"--output {arguments.output}: exists; add --overwrite to replace it")


def _decisions(dataset: "Dataset", arguments: Calibrate) -> "Sequence[Decision]":
    if arguments.decisions is not None:
        from eqforge.sources.decisions import read_decisions, told_decisions

        found = read_decisions(arguments.decisions)
        there = {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])}
        if lost := [each.id for each in found if each.id not in there]:
            raise InputError(f"--decisions {arguments.decisions}: {told_decisions(lost)}")
        return found
    from eqforge.evaluation.review.outcome import TakeSettings, take_votes

    taken = take_votes(dataset, arguments.votes, TakeSettings(rule=arguments.rule))
    if taken.outcome.form != "decide":
        raise InputError(
            f"--votes: limits are fitted to decisions, and {taken.outcome.protocol} asks for "
            "something else"
        )
    return taken.decisions


def limit_lines(found: "GateLimits") -> Iterator[str]:
    """Yields what is told of fitted limits."""
    unsure = f"; {found.unsure:,} unsure, left out" if found.unsure else ""
    yield f"{counted(found.pairs, 'pairs')}, {found.right:,} of them right{unsure}"
    for each in found.fits:
        flag, used = f"--{each.limit.replace('_', '-')}", each.limit in found.limits
        if each.value is None:
            yield f"  {flag}: no value reaches {found.precision:g}"
            continue
        yield f"{'*' if used else ' '} {flag} {each.value:g} {_range(each)}: {_told(each.held_out)}"
    yield "* written; numbers are of pairs that a limit was not fitted to"


def _range(fit: "FittedLimit") -> str:
    if fit.interval is None:
        return f"[no interval: reached in {100 * fit.reached:.0f} % of the resamples]"
    return f"[{fit.interval[0]:g}, {fit.interval[1]:g}]"


def _told(held: "Held") -> str:
    if held.precision is None:
        return "keeps none"
    ends = "" if held.interval is None else f" [{held.interval[0]:.3f}, {held.interval[1]:.3f}]"
    return f"{held.right:,} of {held.kept:,} kept are right, {held.precision:.3f}{ends}"
