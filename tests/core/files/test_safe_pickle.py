import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.safe_pickle import load_pickle


class Hostile:
    """Unpickles by calling a function of the system."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.arguments


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_containers_and_arrays_come_back(tmp_path: Path, protocol: int) -> None:
    value: dict[str, Any] = {
        "a.mp4/000001.png": [{"bbox": (1.5, 2.0, 3.0, 4.0), "visible": True, "none": None}],
        "boxes": np.arange(8, dtype=np.float32).reshape(2, 4),
        "scalar": np.float32(0.5),
    }
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(value, protocol))

    read = load_pickle(tmp_path / "a.pkl").value

    assert read["a.mp4/000001.png"] == value["a.mp4/000001.png"]
    assert np.array_equal(read["boxes"], value["boxes"])
    assert read["boxes"].dtype == np.float32
    assert read["scalar"] == np.float32(0.5)


@pytest.mark.parametrize(
    ("hostile", "name"),
    [
        (Hostile(os.system, "true"), "posix.system"),
        (Hostile(eval, "1"), "builtins.eval"),
        (Hostile(getattr, "a", "upper"), "builtins.getattr"),
        (Path("x"), "pathlib"),
    ],
)
def test_a_pickle_that_asks_for_anything_else_is_refused_by_name(
    tmp_path: Path, hostile: object, name: str
) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"key": [hostile]}))

    with pytest.raises(InputError, match=rf"a\.pkl: it asks for {name}"):
        load_pickle(tmp_path / "a.pkl")


def test_a_hostile_pickle_is_not_executed(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(Hostile(os.mkdir, str(tmp_path / "made"))))

    with pytest.raises(InputError):
        load_pickle(tmp_path / "a.pkl")

    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("data", [b"", b"\x80", b"hello", pickle.dumps([1, 2])[:-3]])
def test_a_damaged_pickle_is_one_clear_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pkl").write_bytes(data)

    with pytest.raises(InputError, match="not a readable pickle"):
        load_pickle(tmp_path / "a.pkl")
