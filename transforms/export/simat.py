"""Writes SIMAT's own files, as its evaluation and `eqforge build simat` read them.

    retrieval_db.tsv   the gallery: its regions, their triplets and boxes
    triplets.csv       the same regions, in triplet order; dataset_id counts them from 0
    captions.txt       the caption of each triplet of triplets.csv, one per line, in its order
    transfos.csv       the queries; query_ids and target_ids count the lines of captions.txt from 0,
                       dataset_id is the region's row in triplets.csv

Object attributes and ids of the published retrieval_db.tsv, and `norm`, are left empty, because
datasets lack them.

Source: github.com/facebookresearch/SIMAT, folder simat_db.
"""

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of, shown
from eqforge.core.files.table_file import ADVICE
from eqforge.schemas.dataset.reader import Dataset
from eqforge.transforms.export.formats import Writer
from eqforge.transforms.export.rows import check_files
from eqforge.transforms.export.target import Export

_FIELDS: Final = {"subject": "subj", "relation": "rel", "object": "obj"}
_REGIONS: Final = (
    *("region_id", "image_id", "subj_attr", "subj", "rel", "obj_attr", "obj", "subj_id", "obj_id"),
    *("subj_bbox", "obj_bbox", "bbox"),
)
_TRANSFOS: Final = (
    *("", "transfo_id", "region_id", "field", "value", "target", "norm", "query_ids"),
    *("target_ids", "dataset_id", "norm2", "is_test"),
)


def _refusal(dataset: Dataset, table: str) -> str:
    needed = {"region_id", "part", "source_word", "target_triplet_id", "frequency"}
    if needed <= set(dataset.columns(table)) and dataset.manifest.num_rows("gallery"):
        return ""
    return "expected a simat dataset with queries and a gallery"


def _write(export: Export) -> None:
    for table in ("captions", "gallery"):
        check_files(export.dataset, table)
    found = {row["caption_id"]: row for row in export.dataset.rows("captions")}
    captions = _Known(export, "captions", found)
    regions = list(export.dataset.rows("gallery"))
    for row in regions:
        row |= {"words": [captions[row["triplet_id"]][part] for part in _FIELDS]}
    regions.sort(key=lambda row: (row["triplet_id"], row["region_id"]))
    order = dict.fromkeys(row["triplet_id"] for row in regions)
    lines = _Known(export, "gallery", {name: number for number, name in enumerate(order)})
    with export.file("captions.txt", rows=len(lines)) as stream:
        for name in order:
            stream.write(_line(captions[name]["caption"], name))
    _write_table(export, "retrieval_db.tsv", _REGIONS, map(_region, regions), "\t")
    rows = ([row["region_id"], *row["words"], number] for number, row in enumerate(regions))
    _write_table(export, "triplets.csv", ("region_id", "subj", "rel", "obj", "dataset_id"), rows)
    numbers = {row["region_id"]: number for number, row in enumerate(regions)}
    places = _Known(export, "gallery", numbers)
    _write_table(export, "transfos.csv", _TRANSFOS, _queries(export, lines, places))


class _Known(dict[str, Any]):
    def __init__(self, export: Export, table: str, found: dict[str, Any]) -> None:
        super().__init__(found)
        self._where = f"{export.dataset.folder}: no row of {table!r}"

    def __missing__(self, name: str) -> Any:
        raise InputError(
            f"{self._where} has the id {name_of(name)}, but another row refers to it; {ADVICE}"
        )


def _region(row: dict[str, Any]) -> list[Any]:
    subject, relation, target = row["words"]
    boxes = [
        ",".join(str(row[name][side]) for side in ("x0", "y0", "x1", "y1"))
        for name in ("subject_box", "object_box", "box")
    ]
    names = [row["region_id"], row["source_id"]]
    return [*names, "", subject, relation, "", target, "", "", *boxes]


def _queries(export: Export, lines: _Known, places: _Known) -> Iterator[list[Any]]:
    number = 0
    for part in export.all_parts():
        for table in part.tables():
            for row in table.to_pylist():
                yield [
                    *(number, number, row["region_id"], _FIELDS[row["part"]]),
                    *(row["source_word"], row["target_word"], ""),
                    *(lines[row["source_triplet_id"]], lines[row["target_triplet_id"]]),
                    *(places[row["region_id"]], row["frequency"], part.split.value == "test"),
                ]
                number += 1


def _line(caption: str, name: str) -> bytes:
    if len(caption.splitlines()) != 1 or not caption.strip():
        raise InputError(
            f"captions.txt: the caption of {shown(name)} is empty, or has several lines. Correct "
            "it in your --captions file, and build again."
        )
    return caption.encode() + b"\n"


def _write_table(
    export: Export,
    path: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    separator: str = ",",
) -> None:
    with export.file(path) as stream:
        for number, row in enumerate(itertools.chain([header], rows)):
            text = io.StringIO(newline="")
            csv.writer(text, delimiter=separator, lineterminator="\n").writerow(row)
            stream.write(text.getvalue().encode())
            stream.rows = number


WRITERS: Final = {"simat": Writer(_write, _refusal)}
