"""Fronts against a plain double loop and VLUE's own table; membership against known odds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.cli import main as command
from eqforge.evaluation.efficiency.contest import membership, on_front
from tests.statuses import status_of

main = status_of(command)

# VLUE (Zhou et al. 2022), table 4: mean score, and milliseconds with object detection.
VLUE = {
    "ViLBERT": (57.46, 152.16),
    "LXMERT": (55.71, 154.36),
    "UNITER": (57.20, 157.39),
    "VL-T5": (60.08, 164.51),
    "ALBEF": (62.35, 63.50),
    "X-VLM": (62.86, 79.50),
    "METER": (63.62, 64.80),
}


def front_by_loops(scores: list[float], seconds: list[float], strict: bool) -> list[bool]:
    found = []
    for i in range(len(scores)):
        beaten = False
        for j in range(len(scores)):
            better, faster = scores[j] > scores[i], seconds[j] < seconds[i]
            as_good = scores[j] >= scores[i] and seconds[j] <= seconds[i]
            beaten |= (better and faster) if strict else (as_good and (better or faster))
        found.append(not beaten)
    return found


@pytest.mark.parametrize("strict", [False, True])
def test_the_front_is_what_two_loops_find_with_many_ties(strict: bool) -> None:
    rng = np.random.default_rng(1)
    scores, seconds = rng.integers(0, 4, (2, 200, 6)).astype(float)
    found = on_front(scores, seconds, strict=strict)
    for row in range(200):
        assert found[row].tolist() == front_by_loops(list(scores[row]), list(seconds[row]), strict)


def test_vlues_own_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "vlue.csv"
    lines = [f"{name},{score},{ms / 1000}" for name, (score, ms) in VLUE.items()]
    table.write_text("\n".join(["model,score,seconds", *lines]) + "\n")
    assert main(["pareto", str(table), "--output", str(tmp_path / "front.json")]) == 0
    assert "63.50 yes" in " ".join(capsys.readouterr().out.split())
    models = json.loads((tmp_path / "front.json").read_text())["models"]
    assert [m["model"] for m in models][:2] == ["ALBEF", "METER"]
    assert {m["model"] for m in models if m["on_front"]} == {"ALBEF", "METER"}
    assert {m["model"]: m["probability"] for m in models} == {
        name: float(name in ("ALBEF", "METER")) for name in VLUE
    }


def test_a_slower_model_is_on_the_front_as_often_as_its_score_is_drawn_above() -> None:
    rng = np.random.default_rng(0)
    scores = np.column_stack([np.zeros(4_000), rng.standard_normal(4_000) + 0.5])
    seconds = np.broadcast_to([1.0, 2.0], scores.shape)
    found = membership(scores, seconds)
    assert found[0] == 1.0
    assert found[1] == (scores[:, 1] > 0).mean()


def test_intervals_of_a_table_are_drawn_from(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "model,score,score_low,score_high,seconds,seconds_low,seconds_high\n"
        "fast,0.5,,,1.0,0.8,1.25\n"
        "slow,0.5,0.4,0.6,2.0,,\n"
    )
    output = tmp_path / "f.json"
    assert main(["pareto", str(table), "--output", str(output), "--resamples", "4000"]) == 0
    fast, slow = json.loads(output.read_text())["models"]
    assert (fast["probability"], slow["on_front"]) == (1.0, False)
    assert slow["probability"] == pytest.approx(0.5, abs=0.03)
    assert (fast["score_low"], fast["score_high"]) == (0.5, 0.5)
    assert (fast["seconds_low"], fast["seconds_high"]) == (0.8, 1.25)
    assert (slow["seconds_low"], slow["seconds_high"]) == (2.0, 2.0)
    assert (slow["score_low"], slow["score_high"]) == (0.4, 0.6)
    again = tmp_path / "g.json"
    assert main(["pareto", str(table), "--output", str(again), "--resamples", "4000"]) == 0
    assert again.read_bytes() == output.read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,score\na,1\n", "the column 'seconds' is missing. Required columns"),
        ("model,score,seconds\n", "no model"),
        ("model,score,seconds\na,x,1\n", "line 2"),
        ("model,score,seconds\na,1,0\n", "seconds: expected finite numbers above 0; found 0.0"),
        ("model,score,seconds\na,nan,1\n", "line 2"),
        ("model,score,seconds,score_low\na,1,1,2\n", "outside its interval"),
        ("model,score,seconds\na,1,1\na,1,1\n", "appears twice"),
    ],
)
def test_a_wrong_table_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert main(["pareto", str(tmp_path / "t.csv")]) == 2
    assert said in capsys.readouterr().err


def _accuracies(subset: str, values: dict[str, tuple[float, float, float]]) -> list[dict[str, Any]]:
    names = ("value", "low", "high")
    return [
        {"model": model, "subset": subset, "metric": "accuracy", "unit": "share"}
        | dict(zip(names, bounds, strict=True))
        for model, bounds in values.items()
    ]


def test_scores_are_the_mean_of_tasks_in_several_metrics_files(tmp_path: Path) -> None:
    """VLUE's table 4 from the accuracies out of domain of its table 2."""
    nlvr2 = dict(zip(VLUE, (66.53, 65.24, 66.60, 73.84, 73.17, 74.16, 73.47), strict=True))
    vqa = dict(zip(VLUE, (48.38, 46.18, 47.79, 46.31, 51.52, 51.55, 53.76), strict=True))
    counted = {"expected": 1, "scored": 1, "missing": 0}
    rows = [
        row | counted
        for row in _accuracies("nlvr2", {m: (v, v - 3, v + 3) for m, v in nlvr2.items()})
    ]
    (tmp_path / "nlvr2.json").write_text(json.dumps({"measures": rows}))
    lines = [f"{model},vqa,accuracy,{v},{v - 4},{v + 4}" for model, v in vqa.items()]
    head = "model,subset,metric,value,low,high"
    (tmp_path / "vqa.csv").write_text("\n".join([head, *lines]) + "\n")
    times = [f"{model},{ms / 1000}" for model, (_, ms) in VLUE.items()]
    (tmp_path / "times.csv").write_text("\n".join(["model,seconds", *times]) + "\n")
    output = tmp_path / "front.json"
    tables = [str(tmp_path / name) for name in ("nlvr2.json", "vqa.csv")]
    command = ["pareto", str(tmp_path / "times.csv"), "--metrics", *tables]
    assert main([*command, "--output", str(output)]) == 0
    models = {m["model"]: m for m in json.loads(output.read_text())["models"]}
    for name, (printed, _) in VLUE.items():
        assert models[name]["score"] == pytest.approx(printed, abs=0.0051), name
        assert models[name]["score_high"] - models[name]["score"] == pytest.approx(2.5)
    assert models["METER"]["on_front"]


def test_metrics_that_lack_a_model_or_repeat_one_are_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, times = tmp_path / "m.csv", tmp_path / "t.csv"
    table.write_text("model,subset,metric,value\na,vqa,accuracy,0.5\n")
    times.write_text("model,seconds\na,1\n")
    assert main(["pareto", str(times), "--metrics", str(table)]) == 2
    assert (
        "there is no row with model 'a', subset 'nlvr2' and metric 'accuracy'. Rows with this "
        "metric: model 'a' and subset 'vqa'" in capsys.readouterr().err
    )
    assert main(["pareto", str(times), "--metrics", str(table), str(table)]) == 2
    assert "also appears in an earlier --metrics file" in capsys.readouterr().err
    table.write_text("model,subset,metric,value,scored\na,vqa,accuracy,0.5,1200\n")
    assert main(["pareto", str(times), "--metrics", str(table), "--subsets", "vqa"]) == 0
    assert "accuracy, vqa (fraction, n = 1,200)  ms per pair" in capsys.readouterr().out
    table.write_text("model,subset,metric,value\na,vqa,accuracy,0.5\n")
    assert main(["pareto", str(times), "--metrics", str(table), "--subsets"]) == 2
    assert "--subsets: pass at least one subset" in capsys.readouterr().err
    for content, message in (
        ("model,seconds\n", "no models found"),
        ("seconds\n1\n", "line 2: the column 'model' is missing or empty"),
    ):
        times.write_text(content)
        assert main(["pareto", str(times), "--metrics", str(table)]) == 2
        assert message in capsys.readouterr().err
    times.write_text("model,seconds\na,1\n")
    table.write_text(table.read_text() + "a,vqa,accuracy,0.9\n")
    assert main(["pareto", str(times), "--metrics", str(table)]) == 2
    assert "model 'a', subset 'vqa' and metric 'accuracy' appears twice" in capsys.readouterr().err
    table.write_text("model,value\na,0.5\n")
    assert main(["pareto", str(times), "--metrics", str(table)]) == 2
    assert "Required columns: model, metric and value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (["--ties", "half"], "--ties cannot be used with a CSV table of scores"),
        (["--metric", "text"], "--metric cannot be used with a CSV table of scores"),
        (["--metrics", "m.csv", "--ties", "half"], "--ties cannot be used with --metrics"),
        (["--dataset", "d", "--subsets", "a"], "--subsets cannot be used with files from eqforge"),
    ],
)
def test_an_option_without_effect_is_an_error(
    tmp_path: Path, options: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / ("a.json" if "--dataset" in options else "times.csv")
    table.write_text("model,score,seconds\na,0.5,1\n")
    assert main(["pareto", str(table), *options]) == 2
    assert flag in capsys.readouterr().err
