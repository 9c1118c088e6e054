"""What the Flex template runs: `eqforge build` with its two parameters, which submits the job."""

import shlex
import sys
from collections.abc import Sequence

from eqforge.cli import main
from eqforge.core.errors import InputError, reported_errors
from eqforge.schemas.tables.datasets import DATASETS


def command(arguments: Sequence[str]) -> list[str]:
    """Translates a Flex template's arguments into those of `eqforge`.

    Args:
      arguments: `--name=value` each, as Dataflow gives them: the parameters `dataset` and
        `arguments`, among Beam's own options.

    Raises:
      InputError: the dataset is unknown, or a quotation is not closed.
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
    # The launcher must end once the job is submitted, or the service considers it stuck.
    return [
        "build",
        dataset,
        *words[:end],
        "--",
        *words[end + 1 :],
        *beam,
        "--no_wait_until_finish",
    ]


if __name__ == "__main__":
    with reported_errors(goes_on=True):
        sys.exit(main(command(sys.argv[1:])))
