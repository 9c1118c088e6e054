"""What the Flex template runs: `eqforge build` with its two parameters, which submits the job."""

import dataclasses
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence

from eqforge.cli import main
from eqforge.pipelines.shared.registry import pipeline_of
from eqforge.schemas.errors import InputError, reported_errors
from eqforge.schemas.io import storage
from eqforge.schemas.tables.datasets import DATASETS

OPENED_BY_WORKERS = ("videos", "images")


def command(arguments: Sequence[str], inputs: str) -> list[str]:
    """Translates a Flex template's arguments into those of `eqforge`.

    Args:
      arguments: `--name=value` each, as Dataflow gives them: the parameters `dataset` and
        `arguments`, among Beam's own options.
      inputs: a folder into which annotations in a bucket are copied: only the launcher reads them.

    Raises:
      InputError: the dataset is unknown, a quotation is not closed, or a file is missing.
    """
    values = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
    dataset = values.get("dataset", "")
    if dataset not in DATASETS:
        raise InputError(f"--dataset {dataset}: expected one of {', '.join(DATASETS)}")
    try:
        words = shlex.split(values.get("arguments", ""))
    except ValueError as error:
        raise InputError(f"--arguments: {error}") from error
    end = words.index("--") if "--" in words else len(words)
    beam = [a for a in arguments if not a.startswith(("--dataset=", "--arguments="))]
    own = fetched(words[:end], files_of(dataset), inputs)
    # The launcher must end once the job is submitted, or the service considers it stuck.
    return ["build", dataset, *own, "--", *words[end + 1 :], *beam, "--no_wait_until_finish"]


def files_of(dataset: str) -> set[str]:
    """Returns the names, with dashes, of a dataset's options that take a path."""
    config = pipeline_of(dataset).config
    fields = dataclasses.fields(config)
    return {field.name.replace("_", "-") for field in fields if "Path" in str(field.type)}


def fetched(words: Sequence[str], files: set[str], inputs: str) -> Iterator[str]:
    """Yields a command line with local copies in place of files in buckets.

    Raises:
      InputError: see fetch.
    """
    name = ""
    for word in words:
        flag, value = "", word
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            flag, name = name + equals, name.removeprefix("--").replace("_", "-")
        yield flag + (fetch(name, value, inputs) if name in files and "://" in value else value)


def fetch(name: str, url: str, inputs: str) -> str:
    """Copies a file or folder from a bucket and returns the path of the copy.

    Raises:
      InputError: it does not exist, or workers would have to open it.
    """
    if name in OPENED_BY_WORKERS:
        raise InputError(
            f"--{name} {url}: every worker opens files in this folder, so it has to lie in the "
            "image, as docs/guides/dataflow.md describes; a bucket is no folder to them"
        )
    system, path = storage.locate(url)
    copy = os.path.join(inputs, name, os.path.basename(path.rstrip("/")))
    if not system.exists(path):
        raise InputError(f"--{name} {url}: no such file")
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    system.get(path, copy, recursive=system.isdir(path))
    return copy


if __name__ == "__main__":
    with (
        reported_errors(goes_on=True),
        tempfile.TemporaryDirectory(prefix="eqforge-inputs-") as folder,
    ):
        sys.exit(main(command(sys.argv[1:], folder)))
