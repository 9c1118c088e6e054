"""Read SIMAT's own files: its regions, triplets, captions and queries.

  retrieval_db.tsv   region_id, image_id, subj, rel, obj, subj_bbox, obj_bbox, bbox: 11,160 regions
  triplets.csv       region_id, subj, rel, obj, dataset_id: the 5,859 regions of the benchmark;
                     dataset_id is the row of oscar_similarity_matrix.pt
  captions.txt       a caption per line, for the triplets in the order of triplets.csv
  transfos.csv       the queries: region_id, field, value, target, target_ids, norm2, is_test; its
                     dataset_id is of an older release and is not read

A file of captions may also be JSON lines, which name the triplet of each caption:

    {"subject": "bear", "relation": "laying in", "object": "wall", "caption": "A bear ..."}

Source: github.com/facebookresearch/SIMAT, folder simat_db.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, parse_json, read_text_lines, shown
from eqforge.core.visible import counted
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.simat import SimatSplit
from eqforge.sources.record_files import read_table

Part = Literal["subject", "relation", "object"]
PARTS: tuple[Part, ...] = get_args(Part)

_WHOLE = re.compile(r"-?\d+")
_FIELDS: dict[str, Part] = {"subj": "subject", "rel": "relation", "obj": "object"}


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Triplet:
    """A subject, a relation and an object."""

    subject: str
    relation: str
    object: str

    @property
    def triplet_id(self) -> str:
        return f"{self.subject}/{self.relation}/{self.object}"

    def word(self, part: Part) -> str:
        word: str = getattr(self, part)
        return word

    def changed(self, part: Part, word: str) -> "Triplet":
        return replace(self, **{part: word})


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """A part of an image that a triplet describes.

    Attributes:
      region_id: unique in the source.
      image_id: Visual Genome's id of the image.
      box: the crop that the source states; None without one.
    """

    region_id: str
    image_id: str
    triplet: Triplet
    subject_box: CornerBox
    object_box: CornerBox
    box: CornerBox | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedQuery:
    """A row of transfos.csv.

    Attributes:
      part: which of the three words is changed.
      source, target: the word and its replacement.
      norm2: number of queries of both splits with the source word.
    """

    region_id: str
    part: Part
    source: str
    target: str
    norm2: int
    split: SimatSplit


def read_retrieval_db(path: str | Path) -> tuple[Region, ...]:
    names = ("region_id", "image_id", "subj", "rel", "obj", "subj_bbox", "obj_bbox", "bbox")
    found = {}
    for row in _rows(path, *names):
        region_id = row["region_id"].name()
        if region_id in found:
            row["region_id"].fail("each region once", f"{shown(region_id)} twice")
        found[region_id] = Region(
            region_id=region_id,
            image_id=row["image_id"].name(),
            triplet=_triplet(row),
            subject_box=_box(row["subj_bbox"]),
            object_box=_box(row["obj_bbox"]),
            box=_box(row["bbox"]),
        )
    return tuple(found.values())


def read_triplets(path: str | Path) -> dict[str, Triplet]:
    found: dict[str, Triplet] = {}
    for row in _rows(path, "region_id", "subj", "rel", "obj"):
        region_id = row["region_id"].name()
        if region_id in found:
            row["region_id"].fail("each region once", f"{shown(region_id)} twice")
        found[region_id] = _triplet(row)
    return found


def read_transfos(path: str | Path) -> Iterator[PublishedQuery]:
    names = ("region_id", "field", "value", "target", "norm2", "is_test")
    for row in _rows(path, *names):
        field, norm2, is_test = row["field"], row["norm2"], row["is_test"]
        if field.value not in _FIELDS:
            field.fail("subj, rel or obj")
        if is_test.value not in ("True", "False"):
            is_test.fail("True or False")
        if not str(norm2.value).isdecimal() or int(norm2.value) < 1:
            norm2.fail("a whole number of 1 or more")
        yield PublishedQuery(
            region_id=row["region_id"].name(),
            part=_FIELDS[field.value],
            source=row["value"].name(),
            target=row["target"].name(),
            norm2=int(norm2.value),
            split="test" if is_test.value == "True" else "dev",
        )


def read_simat_captions(path: str | Path, order: Sequence[Triplet]) -> dict[Triplet, str]:
    """Return the captions of a file by triplet.

    Plain lines, as SIMAT publishes them, follow `order`: their number must be the same, and each
    must name its triplet's subject, so that a file of other triplets is rejected.

    Args:
      path: captions.txt, or JSON lines.
      order: the distinct triplets in the order of triplets.csv; empty without that file.
    """
    file = Path(path).name
    lines = [(n, line.strip()) for n, line in enumerate(read_text_lines(path), 1) if line.strip()]
    if lines and lines[0][1].startswith("{"):
        return _named_captions([parse_json(line, file, f"line {n}") for n, line in lines])
    if not order:
        raise InputError(
            f"{file} contains captions without triplets. Pass SIMAT's triplets.csv with "
            "--triplets, or use JSON Lines with subject, relation, object and caption."
        )
    if len(lines) != len(order):
        raise InputError(
            f"{file} has {counted(len(lines), 'captions')}, but the --triplets file has "
            f"{counted(len(order), 'distinct triplets')}. Each triplet needs one caption, in the "
            "same order."
        )
    for (number, line), triplet in zip(lines, order, strict=True):
        if triplet.subject.casefold() not in line.casefold():
            raise InputError(
                f"{file}: line {number}: expected a caption for {triplet.triplet_id!r}, "
                f"found {line!r}"
            )
    return {triplet: line for triplet, (_, line) in zip(order, lines, strict=True)}


def _named_captions(records: Sequence[Node]) -> dict[Triplet, str]:
    found: dict[Triplet, str] = {}
    for record in records:
        subject, relation, target = (_word(record[part]) for part in PARTS)
        triplet = Triplet(subject=subject, relation=relation, object=target)
        if triplet in found:
            record.fail("each triplet once", f"{shown(triplet.triplet_id)} twice")
        found[triplet] = record["caption"].text().strip() or record["caption"].fail("a caption")
    return found


def _rows(path: str | Path, *names: str) -> Iterator[Node]:
    path = Path(path)
    for record in read_table(path, frozenset(names), (), has_index=True, keeps_empty=True):
        yield record.node(path.name)


def _triplet(row: Node) -> Triplet:
    subject, relation, target = (_word(row[name]) for name in _FIELDS)
    return Triplet(subject=subject, relation=relation, object=target)


def _word(node: Node) -> str:
    word = node.name()
    return word if "/" not in word and word.strip() == word else node.fail("a word without /")


def _box(node: Node) -> CornerBox:
    parts = str(node.value).split(",")
    if len(parts) != 4 or not all(_WHOLE.fullmatch(part) for part in parts):
        node.fail("x0,y0,x1,y1 in pixels")
    x0, y0, x1, y1 = map(int, parts)
    return CornerBox(x0=x0, y0=y0, x1=x1, y1=y1)
