"""The form of the published hard positives (Kamath et al.).

Source: github.com/amitakamath/hard_positives, data/ and swapped_data/.
"""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.benchmarks import replace_swap
from eqforge.sources.benchmarks.form import source_order
from eqforge.transforms.dataset.sorted_runs import Run, RunSorter, merge_runs
from eqforge.transforms.export.names import is_safe, key_of
from eqforge.transforms.export.sorted_records import rows_by
from eqforge.transforms.export.target import Export

# File names, without suffix, by how the negative was made; VL-CheckList's as published.
PUBLISHED_NAMES: Final = {
    "vl-checklist/attribute": "vl_checklist_attributes",
    "vl-checklist/relation": "vl_checklist_relations",
}
NAMES: Final = (*PUBLISHED_NAMES.values(), "text_pairs", "captions")
FOLDERS: Final = replace_swap.FOLDERS
IMPORTED: Final = "replace-swap"
_IMPORTED_COLUMNS: Final = (
    *("dataset", "kind", "image", "box", "annotation"),
    *("caption", "hard_positive", "hard_negative"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class HardPositiveRow:
    """The columns of a hard-positives dataset that are exported.

    Attributes:
      sample_id, image, caption, hard_positive, hard_negative, hard_negative_kind, source_order,
        box: as in `HardPositiveSample`.
    """

    sample_id: str
    image: str
    caption: str
    hard_positive: str
    hard_negative: str
    hard_negative_kind: str
    source_order: tuple[int, ...]
    box: CornerBox | None

    @property
    def name(self) -> str:
        """The name, without suffix, of the row's two files."""
        if self.hard_negative_kind.split("/")[0] == "source":
            return "text_pairs"
        return PUBLISHED_NAMES.get(self.hard_negative_kind, "captions")

    @property
    def sort_key(self) -> str:
        """Its place in the source, then its id; sorts as text."""
        return "/".join([*(f"{number:012d}" for number in self.source_order), self.sample_id])

    def entry(self, true_caption: str) -> dict[str, Any]:
        """Returns the row's record in a file, with one of the two true captions."""
        is_published = self.hard_negative_kind in PUBLISHED_NAMES
        entry: dict[str, Any] = {
            "image_id": PurePosixPath(self.image).stem,
            "true_caption": true_caption,
            "false_caption": self.hard_negative,
            "image_path": f"data/{self.image}" if is_published else self.image,
        }
        if (box := self.box) is not None:
            corner = {"bbox_x": box.x0, "bbox_y": box.y0}
            entry |= {**corner, "bbox_w": box.width, "bbox_h": box.height}
        return entry


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a table cannot be written so; empty where it can."""
    columns, name = dataset.columns(table), dataset.manifest.dataset
    if not {"caption", "hard_positive", "hard_negative"}.issubset(columns):
        return "expected rows with a caption, a hard positive and a hard negative"
    if name == IMPORTED:
        return ""
    if missing := sorted(HardPositiveRow.__dataclass_fields__.keys() - set(columns)):
        if name != "hard-positives":
            return f"expected a hard-positives or {IMPORTED} dataset, found {name}"
        return f"its samples have no column {missing[0]!r}: build it again by this version"
    return ""


def write(export: Export) -> None:
    """Writes a hard-positives dataset as the authors of the published sets wrote theirs."""
    is_imported = export.dataset.manifest.dataset == IMPORTED
    with contextlib.ExitStack() as files:
        writers: dict[str, list[Callable[[Any], None]]] = {}
        for name, records in _imported(export) if is_imported else _own(export):
            if name not in writers:
                writers[name] = [
                    files.enter_context(_json_array(export, f"{folder}/{name}.json"))
                    for folder in FOLDERS
                ]
            for add, record in zip(writers[name], records, strict=True):
                add(record)


def _own(export: Export) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yields each row's file and its records, one for each folder."""
    for row in in_source_order(export.dataset):
        yield row.name, [row.entry(caption) for caption in (row.caption, row.hard_positive)]
        export.tick(1)


def _imported(export: Export) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yields the same of the published files, or others of their form, that were imported."""
    for row in rows_by(export, _IMPORTED_COLUMNS, _place):
        name = row["kind"] if is_safe(f"data/{row['kind']}.json") else key_of(row["kind"])
        captions = (row["caption"], row["hard_positive"])
        yield name, [replace_swap.write(row, caption) for caption in captions]


def _place(row: dict[str, Any]) -> str:
    """Returns a row's place in its file; rows of several files come in turn."""
    return f"{source_order(row):012d}"


def in_source_order(dataset: Dataset) -> Iterator[HardPositiveRow]:
    """Yields the rows of a hard-positives dataset in its source's order, in bounded memory.

    Raises:
      InputError: a file is missing or damaged.
    """
    columns = HardPositiveRow.__dataclass_fields__
    with tempfile.TemporaryDirectory(prefix="eqforge-") as folder:
        sorter = RunSorter(lambda row: row.sort_key, 1, f"{folder}/")
        runs: list[tuple[int, Run]] = []
        for row in dataset.rows("samples", list(columns)):
            runs += sorter.add(msgspec.convert(row, HardPositiveRow))
        runs += sorter.flush()
        for _, data in merge_runs([run for _, run in runs]):
            yield msgspec.json.decode(data, type=HardPositiveRow)


@contextlib.contextmanager
def _json_array(export: Export, path: str) -> Iterator[Callable[[Any], None]]:
    """Opens a file for a JSON array of at least one record, in the layout of Python's json.dump."""
    with export.file(path) as stream:

        def add(record: Any) -> None:
            stream.write((b", " if stream.rows else b"[") + json.dumps(record).encode())
            stream.rows += 1

        yield add
        stream.write(b"]")
