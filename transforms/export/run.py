"""Runs an export: checks, then the files, then the note that says that it is complete."""

import contextlib
import dataclasses

from eqforge.core.errors import InputError
from eqforge.core.versions import versions_of
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.datasets import table_type
from eqforge.transforms.export.formats import FORMATS, RECIPE
from eqforge.transforms.export.note import ExportNote, begin
from eqforge.transforms.export.redistributable import redistributable
from eqforge.transforms.export.rows import check_files
from eqforge.transforms.export.settings import ExportSettings
from eqforge.transforms.export.target import Export


def export_dataset(
    dataset: Dataset, settings: ExportSettings, output: str, *, overwrite: bool = False
) -> ExportNote:
    """Writes a dataset in another form; goes on where a run of the same export was stopped.

    Args:
      dataset: a finished one.
      settings: the format and its options.
      output: folder or URL: new, empty, or with an earlier export.
      overwrite: whether an earlier export of something else is deleted first.

    Returns:
      What the folder holds now.

    Raises:
      InputError: the dataset cannot be written so, or is damaged, or the folder has something else.
    """
    form, table = FORMATS[settings.format], settings.table
    kind = table_type(dataset.manifest.dataset, table)
    if kind is None or not dataset.manifest.num_rows(table):
        raise InputError(f"{dataset.folder}: has no rows of {table!r} to export")
    if kind.holds_pictures:
        raise InputError(
            f"--table {table}: holds the pictures themselves, which go with the rows that show "
            "them; name a table of such rows, such as samples"
        )
    changes = settings.redistributable or settings.max_side or settings.image_format != "keep"
    if settings.format == RECIPE and changes:
        raise InputError(
            "--format recipe: has no pictures and texts; leave out --redistributable, --max-side "
            "and --image-format"
        )
    if settings.image_files and not form.image_files:
        able = ", ".join(name for name, each in FORMATS.items() if each.image_files)
        raise InputError(f"--image-files: is for --format {able}; {form.name} has no such files")
    check_files(dataset, table)
    left_out: dict[str, int] = {}
    if settings.redistributable:
        dataset, left_out = redistributable(dataset, table)
    if refusal := form.refusal(dataset, table):
        raise InputError(f"{dataset.folder}: --format {settings.format}: {refusal}")
    ledger = begin(output, _note(dataset, settings, left_out), overwrite)
    if ledger.is_finished:
        return ledger.note()
    with contextlib.ExitStack() as stack:
        stack.callback(ledger.keep)
        export = Export(dataset, settings, ledger)
        stack.callback(export.close)
        form.write(export)
        dataset.check_unreplaced()
        return ledger.finish()


def _note(dataset: Dataset, settings: ExportSettings, left_out: dict[str, int]) -> ExportNote:
    return ExportNote(
        dataset=dataset.manifest.dataset,
        dataset_sha256=dataset.sha256,
        settings=dataclasses.asdict(settings),
        versions=versions_of("eqforge", "pyarrow", "pillow"),
        left_out=left_out,
    )
