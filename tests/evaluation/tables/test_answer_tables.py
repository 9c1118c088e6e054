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
    assert "contains no answers to captioning, grounding" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"n0": "perhaps"}, "expected true or false"),
        ({"g0": [1, 2, 3]}, "expected [x, y, width, height]"),
        ({"v0": 3}, "expected text, found 3"),
        ({"strange": "x"}, "outside the dataset, such as 'strange'"),
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


LANGUAGES = ("sw", "ta")


@pytest.fixture(scope="module")
def cultures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Per language a pair of questions, a single one, two statements and a captioned image."""
    samples, vqa, nlvr2, captioning = [], [], [], []
    for number, group in enumerate(LANGUAGES):
        folder = f"{group}/images/1-x"
        for place, question in enumerate(("what?", "what?", "who?")):
            key = str(10 * number + place)
            image, answers = f"{folder}/{place}.jpg", ["yes" if place else "no"]
            row = {"sample_id": f"vqa/{key}", "source_id": key, "question": question}
            vqa.append(row | {"image": image, "answers": answers})
            samples.append({"sample_id": f"vqa/{key}", "group": group, "image": image})
        for place in range(2):
            key, image = f"nlvr2/{group}{place}", f"{group}/images/{place}-y/0.jpg"
            row = {"sample_id": key, "source_id": f"s-{group}{place}", "image_0": image}
            nlvr2.append(row | {"label": True})
            samples.append({"sample_id": key, "group": group, "image": image})
        key, image = f"captioning/{number}", f"{folder}/0.jpg"
        row = {"sample_id": key, "source_id": str(number), "image": image}
        captioning.append(row | {"references": [f"a {group} cat sat there"]})
        samples.append({"sample_id": key, "group": group, "image": image})
    tables: dict[str, list[dict[str, Any]]] = {
        "samples": samples,
        "vqa": vqa,
        "nlvr2": nlvr2,
        "captioning": captioning,
    }
    return write_dataset(tmp_path_factory.mktemp("cultures") / "d", "vlue", tables)


def _released(path: Path) -> Path:
    """Answers by the ids of the released files: Tamil's second question and statement are wrong."""
    lines: list[dict[str, Any]] = [
        {"question_id": 10 * number + place, "answer": "yes" if place else "no"}
        for number in range(2)
        for place in range(3)
    ]
    lines[4]["answer"] = "no"
    for group in LANGUAGES:
        for place in range(2):
            lines.append({"identifier": f"s-{group}{place}", "answer": (group, place) != ("ta", 1)})
    lines += [{"image_id": n, "caption": f"a {g} cat sat there"} for n, g in enumerate(LANGUAGES)]
    path.write_text(json.dumps(lines))
    return path


def test_answers_by_released_ids_are_split_by_language_and_paired(
    cultures: Path, tmp_path: Path
) -> None:
    path = _released(tmp_path / "m.json")
    command = [str(cultures), str(path), "--by", "language", "--output", str(tmp_path)]
    assert main(command) == 0
    rows = rows_by(tmp_path)
    found = {
        name: (float(rows[name, "accuracy"]["value"]), int(rows[name, "accuracy"]["expected"]))
        for name, metric in rows
        if metric == "accuracy"
    }
    assert found == {
        "vqa": (pytest.approx(5 / 6), 6),
        "vqa/sw": (1.0, 3),
        "vqa/ta": (pytest.approx(2 / 3), 3),
        "vqa pairs": (0.5, 2),
        "vqa pairs/sw": (1.0, 1),
        "vqa pairs/ta": (0.0, 1),
        "nlvr2": (0.75, 4),
        "nlvr2/sw": (1.0, 2),
        "nlvr2/ta": (0.5, 2),
    }
    assert float(rows["captioning/ta", "BLEU-4"]["value"]) == pytest.approx(1.0, abs=1e-4)
    cider = rows["captioning", "CIDEr"]
    assert cider["unit"] == "share"
    assert f"{100 * float(cider['value']):.2f}" in (tmp_path / "metrics.txt").read_text()


def test_concepts_are_folders_and_clusters_may_be_any_column(
    cultures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _released(tmp_path / "m.json")
    by = ["--by", "concept", "--cluster", "culture", "--output", str(tmp_path)]
    assert main([str(cultures), str(path), *by]) == 0
    rows = rows_by(tmp_path)
    assert float(rows["nlvr2/ta/1-y", "accuracy"]["value"]) == 0
    assert rows["vqa", "accuracy"]["clusters"] == "2"
    assert rows["vqa pairs/sw/1-x", "accuracy"]["scored"] == "1"
    capsys.readouterr()
    assert main([str(cultures), str(path), "--by", "nothing"]) == 2
    assert "no column 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"question_id": 99, "answer": "x"}, "question_id '99': no samples have this id"),
        ({"answer": "x"}, "expected one of the fields sample_id, question_id"),
    ],
)
def test_unknown_released_ids_are_one_clear_error(
    cultures: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    line: dict[str, Any],
    message: str,
) -> None:
    (tmp_path / "m.jsonl").write_text(json.dumps(line))
    assert main([str(cultures), str(tmp_path / "m.jsonl")]) == 2
    assert message in capsys.readouterr().err
