"""Pickles made to end the process, to fill its memory or to change it are one clear error."""

import pickle
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files import pickled_arrays
from eqforge.core.files.checked import Node
from eqforge.core.files.pickle_stream import convert_members
from eqforge.core.files.safe_pickle import load_pickle
from eqforge.sources.action_genome import read_action_genome


def in_passing(path: Path) -> Any:
    return convert_members(path, lambda _, node: node.value)


def at_once(path: Path) -> Any:
    return load_pickle(path).value


READERS = pytest.mark.parametrize("read", [in_passing, at_once])


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
    "a class made anew": b"cnumpy\nndarray\nK\x08\x85\x81",
    "a set": b"\x8f",
    "16 GiB announced": b"\x96" + (2**34).to_bytes(8, "little") + b"abc",
    "a text of 16 GiB announced": b"\x8d" + (2**34).to_bytes(8, "little") + b"abc",
    "a frame of 2^62 bytes": b"\x95" + (2**62).to_bytes(8, "little"),
}


@READERS
@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_what_no_annotation_has_is_one_clear_error(
    tmp_path: Path, value: bytes, read: Callable[[Path], Any]
) -> None:
    (tmp_path / "a.pkl").write_bytes(member(value))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(InputError, match=r"^a\.pkl: not a readable pickle: ") as caught:
        read(tmp_path / "a.pkl")

    assert len(str(caught.value)) < 400
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 * 1024


def test_no_pickle_reaches_what_makes_arrays_of_another(tmp_path: Path) -> None:
    """The state of a function would last as long as the process."""
    first, second = (pickled_arrays.array_maker("_codecs", "encode") for _ in range(2))

    assert first is not second


def test_a_position_out_of_the_way_costs_no_memory_when_the_file_is_read_at_once(
    tmp_path: Path,
) -> None:
    """The unpickler in C makes a list of that length; the first position lets none be streamed."""
    far = b"r" + (2**32 - 1).to_bytes(4, "little")
    (tmp_path / "a.pkl").write_bytes(b"\x80\x03}q\x05" + text("key") + far + b"K\x07s.")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert in_passing(tmp_path / "a.pkl") == {"key": 7}

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@READERS
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["a", "äöü"]),
        np.zeros((0, 4), np.float32),
        np.array(2.5),
    ],
    ids=["big-endian", "Fortran", "text", "empty", "scalar"],
)
def test_arrays_of_plain_types_come_back(
    tmp_path: Path, array: Any, protocol: int, read: Callable[[Path], Any]
) -> None:
    (tmp_path / "a.pkl").write_bytes(
        pickle.dumps({"key": array, "first": array.ravel()[:1]}, protocol)
    )

    found = read(tmp_path / "a.pkl")

    assert np.array_equal(found["key"], array)
    assert found["key"].shape == array.shape
    assert found["key"].dtype.newbyteorder("=") == array.dtype.newbyteorder("=")


def write_objects(folder: Path, frames: dict[str, Any]) -> Path:
    path = folder / "objects.pkl"
    path.write_bytes(pickle.dumps(frames))
    return path


def seen() -> dict[str, Any]:
    return {"class": "cup", "bbox": (1.0, 2.0, 3.0, 4.0), "visible": True, "metadata": {"set": "x"}}


def test_a_file_of_references_to_one_list_is_refused(tmp_path: Path) -> None:
    """50 kB that stand for two million objects."""
    shared = [seen() for _ in range(1_000)]
    path = write_objects(tmp_path, {f"a.mp4/{n:06}.png": shared for n in range(1, 2_000)})

    with pytest.raises(InputError, match="refers to the same parts over and over"):
        read_action_genome(path)


def test_boxes_of_references_to_one_array_are_refused(tmp_path: Path) -> None:
    shared = {"bbox": np.ones((1_000, 4), np.float32), "bbox_mode": "xyxy"}
    frames = {f"a.mp4/{n:06}.png": shared for n in range(1, 2_000)}
    (tmp_path / "persons.pkl").write_bytes(pickle.dumps(frames))

    with pytest.raises(InputError, match="refers to the same parts over and over"):
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

    for read in (in_passing, at_once):
        with pytest.raises(InputError) as caught:
            Node("a.pkl", "", read(tmp_path / "a.pkl")).items().__next__()
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 400
