"""`eqforge inspect --sheet` draws the pairs of a dataset."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eqforge import inspection
from eqforge.contact_sheet import BOX, GAP_PX, SIDE_PX
from tests.handmade import SIDE, write

SCALE = SIDE_PX / SIDE


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sheet") / "out"
    write(folder)
    return folder


def drawn(dataset: Path, file: Path, *options: str) -> np.ndarray:  # type: ignore[type-arg]
    """The first cell of the sheet, uint8 [height, width, 3], from its first image on."""
    assert inspection.main([str(dataset), "--sheet", str(file), *options]) == 0
    with Image.open(file) as sheet:
        return np.asarray(sheet)[GAP_PX:, GAP_PX:]


def middle_of_square(cell: np.ndarray, side: int) -> list[int]:  # type: ignore[type-arg]
    left = side * (SIDE_PX + GAP_PX)
    place = round(20 * SCALE)
    found: list[int] = cell[place, left + place].tolist()
    return found


def test_a_cell_has_both_images_side_by_side(dataset: Path, tmp_path: Path) -> None:
    cell = drawn(dataset, tmp_path / "a.png")

    assert middle_of_square(cell, 0) == [255, 0, 0]
    assert middle_of_square(cell, 1) == [20, 0, 0]
    captions = cell[SIDE_PX : SIDE_PX + 60, : 2 * SIDE_PX]
    assert (captions < 100).any()  # ink


def test_boxes_are_drawn_where_they_are_asked_for(dataset: Path, tmp_path: Path) -> None:
    corner = round(10.5 * SCALE)

    plain = drawn(dataset, tmp_path / "a.png")
    boxed = drawn(dataset, tmp_path / "b.png", "--boxes")

    assert plain[corner, corner].tolist() == [255, 0, 0]
    assert np.abs(boxed[corner, corner].astype(int) - BOX).max() < 40


@pytest.mark.parametrize(("rows", "columns"), [("1", 1), ("2", 2), ("9", 2)])
def test_there_are_as_many_pairs_as_asked_for_and_had(
    dataset: Path, tmp_path: Path, rows: str, columns: int
) -> None:
    sheet = drawn(dataset, tmp_path / "a.png", "--rows", rows)

    assert sheet.shape[1] + GAP_PX == columns * (2 * SIDE_PX + 3 * GAP_PX)


def test_a_picture_of_no_known_format_is_refused(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        inspection.main([str(dataset), "--sheet", str(tmp_path / "sheet")])

    assert left.value.code == 2
    assert "cannot be written" in capsys.readouterr().err
