"""VLUE's tasks as a harness is given them, and its logs as `metrics` reads them."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eqforge.cli import main as command
from tests.evaluation.written import rows_by
from tests.statuses import status_of
from tests.transforms.export.test_harness_tasks import functions, rows_of_task

main = status_of(command)

TASKS: dict[str, list[dict[str, Any]]] = {
    "vqa": [
        {"question_id": n, "question": f"What is {n}?", "image": f"sw/x/{n}.png", "answer": "dog"}
        for n in range(2)
    ],
    "nlvr2": [
        {
            "identifier": f"s{n}",
            "sentence": "Both are red.",
            "images": ["sw/x/0.png", "sw/x/1.png"],
            "label": n == 0,
        }
        for n in range(3)
    ],
    "captioning": [
        {"image_id": n, "image": f"sw/x/{n}.png", "caption": ["a red dog sat there on a mat"]}
        for n in range(2)
    ],
    "grounding": [
        {"ref_id": n, "image": f"sw/x/{n}.png", "text": "left dog", "bbox": [10, 6, 20, 12]}
        for n in range(4)
    ],
}
SAID: dict[str, list[str]] = {
    "vqa": ["A dog.", "cat"],
    "nlvr2": ["The statement is true.", "True", "I cannot say"],
    "captioning": ["A red dog sat there on a mat."] * 2,
    "grounding": [
        "[.25, 0.2, 0.75, 0.6]",
        "{'x1': 10, 'y1': 6, 'x2': 3e1, 'y2': 18}",
        "[0, 0, 0.1, 0.1]",
        "no box",
    ],
}
"""The images have 40 x 30 pixels. Of NLVR2 and grounding, the last answers contain none."""
EXPECTED = {"vqa": 1 / 2, "nlvr2": 1 / 3, "grounding": 2 / 4}


def build(folder: Path) -> Path:
    (folder / "images/sw/x").mkdir(parents=True)
    for number in range(4):
        picture = Image.new("RGB", (40, 30), (60 * number, 90, 20))
        picture.save(folder / f"images/sw/x/{number}.png")
    files: list[str] = []
    for task, rows in TASKS.items():
        (folder / f"{task}.json").write_text(json.dumps(rows))
        files += [f"--{task}", str(folder / f"{task}.json")]
    images = ["--images", str(folder / "images")]
    assert main(["build", "vlue", *files, *images, "--output", str(folder / "d")]) == 0
    return folder / "d"


@pytest.fixture(scope="module")
def vlue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("vlue"))


def export_task(dataset: Path, task: str, form: str, output: Path) -> Path:
    table = ["--table", task, "--format", form]
    assert main(["export", str(dataset), *table, "--output", str(output)]) == 0
    return output


def _said(row: Mapping[str, Any], task: str) -> str:
    """The answer to a row by the order in the source file, which the sample's id keeps."""
    names = [str(place) for place in range(len(SAID[task]))]
    key = row["sample_id"].split("/")[1].lstrip("s")
    return SAID[task][names.index(key)]


def _check(dataset: Path, task: str, log: Path, tmp_path: Path) -> None:
    assert main(["metrics", str(dataset), str(log), "--output", str(tmp_path / "out")]) == 0
    rows = rows_by(tmp_path / "out")
    if task == "captioning":
        assert float(rows[task, "BLEU-4"]["value"]) == pytest.approx(1, abs=1e-4)
    else:
        assert float(rows[task, "accuracy"]["value"]) == pytest.approx(EXPECTED[task])
    notes = (tmp_path / "out" / "metrics.txt").read_text()
    for name in ("nlvr2", "grounding"):
        assert (f"1 of the texts for {name} contain no answer" in notes) is (name == task)


@pytest.mark.parametrize("task", list(TASKS))
def test_logs_of_lmms_eval_become_accuracies(vlue: Path, tmp_path: Path, task: str) -> None:
    folder = export_task(vlue, task, "lmms-eval", tmp_path / "task")
    utils, lines = functions(folder), []
    for number, row in enumerate(rows_of_task(folder)):
        assert (row["image_1"] is not None) is (task == "nlvr2")
        text = _said(row, task)
        line = {"doc_id": number, "filtered_resps": text, **utils.results(row, [text])}
        lines.append(json.dumps(line))
    assert f"eqforge_vlue_{task}" in (folder / f"eqforge_vlue_{task}.yaml").read_text()
    log = tmp_path / "m_samples_x.jsonl"
    log.write_text("\n".join(lines))
    _check(vlue, task, log, tmp_path)


@pytest.mark.parametrize("task", list(TASKS))
def test_tables_of_vlmevalkit_become_accuracies(vlue: Path, tmp_path: Path, task: str) -> None:
    folder = export_task(vlue, task, "vlmevalkit", tmp_path / "LMUData")
    before = csv.field_size_limit(10**7)
    with (folder / f"eqforge_vlue_{task}.tsv").open(newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    csv.field_size_limit(before)
    assert "A" not in rows[0]
    log = tmp_path / "model.tsv"
    with log.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t")
        writer.writerow(["index", "prediction"])
        writer.writerows([row["index"], _said(row, task)] for row in rows)
    _check(vlue, task, log, tmp_path)


def test_an_export_without_a_task_says_which_tables_there_are(
    vlue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(vlue), "--format", "lmms-eval", "--output", str(tmp_path / "o")]
    assert main(command) == 2
    assert "pass --table nlvr2, vqa, captioning or grounding" in capsys.readouterr().err


def test_a_log_of_another_dataset_is_one_clear_error(
    vlue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "m.tsv"
    log.write_text("index\tprediction\nq0\tyes\n")
    assert main(["metrics", str(vlue), str(log)]) == 2
    assert "the dataset does not contain" in capsys.readouterr().err
