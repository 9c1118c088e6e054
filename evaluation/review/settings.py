"""The settings of `eqforge review plan` and `eqforge review import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import tyro

from eqforge.evaluation.review.protocols import protocols

Tool = Literal["pages", "label-studio"]
Rule = Literal["majority", "unanimous", "weighted"]

RULES: Final[dict[Rule, str]] = {
    "majority": "keep or drop by the larger number of votes; a tie, or no votes, is unsure",
    "unanimous": "all votes must be equal; anything else is unsure",
    "weighted": "as majority, but votes count more from reviewers who answer repeats the same way",
}
"""How several votes become one decision."""

_PROTOCOL: Final = (
    "Name of a review protocol, or a TOML file with your own. "
    f"Names: {', '.join(protocols())}. Your own file has name, question, "
    "guide, reasons, seconds, source, form and fields."
)
_RULE: Final = "How several votes become one decision.\n\n" + "\n\n".join(
    f"{name}: {text}" for name, text in RULES.items()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Write review tasks as web pages, or for Label Studio."""

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    protocol: Annotated[str, tyro.conf.arg(help=_PROTOCOL)]

    reviewers: tuple[str, ...]
    """Names of the reviewers, separated by commas or spaces."""

    output: Path
    """Folder for the tasks. Give it to each reviewer, or import it into Label Studio."""

    tool: Tool = "pages"
    """Write web pages to open from disk, or tasks for Label Studio."""

    overlap: int | None = None
    """Number of reviewers per item. The default is 2; 1 with one reviewer, or for texts and boxes;
    all with --disagreed, or to rank images."""

    sample: int | None = None
    """Number of items to review, chosen by hash (default: all)."""

    each: str | None = None
    """Column such as group or kind; --sample then counts the items per value of it."""

    of: Path | None = None
    """JSON lines of items that the dataset does not contain. For picture-ranking: queries with id,
    text and images. For vlue-expressions: the boxes that `review import` wrote."""

    answer_list: Path | None = None
    """For vlue-questions: file of the possible answers, as JSON or one per line."""

    disagreed: Path | None = None
    """File of decisions; review only items with different, unsure or missing votes."""

    disputed: Literal["judges", "rules"] | None = None
    """Review only items on which judges of --verify disagree with each other or the rules."""

    unlikely: float | None = None
    """Review only items that are right with a lower probability than this, or an unknown one."""

    overwrite: bool = False
    """Replace the tasks of another review in the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """Read votes, measure how far reviewers agree, and write decisions, rows or ranks.

    Pass decisions to a build as --decisions, rows of VLUE's protocols to `build vlue`, and ranks of
    captions to `metrics --human`.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset that was reviewed."""

    votes: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Files that reviewers saved, or JSON exports of Label Studio, one per reviewer."""

    output: Path
    """JSON lines to write: decisions, rows, ranks, or images in order."""

    rule: Annotated[Rule, tyro.conf.arg(help=_RULE)] = "majority"

    earlier: Path | None = None
    """Decisions of an earlier round, which stay unless these votes say otherwise."""

    of: Path | None = None
    """File that you passed to `review plan` as --of."""

    scores: tuple[Path, ...] = ()
    """For picture-ranking: model scores, from `eqforge score` or CSV (query, image_id, score)."""

    answer_list: Path | None = None
    """For vlue-questions: the file that you passed to `review plan`."""

    answers: Path | None = None
    """File to write every single answer to, as JSON lines."""

    overwrite: bool = False
    """Replace existing files of decisions and answers."""
