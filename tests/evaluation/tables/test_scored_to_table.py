"""What `eqforge score` writes, `eqforge metrics` reads."""

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from eqforge.evaluation.scoring.command import main as score
from eqforge.evaluation.tables.command import main as metrics
from tests.made_datasets import pair_tables, write_pairs

pytest.importorskip("transformers")

MODEL = "python:tests.evaluation.scoring.own_models:make"


def test_a_scored_dataset_becomes_a_table(tmp_path: Path) -> None:
    """A model that sees red alone: every caption's score is that of its image, or 0."""
    tables = pair_tables(3)
    dataset = write_pairs(tmp_path / "d", tables)
    scored = [str(dataset), "--model", MODEL, "--output", str(tmp_path / "s"), "--workers", "0"]
    assert score(scored) == 0
    command = [str(dataset), str(tmp_path / "s"), "--ties", "expectation"]
    assert metrics([*command, "--output", str(tmp_path / "t"), "--resamples", "50"]) == 0
    found = [row for f in (tmp_path / "s" / "data").glob("scores-*") for row in _rows(f)]
    values = np.array([row["values"] for row in found]).reshape(-1, 2, 2)
    assert len(values) == len(tables["samples"])
    right = (values[:, [0, 1], [0, 1]] - values[:, [0, 1], [1, 0]] > 0).all(axis=1)
    tied = (values[:, [0, 1], [0, 1]] == values[:, [0, 1], [1, 0]]).sum(axis=1)
    lost = (values[:, [0, 1], [0, 1]] < values[:, [0, 1], [1, 0]]).any(axis=1)
    expected = np.where(right, 1.0, np.where(lost, 0.0, 0.5**tied)).mean()
    with (tmp_path / "t" / "metrics.csv").open() as stream:
        rows = {row["metric"]: row for row in csv.DictReader(stream) if row["subset"] == "all"}
    assert float(rows["text"]["value"]) == pytest.approx(expected)
    assert rows["text"]["model"] == "own:redness@1"
    assert int(rows["text"]["expected"]) == len(tables["samples"])


def _rows(path: Path) -> list[dict[str, list[float]]]:
    return pq.read_table(path, columns=["values"]).to_pylist()
