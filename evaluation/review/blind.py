"""What a reviewer sees of an item, without what would tell them the answer."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from eqforge.evaluation.report.folder import for_page
from eqforge.evaluation.report.items import Item, Pane
from eqforge.evaluation.report.pictures import Pictures
from eqforge.evaluation.review.assign import Task, rank
from eqforge.evaluation.review.protocols import Protocol, Unit

_TURNED: Final[tuple[Unit, ...]] = ("captions", "picture pairs")
"""Units whose two pictures may change places; a statement may speak of the left one."""


def blinded(
    item: Item, task: Task, protocol: Protocol, reviewer: str, pictures: Pictures
) -> dict[str, Any]:
    """Returns an item as a page reads it: without id, facts, scores and lineage.

    The order of pictures, and of captions that are ranked, is drawn by hash: `places` and `ranked`
    say which of the item's pictures and captions each is; where pictures are put in order, `images`
    has their ids.
    """
    places, ranked = _order_of_pictures(item, task, protocol, reviewer), _same(item.texts)
    if protocol.form == "rank":
        ranked.sort(key=lambda place: _drawn("caption", reviewer, task, place))
    panes = [item.panes[place] for place in places]
    if len(panes) == 1 or item.comparable or protocol.unit != "samples":
        panes = _numbered(panes)
    shown = msgspec.structs.replace(
        item,
        id="",
        facts=(),
        rows=(),
        panes=tuple(panes),
        texts=tuple(item.texts[place] for place in ranked),
    )
    said = for_page(shown, pictures)
    if protocol.form == "order":
        return {**said, "images": [pane.image_id for pane in panes]}
    return {**said, "places": places, "ranked": ranked}


def _order_of_pictures(item: Item, task: Task, protocol: Protocol, reviewer: str) -> list[int]:
    places = _same(item.panes)
    if protocol.form == "order":
        return sorted(places, key=lambda place: _drawn("picture", reviewer, task, place))
    may_turn = item.comparable or protocol.unit in _TURNED
    return places[::-1] if task.is_turned and may_turn else places


def _same(things: Sequence[object]) -> list[int]:
    return list(range(len(things)))


def _drawn(what: str, reviewer: str, task: Task, place: int) -> int:
    return rank(what, reviewer, task.id, str(task.is_repeat), str(place))


def _numbered(panes: Sequence[Pane]) -> list[Pane]:
    """Returns pictures whose names say nothing but which one is meant."""
    if len(panes) == 1:
        return [msgspec.structs.replace(panes[0], name="picture")]
    return [
        msgspec.structs.replace(pane, name=f"picture {number}")
        for number, pane in enumerate(panes, start=1)
    ]
