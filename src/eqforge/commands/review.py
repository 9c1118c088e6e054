"""`eqforge review`: tasks for people who look at a dataset, and what follows from their votes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import tyro

from eqforge.core.console import DocumentOptions, give
from eqforge.core.errors import InputError
from eqforge.core.shell import shell
from eqforge.core.visible import counted, in_lines, visible
from eqforge.evaluation.review.protocols import PROTOCOLS
from eqforge.evaluation.review.rules import RULES, Rule
from eqforge.evaluation.review.tools import TOOLS, Tool

if TYPE_CHECKING:
    from eqforge.evaluation.review.outcome import ReviewOutcome, Taken
    from eqforge.evaluation.review.plan import ReviewPlan
    from eqforge.evaluation.review.protocols import Protocol
    from eqforge.evaluation.review.ranking import Correlation
    from eqforge.evaluation.statistics.shares import Interval

_PROTOCOL: Final = (
    f"What is asked: {', '.join(PROTOCOLS)}, or a TOML file of your own with name, question, "
    "guide, reasons, seconds, source, form and fields."
)
_TOOL: Final = "What reviewers answer in.\n\n" + "\n\n".join(
    f"{name}: {text}" for name, text in TOOLS.items()
)
_USUAL_OVERLAP: Final = 2
_WRITTEN: Final = {
    "decide": "decisions",
    "rank": "samples",
    "order": "queries",
    "write": "rows",
    "box": "boxes",
}
"""What an import writes, by the form of the answers."""

_RULE: Final = "What follows from several votes.\n\n" + "\n\n".join(
    f"{name}: {text}" for name, text in RULES.items()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Write the tasks of reviewers, which they answer with keys: as pages, or for Label Studio.

    Who sees what follows from hashes: the same options give the same tasks. Each reviewer has an
    order of their own, and sees some items twice, unannounced. Ids, scores and lineage are hidden.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    protocol: Annotated[str, tyro.conf.arg(help=_PROTOCOL)]

    reviewers: tuple[str, ...]
    """Names of the reviewers, with commas or spaces between."""

    output: Path
    """Folder of the tasks; give it whole to each reviewer, or to who runs Label Studio."""

    tool: Annotated[Tool, tyro.conf.arg(help=_TOOL)] = "pages"

    overlap: int | None = None
    """How many reviewers see each item; without it two, or one where one is named or texts or boxes
    are asked for, and all who are named with --disagreed or where pictures are put in order."""

    sample: int | None = None
    """Review so many items, those with the least hashes; all without it."""

    each: str | None = None
    """A column of the samples, such as group or kind: --sample is how many of each of its
    values."""

    of: Path | None = None
    """JSON lines that the tasks are about, where the dataset does not have it: of picture-ranking
    the queries, with id, text and images, names or ids; of vlue-expressions the boxes that review
    import made of vlue-boxes."""

    answer_list: Path | None = None
    """For vlue-questions: the answers that there may be: JSON, or a line each."""

    disagreed: Path | None = None
    """A file of decisions: review again what not all voted alike on, are unsure about, or were
    asked about and left without a vote, and nothing else."""

    disputed: Literal["judges", "rules"] | None = None
    """Of a dataset that was built with --verify: review what its judges disagree on among each
    other, or where one of them denies what the rules claim, and nothing else."""

    unlikely: float | None = None
    """Of a dataset with probabilities: review what is right with less than this probability, or
    with one that is not known, as of a combined dataset's parts without, and nothing else."""

    overwrite: bool = False
    """Replace the tasks of another review in the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """Take the votes of reviewers: check them, tell how far they agree, and write what follows.

    Decisions are for --decisions of a build, rows of VLUE's protocols for build vlue; ranks of
    captions are measured by metrics --human.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset that was reviewed."""

    votes: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """The files that reviewers saved, or that Label Studio exported as JSON, one each."""

    output: Path
    """File to write, JSON lines: decisions, or rows, ranks or pictures in their order."""

    rule: Annotated[Rule, tyro.conf.arg(help=_RULE)] = "majority"

    earlier: Path | None = None
    """File of decisions of an earlier round: what it decides stays unless these votes decide
    otherwise."""

    of: Path | None = None
    """The file that was given to review plan as --of."""

    scores: tuple[Path, ...] = ()
    """For picture-ranking: what models say, to be held against people: folders of eqforge score of
    all images with all captions, or CSV files with query, image_id and score."""

    answer_list: Path | None = None
    """For vlue-questions: as for review plan."""

    answers: Path | None = None
    """File to write every answer to, JSON lines: item, reviewer, answer, reason, note, seconds,
    is_repeat, and what was given."""

    overwrite: bool = False
    """Replace existing files of decisions and answers."""


def review_command(arguments: Plan | Import) -> int:
    """Writes tasks or takes votes; returns the exit status."""
    return _plan(arguments) if isinstance(arguments, Plan) else _import(arguments)


def _plan(arguments: Plan) -> int:
    from eqforge.evaluation.review.dealt import told_minutes

    written = plan_review(arguments)
    lines = [
        f"  {name}: {counted(tasks, 'tasks')}, {told_minutes(written.minutes[name])}"
        if tasks
        else f"  {name}: no tasks"
        for name, tasks in written.tasks.items()
    ]
    if written.unjudged:
        lines.append(
            f"  left out: {counted(written.unjudged, 'samples')} that no judge was asked about"
        )
    print(in_lines([f"{written.page}: {counted(written.items, 'items')} to review", *lines]))
    give(written)
    return 0


def plan_review(arguments: Plan) -> "ReviewPlan":
    """Writes the tasks of reviewers.

    Raises:
      InputError: see `write_plan`; or nothing was disagreed on.
    """
    from eqforge.evaluation.review.doubtful import doubtful
    from eqforge.evaluation.review.plan import ReviewSettings, write_plan
    from eqforge.evaluation.review.protocols import protocol_of
    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.sources.decisions import disagreed, read_decisions
    from eqforge.sources.vlue import read_answer_list

    protocol = protocol_of(arguments.protocol)
    dataset = open_dataset(arguments.dataset)
    only: tuple[str, ...] = ()
    unjudged = 0
    if arguments.disagreed is not None:
        only = disagreed(read_decisions(arguments.disagreed))
        if not only:
            raise InputError(
                f"--disagreed {arguments.disagreed}: nothing in it is unsure, all who were "
                "asked have voted, and alike"
            )
    if arguments.disputed is not None or arguments.unlikely is not None:
        if only:
            raise InputError("--disagreed: leave out --disputed and --unlikely, or it")
        found = doubtful(dataset, arguments.disputed, arguments.unlikely)
        only, unjudged = found.ids, found.unjudged
    reviewers = tuple(filter(None, ",".join(arguments.reviewers).split(",")))
    listed = arguments.answer_list
    if listed is not None and not any(field.listed for field in protocol.fields):
        raise InputError(f"--answer-list {listed}: has no effect on {protocol.name}")
    settings = ReviewSettings(
        output=str(arguments.output),
        protocol=protocol,
        reviewers=reviewers,
        overlap=_overlap(arguments, protocol, len(reviewers)),
        sample=arguments.sample,
        each=arguments.each,
        only=only,
        of=arguments.of,
        answers=() if listed is None else tuple(sorted(read_answer_list(listed))),
        tool=arguments.tool,
        overwrite=arguments.overwrite,
    )
    return replace(write_plan(dataset, settings), unjudged=unjudged)


def _overlap(arguments: Plan, protocol: "Protocol", reviewers: int) -> int:
    """Returns how many of some reviewers see each item.

    Decisions do not say who voted: what was disagreed on goes to all, so that nobody is left out.
    """
    if arguments.overlap is not None:
        return arguments.overlap
    if arguments.disagreed is not None or protocol.form == "order":
        return reviewers
    return min(_USUAL_OVERLAP if protocol.repeats else 1, reviewers)


def _import(arguments: Import) -> int:
    taken = import_votes(arguments)
    print(in_lines(outcome_lines(taken.outcome)))
    earlier = f", {taken.outcome.earlier:,} of them earlier" if arguments.earlier else ""
    what = counted(taken.outcome.written, _WRITTEN[taken.outcome.form])
    print(visible(f"{arguments.output}: {what}{earlier}"))
    give(taken.outcome)
    return 0


def import_votes(arguments: Import) -> "Taken":
    """Takes the votes of reviewers, and writes what follows, and answers.

    Raises:
      InputError: see `take_votes`; or a file that would be written is there.
    """
    from eqforge.core.files import storage
    from eqforge.evaluation.review.outcome import TakeSettings, take_votes
    from eqforge.evaluation.review.votes import answer_lines, row_lines
    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.sources.decisions import write_decisions
    from eqforge.sources.vlue import read_answer_list

    for option, path in (("output", arguments.output), ("answers", arguments.answers)):
        if path is not None and path.exists() and not arguments.overwrite:
            raise InputError(f"--{option} {path}: exists; add --overwrite to replace it")
    dataset = open_dataset(arguments.dataset)
    listed = arguments.answer_list
    settings = TakeSettings(
        rule=arguments.rule,
        earlier=arguments.earlier,
        of=arguments.of,
        scores=arguments.scores,
        answers=None if listed is None else read_answer_list(listed),
    )
    taken = take_votes(dataset, arguments.votes, settings)
    if taken.outcome.form == "decide":
        write_decisions(str(arguments.output), taken.decisions)
    else:
        storage.write_bytes(str(arguments.output), "".join(row_lines(taken.rows)).encode())
    if arguments.answers is not None:
        storage.write_bytes(str(arguments.answers), "".join(answer_lines(taken.votes)).encode())
    return taken


def outcome_lines(found: "ReviewOutcome") -> Iterator[str]:
    """Yields what is told of votes, a few lines."""
    for each in found.reviewers:
        others = repeats = alpha = ""
        if each.others is not None:
            others = f", {100 * each.others:.0f} % as others {_percent(each.others_interval)}"
        if each.repeats:
            alike = f"{each.same:,} of {each.repeats:,} repeats alike"
            repeats = f", {alike} {_percent(each.same_interval)}"
        if each.alpha is not None:
            alpha = f", alpha with others {each.alpha:.3f} {_range(each.alpha_interval)}"
        answers = ", ".join(f"{name} {count:,}" for name, count in each.answers.items())
        answered = f"{each.answered:,} of {each.tasks:,} answered"
        yield f"{each.name}: {answered}: {answers}{others}{repeats}{alpha}"
    agreed = found.agreement
    if found.form in ("write", "box"):
        pass  # texts and boxes of several people are all taken
    elif agreed.alpha is None:
        yield "Krippendorff's alpha is not defined: no item has two votes, or all are the same"
    else:
        yield (
            f"Krippendorff's alpha {agreed.alpha:.3f} {_range(agreed.interval)} over "
            f"{counted(agreed.several, 'items')} with two votes or more; "
            f"{agreed.unanimous:,} unanimous"
        )
    if found.decisions:
        decided = ", ".join(f"{name} {count:,}" for name, count in found.decisions.items())
        yield f"by {found.rule}: {decided}"
    for somebody in found.people:
        yield f"{somebody.name} against the others: {_correlated(somebody)}"
    for model in found.models:
        yield f"{model.name} against people: {_correlated(model)}"
    for rule, count in found.broken.items():
        yield f"{counted(count, 'texts')} left out: {rule}"


def _correlated(found: "Correlation") -> str:
    named = (
        ("Spearman's rho", found.spearman, found.spearman_interval),
        ("Kendall's tau", found.kendall, found.kendall_interval),
    )
    return ", ".join(f"{name} {value:.3f} {_range(ends)}" for name, value, ends in named)


def _range(ends: "Interval") -> str:
    return "[no interval]" if math.isnan(ends[0]) else f"[{ends[0]:.3f}, {ends[1]:.3f}]"


def _percent(interval: "Interval") -> str:
    return f"[{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


main = shell("eqforge review", Plan | Import, review_command, console=DocumentOptions)
"""Writes the tasks that a command line names, or takes votes."""
