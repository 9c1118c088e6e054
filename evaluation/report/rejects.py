"""What the pages show of what was refused, with its pictures where the build has kept them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from eqforge.evaluation.report.items import Item, Pane, Why, plain
from eqforge.evaluation.report.pictures import Stored
from eqforge.schemas.dataset.profile import Profile
from eqforge.schemas.dataset.reader import Dataset

Row = Mapping[str, Any]
ORDER: Final = ("stage", "reason", "candidate_id")


def _frames_of(row: Row) -> tuple[str, ...]:
    """Return the ids of the frames or images of which one may be why a pair was refused."""
    if row["reason"] == "frame_rejected":
        return (row["detail"],)
    name = row["candidate_id"]
    return (f"{name}/0", f"{name}/1") if row["reason"] == "image_rejected" else ()


class Kept(Protocol):
    """The pictures of rejects that a build has kept."""

    def panes(self, row: Row) -> Sequence[Pane]:
        """Return the pictures of a reject; none where they are not kept."""

    def stored(self, rows: Iterable[Row]) -> Iterator[tuple[str, Stored]]:
        """Yield the pictures of rejects by their ids, without their bytes, each once."""

    def pictures(self, rows: Iterable[Row]) -> Iterator[tuple[str, bytes]]:
        """Yield the ids and bytes of the pictures of rejects, each once."""


class Whys:
    """Explain why candidates were rejected; for a pair, also why its frame or image was."""

    def __init__(self, dataset: Dataset, rejects: Iterable[Row]) -> None:
        named = {name for row in rejects for name in _frames_of(row)}
        found = dataset.rows("rejects") if named else ()
        self._others = {row["candidate_id"]: row for row in found if row["candidate_id"] in named}

    def words_of(self, row: Row) -> str:
        return f"{row['candidate_id']}  {self.why_of(row)}"

    def why_of(self, row: Row) -> str:
        cause = self.cause_of(row)
        return f"{_why(row)}: {cause}" if cause else _why(row)

    def cause_of(self, row: Row) -> str:
        """Return why the frame was refused for which a pair was; empty for all others."""
        others = (self._others.get(name) for name in _frames_of(row))
        return "; ".join(_why(other) for other in others if other is not None)


def _why(row: Row) -> str:
    said = str(row["reason"])
    if row["value"] is not None:
        said += f"  {row['detail']} {row['value']:g}"
        return said if row["threshold"] is None else f"{said}, the limit is {row['threshold']:g}"
    return f"{said}  {row['detail']}" if row["detail"] else said


def of_reject(row: Row, profile: Profile, kept: Kept, whys: Whys) -> Item:
    """Return a reject with the value and its limit; of a frame, why the frame was refused."""
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
    panes = tuple(kept.panes(row))
    said = plain(row["detail"]), plain(whys.cause_of(row), "why it was refused")
    return Item(
        id=row["candidate_id"],
        facts=tuple((name, str(value)) for name, value in named if value),
        panes=panes,
        texts=tuple(text for text in said if text.plain) if row["value"] is None else (),
        why=why,
        comparable=len(panes) == 2,
        rows=(("rejects", dict(row)),),
    )
