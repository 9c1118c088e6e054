"""Cases of parametrised tests, kept as tables beside the test modules."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def cases_of(module: str) -> Callable[[str], list[Any]]:
    """Return what reads the cases of a test from the module's table, `test_….tsv`.

    Of each line the first column is the test's name without `test_`. "-" is None, and "{a | b}" a
    set. Lines that begin with # are comments.
    """
    lines = Path(module).with_suffix(".tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]

    def cases(test: str) -> list[Any]:
        found = [tuple(map(_value, fields)) for name, *fields in rows if name == test]
        assert found, test
        return [each[0] if len(each) == 1 else each for each in found]

    return cases


def _value(field: str) -> str | set[str] | None:
    if field.startswith("{") and field.endswith("}"):
        return set(filter(None, field[1:-1].split(" | ")))
    return None if field == "-" else field
