"""The settings of `eqforge review plan` and `eqforge review import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import tyro

from eqforge.evaluation.review.protocols import protocols

Rule = Literal["majority", "unanimous", "weighted"]

RULES: Final[dict[Rule, str]] = {
    "majority": "the more frequent vote (keep or drop) wins. Without votes, or with a tie, the "
    "decision is unsure",
    "unanimous": "the votes of all reviewers must agree. Otherwise, the decision is unsure",
    "weighted": "like majority, but reviewers who answer repeated items consistently count more",
}
"""How several votes become one decision."""

_PROTOCOL: Final = (
    "Name of a review protocol, or a TOML file with your own protocol. "
    f"The names are {', '.join(protocols())}. The TOML file contains the keys name, question, "
    "guide, reasons, seconds, source, form and fields."
)
_RULE: Final = "Rule that combines several votes into one decision.\n\n" + "\n\n".join(
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
    """Folder for the tasks. Send it to each reviewer, or import it into Label Studio."""

    tool: Literal["pages", "label-studio"] = "pages"
    """Format of the tasks: local web pages or Label Studio tasks."""

    overlap: int | None = None
    """Number of reviewers per item (default: 2; 1 for texts, boxes or a single reviewer). With
    --disagreed and for image ranking, the default is all reviewers."""

    sample: int | None = None
    """Number of items to review, chosen by hash (default: all)."""

    each: str | None = None
    """Column by which to sample, such as group or kind. --sample is then the number of items for
    each value of this column."""

    of: Path | None = None
    """JSON Lines file of items that are not in the dataset. For picture-ranking, each item is a
    query with the fields id, text and images. For vlue-expressions, pass the file of boxes that
    `review import` wrote."""

    answer_list: Path | None = None
    """For vlue-questions: file of the allowed answers, as JSON or one per line."""

    disagreed: Path | None = None
    """File of decisions from an earlier round. Review only its items with conflicting, unsure or
    missing votes."""

    disputed: Literal["judges", "rules"] | None = None
    """Review only items on which the --verify judges disagree with each other or with the rules."""

    unlikely: float | None = None
    """Review only items whose probability of being right is below this limit or unknown."""

    overwrite: bool = False
    """Replace the tasks in the folder, even if they belong to a different review."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """Read votes, measure agreement between reviewers, and write decisions, rows or ranks.

    Pass decisions to a build as --decisions, rows of VLUE's protocols to `build vlue`, and ranks of
    captions to `metrics --human`.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the reviewed dataset."""

    votes: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Files that reviewers saved, or JSON exports from Label Studio, one per reviewer."""

    output: Path
    """JSON Lines file to write, with decisions, rows, ranks or ordered images."""

    rule: Annotated[Rule, tyro.conf.arg(help=_RULE)] = "majority"

    earlier: Path | None = None
    """Decisions from an earlier round. A new decision replaces an earlier one, unless the new
    decision is `unsure`."""

    of: Path | None = None
    """The file that you passed to `review plan` as --of."""

    scores: tuple[Path, ...] = ()
    """For picture-ranking: `eqforge score` folder, or CSV with columns query, image_id and
    score."""

    answer_list: Path | None = None
    """For vlue-questions: the file that you passed to `review plan` as --answer-list."""

    answers: Path | None = None
    """JSON Lines file to write every individual answer to."""

    overwrite: bool = False
    """Replace existing decision and answer files."""
