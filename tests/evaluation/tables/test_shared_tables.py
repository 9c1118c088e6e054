"""Tables of rendered ladders, of models whose answers are known."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.evaluation.tables.command import main as command
from eqforge.pipelines import combined as combine
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.records.scenes import STEP_SIZE
from tests.made_datasets import describe, score_rows, write_dataset, write_scores
from tests.renders import needs_blender
from tests.statuses import status_of

pytestmark = needs_blender  # of a rendered dataset, whose rows are changed

main = status_of(command)

LADDERS = 200
SIZES = {"size": (2.5, 5.0, 10.0, 20.0), "count": (1.0, 2.0, 4.0, 8.0)}
VIDEO = {"sample_id": "eq-video/1"}
OTHER = (
    "no JSON", "[1]", "[" * 100_000, '{"change": "colour"}',
    '{"change": 1, "scores": "none"}', '{"change": "size", "scores": null}',
)  # fmt: skip
"""What pairs of other datasets may have as an annotation."""
Row = dict[str, Any]
Found = dict[tuple[str, str], Row]


def score(name: str, value: float) -> Row:
    return {
        "name": name,
        "value": value,
        "scorer": "eqforge.scenes",
        "version": "4",
        "settings": "{}",
    }


def row(key: str, source: str, kind: str, change: str, **more: Any) -> Row:
    return {
        "sample_id": f"eq-kubric/{kind}/{key}",
        "source_id": source,
        "kind": kind,
        "change": change,
        "scores": [],
        **more,
    }


def ladders() -> list[Row]:
    return [
        row(
            f"{change}{ladder:03d}-{size}",
            f"{change}{ladder:03d}",
            "graded",
            change,
            scores=[score(STEP_SIZE, size)],
        )
        for change, sizes in SIZES.items()
        for ladder in range(LADDERS)
        for size in sizes
    ]


def measured(
    folder: Path,
    rows: Sequence[Row],
    values: Any,
    capsys: pytest.CaptureFixture[str],
    left_out: int = 0,
) -> tuple[Found, list[str]]:
    dataset = write_dataset(folder / "d", "eq-kubric", {"samples": rows}, group_rows=500)
    return measured_dataset(dataset, folder, rows, values, capsys, left_out)


def measured_dataset(
    dataset: Path,
    folder: Path,
    rows: Sequence[Row],
    values: Any,
    capsys: pytest.CaptureFixture[str],
    left_out: int = 0,
) -> tuple[Found, list[str]]:
    keys = [each["sample_id"] for each in rows][left_out:]
    table = score_rows(keys, np.asarray(values, np.float32)[left_out:])
    scores = write_scores(folder / "s", dataset, "pairs", {"scores": table}, model="m")
    command = [str(dataset), str(scores), "--output", str(folder / "t"), "--resamples", "200"]
    command += ["--allow-missing"] if left_out else []
    assert main(command) == 0
    report = json.loads((folder / "t" / "metrics.json").read_text())
    capsys.readouterr()
    return {(one["subset"], one["metric"]): one for one in report["measures"]}, report["notes"]


def choices(share: Any, seed: int) -> Any:
    """Scores [n, 4] of a model each of whose pictures is right with a probability."""
    rng = np.random.default_rng(seed)
    right = rng.random((len(share), 2)) < np.asarray(share)[:, None]
    first, second = np.where(right, 1.0, -1.0).T
    # In the order of image 0 with captions 0 and 1, and image 1 with captions 0 and 1.
    return np.stack([first, -first, -second, second], axis=1)


def test_a_model_has_a_threshold_of_each_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ladders()
    sizes = np.array([each["scores"][0]["value"] for each in rows])
    middle = np.where([each["change"] == "size" for each in rows], 6.0, 1.5)
    share = 0.5 + 0.5 / (1 + np.exp(-2.0 * np.log2(sizes / middle)))
    found, notes = measured(tmp_path, rows, choices(share, 3), capsys)

    for change, true in (("size", 6.0), ("count", 1.5)):
        threshold = found[change, "choice threshold"]
        assert threshold["low"] < true < threshold["high"]
        assert threshold["high"] / threshold["low"] < 1.5
        assert threshold["expected"] == 4 * LADDERS
        assert threshold["clusters"] == LADDERS
        slope = found[change, "choice slope"]
        assert slope["low"] < 2 < slope["high"]
        for size in SIZES[change]:
            assert found[f"{change} {size:g}", "choice"]["expected"] == LADDERS
    assert ("all", "choice threshold") not in found  # percent and copies have no common size
    assert found["size", "choice"]["chance"] == 0.5
    assert any("size in percent" in note and "count in copies" in note for note in notes)
    assert any("1,600 ladder steps" in note for note in notes)


def test_a_change_that_no_model_sees_has_no_threshold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [each for each in ladders() if each["change"] == "size"]
    found, notes = measured(tmp_path, rows, choices(np.full(len(rows), 0.5), 4), capsys)
    assert found["all", "choice threshold"]["value"] is None
    assert any("the model never reaches 75%, not even at size 20" in note for note in notes)


def test_rows_in_another_order_give_the_same_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ladders()[::7]
    values = choices(np.full(len(rows), 0.7), 6)
    order = np.random.default_rng(1).permutation(len(rows))
    first, _ = measured(tmp_path / "a", rows, values, capsys)
    second, _ = measured(tmp_path / "b", [rows[at] for at in order], values[order], capsys)
    assert first == second


def test_pairs_that_share_nothing_are_measured_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(str(number), str(number), "location", "position") for number in range(8)]
    found, _ = measured(tmp_path, rows, choices(np.ones(8), 7), capsys)
    metrics = {metric for _, metric in found}
    assert {"text", "image", "group"} <= metrics
    assert "choice" not in metrics


def test_a_combined_dataset_has_the_thresholds_of_its_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [row(f"{n:02d}", f"location{n}", "location", "position") for n in range(40)]
    rows = [*ladders(), *pairs]
    values = choices(np.linspace(0.5, 1, len(rows) + 1), 8)
    alone, notes = measured(tmp_path, rows, values[:-1], capsys)
    write_dataset(tmp_path / "other", "eq-video", {"samples": [VIDEO]})
    combined = tmp_path / "combined"
    parts = [str(tmp_path / "d"), str(tmp_path / "other")]
    assert combine.main([*parts, "--output", str(combined)]) == 0

    found, said = measured_dataset(combined, tmp_path / "c", [*rows, VIDEO], values, capsys)
    names = {change: f"eq-kubric/graded/{change}" for change in SIZES}
    same = ("value", "chance", "expected", "scored", "clusters")
    shared = {key for key in alone if key[0].split()[0] in SIZES}
    assert len(shared) > 40
    for subset, metric in shared:
        one, other = alone[subset, metric], found[names.get(subset, subset), metric]
        assert {field: other[field] for field in same} == {field: one[field] for field in same}
    assert [note for note in notes if "steps" in note] == [note for note in said if "steps" in note]
    assert {"eq-video", "eq-kubric/location"} <= {subset for subset, _ in found}


def test_pairs_of_others_may_have_any_annotation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(str(number), str(number), "location", "position") for number in range(len(OTHER))]
    write_dataset(tmp_path / "d", "eq-kubric", {"samples": rows})
    write_dataset(tmp_path / "other", "eq-video", {"samples": [VIDEO]})
    combined = tmp_path / "combined"
    parts = [str(tmp_path / "d"), str(tmp_path / "other")]
    assert combine.main([*parts, "--output", str(combined)]) == 0
    changed = [
        each | {"annotation": text}
        for each, text in zip(open_dataset(str(combined)).rows("samples"), OTHER, strict=False)
    ]
    path = next((combined / "data").glob("samples-*"))
    pq.write_table(pa.Table.from_pylist(changed, pq.read_schema(path)), path)
    describe(combined)

    found, _ = measured_dataset(combined, tmp_path, changed, np.ones((len(OTHER), 4)), capsys)
    assert ("all", "group") in found
    assert ("all", "choice") not in found
