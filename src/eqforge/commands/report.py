"""`eqforge report`: write web pages that show every row of a dataset."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from eqforge.core.console import DocumentOptions, print_document
from eqforge.core.errors import InputError
from eqforge.core.shell import Command
from eqforge.core.urls import public
from eqforge.core.visible import counted, visible

if TYPE_CHECKING:
    from eqforge.evaluation.report.write import Report


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Write web pages that show a dataset's samples, scores and rejected candidates by stage.

    To view the pages, open index.html in any browser. No server is needed. To resume an interrupted
    report, run the same command again.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    output: Path | None = None
    """Folder for the report (default: DATASET-report, next to a local dataset)."""

    scores: tuple[Path, ...] = ()
    """Model scores to show with the samples, in any form that `eqforge metrics` accepts."""

    quantity: Literal["cosine", "logit", "probability", "score"] | None = None
    """Type of scores in your files. Folders written by `eqforge score` record this type."""

    thumbnails_only: bool = False
    """Show only thumbnails (320 pixels wide), without the full-size images."""

    overwrite: bool = False
    """Overwrite an earlier report, even if its dataset or scores differ."""


def report_command(arguments: Arguments) -> None:
    written = report_dataset(arguments)
    things = counted(written.samples, "items"), counted(written.rejects, "rejects")
    print(f"{visible(written.page)}: {things[0]}, {things[1]}; open this page in a browser")
    if written.undecodable:
        pictures = counted(written.undecodable, "images")
        print(f"  {pictures} could not be decoded or shown; to list the damage, run eqforge verify")
    print_document(written)


def report_dataset(arguments: Arguments) -> "Report":
    from eqforge.commands.card import profile_of
    from eqforge.commands.rejects import StoredRejects
    from eqforge.core.files import storage
    from eqforge.evaluation.report.write import write_report
    from eqforge.schemas.dataset.about import About
    from eqforge.schemas.dataset.card import title_of
    from eqforge.schemas.dataset.reader import open_dataset

    output = arguments.output
    if output is None:
        if not storage.is_local(arguments.dataset):
            raise InputError(
                f"{public(arguments.dataset)} is not on this machine. Choose a folder "
                "for the report with --output"
            )
        folder = Path(storage.locate(arguments.dataset)[1])
        output = Path(f"{folder if folder.name not in ('', '..') else folder.resolve()}-report")
    dataset = open_dataset(arguments.dataset)
    return write_report(
        dataset,
        profile_of(dataset, About(title=title_of(arguments.dataset))),
        StoredRejects(dataset),
        str(output),
        scores=arguments.scores,
        quantity=arguments.quantity,
        whole_pictures=not arguments.thumbnails_only,
        overwrite=arguments.overwrite,
    )


main = Command(
    "eqforge report",
    Arguments,
    report_command,
    example="eqforge report out/eq-video --output out/report",
    console=DocumentOptions,
)
