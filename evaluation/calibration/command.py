"""`eqforge calibrate`: fits what judges say to labels by hand, and writes a small file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import tyro

from eqforge.core.console import DocumentOptions, give
from eqforge.core.errors import InputError
from eqforge.core.shell import shell
from eqforge.core.visible import counted, in_lines

if TYPE_CHECKING:
    from eqforge.evaluation.calibration.rows import Labelled
    from eqforge.sources.calibration import Calibration, Check

_NAMES: Final = {
    "hard_positive": "hard positives",
    "hard_negative": "hard negatives",
    "rows": "rows, both texts right",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Fit the probability that a row is right to what judges say of it and people label by hand.

    The file is for --calibration of a build with the same judges. Each text has a curve of its own;
    Brier score and expected calibration error are of pictures that a curve had not seen.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of hard positives or training captions that were built with --verify."""

    labels: Path
    """JSON lines with id (sample_id of hard positives, caption_id of training captions), positive
    (ok, unidiomatic, ungrammatical or wrong) and negative (false, unclear, ungrammatical or true),
    or true where it is right and false where not; of several readers as lists. With near and texts,
    if you like: a label of other texts than the dataset's is left out."""

    output: Path
    """The file to write."""

    sample: str | None = None
    """Take the labels of this sample alone, where the lines have one."""

    method: Literal["logistic", "isotonic"] = "logistic"
    """logistic: of the log-odds of all answers. isotonic: rising steps over their mean, for a
    thousand labels or more."""

    folds: int = 5
    """How many the pictures are dealt into for the checks."""

    resamples: int = 1000
    """How often the bootstrap of the intervals draws."""

    seed: int = 0
    """Seed of the bootstrap."""

    overwrite: bool = False
    """Replace an existing file."""


def calibrate_command(arguments: Arguments) -> int:
    """Writes a calibration and prints how good it is; returns the exit status."""
    labelled, found = calibrate(arguments)
    print(in_lines([*_lines(labelled, found), f"{arguments.output}: written"]))
    give(found)
    return 0


def calibrate(arguments: Arguments) -> "tuple[Labelled, Calibration]":
    """Fits and writes a calibration.

    Raises:
      InputError: the dataset was not judged, a label is none, there are too few, or the file is
        there.
      MissingExtra: scikit-learn is not installed.
    """
    from eqforge.core.files import storage
    from eqforge.evaluation.calibration.fit import FitSettings, fit
    from eqforge.evaluation.calibration.rows import judged_rows, with_labels
    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.sources.calibration import calibration_json
    from eqforge.sources.row_labels import read_labels

    if arguments.folds < 2 or arguments.resamples < 1 or arguments.seed < 0:
        raise InputError("expected --folds of at least 2, --resamples of 1 and --seed of 0")
    if arguments.output.exists() and not arguments.overwrite:
        raise InputError(f"--output {arguments.output}: exists; add --overwrite to replace it")
    labels = [
        label for label in read_labels(arguments.labels) if arguments.sample in (None, label.sample)
    ]
    labelled = with_labels(judged_rows(open_dataset(arguments.dataset)), labels)
    settings = FitSettings(
        method=arguments.method,
        folds=arguments.folds,
        resamples=arguments.resamples,
        seed=arguments.seed,
    )
    found = fit(labelled.rows, settings)
    storage.write_bytes(str(arguments.output), calibration_json(found))
    return labelled, found


def _lines(labelled: "Labelled", found: "Calibration") -> Iterator[str]:
    left = [
        f"{count:,} {why}"
        for count, why in (
            (labelled.other_texts, "of other texts"),
            (labelled.not_there, "of rows that are not there"),
        )
        if count
    ]
    left_out = f"; left out: {', '.join(left)}" if left else ""
    yield f"{counted(len(labelled.rows), 'labels')} of the dataset's rows{left_out}"
    for name, check in found.checks.items():
        yield f"{_NAMES[name]}: {_told(check)}"
    idle = [
        _NAMES[name]
        for name, check in found.checks.items()
        if 0 < check.right < check.rows and check.brier >= check.brier_of_share
    ]
    if idle:
        yield (
            f"{'; '.join(idle)}: judges tell right from wrong no better than the share alone; "
            "label more rows, or name other judges"
        )


def _told(check: "Check") -> str:
    low, high = check.brier_interval
    least, most = check.ece_interval
    return (
        f"{check.right:,} of {check.rows:,} right, Brier score {check.brier:.4f} "
        f"[{low:.4f}, {high:.4f}] against {check.brier_of_share:.4f} of their share alone, "
        f"calibration error {check.ece:.4f} [{least:.4f}, {most:.4f}]"
    )


main = shell("eqforge calibrate", Arguments, calibrate_command, console=DocumentOptions)
"""Fits a calibration to what a command line names."""
