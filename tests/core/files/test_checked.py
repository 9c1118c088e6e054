import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.core.errors import EqforgeError, InputError
from eqforge.core.files.checked import (
    Node,
    load_json,
    parse_json,
    read_all,
    read_text_lines,
    read_toml,
)


def test_a_defect_is_named_with_file_record_and_field() -> None:
    node = parse_json('{"database": {"v1": {"duration": "long"}}}', "a.json")

    with pytest.raises(InputError) as caught:
        node["database"]["v1"]["duration"].number()

    assert str(caught.value) == "a.json: database.v1.duration: expected a number, found 'long'"


def test_a_missing_field_is_named_with_what_is_there_instead() -> None:
    with pytest.raises(
        InputError, match=r"a\.json: r: the field 'id' is missing; found only 'name' and 'x'"
    ):
        _ = Node("a.json", "r", {"x": 1, "name": 2})["id"]
    with pytest.raises(InputError, match="found only 1 and 'name'"):  # a pickle's keys
        _ = Node("a.pkl", "r", {"name": 2, 1: 2})["id"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' appears twice"),
        ('{"a": ', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_json_that_is_not_strict_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_json(text, "a.json")


@pytest.mark.parametrize("value", [True, "1", None, [], 10**400])
def test_only_finite_numbers_are_numbers(value: object) -> None:
    with pytest.raises((InputError, OverflowError)):
        Node("a.json", "x", value).number()


@pytest.mark.parametrize("value", ["", "a\x00b", "a\nb", "\ud800", "x" * 301, 3])
def test_identifiers_are_short_and_printable(value: object) -> None:
    with pytest.raises(InputError, match="printable string"):
        Node("a.json", "x", value).name()


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"a": "\xff\xfe"}')

    with pytest.raises(InputError, match="not UTF-8"):
        load_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a\nb", ["a", "b"]),
        ("\ufeffa\r\n\r\nb\r\n", ["a", "", "b"]),
        (
            "one \u2028 line\x85 of\x0b a\x1c file\r here\n",
            ["one \u2028 line\x85 of\x0b a\x1c file\r here"],
        ),
    ],
)
def test_only_line_feeds_end_lines(tmp_path: Path, content: str, lines: list[str]) -> None:
    (tmp_path / "a.txt").write_bytes(content.encode())
    assert read_text_lines(tmp_path / "a.txt") == lines


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: cannot be read: No such file"):
        load_json(tmp_path / "none.json")


@given(st.text())
def test_any_text_is_json_or_one_of_our_errors(text: str) -> None:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        with pytest.raises(EqforgeError, match=r"^a\.json"):
            parse_json(text, "a.json")
    else:
        # Python's own reader admits NaN, which is no JSON.
        if "NaN" not in text and "Infinity" not in text:
            assert parse_json(text, "a.json").value == read


def test_of_many_wrong_records_the_first_ten_are_told_and_the_others_counted() -> None:
    records = [(Node("a.json", f"[{n}]", n if n % 2 else "x"),) for n in range(24)]
    with pytest.raises(InputError) as refused:
        read_all(records, Node.integer)
    *told, more = str(refused.value).split("; ")
    assert told == [f"a.json: [{n}]: expected a whole number, found 'x'" for n in range(0, 20, 2)]
    assert more == "and 2 more"
    assert read_all([(1, 2), (3, 4)], lambda a, b: a + b) == [3, 7]


def test_a_caption_over_several_lines_becomes_one() -> None:
    assert Node("f", "", "a man\r\n in red \n\truns ").line() == "a man in red runs"
    assert Node("f", "", "two  spaces ").line() == "two  spaces "  # as published


def test_toml_is_nested_as_far_as_later_readers_follow(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("a." * 49 + "a = 1\n")
    assert read_toml(path)
    for deep in ("a." * 4_000 + "a = 1\n", "a = " + "[" * 60 + "]" * 60):
        path.write_text(deep)
        with pytest.raises(InputError, match="its values are nested too deeply"):
            read_toml(path)
