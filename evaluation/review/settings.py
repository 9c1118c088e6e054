"""What `eqforge review plan` and `eqforge review import` are told."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import tyro

from eqforge.evaluation.review.protocols import protocols

Tool = Literal["pages", "label-studio"]
Rule = Literal["majority", "unanimous", "weighted"]

RULES: Final[dict[Rule, str]] = {
    "majority": "what more votes say, keep or drop; as many of each, or none, are unsure",
    "unanimous": "what all votes say; anything else is unsure",
    "weighted": "as majority, each vote by how often its reviewer answered the repeats alike",
}
"""What follows from several votes."""

_PROTOCOL: Final = (
    f"What is asked: {', '.join(protocols())}, or a TOML file of your own with name, question, "
    "guide, reasons, seconds, source, form and fields."
)
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

    tool: Tool = "pages"
    """pages: reviewers answer on pages that they open from disk. label-studio: on a server of Label
    Studio, for which tasks and a labelling config are written."""

    overlap: int | None = None
    """How many reviewers see each item; without it two, or one where one is named or texts or boxes
    are asked for, and all who are named with --disagreed or where pictures are put in order."""

    sample: int | None = None
    """Number of items to review, chosen by hash (default: all)."""

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
