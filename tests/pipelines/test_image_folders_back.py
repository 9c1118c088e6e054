"""What is exported as an ImageFolder can be imported: the same texts, options and pictures."""

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
SAID = ("split", "kind", "caption_0", "caption_1", "caption", "hard_negative", "question", "answer")
SHOWN = ("options", "image_id", "image_0_id", "image_1_id")


@pytest.mark.parametrize("kind", TEXTS)
def test_an_image_folder_comes_back(kind: str, tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for number in range(2):
        (images / f"{number}.png").write_bytes(picture(number))
    records = [{**TEXTS[kind], "id": f"{n}", "split": "val" if n else "test"} for n in range(2)]
    source = tmp_path / "mine.json"
    source.write_text(json.dumps(records))
    first, folder, back = (str(tmp_path / name) for name in ("first", "folder", "back"))
    assert main(["import", kind, str(source), "--images", str(images), "--output", first]) == 0
    assert main(["export", first, "--format", "imagefolder", "--output", folder]) == 0
    assert main(["import", kind, folder, "--images", folder, "--output", back]) == 0

    def said(dataset: str) -> list[dict[str, Any]]:
        found = rows(Path(dataset), "samples")
        kept = [{k: row[k] for k in (*SAID, *SHOWN) if k in row} for row in found]
        return sorted(kept, key=lambda row: str(row["split"]))

    assert said(back) == said(first)
    assert rows(Path(back), "images") == rows(Path(first), "images")


def test_options_that_are_no_list_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "mine.json"
    source.write_text(json.dumps([{"question": "?", "answer": "да", "options": "[1, {"}]))
    with pytest.raises(SystemExit) as left:
        main(["import", "own-questions", str(source), "--output", str(tmp_path / "out")])
    assert left.value.code == 2
    assert 'options: expected options as a JSON list of texts, such as ["red", "blue"]' in (
        capsys.readouterr().err
    )


def test_a_table_holds_options_as_json(tmp_path: Path) -> None:
    source = tmp_path / "mine.csv"
    lines = ["id,question,answer,options", "1,苹果?,да,", '2,"?",нет,"[""да"", ""нет""]"']
    source.write_text("\n".join(lines))
    assert main(["import", "own-questions", str(source), "--output", str(tmp_path / "out")]) == 0
    found = {row["question"]: row["options"] for row in rows(tmp_path / "out", "samples")}
    assert found == {"苹果?": [], "?": ["да", "нет"]}
