import json
from pathlib import Path
from typing import Any

import pytest

from eqforge.evaluation.tables.command import main as command
from tests.evaluation.written import rows_by
from tests.made_datasets import write_dataset
from tests.statuses import status_of

main = status_of(command)


@pytest.fixture(scope="module")
def vlue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two samples of each task."""
    box = {"x": 0.0, "y": 0.0, "width": 10.0, "height": 10.0}
    tables: dict[str, list[dict[str, Any]]] = {
        "nlvr2": [{"sample_id": f"n{n}", "image_0": f"{n}", "label": n == 0} for n in range(2)],
        "vqa": [{"sample_id": f"v{n}", "image": "1", "answers": ["two"]} for n in range(2)],
        "captioning": [
            {"sample_id": f"c{n}", "image": f"{n}", "references": [f"the cat {n} sat on a mat"]}
            for n in range(2)
        ],
        "grounding": [{"sample_id": f"g{n}", "image": f"{n}", "box": box} for n in range(2)],
    }
    samples = [{"sample_id": row["sample_id"]} for rows in tables.values() for row in rows]
    tables = {"samples": samples, **tables}
    return write_dataset(tmp_path_factory.mktemp("vlue") / "d", "vlue", tables)


RIGHT: dict[str, Any] = {
    "n0": True,
    "n1": "true",
    "v0": "2",
    "v1": "Two!",
    "c0": "the cat 0 sat on a mat",
    "c1": "the cat 1 sat on a mat",
    "g0": [0, 0, 10, 10],
    "g1": [8, 8, 10, 10],
}


def _write(path: Path, answers: dict[str, Any]) -> Path:
    lines = [json.dumps({"sample_id": key, "answer": value}) for key, value in answers.items()]
    path.write_text("\n".join(lines[::-1]))
    return path


def test_answers_of_every_task_become_its_accuracy(vlue: Path, tmp_path: Path) -> None:
    path = _write(tmp_path / "m.jsonl", RIGHT)
    assert main([str(vlue), str(path), "--output", str(tmp_path)]) == 0
    rows = rows_by(tmp_path)
    found = {task: float(rows[task, "accuracy"]["value"]) for task in ("nlvr2", "vqa", "grounding")}
    assert found == {"nlvr2": 0.5, "vqa": 1.0, "grounding": 0.5}
    assert rows["vqa", "accuracy"]["clusters"] == "1"
    assert float(rows["captioning", "BLEU-4"]["value"]) == pytest.approx(1.0, abs=1e-4)
    assert float(rows["captioning", "CIDEr"]["value"]) > 0


def test_a_task_may_be_left_out_whole_but_not_in_part(
    vlue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path / "m.jsonl", {key: RIGHT[key] for key in ("n0", "n1", "v0")})
    assert main([str(vlue), str(path)]) == 2
    assert "1 of 2 samples of vqa have no answer" in capsys.readouterr().err
    assert main([str(vlue), str(path), "--allow-missing", "--output", str(tmp_path)]) == 0
    row = rows_by(tmp_path)["vqa", "accuracy"]
    assert (row["expected"], row["scored"], row["missing"]) == ("2", "1", "1")
    assert "contains no answers to the task grounding" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"n0": "perhaps"}, "expected true or false"),
        ({"g0": [1, 2, 3]}, "expected [x, y, width, height]"),
        ({"v0": 3}, "expected a text"),
        ({"strange": "x"}, "does not have, such as 'strange'"),
    ],
)
def test_answers_that_do_not_fit_are_one_clear_error(
    vlue: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    answers: dict[str, Any],
    message: str,
) -> None:
    path = _write(tmp_path / "m.jsonl", answers)
    assert main([str(vlue), str(path), "--allow-missing"]) == 2
    assert message in capsys.readouterr().err
