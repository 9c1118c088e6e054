"""Read text pairs: published files, eqforge's datasets and folders of Hugging Face's.

The fields of the records tell the format:

  VL-CheckList   [[image, {"POS": [...], "NEG": [...]}], ...]
  ARO            [{"image_path", "true_caption", "false_caption", ...}, ...]; the published
                 hard-positive REPLACE and SWAP sets have the same fields; "bbox_x", "bbox_y",
                 "bbox_w", "bbox_h" are the part of the image that the captions describe
  SugarCrepe     {"0": {"filename", "caption", "negative_caption"}, ...}, or an array of such
                 objects; SugarCrepe++ adds "caption2", a second true caption
  VALSE          {"KEY": {"image_file", "caption", "foil", "linguistic_phenomena", ...}, ...}
  Winoground     {"id", "image_0", "image_1", "caption_0", "caption_1"}
  EqBen          {"image0", "image1", "caption0", "caption1"}: an array of records (Kubric, SD), an
                 object with an array for each video (YouCook2, GEBC), or one with an array for
                 each subject of each video (AG, whose captions are arrays themselves)
  eqforge        {"id", "image", "caption", "hard_negative"}, optionally "hard_positive", "kind",
                 and ARO's "bbox_x", "bbox_y", "bbox_w", "bbox_h"

All but the first are read as a JSON array or as JSON lines, and as CSV or TSV where their fields
are no lists. A folder is an eqforge dataset: Parquet files with the same fields, or with caption_0,
caption_1, image_0_id and image_1_id. Or it is one of Hugging Face's with the fields of a format as
columns, and one split; see hugging_face.py.

Source of EqBen's forms: github.com/Wangt-CN/EqBen, src/eqben/eqben_utils.py.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json, names_of, shown
from eqforge.core.identity import Namer, short_digest
from eqforge.core.visible import series
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.hugging_face import row_folder
from eqforge.sources.record_files import is_json_lines, read_json_lines, read_table

_DATASET_COLUMNS = {
    *("sample_id", "id", "kind", "image", "image_id", "image_0_id", "image_1_id"),
    *("caption", "hard_positive", "hard_negative", "caption_0", "caption_1", "box"),
}
EQBEN = frozenset({"image0", "image1", "caption0", "caption1"})
BOX = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")


def pair_files(path: Path) -> list[Path]:
    rows = row_folder(path)
    return [path] if rows is None else rows.one_split().files


def pair_records(path: Path) -> Iterator[tuple[str | None, Node]]:
    if (rows := row_folder(path)) is not None:
        found = rows.one_split().rows("image")
        return ((None, record.node(path.name)) for record in found)
    if path.is_dir():
        return _dataset_records(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        found = read_table(path, set(), BOX, has_index=True)
        return ((None, record.node(path.name)) for record in found)
    if path.suffix in (".jsonl", ".ndjson") or is_json_lines(path):
        return ((None, record.node(path.name)) for record in read_json_lines(path))
    return _json_records(load_json(path))


def _json_records(root: Node) -> Iterator[tuple[str | None, Node]]:
    if not isinstance(root.value, dict):
        yield from ((None, record) for record in root.elements())
        return
    for key, record in root.items():
        arrays = _eqben_arrays(record)
        yield from ((None, each) for array in arrays for each in array.elements())
        if not arrays:
            yield key, record


def _eqben_arrays(record: Node) -> list[Node]:
    """Return the arrays of EqBen's records in a member of the file; none for other formats."""
    members = record.mapping().items() if isinstance(record.value, dict) else ()
    arrays = [record.value] if isinstance(record.value, list) else [value for _, value in members]
    for array in arrays:
        if not isinstance(array, list):
            return []
        if array and not (isinstance(array[0], dict) and array[0].keys() >= EQBEN):
            return []
    if members:
        return [node for _, node in record.items()]
    return [record] if arrays else []


def _dataset_records(folder: Path) -> Iterator[tuple[None, Node]]:
    from eqforge.schemas.dataset.reader import open_samples

    dataset = open_samples(str(folder))
    columns = [name for name in dataset.columns("samples") if name in _DATASET_COLUMNS]
    for file in dataset.files("samples") if columns else ():
        batches = dataset.file_batches(file.path, columns)
        rows = (row for batch in batches for row in batch.to_pylist())
        for number, row in enumerate(rows, start=1):
            yield None, Node(file.path.removeprefix("data/"), f"row {number}", row)


Design = Literal["one_image", "two_by_two"]
_CORNERS = ("x0", "y0", "x1", "y1")
_ELSE = "for other benchmarks or your own table, use `eqforge import`"
_FARTHEST_PX = 2**31 - 1  # what a column of a box can hold


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPair:
    """An image, a true caption and a false caption.

    Attributes:
      pair_id: unique in its file: the record's own id or key, or else its image and a digest of its
        content; never its position.
      hard_positive: a true rewording of the positive; None if the file has none.
      kind: the kind of edit that the file states, such as `wearing`; None without one.
      design: "one_image" if a judge sees the image and both captions; "two_by_two" if the negative
        is the caption of a second image, so that two such pairs make one sample.
      box: the described part of the image, which may reach beyond it; None for the whole.
      number: the pair's position in its file, from 0; ignored in comparisons.
    """

    pair_id: str
    image: str
    positive: str
    negative: str
    hard_positive: str | None = None
    kind: str | None = None
    design: Design = "one_image"
    box: CornerBox | None = None
    number: int = field(default=0, compare=False)

    @property
    def text_id(self) -> str:
        return self.pair_id

    @property
    def texts(self) -> tuple[str, ...]:
        extra = () if self.hard_positive is None else (self.hard_positive,)
        return (self.positive, self.negative, *extra)


def read_text_pairs(path: str | Path) -> Iterator[TextPair]:
    """Yield the text pairs of a file or of an eqforge dataset folder, in order.

    JSON lines and datasets stream; a JSON file is held in memory.
    """
    path = Path(path)
    return _checked(path.name, _pairs(pair_records(path)))


def _checked(file: str, pairs: Iterable[TextPair]) -> Iterator[TextPair]:
    seen: set[str] = set()
    for number, pair in enumerate(pairs):
        if pair.pair_id in seen:
            raise InputError(f"{file}: the id {shown(pair.pair_id)} appears twice")
        seen.add(pair.pair_id)
        yield replace(pair, number=number)


def with_hard_positives(
    pairs: Iterable[TextPair], reworded: Iterable[TextPair]
) -> Iterator[TextPair]:
    """Join the two files of a published hard-positive set into pairs with a hard positive.

    The authors publish the original pairs and, in the same order, pairs whose true caption is the
    hard positive. Without ids, they are joined by position, and every image is compared.
    """
    rest = iter(reworded)
    for pair in pairs:
        other = next(rest, None)
        if other is None:
            raise InputError(
                f"hard positives: the file ends before record {pair.pair_id!r} of the pairs "
                "file; both files must have the same records"
            )
        if other.image != pair.image:
            raise InputError(
                f"hard positives: record {pair.pair_id!r} has the image {other.image!r}, but "
                f"the pairs file has {pair.image!r}"
            )
        yield replace(pair, hard_positive=other.positive)
    if (extra := next(rest, None)) is not None:
        raise InputError(
            f"hard positives: record {extra.pair_id!r}: the pairs file has no such record; "
            "both files must have the same records"
        )


def _pairs(records: Iterable[tuple[str | None, Node]]) -> Iterator[TextPair]:
    namer = Namer()
    for key, record in records:
        read = _reader(record)
        own_id = _optional(record, "sample_id", "id") if read in (_two_by_two, _own) else None
        known = key if own_id is None else own_id
        if known is None:  # the image, if the record names one, and a digest of the record
            value, digest = record.value, short_digest(record.value)
            names = value[:1] if isinstance(value, list) else map(value.get, _IMAGE_FIELDS)
            image = next((name for name in names if isinstance(name, str)), "")
            known = namer(f"{image}#{digest}" if image else digest)
        yield from read(known, record)


def _reader(record: Node) -> Callable[[str, Node], Iterator[TextPair]]:
    if isinstance(record.value, list):
        return _vl_checklist
    fields = set(record.mapping())
    for required, reader in _READERS:
        if required <= fields:
            return reader
    wanted = series((f"({', '.join(sorted(names))})" for names, _ in _READERS), "or")
    found = f"only {names_of(sorted(fields))}" if fields else "no fields"
    raise InputError(f"{record.place}: found {found}; expected the fields {wanted}; {_ELSE}")


def _vl_checklist(record_id: str, record: Node) -> Iterator[TextPair]:
    elements = list(record.elements())
    if len(elements) != 2:
        record.fail("an array with an image and its captions", f"{shown(record.value)}; {_ELSE}")
    image, captions = elements
    positives = [caption.text() for caption in captions["POS"].elements()]
    negatives = [caption.text() for caption in captions["NEG"].elements()]
    if len(positives) != len(negatives):
        found = f"{len(positives)} POS and {len(negatives)} NEG"
        captions.fail("equal numbers of POS and NEG captions", found)
    for number, (positive, negative) in enumerate(zip(positives, negatives, strict=True)):
        suffix = f"/{number}" if len(positives) > 1 else ""
        yield TextPair(
            pair_id=record_id + suffix, image=image.text(), positive=positive, negative=negative
        )


def _aro(record_id: str, record: Node) -> Iterator[TextPair]:
    relation = record.get("relation_name")
    yield TextPair(
        pair_id=record_id,
        image=record["image_path"].text(),
        positive=record["true_caption"].text(),
        negative=record["false_caption"].text(),
        kind=None if relation is None else relation.text(),
        box=box_of(record),
    )


def box_of(record: Node) -> CornerBox | None:
    """Return the box of a record, its corners rounded as Pillow's `Image.crop` does."""
    if all(record.get(name) is None for name in BOX):
        return None
    x, y, width, height = (record[name].number() for name in BOX)
    if max(map(abs, (x, y, x + width, y + height))) > _FARTHEST_PX:
        box = shown([x, y, width, height])
        record.fail(f"a box within {_FARTHEST_PX:,} pixels of the image's corner", box)
    return CornerBox(x0=round(x), y0=round(y), x1=round(x + width), y1=round(y + height))


def _sugar_crepe(record_id: str, record: Node) -> Iterator[TextPair]:
    second = record.get("caption2")
    yield TextPair(
        pair_id=record_id,
        image=record["filename"].text(),
        positive=record["caption"].text(),
        negative=record["negative_caption"].text(),
        hard_positive=None if second is None else second.text(),
    )


def _valse(record_id: str, record: Node) -> Iterator[TextPair]:
    yield TextPair(
        pair_id=record_id,
        image=_optional(record, "image_file", "image", "image0") or "",
        positive=record["caption"].text(),
        negative=record["foil"].text(),
        kind=_optional(record, "linguistic_phenomena"),
    )


def _two_by_two(record_id: str, record: Node) -> Iterator[TextPair]:
    tag = record.get("tag")
    is_eqben = "caption0" in record.mapping()
    captions = []
    for side in (0, 1):
        caption = record[f"caption{'' if is_eqben else '_'}{side}"]
        if isinstance(caption.value, list):  # EqBen's loader takes the first
            caption = next(caption.elements(), None) or caption.fail("a caption")
        captions.append(caption.text())
    for side in (0, 1):
        image = _optional(record, f"image_{side}", f"image_{side}_id", f"image{side}")
        yield TextPair(
            pair_id=f"{record_id}/{side}",
            image=f"{record_id}/{side}" if image is None else image,
            positive=captions[side],
            negative=captions[1 - side],
            kind=None if tag is None else tag.text(),
            design="two_by_two",
        )


def _own(record_id: str, record: Node) -> Iterator[TextPair]:
    box, corners = record.get("box"), None
    if box is not None and isinstance(box.value, dict) and set(box.value) == set(_CORNERS):
        corners = {name: box[name].integer() for name in _CORNERS}
    yield TextPair(
        pair_id=record_id,
        image=_optional(record, "image", "image_id") or "",
        positive=record["caption"].text(),
        negative=record["hard_negative"].text(),
        hard_positive=_optional(record, "hard_positive"),
        kind=_optional(record, "kind"),
        box=box_of(record) if corners is None else CornerBox(**corners),
    )


def _optional(record: Node, *names: str) -> str | None:
    for name in names:
        if (node := record.get(name)) is not None:
            value: Any = node.value
            return str(value) if isinstance(value, int) else node.text()
    return None


_READERS: tuple[tuple[frozenset[str], Callable[[str, Node], Iterator[TextPair]]], ...] = (
    (frozenset({"image_path", "true_caption", "false_caption"}), _aro),
    (frozenset({"filename", "caption", "negative_caption"}), _sugar_crepe),
    (frozenset({"caption_0", "caption_1"}), _two_by_two),
    (EQBEN, _two_by_two),
    (frozenset({"caption", "hard_negative"}), _own),
    (frozenset({"caption", "foil"}), _valse),
)
_IMAGE_FIELDS = ("image_path", "filename", "image_file", "image", "image0")
