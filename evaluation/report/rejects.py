"""What the pages show of what was refused, with its pictures where the build has kept them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from eqforge.evaluation.report.items import Item, Pane, Why, plain
from eqforge.evaluation.report.pictures import Pictures, Stored, write_encoded
from eqforge.schemas.dataset.profile import Profile
from eqforge.schemas.io.pictures import opened

Row = Mapping[str, Any]
ORDER: Final = ("stage", "reason", "candidate_id")


class Kept(Protocol):
    """The pictures of rejects that a build has kept."""

    def panes(self, row: Row) -> Sequence[Pane]:
        """Returns the pictures of a reject; none where they are not kept."""

    def pictures(self, rows: Iterable[Row]) -> Iterator[tuple[str, str, bytes]]:
        """Yields the ids, suffixes and bytes of the pictures of rejects, each once."""


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


def write_kept(kept: Kept, rows: Iterable[Row], pictures: Pictures, output: str) -> None:
    """Writes the pictures of rejects beside those of the samples."""

    def encoded() -> Iterator[tuple[str, bytes]]:
        for image_id, suffix, data in kept.pictures(rows):
            size = _size(data)
            pictures.stored.setdefault(
                image_id,
                Stored(suffix=suffix, width_px=size[0], height_px=size[1], num_bytes=len(data)),
            )
            yield image_id, data

    write_encoded(encoded(), pictures, output)


def _size(data: bytes) -> tuple[int, int]:
    """Returns the width and height of a picture that the build has stored itself, in pixels."""
    with opened(data) as found:
        return found.size
