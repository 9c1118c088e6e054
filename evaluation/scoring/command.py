"""The command `eqforge score`."""

import sys
from collections.abc import Sequence

import tyro

from eqforge.evaluation.scoring.run import score_dataset
from eqforge.evaluation.scoring.settings import ScoreSettings
from eqforge.schemas.dataset.score_tables import ScoresManifest
from eqforge.schemas.errors import BuildError, EqforgeError, tell
from eqforge.schemas.visible import in_lines


def main(argv: Sequence[str] | None = None) -> int:
    """Scores what the command line names; returns the exit status.

    Returns:
      0, or 1 where the work ended before it was done, or 2 for input that cannot be scored.
    """
    try:
        settings = tyro.cli(ScoreSettings, args=argv, prog="eqforge score")
        print(summary(str(settings.output), score_dataset(settings)))
    except EqforgeError as error:
        tell("eqforge score", error)
        return 1 if isinstance(error, BuildError) else 2
    return 0


def summary(output: str, manifest: ScoresManifest) -> str:
    """Returns what was scored, in a few lines."""
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


if __name__ == "__main__":
    sys.exit(main())
