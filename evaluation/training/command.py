"""The command `eqforge finetune`."""

import dataclasses
import sys
from collections.abc import Sequence

from eqforge.core.console import session
from eqforge.core.errors import reported_errors
from eqforge.core.shell import parse
from eqforge.evaluation.training.settings import PRESETS, FinetuneSettings
from eqforge.models.pretrained import import_torch

_DESCRIPTION = """Train a dual encoder, or linear layers behind a CLIP, on a dataset with images.

The losses are added up by their weights. The folder that is written can be named wherever a model
is asked for, behind the kind that it was, as clip:FOLDER."""


def parse_settings(argv: list[str] | None) -> FinetuneSettings:
    """Parse a command line; a preset overrides the defaults."""
    common = {"prog": "eqforge finetune", "description": _DESCRIPTION}
    first: FinetuneSettings = parse(FinetuneSettings, argv, **common)
    if first.preset == "none":
        return first
    chosen = dict(PRESETS[first.preset])
    losses = chosen.pop("loss")
    start = FinetuneSettings(
        dataset=first.dataset, model=first.model, output=first.output, **chosen
    )
    found: FinetuneSettings = parse(FinetuneSettings, argv, default=lambda _: start, **common)
    return dataclasses.replace(found, loss=found.loss or losses)


def main(argv: Sequence[str] | None = None) -> int:
    """Train what the command line names; return 0.

    Raises:
      SystemExit: 1 if the training broke off, 2 for input that cannot be trained on; see
        reported_errors.
    """
    with reported_errors(), session():
        settings = parse_settings(None if argv is None else list(argv))
        settings.check_ranges()
        import_torch()
        from eqforge.evaluation.training.finetune import finetune

        done = finetune(settings)
        if done is not None:
            print(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
