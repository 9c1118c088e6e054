"""What is exported comes back by `import own-...` as it was: whole rows, and their pictures."""

import json
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from tests.builds import rows
from tests.published import picture

TEXTS: dict[str, dict[str, Any]] = {
    "own-pairs": {
        "caption_0": "苹果",
        "caption_1": "груша",
        "image_0": "0.png",
        "image_1": "1.png",
    },
    "own-foils": {"caption": "苹果", "hard_negative": "груша", "image": "0.png"},
    "own-questions": {
        "question": "苹果?",
        "answer": "да",
        "image": "0.png",
        "options": ["да", "нет"],
    },
}
OPTIONS = {"pairs": (), "hf": (), "imagefolder": (), "webdataset": (), "jsonl": ("--image-files",)}


def records(kind: str) -> list[dict[str, Any]]:
    """Three records, one of which has next to nothing; the last is refused for its picture."""
    own = {"id": "left/1", "split": "val", "kind": "colour", "licence": "CC0-1.0", "n": 3}
    own |= {"source_id": "v1"} if kind == "own-pairs" else {"group_id": "g"}
    last = {name: "gone.png" for name in TEXTS[kind] if name.startswith("image")}
    return [TEXTS[kind], TEXTS[kind] | own, TEXTS[kind] | last]


@pytest.fixture(scope="module", params=TEXTS)
def imported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A kind of rows of one's own, and a dataset of them with pictures and rejects."""
    folder = tmp_path_factory.mktemp(request.param)
    for number in range(2):
        (folder / f"{number}.png").write_bytes(picture(number))
    source = folder / "mine.json"
    source.write_text(json.dumps(records(request.param)))
    words = ["import", request.param, str(source), "--images", str(folder)]
    assert main([*words, "--output", str(folder / "d")]) == 0
    assert len(rows(folder / "d", "rejects")) == 1
    return request.param, folder / "d"


@pytest.mark.parametrize("form", OPTIONS)
def test_what_was_exported_comes_back(
    imported: tuple[str, Path], form: str, tmp_path: Path
) -> None:
    kind, dataset = imported
    folder, back = str(tmp_path / "folder"), tmp_path / "back"
    words = ["export", str(dataset), "--format", form, "--output", folder]
    assert main([*words, *OPTIONS[form]]) == 0
    images = ["--images", folder] if form == "jsonl" else []
    assert main(["import", kind, folder, *images, "--output", str(back)]) == 0

    assert rows(back, "samples") == rows(dataset, "samples")  # all columns of all rows
    assert rows(back, "images") == rows(dataset, "images")
    assert main(["diff", str(dataset), str(back), "--table", "samples", "images"]) == 0


def test_rows_of_another_dataset_keep_its_name_and_their_columns(tmp_path: Path) -> None:
    row = {
        **TEXTS["own-foils"],
        "sample_id": "sugar-crepe/swap_obj/7",
        "dataset": "sugar-crepe",
        "item_id": "sugar-crepe/swap_obj/7",
        "annotation": '{"licence": "MIT"}',
        "box": {"x0": 0, "y0": 0, "x1": 2, "y1": 2},
        "source_sha256": None,
    }
    source = tmp_path / "mine.jsonl"
    source.write_text(json.dumps(row))
    assert main(["import", "own-foils", str(source), "--output", str(tmp_path / "d")]) == 0
    (found,) = rows(tmp_path / "d", "samples")
    assert found["sample_id"] == found["item_id"] == "own-foils/swap_obj/7"
    assert json.loads(found["annotation"]) == {
        "licence": "MIT",
        "dataset": "sugar-crepe",
        "box": row["box"],
    }


def test_columns_that_are_called_like_eqforge_s_are_kept(tmp_path: Path) -> None:
    own = {"sample_id": "s", "dataset": "mine", "annotation": "not JSON"}
    source = tmp_path / "mine.jsonl"
    source.write_text(json.dumps(TEXTS["own-foils"] | own))
    assert main(["import", "own-foils", str(source), "--output", str(tmp_path / "d")]) == 0
    (found,) = rows(tmp_path / "d", "samples")
    assert json.loads(found["annotation"]) == own


def test_options_that_are_no_list_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "mine.json"
    source.write_text(json.dumps([{"question": "?", "answer": "да", "options": "[1, {"}]))
    with pytest.raises(SystemExit) as left:
        main(["import", "own-questions", str(source), "--output", str(tmp_path / "out")])
    assert left.value.code == 2
    assert 'options: expected options as a JSON list of strings, such as ["red", "blue"]' in (
        capsys.readouterr().err
    )


def test_a_table_holds_options_as_json(tmp_path: Path) -> None:
    source = tmp_path / "mine.csv"
    lines = ["id,question,answer,options", "1,苹果?,да,", '2,"?",нет,"[""да"", ""нет""]"']
    source.write_text("\n".join(lines))
    assert main(["import", "own-questions", str(source), "--output", str(tmp_path / "out")]) == 0
    found = {row["question"]: row["options"] for row in rows(tmp_path / "out", "samples")}
    assert found == {"苹果?": [], "?": ["да", "нет"]}
