"""`eqforge review`: tasks for people who look at a dataset, and what follows from their votes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from eqforge.evaluation.review.rules import Rule
from eqforge.schemas.console import DocumentOptions, give
from eqforge.schemas.errors import InputError
from eqforge.schemas.shell import shell
from eqforge.schemas.visible import counted, in_lines, visible

if TYPE_CHECKING:
    from eqforge.evaluation.review.outcome import ReviewOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Write the tasks of reviewers as pages, which they open from disk and answer with keys.

    Who sees what follows from hashes: the same options give the same tasks. Each reviewer has an
    order of their own, and sees some items twice, unannounced. Ids, scores and lineage are hidden.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    protocol: str
    """What is asked: eq-gebc-screening, eq-sd-filter, true-and-false, or a TOML file of your own
    with name, question, guide, reasons and seconds."""

    reviewers: tuple[str, ...]
    """Names of the reviewers, with commas or spaces between."""

    output: Path
    """Folder of the tasks; give it whole to each reviewer."""

    overlap: int = 2
    """How many reviewers see each item."""

    sample: int | None = None
    """Review so many samples, those with the least hashes; all without it."""

    disagreed: Path | None = None
    """A file of decisions: review again what is unsure in it, and nothing else."""

    overwrite: bool = False
    """Replace the tasks of another review in the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """Take the votes of reviewers: check them, tell how far they agree, and write decisions.

    The file of decisions is for --decisions of a build.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset that was reviewed."""

    votes: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """The files that reviewers saved, one each."""

    output: Path
    """File of decisions to write, JSON lines."""

    rule: Rule = "majority"
    """What follows from several votes: majority (as many keep as drop: unsure), unanimous (anything
    else: unsure), or weighted: each vote by how often its reviewer answered the repeats alike."""

    overwrite: bool = False
    """Replace an existing file of decisions."""


def review_command(arguments: Plan | Import) -> int:
    """Writes tasks, or takes votes; returns the exit status."""
    if isinstance(arguments, Plan):
        return _plan(arguments)
    return _import(arguments)


def _plan(arguments: Plan) -> int:
    from eqforge.evaluation.review.plan import ReviewSettings, write_plan
    from eqforge.evaluation.review.protocols import protocol_of
    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.schemas.sources.decisions import read_decisions

    protocol = protocol_of(arguments.protocol)
    only: tuple[str, ...] = ()
    if arguments.disagreed is not None:
        decided = read_decisions(arguments.disagreed)
        only = tuple(each.id for each in decided if each.decision == "unsure")
        if not only:
            raise InputError(f"--disagreed {arguments.disagreed}: nothing in it is unsure")
    settings = ReviewSettings(
        output=str(arguments.output),
        protocol=protocol,
        reviewers=tuple(filter(None, ",".join(arguments.reviewers).split(","))),
        overlap=arguments.overlap,
        sample=arguments.sample,
        only=only,
        overwrite=arguments.overwrite,
    )
    written = write_plan(open_dataset(arguments.dataset), settings)
    lines = [
        f"  {name}: {counted(tasks, 'tasks')}, about {max(1, round(written.minutes[name])):,} min"
        for name, tasks in written.tasks.items()
    ]
    print(in_lines([f"{written.page}: {counted(written.items, 'items')} to review", *lines]))
    give(written)
    return 0


def _import(arguments: Import) -> int:
    from eqforge.evaluation.review.outcome import take_votes
    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.schemas.sources.decisions import write_decisions

    if arguments.output.exists() and not arguments.overwrite:
        raise InputError(f"--output {arguments.output}: exists; add --overwrite to replace it")
    found, decisions = take_votes(open_dataset(arguments.dataset), arguments.votes, arguments.rule)
    write_decisions(str(arguments.output), decisions)
    print(in_lines(outcome_lines(found)))
    print(visible(f"{arguments.output}: {counted(len(decisions), 'decisions')}"))
    give(found)
    return 0


def outcome_lines(found: "ReviewOutcome") -> Iterator[str]:
    """Yields what is told of votes, a few lines."""
    for each in found.reviewers:
        others = "" if each.others is None else f", {100 * each.others:.0f} % as others"
        repeats = f", {each.same} of {each.repeats} repeats alike" if each.repeats else ""
        answers = ", ".join(f"{name} {count:,}" for name, count in each.answers.items())
        answered = f"{each.answered:,} of {each.tasks:,} answered"
        yield f"{each.name}: {answered}: {answers}{others}{repeats}"
    agreed = found.agreement
    if agreed.alpha is None:
        yield "Krippendorff's alpha is not defined: no item has two votes, or all are the same"
    else:
        low, high = agreed.interval
        yield (
            f"Krippendorff's alpha {agreed.alpha:.3f} [{low:.3f}, {high:.3f}] over "
            f"{agreed.several:,} items with two votes or more; {agreed.unanimous:,} unanimous"
        )
    decided = ", ".join(f"{name} {count:,}" for name, count in found.decisions.items())
    yield f"by {found.rule}: {decided}"


main = shell("eqforge review", Plan | Import, review_command, console=DocumentOptions)
"""Writes the tasks that a command line names, or takes votes."""
