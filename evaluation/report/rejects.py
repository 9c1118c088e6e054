"""What the pages show of what was refused, with its pictures where the build has kept them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from eqforge.evaluation.report.items import Item, Pane, Why, plain
from eqforge.evaluation.report.pictures import Stored
from eqforge.schemas.dataset.profile import Profile

Row = Mapping[str, Any]
ORDER: Final = ("stage", "reason", "candidate_id")


class Kept(Protocol):
    """The pictures of rejects that a build has kept."""

    def panes(self, row: Row) -> Sequence[Pane]:
        """Returns the pictures of a reject; none where they are not kept."""

    def stored(self, rows: Iterable[Row]) -> Iterator[tuple[str, Stored]]:
        """Yields the pictures of rejects by their ids, without their bytes, each once."""

    def pictures(self, rows: Iterable[Row]) -> Iterator[tuple[str, bytes]]:
        """Yields the ids and bytes of the pictures of rejects, each once."""


def of_reject(row: Row, profile: Profile, kept: Kept | None) -> Item:
    """Returns a reject with the value and its limit."""
    stage, reason = row["stage"], row["reason"]
    named = ("source_id", row["source_id"]), ("source_path", row["source_path"])
    why = Why(
        stage=stage,
        reason=reason,
        meaning=profile.meaning(stage, reason),
        detail=row["detail"],
        value=row["value"],
        threshold=row["threshold"],
    )
    return Item(
        id=row["candidate_id"],
        facts=tuple((name, str(value)) for name, value in named if value),
        panes=tuple(kept.panes(row)) if kept is not None else (),
        texts=() if row["value"] is not None or not row["detail"] else (plain(row["detail"]),),
        why=why,
        comparable=False,
        rows=(("rejects", dict(row)),),
    )
