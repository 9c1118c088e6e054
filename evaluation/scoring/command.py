"""The command `eqforge score`."""

import sys
from collections import Counter
from typing import TYPE_CHECKING

from eqforge.core.shell import shell
from eqforge.core.visible import in_lines
from eqforge.evaluation.scoring.settings import ScoreSettings

if TYPE_CHECKING:
    from eqforge.schemas.dataset.score_tables import ScoresManifest


def summary(output: str, manifest: "ScoresManifest") -> str:
    lines = [f"{output}: {manifest.task} of {manifest.dataset} by {manifest.model.name}"]
    for name, counts in manifest.counts.items():
        lines.append(
            f"  {name}: {counts.expected:,} expected = {counts.scored:,} scored + "
            f"{counts.failed:,} failed"
        )
    lines += [f"  warning: {warning}" for warning in manifest.warnings]
    if any(counts.failed for counts in manifest.counts.values()):
        lines.append(f"  {_commonest(output)}")
        lines.append("  data/failures-00000-of-00001.parquet says why")
    if _lacks_scores(manifest):
        lines.append("  nothing was scored")
    return in_lines(lines)


def _commonest(output: str) -> str:
    from eqforge.schemas.dataset.score_tables import open_scores

    reasons: Counter[tuple[str, str]] = Counter()
    for batch in open_scores(output).batches("failures", ["table", "reason"]):
        reasons.update((row["table"], row["reason"]) for row in batch.to_pylist())
    (table, reason), count = min(reasons.items(), key=lambda item: (-item[1], item[0]))
    return f"commonest reason: {reason}, of {count:,} {table}"


def _lacks_scores(manifest: "ScoresManifest") -> bool:
    """Return True if all samples failed, or all images or captions."""
    return any(counts.expected and not counts.scored for counts in manifest.counts.values())


def score_command(settings: ScoreSettings) -> int:
    """Score a dataset and print a summary; return 0, or 1 if nothing could be scored."""
    from eqforge.evaluation.scoring.run import score_dataset

    manifest = score_dataset(settings)
    print(summary(str(settings.output), manifest))
    return int(_lacks_scores(manifest))


main = shell("eqforge score", ScoreSettings, score_command)
"""Scores what a command line names."""

if __name__ == "__main__":
    sys.exit(main())
