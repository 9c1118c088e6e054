import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.evaluation.tables.command import main as command
from eqforge.evaluation.tables.papers import read_paper
from tests.evaluation.written import rows_by
from tests.statuses import status_of

main = status_of(command)


def _boundary(number: int, **changes: Any) -> str:
    """A boundary at 2.05 s of a clip of 4 s, found 0.05 + 0.2 * number seconds too late."""
    times = np.arange(20) / 5
    place = 2.0 + 0.2 * number
    line = {
        "boundary_id": f"b{number}",
        "video": f"v{number // 2}",
        "timestamp_s": 2.05,
        "before": (times < place + 0.1).astype(float).tolist(),
        "after": (times > place + 0.1).astype(float).tolist(),
    }
    return json.dumps(line | changes)


def test_boundaries_are_found_within_each_tolerance(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text("\n".join(_boundary(number) for number in (3, 0, 1, 2)))
    assert main(["--format", "boundaries", str(path), "--output", str(tmp_path)]) == 0
    rows = {metric: row for (_, metric), row in rows_by(tmp_path).items()}
    # Predicted at 2.1, 2.3, 2.5 and 2.7 s.
    expected = {"0.1 s": 0.25, "0.2 s": 0.25, "0.5 s": 0.75, "1 s": 1.0, "3 s": 1.0}
    assert {name: float(rows[name]["value"]) for name in expected} == pytest.approx(expected)
    assert rows["1 s"]["clusters"] == "2"
    places = np.arange(19) / 5 + 0.1
    assert float(rows["0.5 s"]["chance"]) == pytest.approx((np.abs(places - 2.05) < 0.5).mean())
    assert float(rows["mean"]["value"]) == pytest.approx((0.25 + 0.25 + 0.75 + 5) / 8)


def test_the_line_that_the_page_shows_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "metrics.md").read_text(
        encoding="utf-8"
    )
    line = next(line for line in page.splitlines() if line.startswith('{"boundary_id"'))
    (tmp_path / "m.jsonl").write_text(line)
    arguments = ["--format", "boundaries", str(tmp_path / "m.jsonl"), "--output", str(tmp_path)]
    assert main(arguments) == 0
    row = rows_by(tmp_path, "model", "subset", "metric")["m", "all", "0.5 s"]
    assert (row["value"], row["clusters"]) == ("1.0", "1")


def test_boundaries_that_one_file_lacks_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    whole.write_text("\n".join(_boundary(number) for number in range(4)))
    part.write_text(_boundary(1))
    arguments = ["--format", "boundaries", str(whole), str(part)]
    assert main(arguments) == 2
    assert "lacks 3 boundaries that other files contain, such as 'b0'" in capsys.readouterr().err
    assert main([*arguments, "--allow-missing", "--output", str(tmp_path)]) == 0
    row = rows_by(tmp_path, "model", "subset", "metric")["part", "all", "1 s"]
    assert (row["expected"], row["scored"], row["missing"]) == ("4", "1", "3")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([_boundary(0, after=[1.0])], "and at least 2; found 20 and 1"),
        ([_boundary(0, fps=0)], "line 1: fps 0: expected more than 0"),
        ([_boundary(0), _boundary(0)], "appears twice"),
        ([_boundary(0, video=1)], "line 1"),
        ([], "contains no boundaries"),
    ],
)
def test_boundaries_that_do_not_fit_are_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], message: str
) -> None:
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    assert main(["--format", "boundaries", str(tmp_path / "m.jsonl")]) == 2
    assert message in capsys.readouterr().err


def _measure(
    model: str, value: float, subset: str = "nlvr2", metric: str = "accuracy", unit: str = "share"
) -> dict[str, Any]:
    counts = {"expected": 10, "scored": 10, "missing": 0}
    names = {"model": model, "subset": subset, "metric": metric, "unit": unit}
    return names | {"value": value, "low": value - 0.03, "high": value + 0.03} | counts


def _table(path: Path, values: dict[str, float], *others: dict[str, Any]) -> Path:
    measures = [*(_measure(model, value) for model, value in values.items()), *others]
    path.write_text(json.dumps({"measures": measures}))
    return path


def test_two_tables_give_gaps_and_a_correlation(tmp_path: Path) -> None:
    inside = _table(tmp_path / "in.json", {"a": 0.8, "b": 0.7, "c": 0.6, "d": 0.9, "e": 0.5})
    outside = _table(tmp_path / "out.json", {"a": 0.6, "b": 0.55, "c": 0.5, "d": 0.75, "x": 0.1})
    assert main(["--format", "gap", str(inside), str(outside), "--output", str(tmp_path)]) == 0
    rows = rows_by(tmp_path, "model", "subset", "metric")
    gap = rows["a", "nlvr2: accuracy", "gap"]
    assert float(gap["value"]) == pytest.approx(0.2)
    assert float(gap["high"]) - float(gap["value"]) == pytest.approx(0.03 * 2**0.5)
    expected = np.corrcoef([0.8, 0.7, 0.6, 0.9], [0.6, 0.55, 0.5, 0.75])[0, 1]
    found = rows["all models", "nlvr2: accuracy", "Pearson"]
    assert float(found["value"]) == pytest.approx(expected)
    assert float(found["low"]) < expected < float(found["high"])
    assert ("e", "nlvr2: accuracy", "gap") not in rows
    text = (tmp_path / "metrics.txt").read_text()
    assert "bootstrap" not in text
    assert "Ties" not in text


def test_all_tasks_together_are_comparable_numbers_alone(tmp_path: Path) -> None:
    """Shares of which more is better, each sample once."""
    kept = {"vqa": (0.7, 0.4, 0.6), "nlvr2": (0.8, 0.7, 0.6)}
    others = [
        ("all", "accuracy", "share", 0.9),
        ("macro average", "accuracy", "share", 0.9),
        ("vqa", "brittleness", "share", 0.1),
        ("vqa", "drop t2i R@1", "share", 0.1),
        ("vqa", "rsum", "share", 2.4),
        ("vqa", "DCG_CM", "number", 3.5),
    ]
    paths, pooled = [], []
    for name, shift in (("in", 0.0), ("out", 0.1)):
        rows = [
            _measure(model, value - shift * value**2, task)
            for task, values in kept.items()
            for model, value in zip("abc", values, strict=True)
        ]
        pooled.append([row["value"] for row in rows])
        rows += [_measure(m, v, s, metric, unit) for m in "abc" for s, metric, unit, v in others]
        paths.append(str(_table(tmp_path / f"{name}.json", {}, *rows)))
    assert main(["--format", "gap", *paths, "--output", str(tmp_path)]) == 0
    found = rows_by(tmp_path, "model", "subset", "metric")["all models", "all tasks", "Pearson"]
    assert float(found["value"]) == pytest.approx(np.corrcoef(pooled)[0, 1])
    assert (found["expected"], found["low"], found["high"]) == ("6", "", "")


def test_tables_without_a_model_in_common_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside, outside = _table(tmp_path / "a.json", {"a": 1}), _table(tmp_path / "b.json", {"b": 1})
    assert main(["--format", "gap", str(inside), str(outside)]) == 2
    assert "has the same model, subset and metric as" in capsys.readouterr().err
    assert main(["--format", "gap", str(inside)]) == 2
    assert "needs two metrics.json or metrics.csv" in capsys.readouterr().err


INSIDE: dict[str, list[float | None]] = {
    "i2t R@1": [None, None, 65.68, None, 77.60, 80.40, 81.20, 76.16],
    "i2t R@5": [None, None, 88.56, None, 94.30, 95.50, 95.60, 93.16],
    "i2t R@10": [None, None, 93.76, None, 97.20, 98.20, 98.20, 96.82],
    "t2i R@1": [42.51, None, 52.93, None, 60.70, 63.10, 63.40, 57.08],
    "t2i R@5": [71.18, None, 79.93, None, 84.30, 85.70, 85.80, 82.66],
    "t2i R@10": [80.76, None, 87.95, None, 90.50, 91.60, 91.50, 90.07],
    "nlvr2 accuracy": [78.03, 76.20, 79.98, 73.60, 83.14, 84.21, 84.76, 83.05],
    "vqa accuracy": [72.70, 69.90, 73.82, 69.80, 75.84, 78.07, 78.22, 77.68],
    "grounding accuracy": [79.18, None, 81.30, 75.23, 65.89, 86.36, 89.00, None],
}
"""VLUE's table 2, in domain: Flickr30k's or COCO's test, NLVR2 Test-P, VQA Test-dev, Test-A."""


@pytest.mark.parametrize(
    ("tasks", "cells", "rho"), [(("nlvr2", "vqa"), 16, 0.7545), ((), 55, 0.8409)]
)
def test_the_correlation_of_vlues_table_from_csv(
    tmp_path: Path, tasks: tuple[str, ...], cells: int, rho: float
) -> None:
    """Section 5 prints 0.75: the 16 cells of NLVR2 and VQA together; all 55 give 0.84."""
    outside = read_paper("vlue").tables[0].rows
    for name in ("in", "out"):
        lines = ["model,subset,metric,value"]
        for place, (task, values) in enumerate(INSIDE.items()):
            if not tasks or task.split()[0] in tasks:
                subset, metric = task.split()
                for model, own in zip(outside, values, strict=True):
                    value = own if name == "in" else outside[model][place]
                    lines.append(f"{model},{subset},{metric},{'' if value is None else value}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    paths = [str(tmp_path / "in.csv"), str(tmp_path / "out.csv")]
    assert main(["--format", "gap", *paths, "--output", str(tmp_path)]) == 0
    found = rows_by(tmp_path, "model", "subset", "metric")["all models", "all tasks", "Pearson"]
    assert float(found["value"]) == pytest.approx(rho, abs=5e-5)
    assert int(found["expected"]) == cells
    unknown = rows_by(tmp_path, "model", "subset", "metric")["METER", "vqa: accuracy", "gap"]
    assert [unknown[name] for name in ("expected", "scored", "missing", "clusters")] == [""] * 4
    numbers = json.loads((tmp_path / "metrics.json").read_text())["measures"]
    assert numbers[0]["expected"] is None
    assert re.search(r"  vqa: accuracy +- +- +- ", (tmp_path / "metrics.txt").read_text())
