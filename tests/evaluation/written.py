"""What `eqforge metrics --output` wrote."""

import csv
from pathlib import Path
from typing import Any


def rows_by(folder: Path, *names: str) -> dict[Any, dict[str, str]]:
    """Returns the numbers of a table by subset and metric, or by other columns."""
    names = names or ("subset", "metric")
    with (folder / "metrics.csv").open() as stream:
        return {tuple(row[name] for name in names): row for row in csv.DictReader(stream)}
