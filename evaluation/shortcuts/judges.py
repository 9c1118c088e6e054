"""All that captions are judged by without a picture."""

from collections.abc import Iterator

from eqforge.evaluation.shortcuts.audit import Judge, probe_judges
from eqforge.evaluation.shortcuts.likelihood import likelihood_judge
from eqforge.evaluation.shortcuts.transformer import can_train, transformer_judge


def blind_judges(folds: int = 5) -> dict[str, Judge]:
    """Returns the probes by name, the transformer where torch is installed.

    Args:
      folds: number of folds the images are split into.
    """
    judges = probe_judges(folds=folds) | {"likelihood": likelihood_judge(folds)}
    return judges | ({"transformer": transformer_judge(folds)} if can_train() else {})


def unasked() -> Iterator[str]:
    """Yields the probes that this machine cannot ask, with the reason."""
    if not can_train():
        yield "transformer: torch is not installed, of the extra 'models'"
