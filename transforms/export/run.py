"""Runs an export: checks, then the files, then the note that marks it as complete.

`--redistributable` exports only rows whose licences allow redistribution. Sources state licences: a
video's caption file, a record's field `licence` or `license`, a published benchmark's texts. An
image without a stated licence is left out, and so is a text without an image.
"""

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped
from eqforge.core.files.table_file import TableFile
from eqforge.core.identity import versions_of
from eqforge.core.visible import counted
from eqforge.schemas.dataset.about import (
    ANNOTATION,
    FIELDS,
    ORIGINS,
    annotated,
    is_redistributable,
    of_picture,
    of_record,
    origins,
    spdx,
    stated,
)
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import table_type
from eqforge.transforms.export.formats import FORMATS, RECIPE, ExportSettings
from eqforge.transforms.export.names import picture_references
from eqforge.transforms.export.note import ExportNote, begin
from eqforge.transforms.export.rows import check_files
from eqforge.transforms.export.target import Export

_MOST_LICENCES: Final = 100
_DATASET: Final = "dataset"


def export_dataset(
    dataset: Dataset, settings: ExportSettings, output: str, *, overwrite: bool = False
) -> ExportNote:
    """Write a finished dataset in another format; resume a stopped run of the same export.

    Args:
      output: folder or URL: new, empty, or with an earlier export.
      overwrite: whether an earlier, different export is deleted first.
    """
    form, table = FORMATS[settings.format], settings.table
    kind = table_type(dataset.manifest.dataset, table)
    if kind is None or not dataset.manifest.num_rows(table):
        raise InputError(f"{dataset.folder}: the table {table!r} has no rows to export")
    if kind.holds_pictures:
        raise InputError(
            f"--table {table}: this table cannot be exported alone; choose a table whose rows use "
            "the images, such as samples"
        )
    changes = settings.redistributable or settings.max_side or settings.image_format != "keep"
    if settings.format == RECIPE and changes:
        raise InputError(
            "--format recipe: a recipe contains no images or text; omit --redistributable, "
            "--max-side and --image-format"
        )
    if settings.image_files and not form.image_files:
        able = " or ".join(name for name, each in FORMATS.items() if each.image_files)
        raise InputError(
            f"--image-files works only with --format {able}; the {form.name} format has no "
            "separate image files"
        )
    check_files(dataset, table)
    left_out: dict[str, int] = {}
    if settings.redistributable:
        dataset, left_out = redistributable(dataset, table)
    if refusal := form.refusal(dataset, table):
        raise InputError(f"{dataset.folder}: --format {settings.format}: {refusal}")
    note = ExportNote(
        dataset=dataset.manifest.dataset,
        dataset_sha256=dataset.sha256,
        settings=dataclasses.asdict(settings),
        versions=versions_of("eqforge", "pyarrow", "pillow"),
        left_out=left_out,
    )
    ledger = begin(output, note, overwrite)
    if ledger.is_finished:
        return ledger.note()
    with contextlib.ExitStack() as stack:
        stack.callback(ledger.keep)
        export = Export(dataset, settings, ledger)
        stack.callback(export.close)
        form.write(export)
        dataset.check_unreplaced()
        return ledger.finish()


@dataclass(frozen=True, kw_only=True, slots=True)
class PartOfDataset(Dataset):
    """Some rows of a table of a dataset, and the images; the other tables are left out.

    Attributes:
      kept: rows to read, bool [rows], by file path.
    """

    whole: Dataset
    kept: dict[str, npt.NDArray[np.bool_]]

    @contextlib.contextmanager
    def open_file(self, path: str) -> Iterator[TableFile]:
        with self.whole.open_file(path) as opened:
            yield opened

    def check_unreplaced(self) -> None:
        self.whole.check_unreplaced()

    def file_batches(
        self, path: str, columns: Sequence[str] | None = None, rows: int = 1_000
    ) -> Iterator[pa.RecordBatch]:
        start, kept = 0, self.kept.get(path)
        for batch in self.whole.file_batches(path, columns, rows):
            if kept is not None:
                mask = kept[start : start + batch.num_rows]
                start += batch.num_rows
                batch = batch.filter(pa.array(mask))
            if batch.num_rows:
                yield batch


def redistributable(dataset: Dataset, table: str) -> tuple[Dataset, dict[str, int]]:
    """Select the rows that may be redistributed.

    Returns:
      A dataset with only this table and `images`, and the number of rows left out by the licences
      that forbid redistribution, as SPDX ids, joined by commas.
    """
    kept: dict[str, npt.NDArray[np.bool_]] = {}
    left_out: Counter[str] = Counter()
    names, pictures = dataset.columns(table), picture_references(dataset, table)
    lineage = [name for name in ORIGINS if name in names]
    read = [*lineage, *pictures, *(n for n in (*FIELDS, ANNOTATION, _DATASET) if n in names)]
    for file in dataset.files(table):
        found: list[bool] = []
        for batch in dataset.file_batches(file.path, read or names[:1], 10_000):
            for row in batch.to_pylist():
                refused = _refused(row, pictures, lineage, dataset.manifest.dataset)
                found.append(not refused)
                left_out.update([refused] if refused else ())
        kept[file.path] = np.asarray(found, bool)
    ranked = sorted(left_out.items(), key=lambda each: (-each[1], each[0]))
    counts = dict(ranked[:_MOST_LICENCES])
    if rest := sum(count for _, count in ranked[_MOST_LICENCES:]):
        counts["others"] = rest
    if not any(mask.any() for mask in kept.values()):
        rows = counted(left_out.total(), "rows")
        licences = "; ".join(f"{name} ({count:,})" for name, count in counts.items())
        raise InputError(
            f"{dataset.folder}: --redistributable leaves out all {rows}, because no licence allows "
            f"redistribution. Rows by licence: {licences}. To let others rebuild the dataset from "
            "their own sources, use --format recipe."
        )
    files = [replace(file, rows=int(kept[file.path].sum())) for file in dataset.files(table)]
    tables = {table: files, "images": dataset.files("images")}
    manifest = replace(dataset.manifest, tables={k: v for k, v in tables.items() if v})
    part = PartOfDataset(
        folder=dataset.folder, manifest=manifest, sha256=dataset.sha256, whole=dataset, kept=kept
    )
    return part, counts


def _refused(
    row: dict[str, Any], pictures: Sequence[str], lineage: Sequence[str], dataset: str
) -> str:
    """Return a row's licences that forbid redistribution; empty if there are none.

    Args:
      pictures: columns of image keys.
      dataset: the dataset of rows that name none.
    """
    annotation = annotated(row.get(ANNOTATION))
    known = BENCHMARKS.get(row.get(_DATASET, dataset) or dataset)
    row_licences = [*stated(row), *of_record(annotation)]
    count = sum(row[name] is not None for name in pictures)
    sources = [row[name] for name in lineage] or origins(annotation)
    licences: list[str | None] = []
    for number in range(max(count, len(sources))):
        licences += of_picture(row_licences, sources, number, count)
    if not sources or len(sources) < count:
        licences += row_licences or [known.licence if known else None]
    return ", ".join(sorted({_name(each) for each in licences if not _is_allowed(each)}))


_is_allowed = functools.lru_cache(maxsize=10_000)(is_redistributable)


@functools.lru_cache(maxsize=10_000)
def _name(licence: str | None) -> str:
    return clipped(spdx(licence) or licence) if licence else "not stated"
