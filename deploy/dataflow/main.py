"""What a Flex template runs: turns its parameters into `eqforge build`, and submits the job."""

import os
import sys
import tempfile

from eqforge.cli import main
from eqforge.pipelines.shared.registry import pipeline_of
from eqforge.pipelines.shared.templates import command_line, dataset_of, options_of
from eqforge.schemas.errors import InputError, reported_errors
from eqforge.schemas.io import storage
from eqforge.schemas.tables.datasets import DATASETS

OPENED_BY_WORKERS = ("videos", "images")


def command(arguments: list[str], inputs: str) -> list[str]:
    """Returns the arguments of `eqforge` that a template's arguments mean.

    Args:
      arguments: of the template.
      inputs: a folder, to which annotations in a bucket are copied: only the launcher reads them.

    Raises:
      InputError: they name no dataset there is, or a file that is not there.
    """

    def fetch(name: str, value: str) -> str:
        return fetched(name, value, inputs)

    dataset = dataset_of(arguments)
    if dataset not in DATASETS:
        raise InputError(f"--dataset {dataset}: expected one of {', '.join(DATASETS)}")
    options = options_of(pipeline_of(dataset))
    # The launcher must end once the job is submitted, or the service takes it to hang.
    own = command_line(options, arguments, fetch)
    return ["build", dataset, *own, "--no_wait_until_finish"]


def fetched(name: str, value: str, inputs: str) -> str:
    """Returns the path of a local copy of a file or folder in a bucket, or of a local one itself.

    Raises:
      InputError: it is not there, or of the sort that workers open.
    """
    if "://" not in value:
        return value
    if name in OPENED_BY_WORKERS:
        raise InputError(
            f"--{name} {value}: every worker opens files in this folder, so it has to lie in the "
            "image, as deploy/dataflow/README.md describes; a bucket is no folder to them"
        )
    system, path = storage.locate(value)
    copy = os.path.join(inputs, name, os.path.basename(path.rstrip("/")))
    if not system.exists(path):
        raise InputError(f"--{name} {value}: no such file")
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    system.get(path, copy, recursive=system.isdir(path))
    return copy


if __name__ == "__main__":
    with (
        reported_errors(goes_on=True),
        tempfile.TemporaryDirectory(prefix="eqforge-inputs-") as folder,
    ):
        sys.exit(main(command(sys.argv[1:], folder)))
