"""The command `eqforge finetune`: trains a model that matches images with captions."""

import sys
from collections.abc import Sequence

from eqforge.core.console import session
from eqforge.core.errors import reported_errors
from eqforge.evaluation.training.settings import parse_settings

_DESCRIPTION = """Train a dual encoder, or linear layers behind a CLIP, on a dataset with images.

The losses are added up by their weights. The folder that is written can be named wherever a model
is asked for, behind the kind that it was, as clip:FOLDER."""


def main(argv: Sequence[str] | None = None) -> int:
    """Trains what the command line names; returns 0.

    Raises:
      SystemExit: 1 if the training broke off, 2 for input that cannot be trained on; see
        reported_errors.
    """
    with reported_errors(), session():
        settings = parse_settings(None if argv is None else list(argv), _DESCRIPTION)
        from eqforge.evaluation.training.finetune import finetune

        done = finetune(settings)
        if done is not None:
            print(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
