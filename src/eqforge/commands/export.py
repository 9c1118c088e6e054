"""`eqforge export`: write a finished dataset in another format."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

import tyro

from eqforge.core.console import DocumentOptions, print_document
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.shell import Command
from eqforge.core.visible import counted, nearest, series, visible
from eqforge.transforms.export.formats import FORMATS, ExportSettings

if TYPE_CHECKING:
    from eqforge.schemas.dataset.manifest import DataFile
    from eqforge.transforms.export.note import ExportNote


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments(ExportSettings):
    """Write a finished dataset in another format.

    Rows are sorted by id within each split, except that eqben and vl-checklist keep their published
    order. The same dataset always gives the same bytes. eqforge-export.json lists each file with
    its SHA-256 digest. To resume an interrupted export, run the same command again.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    format: Annotated[
        str,
        tyro.conf.arg(
            help="\n\n".join(
                (
                    "Name of the format. To list the formats, use --help-all.",
                    *(f"{f.name}: {f.summary}" for f in FORMATS.values()),
                )
            )
        ),
    ]

    output: str
    """Folder or URL for the files. It must be new or empty, or contain an earlier export."""

    overwrite: bool = False
    """Replace an earlier export. Only the files listed in its eqforge-export.json are deleted."""


def export_command(arguments: Arguments) -> None:
    note = export(arguments)
    if note.left_out:
        reasons = ", ".join(f"{name} ({count:,})" for name, count in note.left_out.items())
        print(visible(f"left out {counted(sum(note.left_out.values()), 'rows')}: {reasons}"))
    for line in _lines(arguments.output, note.files):
        print(line)
    print_document(note)


def export(arguments: Arguments) -> "ExportNote":
    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.transforms.export.run import export_dataset

    if arguments.format not in FORMATS:
        hint = nearest(arguments.format, FORMATS) or f"; the formats are {series(sorted(FORMATS))}"
        raise InputError(f"--format {arguments.format}: unknown format{hint}")
    values = {field.name: getattr(arguments, field.name) for field in fields(ExportSettings)}
    dataset = open_dataset(arguments.dataset)
    return export_dataset(
        dataset, ExportSettings(**values), arguments.output, overwrite=arguments.overwrite
    )


def _lines(output: str, files: "list[DataFile]") -> Iterator[str]:
    is_few = sum(1 for file in files if file.rows) <= 20
    folders: defaultdict[str, list[DataFile]] = defaultdict(list)
    for file in files:
        first, below, _ = file.path.partition("/")
        if (is_few and file.rows) or not below:
            about = f": {counted(file.rows, 'records')}" if file.rows else ""
            yield f"{storage.join(output, file.path)}{about}"
        else:
            folders[first].append(file)
    for folder, found in sorted(folders.items()):
        rows = sum(file.rows for file in found)
        about = f", {counted(rows, 'records')}" if rows else ""
        yield f"{storage.join(output, folder)}: {counted(len(found), 'files')}{about}"
    rows, size = sum(file.rows for file in files), sum(file.num_bytes for file in files)
    yield f"{output}: {counted(len(files), 'files')}, {counted(rows, 'rows')}, {size / 1e6:,.1f} MB"


main = Command(
    "eqforge export",
    Arguments,
    export_command,
    example="eqforge export out/eq-video --format hf --output out/hub",
    basics=(
        "table",
        "max-side",
        "image-format",
        "image-files",
        "redistributable",
        "rows-per-file",
        "overwrite",
    ),
    console=DocumentOptions,
)
