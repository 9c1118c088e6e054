import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node
from eqforge.core.files.pickle_stream import convert_members

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


def raw(_: str, node: Node) -> Any:
    return node.value


def snapshot(_: str, node: Node) -> str:
    return repr(node.value)


def write(folder: Path, value: Any, protocol: int = 4) -> Path:
    path = folder / "a.pkl"
    path.write_bytes(pickle.dumps(value, protocol))
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    members=st.dictionaries(
        st.text(st.characters(codec="ascii", categories=["L"]), min_size=1), PLAIN
    ),
    protocol=st.integers(0, pickle.HIGHEST_PROTOCOL),
)
def test_every_member_comes_as_it_was_pickled(
    tmp_path: Path, members: dict[str, Any], protocol: int
) -> None:
    assert convert_members(write(tmp_path, members, protocol), raw) == members


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_container_shared_by_far_members_is_whole_in_each(tmp_path: Path, protocol: int) -> None:
    """The pickler writes members in batches of 1,000; a later one refers to an earlier list."""
    shared = [1.5, {"deep": ["a" * 50]}]
    members: dict[str, Any] = {"start": shared}
    members |= {f"k{number}": [number] for number in range(2_500)}
    members["first"] = shared

    found = convert_members(write(tmp_path, members, protocol), snapshot)

    assert found == {key: repr(value) for key, value in members.items()}


@pytest.mark.parametrize("number", [0, 1, 999, 1_000, 1_001, 2_001])
def test_any_number_of_members_is_read(tmp_path: Path, number: int) -> None:
    members = {f"k{n}": {"box": (n + 0.5, 2.0), "names": ["on", f"n{n}"]} for n in range(number)}

    assert convert_members(write(tmp_path, members), raw) == members


def test_arrays_come_back(tmp_path: Path) -> None:
    members = {f"k{n}": np.full((1, 4), n, dtype=np.float32) for n in range(1_500)}

    found = convert_members(write(tmp_path, members), raw)

    assert list(found) == list(members)
    assert all(np.array_equal(found[key], members[key]) for key in members)


def test_memory_does_not_grow_with_the_raw_file(tmp_path: Path) -> None:
    """What a converter lets go of is gone before the next thousand members are read."""
    alive, most = [0], [0]

    class Canary(float):
        def __del__(self) -> None:
            alive[0] -= 1

    def count(key: str, node: Node) -> int:
        node.value.append([Canary(1.0)])
        alive[0] += 1
        most[0] = max(most[0], alive[0])
        return len(node.value)

    members = {f"k{number}": [number * 1.5] for number in range(10_000)}
    assert set(convert_members(write(tmp_path, members), count).values()) == {2}
    assert most[0] <= 1_000


def test_a_pickle_that_asks_for_anything_else_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.pkl: it asks for pathlib"):
        convert_members(write(tmp_path, {"key": [Path("x")]}), raw)


@pytest.mark.parametrize("data", [b"", b"\x80", b"hello", pickle.dumps({"a": 1})[:-3]])
def test_a_damaged_pickle_is_one_clear_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pkl").write_bytes(data)

    with pytest.raises(InputError, match=r"a\.pkl: not a readable pickle"):
        convert_members(tmp_path / "a.pkl", raw)


def test_a_memo_position_out_of_the_way_costs_no_memory(tmp_path: Path) -> None:
    """LONG_BINPUT with position 4,000,000,000 must not make a list of that length."""
    data = b"\x80\x03}" + b"(X\x01\x00\x00\x00a]r" + (4_000_000_000).to_bytes(4, "little") + b"u."
    (tmp_path / "a.pkl").write_bytes(data)

    with pytest.raises(InputError, match="position 4000000000"):
        convert_members(tmp_path / "a.pkl", raw)


@pytest.mark.parametrize("value", [[1], "text", [{"a": 1}], None])
def test_a_pickle_without_a_dict_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InputError, match=r"a\.pkl: the whole file: expected an object"):
        convert_members(write(tmp_path, value), raw)


def test_a_key_that_is_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.pkl: 7: expected a printable string"):
        convert_members(write(tmp_path, {7: 1}), raw)


def test_the_error_of_the_converter_comes_through(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^a\.pkl: key: expected a number, found a text 'x'$"):
        convert_members(write(tmp_path, {"key": "x"}), lambda _, node: node.number())


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        convert_members(tmp_path / "none.pkl", raw)
