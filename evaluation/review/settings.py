"""The settings of `eqforge review plan` and `eqforge review import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import tyro

from eqforge.evaluation.review.protocols import protocols

Rule = Literal["majority", "unanimous", "weighted"]

RULES: Final[dict[Rule, str]] = {
    "majority": "the more frequent vote (keep or drop) wins. In a tie, or without votes, "
    "the decision is unsure",
    "unanimous": "all reviewers must vote the same way. Otherwise, the decision is unsure",
    "weighted": "like `majority`, but gives more weight to reviewers who answer repeated items "
    "consistently",
}
"""How several votes become one decision."""

_PROTOCOL: Final = (
    "Name of a review protocol, or a TOML file that contains your own protocol. "
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
    """Format of the tasks: web pages or Label Studio tasks."""

    overlap: int | None = None
    """Number of reviewers per item (default: 2, or 1 for texts, boxes or a single reviewer). With
    --disagreed and for image ranking, the default is all reviewers."""

    sample: int | None = None
    """Number of items to review, chosen by hash (default: all)."""

    each: str | None = None
    """Column by which to sample, such as group or kind. --sample then sets the number of items for
    each value of this column."""

    of: Path | None = None
    """JSON Lines file of items that are not in the dataset. For picture-ranking, each item is a
    query with the fields id, text and images. For vlue-expressions, pass the file of boxes that
    `review import` wrote."""

    answer_list: Path | None = None
    """File of allowed answers, as JSON or one per line. Applies only to vlue-questions."""

    disagreed: Path | None = None
    """Review only the items with conflicting, unsure or missing votes in this decision file from an
    earlier round."""

    disputed: Literal["judges", "rules"] | None = None
    """Review only items on which the --verify judges disagree with each other or with the rules."""

    unlikely: float | None = None
    """Review only items whose probability of being correct is below this limit or unknown."""

    overwrite: bool = False
    """Replace the tasks in the folder, even if they belong to a different review."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """Read votes, measure agreement between reviewers, and write decisions, rows or ranks.

    Pass decisions to a build with --decisions. Pass the rows of VLUE's protocols to `build vlue`,
    and the ranks of captions to `metrics --human`.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the reviewed dataset."""

    votes: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """One file per reviewer: the file that the reviewer saved, or a JSON export from Label
    Studio."""

    output: Path
    """JSON Lines file to write. It contains decisions, rows, ranks or ordered images."""

    rule: Annotated[Rule, tyro.conf.arg(help=_RULE)] = "majority"

    earlier: Path | None = None
    """Decisions from an earlier round. A new decision replaces an earlier one, unless the new
    decision is `unsure`."""

    of: Path | None = None
    """File passed to `review plan` as --of."""

    scores: tuple[Path, ...] = ()
    """`eqforge score` folder, or CSV table with the columns query, image_id and score. Applies only
    to picture-ranking."""

    answer_list: Path | None = None
    """File passed to `review plan` as --answer-list. Applies only to vlue-questions."""

    answers: Path | None = None
    """JSON Lines file to which to write every individual answer."""

    overwrite: bool = False
    """Replace existing decision and answer files."""
