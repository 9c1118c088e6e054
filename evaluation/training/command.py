"""The command `eqforge finetune`: trains a model that matches images with captions."""

import sys
from collections.abc import Sequence

from eqforge.evaluation.training.finetune import finetune
from eqforge.evaluation.training.settings import parse_settings
from eqforge.schemas.errors import BuildError, EqforgeError, tell

_DESCRIPTION = """Train a CLIP or SigLIP, or linear layers behind a CLIP, on a dataset with images.

The losses are added up by their weights. The folder that is written can be named wherever a model
is asked for, as clip:FOLDER or siglip:FOLDER."""


def main(argv: Sequence[str] | None = None) -> int:
    """Trains what the command line names; returns the exit status.

    Returns:
      0, or 1 if the training broke off, or 2 for input that cannot be trained on.
    """
    arguments = None if argv is None else list(argv)
    settings = parse_settings(arguments, _DESCRIPTION)
    try:
        done = finetune(settings)
    except EqforgeError as error:
        tell("eqforge finetune", error)
        return 1 if isinstance(error, BuildError) else 2
    if done is not None:
        print(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
