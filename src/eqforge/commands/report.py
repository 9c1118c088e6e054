"""`eqforge report`: writes a folder of pages that show every row of a dataset."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from eqforge.core.console import DocumentOptions, give
from eqforge.core.errors import InputError
from eqforge.core.shell import Command
from eqforge.core.urls import public
from eqforge.core.visible import counted, visible

if TYPE_CHECKING:
    from eqforge.evaluation.report.write import Report


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Write a folder of pages that show a dataset: open its index.html, from disk, in any browser.

    The first page says what the dataset is, what every stage refused, and how its scores are
    distributed; the others show every sample and every reject, to filter, sort, search and compare.
    The pages load nothing from elsewhere, and the folder can be copied or put on a web server. What
    was stopped goes on where it was.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    output: Path | None = None
    """Folder of the report; without it DATASET-report, beside a dataset on this machine."""

    scores: tuple[Path, ...] = ()
    """Scores of models, which are laid over the samples: folders that eqforge score wrote, files of
    one row per sample as eqforge metrics reads them, or what lmms-eval (*_samples_*.jsonl) or
    VLMEvalKit (.xlsx) wrote of each question."""

    quantity: Literal["cosine", "logit", "probability", "score"] | None = None
    """What a score in such a file is; folders say it themselves."""

    thumbnails_only: bool = False
    """Leave out the pictures as they are stored; the report has small ones alone, of 320 pixels."""

    overwrite: bool = False
    """Replace a report of another dataset, or of other scores, in the folder."""


def report_command(arguments: Arguments) -> int:
    written = report_dataset(arguments)
    things = counted(written.samples, "items"), counted(written.rejects, "rejects")
    print(f"{visible(written.page)}: {things[0]}, {things[1]}; open it in a browser")
    if written.undecodable:
        pictures = counted(written.undecodable, "pictures")
        print(f"  {pictures} cannot be decoded and are not shown; eqforge verify names them")
    give(written)
    return 0


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
                f"--output: name a folder for the report; {public(arguments.dataset)} is no folder "
                "of this machine, beside which it could lie"
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
