from pathlib import Path
from typing import Any

import msgspec
import pytest

from eqforge.core.errors import InputError
from eqforge.sources.calibration import (
    Calibration,
    Curve,
    calibration_json,
    read_calibration,
)

ASKED = [("nli:m@1", "caption_entails_positive")]


def saved(path: Path, curve: Any) -> Path:
    good = Curve(questions=ASKED, weights=[1.0])
    found = Calibration(
        judges=["nli:m@1"], method="logistic", hard_positive=good, hard_negative=good
    )
    document = msgspec.to_builtins(found) | {"hard_negative": curve}
    path.write_bytes(msgspec.json.encode(document))
    return path


def test_a_calibration_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = saved(tmp_path / "c.json", {"questions": ASKED, "at": [0.0, 1.0], "steps": [0.5, 1.0]})
    found = read_calibration(path)
    path.write_bytes(calibration_json(found))
    assert read_calibration(path) == found
    assert found.hard_negative.of([0.5]) == 0.75
    assert (found.hard_negative.of([-9.0]), found.hard_negative.of([9.0])) == (0.5, 1.0)
    assert found.hard_positive.of([-1000.0]) == 0.0
    assert found.curve("original") is None


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        ({"questions": ASKED}, "hard_negative: expected a weight for each"),
        ({"questions": ASKED, "at": [1.0, 0.0], "steps": [0.1, 0.2]}, "these rising"),
        ({"questions": ASKED, "at": [0.0], "steps": []}, "as many steps as places"),
        ({"questions": ASKED, "at": [0.0], "steps": [1.5]}, "probabilities from 0 to 1"),
        ({"questions": [], "at": [0.0], "steps": [0.5]}, "questions: expected at least one"),
        ({"weights": [1.0]}, "the field 'questions' is missing"),
    ],
)
def test_what_does_not_hang_together_is_refused(
    curve: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        read_calibration(saved(tmp_path / "c.json", curve))


def test_another_file_is_no_calibration(tmp_path: Path) -> None:
    path = saved(tmp_path / "c.json", {"questions": ASKED, "weights": [1.0]})
    path.write_bytes(path.read_bytes().replace(b"eqforge calibration", b"something else"))
    with pytest.raises(InputError, match="expected format eqforge calibration 1"):
        read_calibration(path)
