"""Tables of graded captions: thresholds of models whose curve is known."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.evaluation.tables.command import main as command
from tests.evaluation.review.test_forms import planned, saved
from tests.made_datasets import score_rows, write_dataset, write_scores
from tests.statuses import status_of

main = status_of(command)

LADDERS, LEVELS = 300, 3
Numbers = dict[tuple[str, str], dict[str, Any]]


def samples(**more: Any) -> list[dict[str, Any]]:
    """Ladders of three levels, two to an image; a rewording touches twice as many words."""
    return [
        {
            "sample_id": f"c{ladder:03d}/{level}",
            "caption_id": f"c{ladder:03d}",
            "image": f"{ladder // 2}.jpg",
            "split": "val" if ladder % 3 else "test",
            "level": level,
            "levels": LEVELS,
            "hard_positive_words": 2 * level,
            "hard_negative_words": level + ladder % 2,
            **more,
        }
        for ladder in range(LADDERS)
        for level in range(1, LEVELS + 1)
    ]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graded") / "d"
    return write_dataset(folder, "graded-captions", {"samples": samples()}, group_rows=200)


def scores(
    folder: Path,
    dataset: Path,
    offset: float,
    rise: float,
    model: str = "m",
    seed: int = 0,
    rows: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """Scores of a model that is right as a curve says, and that a rewording costs 0.01 an edit."""
    rng = np.random.default_rng(seed)
    rows = rows or samples()
    levels = np.array([row["level"] for row in rows])
    share = 0.5 + 0.5 / (1 + np.exp(-(offset + rise * np.log2(levels))))
    right = rng.random(len(rows)) < share
    values = np.stack([np.ones(len(rows)), 1 - 0.01 * levels, np.where(right, 0.5, 1.5)], axis=1)
    table = score_rows([row["sample_id"] for row in rows], values.astype(np.float32))
    return write_scores(folder, dataset, "hard-positives", {"scores": table}, model=model)


def measured(*arguments: object, output: Path, capsys: Any) -> tuple[Numbers, list[str], str]:
    """The numbers of the one model, the notes, and what is printed."""
    command = [*map(str, arguments), "--output", str(output), "--resamples", "200"]
    assert main(command) == 0
    report = json.loads((output / "metrics.json").read_text())
    found = {(one["subset"], one["metric"]): one for one in report["measures"]}
    return found, report["notes"], capsys.readouterr().out


def test_a_model_has_a_threshold_and_a_slope(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scores(tmp_path / "s", dataset, offset=-1.0, rise=2.0)
    found, notes, shown = measured(dataset, made, output=tmp_path / "t", capsys=capsys)

    threshold, slope = found["all", "original threshold"], found["all", "original slope"]
    assert threshold["low"] < 2**0.5 < threshold["high"]  # where offset + rise log2 of it is 0
    assert threshold["high"] - threshold["low"] < 0.6
    assert slope["low"] < 2 < slope["high"]
    assert threshold["expected"] == 900
    assert threshold["clusters"] == 150
    assert [found[str(level), "original"]["expected"] for level in (1, 2, 3)] == [300] * 3
    assert [found[str(level), "rewording drop"]["value"] for level in (1, 2, 3)] == pytest.approx(
        [0.01, 0.02, 0.03], abs=1e-6
    )
    assert found["all", "reworded"]["chance"] == 0.5
    assert ("1", "original threshold") not in found
    assert not any("not reached" in note for note in notes)
    assert "original threshold" in shown


def test_a_threshold_that_is_not_reached_is_told_and_not_guessed(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scores(tmp_path / "s", dataset, offset=-4.0, rise=0.5)
    found, notes, shown = measured(dataset, made, output=tmp_path / "t", capsys=capsys)

    assert found["all", "original threshold"]["value"] is None
    assert 0.5 <= found["all", "original at largest"]["value"] < 0.7
    assert "not reached [not reached, not reached]" in shown
    assert any(note.endswith("all, original: 75% is not reached by 3") for note in notes)
    with (tmp_path / "t/metrics.csv").open() as stream:
        (row,) = (
            row
            for row in csv.DictReader(stream)
            if (row["subset"], row["metric"]) == ("all", "original threshold")
        )
    assert row["value"] == ""


def table_of(folder: Path, dataset: Path, values: Any) -> Path:
    """Scores of every sample: caption, hard positive and hard negative."""
    keys = [row["sample_id"] for row in samples()]
    table = score_rows(keys, np.asarray(values, dtype=np.float32))
    return write_scores(folder, dataset, "hard-positives", {"scores": table}, model="m")


def test_a_model_of_one_score_for_all_has_no_curve_and_is_told_so(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = table_of(tmp_path / "s", dataset, np.ones((LADDERS * LEVELS, 3)))
    found, notes, _ = measured(dataset, made, output=tmp_path / "t", capsys=capsys)
    assert found["all", "original threshold"]["value"] is None
    assert found["all", "original slope"]["value"] is None
    for size in (1, 2, 3):
        assert any(
            note.endswith(
                f"all, original: the curve does not hold: at {size} it says 50.0%, "
                "and 0.0% are right"
            )
            for note in notes
        )

    found, notes, _ = measured(
        dataset, made, "--ties", "expectation", output=tmp_path / "e", capsys=capsys
    )
    assert found["all", "original at largest"]["value"] == pytest.approx(0.5, abs=1e-3)
    assert not any("does not hold" in note for note in notes)


def test_a_share_that_falls_is_told(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    share = np.array([0.95, 0.8, 0.6])[[row["level"] - 1 for row in samples()]]
    right = rng.random(len(share)) < share
    values = np.stack([np.ones(len(share)), np.ones(len(share)), np.where(right, 0, 2)], axis=1)
    made = table_of(tmp_path / "s", dataset, values)
    _, notes, _ = measured(dataset, made, output=tmp_path / "t", capsys=capsys)
    assert any("at 3 it says" in note for note in notes)
    assert not any("at 2 it says" in note and "original" in note for note in notes)


def test_a_step_is_a_step_and_its_slope_no_number(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scores(tmp_path / "s", dataset, offset=-40.0, rise=60.0)
    found, notes, shown = measured(dataset, made, output=tmp_path / "t", capsys=capsys)
    assert 1 < found["all", "original threshold"]["value"] < 2
    assert found["all", "original slope"]["value"] is None
    assert "step [step, step]" in shown
    assert any(
        note.endswith("all, original: a step, of which no slope can be told") for note in notes
    )


def test_ladders_of_different_heights_are_told_unless_kept_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    high = {f"c{ladder:03d}" for ladder in range(0, LADDERS, 2)}
    rows = [
        row if row["caption_id"] in high else row | {"levels": 2}
        for row in samples()
        if row["caption_id"] in high or row["level"] < LEVELS
    ]
    dataset = write_dataset(tmp_path / "d", "graded-captions", {"samples": rows}, group_rows=200)
    made = scores(tmp_path / "s", dataset, offset=-1.0, rise=2.0, rows=rows)
    _, notes, _ = measured(dataset, made, output=tmp_path / "t", capsys=capsys)
    assert any("--by levels keeps them apart" in note for note in notes)
    found, notes, _ = measured(
        dataset, made, "--by", "levels", output=tmp_path / "b", capsys=capsys
    )
    assert not any("keeps them apart" in note for note in notes)
    assert {"2", "3"} < {subset for subset, metric in found if metric == "original slope"}


def test_a_threshold_below_the_smallest_change_is_that_change(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scores(tmp_path / "s", dataset, offset=3.0, rise=1.0)
    found, notes, _ = measured(dataset, made, output=tmp_path / "t", capsys=capsys)

    assert found["all", "original threshold"]["value"] == 1
    assert any("75% is reached at 1; the threshold is no larger" in note for note in notes)


def test_sizes_in_words_stand_side_by_side(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scores(tmp_path / "s", dataset, offset=-1.0, rise=2.0)
    found, notes, _ = measured(
        dataset, made, "--distance", "words", output=tmp_path / "t", capsys=capsys
    )

    assert found["false edits, 1", "original"]["expected"] == 150
    assert found["false edits, 2", "original"]["expected"] == 300
    assert found["rewordings, 2", "rewording drop"]["expected"] == 300
    assert ("false edits, 2", "rewording drop") not in found
    assert ("rewordings, 1", "rewording drop") not in found
    assert 1 < found["all", "original threshold"]["value"] < 3
    assert notes[0].startswith("Size: words")


def test_each_subset_of_a_column_has_a_threshold(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scores(tmp_path / "s", dataset, offset=-1.0, rise=2.0)
    found, _, _ = measured(dataset, made, "--by", "split", output=tmp_path / "t", capsys=capsys)

    assert {subset for subset, metric in found if metric == "original threshold"} == {
        "all", "test", "val"
    }  # fmt: skip


def test_models_are_compared_and_the_order_of_rows_is_nothing(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scores(tmp_path / "s", dataset, offset=-1.0, rise=2.0)
    other = scores(tmp_path / "o", dataset, offset=-4.0, rise=0.5, model="o")
    assert main([str(dataset), str(made), str(other), "--resamples", "100"]) == 0
    shown = capsys.readouterr().out
    assert "3, original: clip:o@r against clip:m@r: -" in shown

    shuffled = write_dataset(
        tmp_path / "d", "graded-captions", {"samples": samples()[::-1]}, group_rows=100
    )
    made = scores(tmp_path / "again", shuffled, offset=-1.0, rise=2.0)
    other = scores(tmp_path / "others", shuffled, offset=-4.0, rise=0.5, model="o")
    assert main([str(shuffled), str(made), str(other), "--resamples", "100"]) == 0
    assert capsys.readouterr().out == shown


def test_what_a_model_would_have_to_say_is_asked_for(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = scores(tmp_path / "s", dataset, offset=-1.0, rise=2.0)
    assert main([str(dataset), str(made), "--distance", "embedding"]) == 2
    assert "eqforge build graded-captions --embedding MODEL" in capsys.readouterr().err
    assert main([str(dataset), str(made), "--mode", "paper"]) == 2
    assert "--mode: the table of graded captions does not depend on it" in capsys.readouterr().err


def test_distances_of_a_model_are_binned_and_those_of_none_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = [
        row
        | {"hard_negative_entailment": float(1 - row["level"] / 5 + rng.normal(0, 0.01))}
        | {"hard_positive_entailment": 1.0 - 0.01 * rng.random()}
        for row in samples()
    ]
    rows[0]["hard_negative_entailment"] = 1.0
    dataset = write_dataset(tmp_path / "d", "graded-captions", {"samples": rows}, group_rows=200)
    made = scores(tmp_path / "s", dataset, offset=-1.0, rise=2.0)
    found, notes, _ = measured(
        dataset, made, "--distance", "entailment", output=tmp_path / "t", capsys=capsys
    )

    assert 0.2 < found["all", "original threshold"]["value"] < 0.5
    assert len({subset for subset, _ in found}) < 20
    assert any(note.startswith("1 sample without a size above 0") for note in notes)


def test_people_have_a_threshold_beside_the_models(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who tells one edit in half of the ladders, and two in all."""
    plan = planned(dataset, tmp_path / "plan", "caption-ranking", "ada", "--overlap", 1)

    def ranks(item: str, shown: dict[str, Any]) -> dict[str, Any]:
        ladder, level = item.removeprefix("c").split("/")
        is_seen = level != "1" or int(ladder) % 2
        return {"ranks": [[1, 1, 2] if is_seen else [2, 2, 1]]}

    votes = saved(plan, "ada", ranks)
    capsys.readouterr()
    found, _, _ = measured(dataset, "--human", votes, output=tmp_path / "t", capsys=capsys)
    assert found["1", "reworded"]["value"] == 0.5
    assert 1 < found["all", "reworded threshold"]["value"] < 2
    assert found["all", "original threshold"]["model"] == "human"
    assert ("all", "rewording drop") not in found
