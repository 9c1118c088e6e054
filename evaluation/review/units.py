"""The items that tasks ask about: samples, captions, images, texts to find, and drawn boxes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.core.identity import sha256_hex
from eqforge.evaluation.report.items import Box, Item, Pane, Text, Tone, plain
from eqforge.evaluation.report.kinds import kind_of
from eqforge.evaluation.review.assign import Task, is_turned, rank, shuffled
from eqforge.evaluation.review.protocols import Form, Protocol, Unit, protocols
from eqforge.evaluation.tasks.samples import task_of
from eqforge.schemas.dataset.reader import Dataset

Row = dict[str, Any]
T = TypeVar("T")

PICTURES_A_QUERY: Final = 25
"""Number of images to order for each text. Source: EqBen, figure 1."""
_MOST_PICTURES: Final = 100
_AT_ONCE: Final = 10_000
_TONES: Final[dict[str, Tone]] = {"hard_positive": "true", "hard_negative": "false"}

_NAMES: Final = (
    *(("image", "image_id"), ("image_0", "image_0_id"), ("image_1", "image_1_id")),
    *(("source_image", "image_id"), ("source_image_1", "image_1_id")),
)
"""Columns of samples that hold an image's name in its source, and its id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """All ids, a function that builds items, and a file digest; `is_telling` ids reveal texts."""

    ids: Sequence[str]
    make: Callable[[Sequence[str]], dict[str, Item]]
    digest: str = ""
    is_telling: bool = False


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text and the images to order for it, by id or by name in their source."""

    id: str
    text: str
    images: list[str]


class DrawnBox(msgspec.Struct, frozen=True, kw_only=True):
    """A box that a reviewer drew.

    Attributes:
      image: name of the image in its source.
      bbox: x, y, width and height in pixels, from the upper left corner.
    """

    id: str
    image_id: str
    image: str
    object: str
    bbox: tuple[float, float, float, float]
    width: int
    height: int


def units_of(dataset: Dataset, unit: Unit, file: Path | None = None) -> Units:
    if unit == "boxes":
        found = _boxes(dataset, file)
    elif unit == "queries":
        found = _gallery(dataset) if file is None else _queries(dataset, file)
    elif file is not None:
        raise InputError(f"--of {file}: the chosen protocol does not review a file; omit --of")
    elif unit == "samples":
        is_telling = "role" in dataset.columns("samples")
        make = partial(_samples, dataset)
        found = Units(ids=_sample_ids(dataset), make=make, is_telling=is_telling)
    else:
        found = _picture_pairs(dataset) if unit == "picture pairs" else _rows_of(dataset, unit)
    if not found.ids:
        raise InputError(f"{dataset.folder} has no {unit} to review")
    return found


def _all(items: Callable[[], Iterable[Item]], file: Path | None = None) -> Units:
    """Return units that are rebuilt at each use, to save memory."""

    def make(ids: Sequence[str]) -> dict[str, Item]:
        wanted = set(ids)
        return {item.id: item for item in items() if item.id in wanted}

    digest = "" if file is None else sha256_hex(file.read_bytes())
    return Units(ids=[item.id for item in items()], make=make, digest=digest)


def _sample_ids(dataset: Dataset) -> list[str]:
    """Return all ids, without perturbations that changed no word, which leave no text to judge."""
    there = dataset.columns("samples")
    # Earlier versions wrote only `applied`.
    changed = next((name for name in ("words_changed", "applied") if name in there), "")
    columns = ["sample_id", *([changed] if changed else [])]
    return [row["sample_id"] for row in dataset.rows("samples", columns) if row.get(changed, True)]


def _samples(dataset: Dataset, ids: Sequence[str]) -> dict[str, Item]:
    kind = kind_of(dataset)
    make = kind.make(dataset)
    rows = _rows(dataset, "sample_id", ids)
    if kind.needs[:1] != ("role",):
        return {row["sample_id"]: make([row]) for row in rows}
    captions = sorted({row["caption_id"] for row in rows})
    originals = {
        row["caption_id"]: row
        for row in _rows(dataset, "caption_id", captions)
        if row["role"] == "original"
    }
    found = {}
    for row in rows:
        item = make([row])
        original = originals.get(row["caption_id"])
        if row["role"] != "original" and original is not None:
            item = make([original, row])
        elif row["role"] != "original":
            text = plain(row["text"], row["role"].replace("_", " "), _TONES.get(row["role"], ""))
            item = msgspec.structs.replace(item, texts=(text,))
        found[row["sample_id"]] = item
    return found


class Claim(NamedTuple):
    """A text and, for each image asked about, whether the text is marked as true of it."""

    text: str
    kind: str
    tones: tuple[Tone, ...]


def claim_key(claim: Claim, place: int) -> str:
    """Return a claim's key in answers: its text, with the image's index if there are several."""
    return f"{claim.text} [{place}]" if len(claim.tones) > 1 else claim.text


def claims_of(item: Item) -> list[Claim]:
    """Return the distinct claims that an item makes about its images.

    A text counts as true unless marked false. A question is combined with each of its answers.
    Captions of several images are true of their own image and false of the others.
    """
    texts = {text.role.partition(" ")[0]: text for text in item.texts}
    claims: list[Claim] = []
    if any(pane.texts for pane in item.panes):
        captions = [(place, text) for place, pane in enumerate(item.panes) for text in pane.texts]
        if not all(pane.texts for pane in item.panes):
            return []
        for place, text in captions:
            tones = tuple[Tone, ...](
                "true" if place == each else "false" for each in range(len(item.panes))
            )
            claims.append(Claim(text.plain, _kind(item, text), tones))
    elif question := texts.get("question"):
        answers = [t.plain.strip() for t in item.texts if t.role.startswith("answer")]
        options = [t.plain.strip() for t in item.texts if t.role.startswith("option")]
        capitalized = {each.capitalize() for each in answers}
        named = [[*pair] for pair in _ALTERNATIVES if capitalized & {*pair}]
        right = {each.casefold() for each in answers}
        # The answer alone would always be correct.
        for each in options or (named[0] if named else answers):
            tone: Tone = "true" if each.casefold() in right else "false"
            claims.append(Claim(f"{question.plain} {each}", "answer", (tone,)))
    else:
        label = texts["label"].plain if "label" in texts else "true"
        claims = [
            Claim(
                text.plain,
                _kind(item, text),
                ("false" if label == "false" else text.tone or "true",),
            )
            for text in item.texts
            if text.role not in _NOT_CLAIMS
        ]
    return list({claim.text: claim for claim in reversed(claims)}.values())[::-1]


def _kind(item: Item, text: Text) -> str:
    facts, role = dict(item.facts), text.role or "caption"
    kind = facts.get(f"{role.replace(' ', '_')}_kind") or (
        text.tone == "false" and facts.get("kind")
    )
    return f"{role} ({kind})" if kind and "(" not in role else role


_ALTERNATIVES: Final = (("Yes", "No"), ("True", "False"), ("A", "B"))
_NOT_CLAIMS: Final = frozenset({"label", "finding", "true targets", "change", "looks for"})
"""Roles that reviewers are not asked about; some reveal which texts are true."""


def claims_shown(item: Item, task: Task, reviewer: str) -> list[Claim]:
    again = str(task.is_repeat)
    return sorted(claims_of(item), key=lambda claim: rank("text", reviewer, again, claim.text))


def places_shown(item: Item, form: Form, unit: Unit, task: Task, reviewer: str) -> list[int]:
    places = list(range(len(item.panes)))
    if form == "order":
        return shuffled("picture", task, reviewer, len(places))
    # A statement may mention the left image, so images of statements keep their positions.
    may_turn = item.comparable or unit in ("captions", "picture pairs")
    return places[::-1] if may_turn and is_turned(task, reviewer) else places


def blind_texts(item: Item) -> tuple[Text, ...]:
    """Return the texts of an item without roles, colours and marks that reveal which are true.

    Their order depends on their content; a question comes before its answers.
    """
    named = [text.role.partition(" ")[0] for text in item.texts]
    if "question" in named:
        return tuple(
            plain(text.plain, text.role) for text in item.texts if text.role not in _NOT_CLAIMS
        )
    texts = (
        text.plain for text in item.texts if text.role not in _NOT_CLAIMS - {"looks for", "change"}
    )
    return tuple(plain(text) for text in sorted(texts, key=lambda text: rank("text", text)))


def _rows(dataset: Dataset, column: str, values: Sequence[str]) -> list[Row]:
    wanted, batches = pa.array(values, pa.string()), dataset.batches("samples", rows=_AT_ONCE)
    matches = (batch.filter(pc.is_in(batch.column(column), value_set=wanted)) for batch in batches)
    return [row for batch in matches for row in batch.to_pylist()]


def check_fits(
    protocol: Protocol, items: Collection[Item], pictures: Collection[str], dataset: Dataset
) -> None:
    if protocol.unit != "samples":
        for item in items:
            if any(pane.image_id not in pictures for pane in item.panes):
                raise InputError(
                    f"{dataset.folder}: {shown(item.id)} has no image; {dataset.remedy}"
                )
        return
    there = [[pane for pane in item.panes if pane.image_id in pictures] for item in items]
    pairs = any(len(panes) == 2 and all(pane.texts for pane in panes) for panes in there)
    claims = any(panes and claims_of(item) for item, panes in zip(items, there, strict=True))
    fits = {"": True, "claims": claims, "pairs": pairs}
    if fits[protocol.needs]:
        return
    decided = [(name, each) for name, each in protocols().items() if each.unit == "samples"]
    fitting = [name for name, each in decided if fits[each.needs]]
    if not fitting:
        raise InputError(
            f"--protocol {protocol.name}: {dataset.folder} contains no images for its items; "
            f"{dataset.remedy}, or write your own protocol"
        )
    options = ", ".join(f"--protocol {name}" for name in fitting)
    about = "pairs of images with one caption each"
    if protocol.needs == "claims":
        about = "images with true or false texts"
    raise InputError(
        f"--protocol {protocol.name}: {dataset.folder} contains no {about}; choose {options}, or "
        "your own protocol"
    )


def _rows_of(dataset: Dataset, unit: Unit) -> Units:
    """Return captions, statements, phrases or images, without anything that reveals the answer."""
    if unit == "captions":
        task = task_of(dataset)
        if task is None:
            raise InputError(
                f"{dataset.folder}: only datasets of pairs, hard positives and foils have "
                "captions to rank"
            )
        table, images, texts = "samples", list(task.images), list(task.captions)
    elif unit == "statements":
        table, images, texts = "nlvr2", ["image_0_id", "image_1_id"], ["statement"]
    elif unit == "phrases":
        table, images, texts = "grounding", ["image_id"], ["phrase"]
    else:
        table, images, texts = "images", ["image_id"], []
    if table not in dataset.manifest.tables:
        content = "statements about two images" if unit == "statements" else "phrases with boxes"
        raise InputError(f"{dataset.folder} has no {content}; pass a vlue dataset")
    key = "image_id" if unit == "pictures" else "sample_id"

    def items() -> Iterator[Item]:
        for row in dataset.rows(table, list(dict.fromkeys([key, *images, *texts]))):
            yield Item(
                id=row[key],
                panes=tuple(Pane(image_id=row[name]) for name in images),
                texts=tuple(plain(row[name]) for name in texts),
            )

    return _all(items)


def _picture_pairs(dataset: Dataset) -> Units:
    columns, possible = dataset.columns("samples"), ("image_0_id", "image_id")
    first = next((name for name in possible if {name, "image_1_id"} <= set(columns)), None)
    if first is None:
        raise InputError(f"{dataset.folder}: its samples do not have two images each")

    def items() -> Iterator[Item]:
        seen: set[frozenset[str]] = set()
        rows = dataset.rows("samples", ["sample_id", first, "image_1_id"])
        for row in sorted(rows, key=lambda row: row["sample_id"]):
            ids = (row[first], row["image_1_id"])
            pair = frozenset(ids)
            if None not in pair and len(pair) == 2 and pair not in seen:
                seen.add(pair)
                yield Item(id=row["sample_id"], panes=tuple(Pane(image_id=each) for each in ids))

    return _all(items)


def _boxes(dataset: Dataset, file: Path | None) -> Units:
    if file is None:
        raise InputError("--of: pass the file of boxes that `review import` wrote for vlue-boxes")
    there = {row["image_id"] for row in dataset.rows("images", ["image_id"])}
    boxes: dict[str, DrawnBox] = {}
    for where, box in _lines(file, DrawnBox):
        if box.id in boxes:
            raise InputError(f"{where}: the box {shown(box.id)} appears twice; keep one")
        _check_picture(box.image_id, there, dataset, where)
        boxes[box.id] = box

    def items() -> Iterator[Item]:
        for box in boxes.values():
            x, y, width, height = box.bbox
            outline = Box(label=box.object, x=x, y=y, width=width, height=height)
            yield Item(id=box.id, panes=(Pane(image_id=box.image_id, boxes=(outline,)),))

    return _all(items, file)


def boxes_of(file: Path) -> dict[str, DrawnBox]:
    return {box.id: box for _, box in _lines(file, DrawnBox)}


def _queries(dataset: Dataset, file: Path) -> Units:
    ids: dict[str, str] = {}
    several: set[str] = set()
    for image_id, name in picture_names(dataset):
        if ids.setdefault(name, image_id) != image_id:
            several.add(name)
        ids[image_id] = image_id
    found: dict[str, Item] = {}
    for where, query in _lines(file, Query):
        for image in query.images:
            _check_picture(image, ids, dataset, where)
            if image in several:
                raise InputError(f"{where}: several images are named {shown(image)}; use image ids")
        images = list(dict.fromkeys(ids[image] for image in query.images))
        if not max(2, len(query.images)) <= len(images) <= _MOST_PICTURES:
            raise InputError(f"{where}: images: expected 2 to {_MOST_PICTURES} different images")
        if query.id in found:
            raise InputError(f"{where}: the query {shown(query.id)} appears twice")
        found[query.id] = _asked(query.id, query.text, images)
    return _all(found.values, file)


def _asked(name: str, text: str, images: Sequence[str]) -> Item:
    return Item(id=name, panes=tuple(Pane(image_id=each) for each in images), texts=(plain(text),))


def _gallery(dataset: Dataset) -> Units:
    """Return the captions of a gallery, each with its own image and others, drawn by hash."""
    table, key = ("retrieval", "sample_id")
    if table not in dataset.manifest.tables:
        table, key = "captions", "caption_id"
    if "image_id" not in dataset.columns(table):
        raise InputError(
            f"{dataset.folder} contains no captions to use as queries; pass --of FILE with JSON "
            f'lines such as {{"id": "1", "text": "...", "images": '
            f'["a.jpg", "b.jpg"]}}'
        )
    rows = {row[key]: row for row in dataset.rows(table, [key, "caption", "image_id"])}
    rows = {name: row for name, row in rows.items() if row["image_id"] is not None}
    pictures = sorted({row["image_id"] for row in rows.values()})
    if len(pictures) == 1:
        raise InputError(
            f"{dataset.folder}: all captions have the same image, so there is nothing to rank"
        )

    def drawn(name: str) -> Item:
        image = rows[name]["image_id"]
        by_rank = sorted(pictures, key=lambda each: (rank("picture", name, each), each))
        distractors = [each for each in by_rank if each != image][: PICTURES_A_QUERY - 1]
        return _asked(name, rows[name]["caption"], sorted([image, *distractors]))

    return Units(ids=list(rows), make=lambda ids: {name: drawn(name) for name in ids})


def picture_names(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Yield image ids with their names in the source; an image may have several names."""
    for row in dataset.rows("images", ["image_id", "image.path"]):
        yield row["image_id"], (row["image"] or {}).get("path") or row["image_id"]
    columns = set(dataset.columns("samples"))
    for name, key in _NAMES:
        if {name, key} <= columns:
            rows = dataset.rows("samples", [name, key])
            yield from ((row[key], row[name]) for row in rows if row[key] and row[name])


def _check_picture(
    image: str, known: Mapping[str, str] | set[str], dataset: Dataset, where: str
) -> None:
    if image not in known:
        raise InputError(f"{where}: {shown(image)} is not an image of {dataset.folder}")


def _lines(file: Path, kind: type[T]) -> Iterator[tuple[str, T]]:
    for number, line in read_lines(file):
        yield f"{file}: line {number}", decode(line, kind, str(file), f"line {number}")
