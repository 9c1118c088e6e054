"""The command `eqforge metrics`: scores in, the papers' tables out."""

from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.owned import write_files
from eqforge.core.shell import Command
from eqforge.evaluation.tables.render import FILES, FORMATS, Report
from eqforge.evaluation.tables.report import labelled
from eqforge.evaluation.tables.settings import MetricsSettings


def metrics_command(settings: MetricsSettings) -> None:
    report = metrics_report(settings)
    # Written before printing: the reader of standard output, such as `head`, may stop early.
    if settings.output is not None:
        write_tables(report, settings.output)
    show = "json" if settings.json else settings.show
    print(FORMATS[show](report), end="" if show != "text" else "\n")


def write_tables(report: Report, output: Path) -> None:
    files = {name: (f(report).rstrip("\n") + "\n").encode() for name, f in FILES.items()}
    try:
        write_files(str(output), files)
    except OSError as error:
        raise InputError(
            f"--output {output}: cannot be written: {error.strerror or error}"
        ) from error


def metrics_report(settings: MetricsSettings) -> Report:
    from eqforge.evaluation.tasks.registry import dataset_report, format_report

    if not settings.paths:
        raise InputError("pass the files to evaluate. For an example, run eqforge metrics --help")
    measured = dataset_report if settings.format == "dataset" else format_report
    return labelled(measured(settings), settings.labels)


main = Command(
    "eqforge metrics",
    MetricsSettings,
    metrics_command,
    example="eqforge metrics out/eq-video out/scores",
    basics=(
        *("format", "columns", "by", "ties", "mode", "show", "json", "labels", "output"),
        "allow-missing",
    ),
    keeps_output=True,
)
