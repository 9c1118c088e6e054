import json
import shutil
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.commands import inspection, verify
from eqforge.pipelines import vlue
from eqforge.schemas.tables.vlue import TASK_TABLES
from tests.builds import books, rejected, rewrite, rows

NAME = unicodedata.normalize("NFD", "tr/images/Döner/1.png")
LONG = "A person in a red coat stands near the shop."


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A user's own files of all five tasks, the images of all but one, and a list of answers."""
    tmp_path = tmp_path_factory.mktemp("inputs")
    files: dict[str, list[dict[str, Any]]] = {
        "retrieval": [
            {"image": NAME, "caption": [LONG, "There is meat."]},
            {"image": unicodedata.normalize("NFC", NAME), "caption": [f"{LONG} Really."]},
            {"image": "sw/2.png", "caption": LONG},
        ],
        "nlvr2": [{"sentence": "Both are red.", "images": [NAME, "sw/2.png"], "label": "False"}],
        "vqa": [
            {"question_id": 4, "question": "Who?", "image": "sw/2.png", "answer": "man"},
            {"question_id": 5, "question": "Who?", "image": "gone.png", "answer": "nobody"},
        ],
        "captioning": [{"image_id": 0, "image": "sw/2.png", "caption": [LONG, LONG]}],
        "grounding": [{"ref_id": 9, "image": NAME, "text": "left", "bbox": [30, 0, 20, 5]}],
    }
    images = tmp_path / "images"
    for number, name in enumerate((unicodedata.normalize("NFC", NAME), "sw/2.png")):
        (images / name).parent.mkdir(parents=True)
        pixels = np.random.default_rng(number).integers(0, 256, (30, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(images / name)
    command = ["--images", str(images), "--answer-list", str(tmp_path / "answers.json")]
    (tmp_path / "answers.json").write_text('["woman", "child"]')
    for task, content in files.items():
        (tmp_path / f"{task}.json").write_text(json.dumps(content))
        command += [f"--{task}", str(tmp_path / f"{task}.json")]
    return command


@pytest.fixture(scope="module")
def built(inputs: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of the inputs; tests must not change it."""
    return build(inputs, tmp_path_factory.mktemp("built"))


def build(inputs: list[str], output: Path, *arguments: str) -> Path:
    assert vlue.main([*inputs, "--output", str(output), *arguments]) == 0
    assert verify.main([str(output)]) == 0
    return output


def test_every_task_becomes_a_table_and_every_breach_a_finding(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = built

    assert books(output) == {"annotations": (9, 8, 1)}
    assert rejected(output, "image_missing") == ["vqa/5"]
    samples = {row["sample_id"]: row for row in rows(output, "samples")}
    for task in TASK_TABLES:
        ids = {name for name, row in samples.items() if row["task"] == task}
        assert {row["sample_id"] for row in rows(output, task)} == ids
    assert {row["group"] for row in samples.values()} == {"sw", "tr"}
    found = Counter((row["task"], row["rule"]) for row in rows(output, "findings"))
    assert found == {
        ("retrieval", "few_words"): 1,
        ("retrieval", "there_is"): 1,
        ("retrieval", "name_not_nfc"): 1,
        ("nlvr2", "name_not_nfc"): 1,
        ("vqa", "answer_not_listed"): 1,
        ("grounding", "name_not_nfc"): 1,
        ("grounding", "box_outside_image"): 1,
    }
    manifest = json.loads((output / "dataset.json").read_text())
    assert {(t, r): n for t, rules in manifest["findings"].items() for r, n in rules.items()} == (
        found
    )
    capsys.readouterr()
    assert inspection.main([str(output), "--rows", "0"]) == 0
    assert "box_outside_image" in capsys.readouterr().out


def test_the_tables_hold_what_the_metrics_need(built: Path) -> None:
    output = built

    name = unicodedata.normalize("NFC", NAME)
    image_ids = {row["image"]: row["image_id"] for row in rows(output, "samples")}
    (statement,) = rows(output, "nlvr2")
    assert (statement["image_0"], statement["image_1"]) == (name, "sw/2.png")
    assert (statement["image_0_id"], statement["image_1_id"]) == (
        image_ids[name],
        image_ids["sw/2.png"],
    )
    assert statement["label"] is False
    (question,) = rows(output, "vqa")
    assert (question["source_id"], question["answers"]) == ("4", ["man"])
    assert question["answer_listed"] is False
    (captioned,) = rows(output, "captioning")
    assert (captioned["sample_id"], captioned["references"]) == ("captioning/0", [LONG, LONG])
    (phrase,) = rows(output, "grounding")
    assert phrase["box"] == {"x": 30.0, "y": 0.0, "width": 20.0, "height": 5.0}
    assert (phrase["width_px"], phrase["height_px"]) == (40, 30)


def test_rows_of_one_image_are_one_candidate_but_in_paper_mode(
    inputs: list[str], built: Path, tmp_path: Path
) -> None:
    corrected = rows(built, "retrieval")
    paper = rows(build(inputs, tmp_path / "paper", "--mode", "paper"), "retrieval")

    assert len({row["entry_id"] for row in corrected}) == 3
    assert Counter(row["gallery_id"] for row in corrected) == {
        unicodedata.normalize("NFC", NAME): 3,
        "sw/2.png": 1,
    }
    assert [row["gallery_id"] for row in paper] == [row["entry_id"] for row in paper]


def test_without_a_folder_the_rows_name_the_images_alone(inputs: list[str], tmp_path: Path) -> None:
    output = build(inputs[2:], tmp_path / "out")

    assert books(output) == {"annotations": (9, 9, 0)}
    assert {row["image_id"] for row in rows(output, "samples")} == {None}
    assert [row["rule"] for row in rows(output, "findings") if row["task"] == "grounding"] == [
        "box_unchecked",
        "name_not_nfc",
    ]


def test_one_item_alone_is_the_same_as_in_the_whole_dataset(
    inputs: list[str], built: Path, tmp_path: Path
) -> None:
    whole = built
    name = next(row["sample_id"] for row in rows(whole, "retrieval") if row["number"] == 1)

    alone = build(inputs, tmp_path / "alone", "--only", name)

    for table in ("samples", "retrieval", "findings"):
        assert rows(alone, table) == [r for r in rows(whole, table) if r["sample_id"] == name]
    assert books(alone) == {"annotations": (1, 1, 0)}
    limited = build(inputs, tmp_path / "limited", "--limit", "2")
    assert books(limited) == {"annotations": (2, 2, 0)}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([], "pass a file for at least one task: --retrieval, --nlvr2"),
        (["--retrieval", "none.json"], "none.json"),
        (["--retrieval", "r.json", "--answer-list", "a.json"], "with --vqa FILE"),
        (["--retrieval", "r.json", "--images", "nowhere"], "no such folder"),
        (["--retrieval", "r.json", "--min-words", "-1"], "--min-words -1: expected 0 or more"),
    ],
)
def test_wrong_settings_are_one_error_before_any_work(
    command: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        vlue.main([*command, "--output", str(tmp_path / "out")])

    assert left.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_verify_finds_a_row_of_a_task_whose_sample_is_gone(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    shutil.copytree(built, output)
    (file,) = (output / "data").glob("samples-*.parquet")
    rewrite(
        output,
        f"data/{file.name}",
        lambda rows: [row for row in rows if row["sample_id"] != "captioning/0"],
    )
    capsys.readouterr()

    assert verify.main([str(output)]) == 1
    assert (
        "captioning: captioning/0 refers to row captioning/0 of samples, which does not exist"
        in capsys.readouterr().out
    )


def test_the_released_files_are_imported_whole_and_their_findings_listed(
    data_folder: Path, tmp_path: Path
) -> None:
    """The numbers are counted here from the JSON alone."""
    files = {
        "retrieval": data_folder / "vlue" / "itr_vlue_test.json",
        "nlvr2": data_folder / "vlue" / "nlvr2_vlue_test.json",
    }
    content = {task: json.loads(path.read_bytes()) for task, path in files.items()}
    captions = [text for row in content["retrieval"] for text in row["caption"]]
    names = {
        "retrieval": [row["image"] for row in content["retrieval"]],
        "nlvr2": [name for row in content["nlvr2"] for name in row["images"]],
    }

    output = tmp_path / "out"
    command = [text for task, path in files.items() for text in (f"--{task}", str(path))]
    assert vlue.main([*command, "--output", str(output)]) == 0

    retrieval = rows(output, "retrieval")
    assert Counter(row["caption"] for row in retrieval) == Counter(captions)
    sizes = Counter(Counter(row["entry_id"] for row in retrieval).values())
    assert sizes == {4: 5, 5: 5_249, 6: 15, 7: 7, 8: 174}
    assert len(rows(output, "nlvr2")) == 5_662
    few = [text for text in captions if len(text.split()) < 8]
    there_is = [text for text in captions if text.lower().startswith("there is ")]
    findings = rows(output, "findings")
    for rule, texts in (("few_words", few), ("there_is", there_is)):
        assert Counter(row["text"] for row in findings if row["rule"] == rule) == Counter(texts)
    for task, found in names.items():
        other = [name for name in found if name != unicodedata.normalize("NFC", name)]
        listed = [r["text"] for r in findings if (r["task"], r["rule"]) == (task, "name_not_nfc")]
        assert Counter(listed) == Counter(other)
    assert (len(few), len(there_is)) == (150, 2)
    assert json.loads((output / "dataset.json").read_text())["findings"] == {
        "nlvr2": {"name_not_nfc": 1_286},
        "retrieval": {"few_words": 150, "name_not_nfc": 503, "there_is": 2},
    }
