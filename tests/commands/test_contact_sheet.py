"""`eqforge inspect --sheet` draws the pairs of a dataset."""

import errno
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.commands import inspection
from eqforge.commands.contact_sheet import BOX, GAP_PX, SIDE_PX, difference, wrapped
from eqforge.evaluation.report.kinds import some_items
from eqforge.schemas.dataset.reader import open_dataset
from tests.handmade import SIDE, write
from tests.made_datasets import image_rows, write_dataset

SCALE = SIDE_PX / SIDE


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sheet") / "out"
    write(folder)
    return folder


def drawn(dataset: Path, file: Path, *options: str) -> np.ndarray:
    """The first cell of the sheet, uint8 [height, width, 3], from its first image on."""
    assert inspection.main([str(dataset), "--sheet", str(file), *options]) == 0
    with Image.open(file) as sheet:
        return np.asarray(sheet)[GAP_PX:, GAP_PX:]


def middle_of_square(cell: np.ndarray, side: int) -> list[int]:
    left = side * (SIDE_PX + GAP_PX)
    place = round(20 * SCALE)
    found: list[int] = cell[place, left + place].tolist()
    return found


def test_a_cell_has_both_images_side_by_side_and_what_differs_dark(
    dataset: Path, tmp_path: Path
) -> None:
    cell = drawn(dataset, tmp_path / "a.png")

    assert middle_of_square(cell, 0) == [255, 0, 0]
    assert middle_of_square(cell, 1) == [20, 0, 0]
    captions = cell[SIDE_PX : SIDE_PX + 60, : 2 * SIDE_PX]
    assert (captions < 100).any()  # ink
    assert middle_of_square(cell, 2) == [0, 0, 0]
    assert cell[5, 2 * (SIDE_PX + GAP_PX) + 5].tolist() == [255, 255, 255]


def test_colours_of_equal_brightness_differ() -> None:
    """Red and green of the same luma are dark in the difference; equal pictures are white."""
    red, green = (Image.new("RGB", (9, 9), colour) for colour in ((200, 60, 60), (60, 131, 60)))

    assert red.convert("L").getpixel((0, 0)) == green.convert("L").getpixel((0, 0))
    assert difference(red, green).getpixel((4, 4)) == (0, 0, 0)
    assert difference(red, red).getpixel((4, 4)) == (255, 255, 255)


def test_boxes_are_drawn_where_they_are_asked_for(dataset: Path, tmp_path: Path) -> None:
    corner = round(10.5 * SCALE)

    plain = drawn(dataset, tmp_path / "a.png")
    boxed = drawn(dataset, tmp_path / "b.png", "--boxes")

    assert plain[corner, corner].tolist() == [255, 0, 0]
    assert np.abs(boxed[corner, corner].astype(int) - BOX).max() < 40


@pytest.mark.parametrize(
    ("rows", "columns", "count"),
    [
        ("1", 1, "1 of 2 samples; --rows 2 draws all"),
        ("2", 2, "2 of 2 samples"),
        ("9", 2, "2 of 2 samples"),
    ],
)
def test_there_are_as_many_pairs_as_asked_for_and_had(
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rows: str,
    columns: int,
    count: str,
) -> None:
    sheet = drawn(dataset, tmp_path / "a.png", "--rows", rows)

    assert capsys.readouterr().out == f"{tmp_path}/a.png: {count}\n"
    assert sheet.shape[1] + GAP_PX == columns * (3 * SIDE_PX + 4 * GAP_PX)


def test_a_sheet_in_no_folder_is_one_sentence_without_names_of_temporary_files(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor is one without a suffix written, which no format has."""
    file = tmp_path / "nowhere" / "a.png"
    for sheet, why in ((file, "No such file or directory\n"), (tmp_path / "sheet", "")):
        with pytest.raises(SystemExit) as left:
            inspection.main([str(dataset), "--sheet", str(sheet)])
        assert left.value.code == 2
        said = capsys.readouterr().err
        assert said.startswith(f"eqforge: {sheet}: cannot be written: ")
        assert said.endswith(why)


def test_a_sheet_in_a_read_only_folder_is_the_same_sentence(
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "a")

    monkeypatch.setattr(Image.Image, "save", fail)
    monkeypatch.setattr(Path, "unlink", fail)
    sheet = tmp_path / "a.png"
    with pytest.raises(SystemExit, match="2"):
        inspection.main([str(dataset), "--sheet", str(sheet)])
    said = f"eqforge: {sheet}: cannot be written: Read-only file system\n"
    assert capsys.readouterr().err == said


def coloured(*colours: str) -> dict[str, bytes]:
    """A picture of each colour, named by it."""
    found = {}
    for colour in colours:
        stream = io.BytesIO()
        Image.new("RGB", (40, 30), colour).save(stream, "PNG")
        found[colour] = stream.getvalue()
    return found


def training(name: str, text: str, image: str | None = "red") -> dict[str, Any]:
    """A row of training captions."""
    caption: dict[str, Any] = {"sample_id": f"{name}/original", "caption_id": name, "kind": None}
    return {**caption, "image_id": image, "role": "original", "text": text}


def vlue(name: str, task: str, *images: str) -> dict[str, Any]:
    """An item of VLUE with one picture or two."""
    first, second = (*images, None)[:2]
    named = {"image": first, "image_id": first, "image_1": second, "image_1_id": second}
    return {"sample_id": name, "task": task, **named}


BOXED = {"x0": 0, "y0": 0, "x1": 9, "y1": 9}
QUERY = {
    "sample_id": "simat/1-2/relation/near",
    "region_id": "1-2",
    "image_id": "blue",
    "part": "relation",
    "source_word": "on",
    "target_word": "near",
    "source_triplet_id": "dog/on/mat",
    "target_triplet_id": "dog/near/mat",
}
TABLES: dict[str, tuple[dict[str, list[dict[str, Any]]], tuple[str, ...]]] = {
    "hard-positives": (
        {
            "samples": [
                {
                    "sample_id": "coco/1",
                    "image_id": "red",
                    "caption": "A cup on a mat.",
                    "hard_positive": "A mug on a mat.",
                    "hard_negative": "A cup under a mat.",
                    "hard_positive_kind": "replace/object",
                }
            ]
        },
        (
            "caption: A cup on a mat.",
            "hard positive: A mug on a mat.",
            "hard negative: A cup under a mat.",
        ),
    ),
    "training-captions": ({"samples": [training("1", "A cup.")]}, ("original: A cup.",)),
    "simat": (
        {
            "samples": [QUERY],
            "captions": [
                {"caption_id": "dog/on/mat", "caption": "A dog on a mat."},
                {"caption_id": "dog/near/mat", "caption": "A dog near a mat."},
            ],
            "gallery": [
                {
                    "region_id": "1-2",
                    "triplet_id": "dog/on/mat",
                    "image_id": "blue",
                    **{name: BOXED for name in ("box", "subject_box", "object_box")},
                }
            ],
        },
        (
            "shows: A dog on a mat.",
            "change: on → near",
            "looks for: A dog near a mat.",
            "true targets: 0 in the gallery",
        ),
    ),
    "vlue": (
        {
            "samples": [vlue("vqa/1", "vqa", "red")],
            "vqa": [{"sample_id": "vqa/1", "question": "What is red?", "answers": ["cup", "mat"]}],
        },
        ("question: What is red?", "answer: cup", "answer: mat"),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_one_picture_has_its_texts_below_it(name: str, tmp_path: Path) -> None:
    tables, texts = TABLES[name]
    pictures = coloured("red", "blue")
    folder = write_dataset(
        tmp_path / "d", name, {**tables, "images": image_rows(pictures)}, files=1
    )

    (item,) = some_items(open_dataset(str(folder)), 3)
    cell = drawn(folder, tmp_path / "a.png")

    assert tuple(f"{text.role}: {text.plain}" for text in item.all_texts()) == texts
    colour = {"red": [255, 0, 0], "blue": [0, 0, 255]}[item.panes[0].image_id or ""]
    assert cell[80, 100].tolist() == colour
    assert (cell[round(SIDE_PX * 0.8) :] < 100).all(axis=2).any()  # ink


def test_two_pictures_of_a_task_are_both_drawn(tmp_path: Path) -> None:
    sample = vlue("n/1", "nlvr2", "red", "blue")
    detail = {"sample_id": "n/1", "statement": "One is red.", "label": True}
    tables: dict[str, list[dict[str, Any]]] = {"samples": [sample], "nlvr2": [detail]}
    tables["images"] = image_rows(coloured("red", "blue"))
    folder = write_dataset(tmp_path / "d", "vlue", tables, files=1)

    cell = drawn(folder, tmp_path / "a.png")

    assert cell[80, 100].tolist() == [255, 0, 0]
    assert cell[80, SIDE_PX + GAP_PX + 100].tolist() == [0, 0, 255]
    (item,) = some_items(open_dataset(str(folder)), 3)
    assert [text.plain for text in item.texts] == ["One is red.", "true"]


def test_letters_that_the_font_lacks_are_no_empty_boxes() -> None:
    assert wrapped(["A dog runs."], 400) == "A dog runs."
    assert "eqforge report can" in wrapped(["犬が走る"], 800)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([training("1", "A cup.", None)], "build it with --images FOLDER"),
        ([], "has no samples to draw"),
        ([training("1", "A cup.", "green")], "image green is missing"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(
    samples: list[dict[str, Any]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {"samples": samples, "images": image_rows(coloured("red"))}
    folder = write_dataset(tmp_path / "d", "training-captions", tables, files=1)

    with pytest.raises(SystemExit) as left:
        inspection.main([str(folder), "--sheet", str(tmp_path / "a.png")])

    assert left.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line
