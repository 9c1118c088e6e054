"""What tasks are about: samples, their captions, pictures, texts to look for, boxes of others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.core.identity import sha256_hex
from eqforge.evaluation.report.items import Box, Item, Pane, plain
from eqforge.evaluation.review.assign import rank
from eqforge.evaluation.review.protocols import Unit
from eqforge.evaluation.review.shown import ids_of, items_of
from eqforge.evaluation.tasks.samples import task_of
from eqforge.schemas.dataset.reader import Dataset

T = TypeVar("T")

PICTURES_A_QUERY: Final = 25
"""So many pictures are put in order for a text: EqBen, figure 1."""

_MOST_PICTURES: Final = 100
"""Nobody puts more pictures in order by hand."""

_NAMES: Final = (
    *(("image", "image_id"), ("image_0", "image_0_id"), ("image_1", "image_1_id")),
    *(("source_image", "image_id"), ("source_image_1", "image_1_id")),
)
"""Columns of samples that have the name of a picture in its source, and its id."""

_PAIRS: Final = (("image_0_id", "image_1_id"), ("image_id", "image_1_id"))
"""Columns of samples that have the ids of two pictures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """What tasks are about.

    Attributes:
      ids: of all of them.
      make: returns what is shown of some, by their ids.
      digest: of the file that they come from; empty where the dataset has them all.
    """

    ids: Sequence[str]
    make: Callable[[Sequence[str]], dict[str, Item]]
    digest: str = ""


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text and the pictures that are put in order for it.

    Attributes:
      id: of the query.
      text: what the pictures should show.
      images: their ids, or their names in the dataset's source.
    """

    id: str
    text: str
    images: list[str]


class DrawnBox(msgspec.Struct, frozen=True, kw_only=True):
    """A box that a reviewer drew.

    Attributes:
      id: of the box.
      image_id: of its picture.
      image: name of the picture in its source.
      object: what it is around.
      bbox: x, y, width and height in pixels, from the upper left corner.
      width, height: of the picture, in pixels.
    """

    id: str
    image_id: str
    image: str
    object: str
    bbox: tuple[float, float, float, float]
    width: int
    height: int


def units_of(dataset: Dataset, unit: Unit, file: Path | None = None) -> Units:
    """Returns what the tasks of a protocol are about.

    Args:
      dataset: what is reviewed.
      unit: a key of UNITS.
      file: of queries or boxes; None for none.

    Raises:
      InputError: the dataset has nothing of this kind, or the file is not what the protocol needs.
    """
    if file is not None and unit not in _FILES:
        raise InputError(f"--of {file}: this protocol takes all that it is about from the dataset")
    found = _FILES[unit](dataset, file) if unit in _FILES else _MAKERS[unit](dataset)
    if not found.ids:
        raise InputError(f"{dataset.folder}: has no {unit} to review")
    return found


def picture_names(dataset: Dataset) -> dict[str, str]:
    """Returns what pictures are called in their source, by their ids; else the name they have.

    Raises:
      InputError: a file is missing or damaged.
    """
    return dict(_all_names(dataset))


def _all_names(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Yields the ids of pictures with what they are called; one may have several names."""
    for row in dataset.rows("images", ["image_id", "image.path"]):
        yield row["image_id"], (row["image"] or {}).get("path") or row["image_id"]
    columns = set(dataset.columns("samples"))
    for name, key in _NAMES:
        if {name, key} <= columns:
            rows = dataset.rows("samples", [name, key])
            yield from ((row[key], row[name]) for row in rows if row[key] and row[name])


def _samples(dataset: Dataset) -> Units:
    return Units(ids=ids_of(dataset), make=partial(items_of, dataset))


def _captions(dataset: Dataset) -> Units:
    """Returns samples whose captions are ranked for each of their pictures."""
    task = task_of(dataset)
    if task is None:
        raise InputError(
            f"{dataset.folder}: captions are ranked in datasets of pairs, hard positives and foils"
        )
    columns = ["sample_id", *task.images, *task.captions]

    def items() -> Iterator[Item]:
        for row in dataset.rows("samples", columns):
            yield Item(
                id=row["sample_id"],
                panes=tuple(Pane(image_id=row[name]) for name in task.images),
                texts=tuple(plain(row[name]) for name in task.captions),
            )

    return _all(items)


def _statements(dataset: Dataset) -> Units:
    """Returns statements on two pictures."""

    def items() -> Iterator[Item]:
        for row in _rows(dataset, "nlvr2", "statements on two pictures, such as those of vlue"):
            panes = tuple(Pane(image_id=row[f"image_{side}_id"]) for side in (0, 1))
            yield Item(id=row["sample_id"], panes=panes, texts=(plain(row["statement"]),))

    return _all(items)


def _phrases(dataset: Dataset) -> Units:
    """Returns phrases, without the boxes that they are of."""

    def items() -> Iterator[Item]:
        for row in _rows(dataset, "grounding", "phrases with boxes, such as those of vlue"):
            panes = (Pane(image_id=row["image_id"]),)
            yield Item(id=row["sample_id"], panes=panes, texts=(plain(row["phrase"]),))

    return _all(items)


def _pictures(dataset: Dataset) -> Units:
    def items() -> Iterator[Item]:
        for row in dataset.rows("images", ["image_id"]):
            yield Item(id=row["image_id"], panes=(Pane(image_id=row["image_id"]),))

    return _all(items)


def _picture_pairs(dataset: Dataset) -> Units:
    """Returns the pairs of pictures of the samples, each once."""
    columns = set(dataset.columns("samples"))
    named = next((pair for pair in _PAIRS if columns.issuperset(pair)), None)
    if named is None:
        raise InputError(f"{dataset.folder}: its samples have no two pictures")

    def items() -> Iterator[Item]:
        seen: set[frozenset[str]] = set()
        for row in sorted(
            dataset.rows("samples", ["sample_id", *named]), key=lambda r: r["sample_id"]
        ):
            ids = tuple(row[name] for name in named)
            pair = frozenset(ids)
            if None in pair or len(pair) < 2 or pair in seen:
                continue
            seen.add(pair)
            yield Item(id=row["sample_id"], panes=tuple(Pane(image_id=each) for each in ids))

    return _all(items)


def _boxes(dataset: Dataset, file: Path | None) -> Units:
    """Returns the boxes that others drew."""
    if file is None:
        raise InputError("--of: name the file of boxes that `review import` made of vlue-boxes")
    there = {row["image_id"] for row in dataset.rows("images", ["image_id"])}
    boxes: dict[str, DrawnBox] = {}
    for where, box in _lines(file, DrawnBox):
        if box.id in boxes:
            raise InputError(f"{file}: {where}: the box {shown(box.id)} is there twice")
        _check_picture(box.image_id, there, dataset, file, where)
        boxes[box.id] = box

    def items() -> Iterator[Item]:
        for box in boxes.values():
            x, y, width, height = box.bbox
            drawn = Box(label=box.object, x=x, y=y, width=width, height=height)
            yield Item(id=box.id, panes=(Pane(image_id=box.image_id, boxes=(drawn,)),))

    return _all(items, file)


def boxes_of(file: Path) -> dict[str, DrawnBox]:
    """Returns the boxes of a file, by their ids."""
    return {box.id: box for _, box in _lines(file, DrawnBox)}


def _queries(dataset: Dataset, file: Path | None) -> Units:
    """Returns texts, each with the pictures that are put in order for it."""
    if file is None:
        return _gallery(dataset)
    queries = _given(dataset, file)
    return _all(lambda: map(_asked, queries), file)


def _asked(query: Query) -> Item:
    panes = tuple(Pane(image_id=each) for each in query.images)
    return Item(id=query.id, panes=panes, texts=(plain(query.text),))


def _given(dataset: Dataset, file: Path) -> list[Query]:
    """Returns the queries of a file; pictures may be named as their source does."""
    ids: dict[str, str] = {}
    several: set[str] = set()
    for image_id, name in _all_names(dataset):
        if ids.setdefault(name, image_id) != image_id:
            several.add(name)
        ids[image_id] = image_id
    found: dict[str, Query] = {}
    for where, query in _lines(file, Query):
        for image in query.images:
            _check_picture(image, ids, dataset, file, where)
            if image in several:
                raise InputError(
                    f"{file}: {where}: several pictures are called {shown(image)}; take their ids"
                )
        images = list(dict.fromkeys(ids[image] for image in query.images))
        if not max(2, len(query.images)) <= len(images) <= _MOST_PICTURES:
            raise InputError(
                f"{file}: {where}: images: expected two or more, each once, "
                f"{_MOST_PICTURES} at most"
            )
        if query.id in found:
            raise InputError(f"{file}: {where}: the query {shown(query.id)} is there twice")
        found[query.id] = msgspec.structs.replace(query, images=images)
    return list(found.values())


def _gallery(dataset: Dataset) -> Units:
    """Returns the captions of a gallery, each with its own picture and others, drawn by hash."""
    table, key = ("retrieval", "sample_id")
    if table not in dataset.manifest.tables:
        table, key = "captions", "caption_id"
    if "image_id" not in dataset.columns(table):
        raise InputError(
            f"{dataset.folder}: has no captions to retrieve pictures for; name a file of queries "
            'as --of, JSON lines such as {"id": "1", "text": "...", "images": ["a.jpg", "b.jpg"]}'
        )
    rows = {row[key]: row for row in dataset.rows(table, [key, "caption", "image_id"])}
    rows = {name: row for name, row in rows.items() if row["image_id"] is not None}
    pictures = sorted({row["image_id"] for row in rows.values()})
    if len(pictures) == 1:
        raise InputError(f"{dataset.folder}: its captions have one picture, which has no order")

    def make(ids: Sequence[str]) -> dict[str, Item]:
        return {name: _asked(_drawn(name, rows[name], pictures)) for name in ids}

    return Units(ids=list(rows), make=make)


def _drawn(name: str, row: dict[str, Any], pictures: Sequence[str]) -> Query:
    """Returns a caption with its own picture and others of the gallery."""
    own = row["image_id"]
    by_rank = sorted(pictures, key=lambda each: (rank("picture", name, each), each))
    others = [each for each in by_rank if each != own][: PICTURES_A_QUERY - 1]
    return Query(id=name, text=row["caption"], images=sorted([own, *others]))


def _rows(dataset: Dataset, table: str, what: str) -> Iterator[dict[str, Any]]:
    if table not in dataset.manifest.tables:
        raise InputError(f"{dataset.folder}: has no {what}")
    return dataset.rows(table)


def _check_picture(
    image: str, known: Mapping[str, str] | set[str], dataset: Dataset, file: Path, where: str
) -> None:
    if image not in known:
        raise InputError(f"{file}: {where}: {shown(image)} is no picture of {dataset.folder}")


def _lines(file: Path, kind: type[T]) -> Iterator[tuple[str, T]]:
    for number, line in read_lines(file):
        yield f"line {number}", decode(line, kind, str(file), f"line {number}")


def _all(items: Callable[[], Iterator[Item]], file: Path | None = None) -> Units:
    """Returns units that are made anew each time they are asked for: they are not held."""

    def make(ids: Sequence[str]) -> dict[str, Item]:
        wanted = set(ids)
        return {item.id: item for item in items() if item.id in wanted}

    digest = "" if file is None else sha256_hex(file.read_bytes())
    return Units(ids=[item.id for item in items()], make=make, digest=digest)


_MAKERS: Final[Mapping[Unit, Callable[[Dataset], Units]]] = {
    "samples": _samples,
    "captions": _captions,
    "statements": _statements,
    "phrases": _phrases,
    "pictures": _pictures,
    "picture pairs": _picture_pairs,
}
_FILES: Final[Mapping[Unit, Callable[[Dataset, Path | None], Units]]] = {
    "boxes": _boxes,
    "queries": _queries,
}
"""Those that come from a file, or may."""
