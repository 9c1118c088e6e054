"""What reviewers wrote and drew, as rows of the files that builds read.

`build vlue` reads those of VLUE's protocols; see `eqforge.sources.vlue`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from eqforge.core.identity import short_digest
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.review.forms import Vote
from eqforge.evaluation.review.protocols import broken
from eqforge.evaluation.review.units import DrawnBox, boxes_of, picture_names
from eqforge.evaluation.review.votes import Votes
from eqforge.schemas.dataset.reader import Dataset

Row = dict[str, Any]


class _Written(NamedTuple):
    """An answer that was given: its texts are without white space around them."""

    item: str
    vote: Vote
    texts: Mapping[str, str]
    panes: tuple[str, ...]


def rows_of(
    dataset: Dataset,
    votes: Votes,
    first: Mapping[str, Mapping[str, Vote]],
    items: Mapping[str, Item],
    file: Path | None,
    answers: Collection[str] | None,
) -> tuple[list[Row], list[str]]:
    """Returns the rows that answers become, by item and reviewer, and the rules that texts break.

    Args:
      dataset: what was reviewed.
      votes: of all reviewers.
      first: their first votes by item and reviewer.
      items: what was shown, by id.
      file: of the boxes that others drew.
      answers: those that may be given; None for any.
    """
    given: list[_Written] = []
    wrong: list[str] = []
    for item, own in first.items():
        panes = tuple(pane.image_id for pane in items[item].panes if pane.image_id is not None)
        names = [name for field in votes.fields for name in field.names(len(panes))]
        for vote in own.values():
            if not vote.is_given:
                continue
            breaches = [rule for _, rule in broken(vote.texts, votes.fields, len(panes), answers)]
            wrong += breaches
            if not breaches:
                texts = {name: " ".join(vote.texts[name].split()) for name in names}
                given.append(_Written(item, vote, texts, panes))
    if votes.protocol == "vlue-expressions" and file is not None:
        return list(_phrases(given, boxes_of(file))), wrong
    make = _MAKERS.get(votes.protocol, _boxes if votes.form == "box" else _plain)
    return list(make(given, dict(picture_names(dataset)), dataset)), wrong


def _captions(given: list[_Written], names: dict[str, str], _: Dataset) -> Iterator[Row]:
    """Yields a row for each picture, with the captions of all who wrote one."""
    for item, own in groupby(given, key=lambda each: each.item):
        yield {
            "image": names[item],
            "caption": list(dict.fromkeys(each.texts["caption"] for each in own)),
        }


def _statements(given: list[_Written], _: dict[str, str], dataset: Dataset) -> Iterator[Row]:
    statements = {row["sample_id"]: row for row in dataset.rows("nlvr2")}
    for item, own in groupby(given, key=lambda each: each.item):
        row = statements[item]
        name = row["source_id"] or item
        for number, each in enumerate(own, start=1):
            yield {
                "identifier": name if number == 1 else f"{name}-{number}",
                "sentence": each.texts["sentence"],
                "images": [row["image_0"], row["image_1"]],
                "label": str(row["label"]),
            }


def _questions(given: list[_Written], names: dict[str, str], _: Dataset) -> Iterator[Row]:
    """Yields two rows for each question, one for each picture."""
    rows = [
        {
            "question": each.texts["question"],
            "image": names[image_id],
            "answer": each.texts[f"answer_{place}"],
        }
        for each in given
        for place, image_id in enumerate(each.panes)
    ]
    yield from _once({"question_id": short_digest(row), **row} for row in rows)


def _boxes(given: list[_Written], names: dict[str, str], dataset: Dataset) -> Iterator[Row]:
    """Yields each box once, whoever drew it: the next group is asked about it by its id."""
    rows = dataset.rows("images", ["image_id", "width_px", "height_px"])
    sizes = {row["image_id"]: (row["width_px"], row["height_px"]) for row in rows}

    def box_of(each: _Written) -> DrawnBox:
        assert each.vote.box is not None
        x, y, across, down = each.vote.box
        width, height = sizes[each.item]
        corner = round(x * width, 2), round(y * height, 2)
        bbox = (*corner, round(across * width, 2), round(down * height, 2))
        what = " ".join(each.texts[name] for name in sorted(each.texts))
        return DrawnBox(
            id=f"{each.item[:12]}/{short_digest([each.item, what, bbox])}",
            image_id=each.item,
            image=names[each.item],
            object=what,
            bbox=bbox,
            width=width,
            height=height,
        )

    yield from _once(msgspec.to_builtins(box_of(each)) for each in given)


def _phrases(given: list[_Written], boxes: Mapping[str, DrawnBox]) -> Iterator[Row]:
    for each in given:
        box = boxes[each.item]
        yield {
            "ref_id": box.id,
            "image": box.image,
            "text": each.texts["text"],
            "bbox": list(box.bbox),
            "width": box.width,
            "height": box.height,
        }


def _plain(given: list[_Written], names: dict[str, str], _: Dataset) -> Iterator[Row]:
    """Yields what was written by a protocol of a user's own, with the names of the pictures."""
    for each in given:
        images = [names.get(image_id) for image_id in each.panes]
        yield {"item": each.item, "images": images, **each.texts}


def _once(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields rows whose first field, their id, was not seen before."""
    seen: set[Any] = set()
    for row in rows:
        name = next(iter(row.values()))
        if name not in seen:
            seen.add(name)
            yield row


_Maker = Callable[[list[_Written], dict[str, str], Dataset], Iterator[Row]]
_MAKERS: Final[Mapping[str, _Maker]] = {
    "vlue-captions": _captions,
    "vlue-translation": _statements,
    "vlue-questions": _questions,
    "vlue-boxes": _boxes,
}
