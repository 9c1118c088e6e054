"""The command `eqforge score`."""

import sys
from typing import TYPE_CHECKING

from eqforge.evaluation.scoring.settings import ScoreSettings
from eqforge.schemas.shell import shell
from eqforge.schemas.visible import in_lines

if TYPE_CHECKING:
    from eqforge.schemas.dataset.score_tables import ScoresManifest


def summary(output: str, manifest: "ScoresManifest") -> str:
    """Returns a summary of the scores, a few lines."""
    lines = [f"{output}: {manifest.task} of {manifest.dataset} by {manifest.model.name}"]
    for name, counts in manifest.counts.items():
        lines.append(
            f"  {name}: {counts.expected:,} expected = {counts.scored:,} scored + "
            f"{counts.failed:,} failed"
        )
    lines += [f"  warning: {warning}" for warning in manifest.warnings]
    if any(counts.failed for counts in manifest.counts.values()):
        lines.append("  data/failures-00000-of-00001.parquet says why")
    return in_lines(lines)


def score_command(settings: ScoreSettings) -> int:
    """Scores a dataset and prints a summary; returns 0.

    Raises:
      EqforgeError: the input cannot be scored, or the work ended before it was done.
    """
    from eqforge.evaluation.scoring.run import score_dataset

    print(summary(str(settings.output), score_dataset(settings)))
    return 0


main = shell("eqforge score", ScoreSettings, score_command)
"""Scores what a command line names."""

if __name__ == "__main__":
    sys.exit(main())
