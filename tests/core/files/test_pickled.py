"""Pickles made to end the process, to fill its memory or to change it are one clear error."""

import os
import pickle
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node
from eqforge.sources.action_genome import read_action_genome, read_members


def read(path: Path) -> Any:
    return {key: node.value for key, node in read_members(path)}


class Hostile:
    """Unpickles by calling a function of the system."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.arguments


def text(value: str) -> bytes:
    """The opcode of a string."""
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def member(value: bytes) -> bytes:
    """A pickle of a dict with one member, given by its opcodes."""
    return b"\x80\x04}" + text("key") + value + b"s."


def called(module: str, name: str, arguments: bytes) -> bytes:
    """The opcodes of a call; arguments are the opcodes of what stands in its tuple."""
    return f"c{module}\n{name}\n".encode() + b"(" + arguments + b"tR"


FLOATS = called("numpy", "dtype", text("f8"))
EMPTY = called("numpy.core.multiarray", "_reconstruct", b"cnumpy\nndarray\n(K\x00t" + text("b"))
SIX = b"C\x06abcdef"
HOSTILE = {
    "a key as deep as the stack": b")" + b"\x85" * 300_000 + b"Ns",
    "a key in a member as deep": b"})" + b"\x85" * 300_000 + b"Nsu",
    "a type with fields": called("numpy", "dtype", text("V8")),
    "objects": called("numpy", "dtype", text("O")),
    "a type of no size": called("numpy", "dtype", text("S0")),
    "a type that is given fields": FLOATS
    + b"(K\x03"
    + text("|")
    + b"N("
    + text("a")
    + b"t}K\x08K\x01K\x1btb",
    "more numbers than bytes": EMPTY
    + b"(K\x01J\x00\x00\x00\x40\x85"
    + FLOATS
    + b"\x89"
    + SIX
    + b"tb",
    "a shape that is none": EMPTY + b"(K\x01J\xff\xff\xff\xff\x85" + FLOATS + b"\x89" + SIX + b"tb",
    "bytes that are a list": EMPTY + b"(K\x01K\x00\x85" + FLOATS + b"\x89]tb",
    "a number of six bytes": called("numpy.core.multiarray", "scalar", FLOATS + SIX),
    "an array made at once": called("numpy", "ndarray", b"J\x00\x00\x00\x40" + text("d")),
    "a function that is given a state": b"c_codecs\nencode\n}"
    + text("__doc__")
    + text("x")
    + b"sb",
    "16 GiB announced": b"\x96" + (2**34).to_bytes(8, "little") + b"abc",
    "a text of 16 GiB announced": b"\x8d" + (2**34).to_bytes(8, "little") + b"abc",
    "a frame of 2^62 bytes": b"\x95" + (2**62).to_bytes(8, "little"),
    "a position out of the way": b"K\x07r" + (2**32 - 1).to_bytes(4, "little"),
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_what_no_annotation_has_is_one_clear_error(tmp_path: Path, value: bytes) -> None:
    (tmp_path / "a.pkl").write_bytes(member(value))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(InputError, match=r"^a\.pkl: cannot be read as a pickle: ") as caught:
        read(tmp_path / "a.pkl")

    assert len(str(caught.value)) < 400
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 * 1024


@pytest.mark.parametrize(
    ("hostile", "name"),
    [
        (Hostile(os.system, "true"), "posix.system"),
        (Hostile(eval, "1"), "builtins.eval"),
        (Path("x"), "pathlib"),
    ],
)
def test_a_pickle_that_asks_for_anything_else_is_refused_by_name(
    tmp_path: Path, hostile: object, name: str
) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"key": [hostile]}))

    with pytest.raises(InputError, match=rf"cannot be read as a pickle: it contains {name}"):
        read(tmp_path / "a.pkl")


def test_a_hostile_pickle_is_not_executed(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(Hostile(os.mkdir, str(tmp_path / "made"))))

    with pytest.raises(InputError):
        read(tmp_path / "a.pkl")

    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", b"hello", pickle.dumps({"a": 1})[:-3], pickle.dumps((1, 2))],
    ids=["empty", "cut", "text", "short", "tuple"],
)
def test_a_damaged_pickle_is_one_clear_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pkl").write_bytes(data)

    with pytest.raises(InputError, match="cannot be read as a pickle"):
        read(tmp_path / "a.pkl")


@pytest.mark.parametrize("number", [0, 1, 1_000, 1_001])
def test_any_number_of_members_is_read(tmp_path: Path, number: int) -> None:
    shared = ["a" * 50]
    members = {f"k{n}": {"box": [n + 0.5, None], "is": shared} for n in range(number)}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(members))

    assert read(tmp_path / "a.pkl") == members


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "array",
    [
        np.float32(0.1),
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["a", "äöü"]),
        np.zeros((0, 4), np.float32),
        np.array(2.5),
    ],
    ids=["number", "big-endian", "Fortran", "text", "empty", "scalar"],
)
def test_arrays_of_plain_types_come_back(tmp_path: Path, array: Any, protocol: int) -> None:
    (tmp_path / "a.pkl").write_bytes(
        pickle.dumps({"key": array, "first": array.ravel()[:1]}, protocol)
    )

    found = read(tmp_path / "a.pkl")

    assert found["key"] == array.tolist()


def write_objects(folder: Path, frames: dict[str, Any]) -> Path:
    path = folder / "objects.pkl"
    path.write_bytes(pickle.dumps(frames))
    return path


def seen() -> dict[str, Any]:
    return {"class": "cup", "bbox": (1.0, 2.0, 3.0, 4.0), "visible": True, "metadata": {"set": "x"}}


def test_a_file_of_references_to_one_list_is_refused(tmp_path: Path) -> None:
    """50 kB that stand for half a million objects."""
    shared = [seen() for _ in range(1_000)]
    path = write_objects(tmp_path, {f"a.mp4/{n:06}.png": shared for n in range(1, 500)})

    with pytest.raises(InputError, match=r"needs at least .* bytes of memory"):
        read_action_genome(path)


def test_boxes_of_references_to_one_array_are_refused(tmp_path: Path) -> None:
    shared = {"bbox": np.full((1_000, 4), 1 / 3, np.float32), "bbox_mode": "xyxy"}
    frames = {f"a.mp4/{n:06}.png": shared for n in range(1, 500)}
    (tmp_path / "persons.pkl").write_bytes(pickle.dumps(frames))

    with pytest.raises(InputError, match=r"needs at least .* bytes of memory"):
        read_action_genome(write_objects(tmp_path, {}), tmp_path / "persons.pkl")


def test_a_list_that_frames_share_is_no_fault(tmp_path: Path) -> None:
    shared = [seen()]
    path = write_objects(tmp_path, {f"a.mp4/{n:06}.png": shared for n in range(1, 50)})

    (video,) = read_action_genome(path)

    assert [frame.objects[0].name for frame in video.frames] == ["cup"] * 49


@pytest.mark.parametrize(
    "value", [[], {"a": 1}, 10**5_000, b"x" * 10**6], ids=["list", "dict", "number", "bytes"]
)
def test_a_message_is_short_whatever_it_shows(value: Any) -> None:
    for _ in range(10_000):
        value = [value]

    with pytest.raises(InputError) as caught:
        Node("a.pkl", "key", value).number()

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "key",
    [10**5_000, "\x1b[2J", "a" * 10_000, "\ud800"],
    ids=["number", "escape", "long", "surrogate"],
)
def test_a_key_that_is_no_name_is_shown_as_what_no_terminal_obeys(tmp_path: Path, key: Any) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({key: 1}))

    with pytest.raises(InputError) as caught:
        read(tmp_path / "a.pkl")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
