"""What the docstrings of records say of their columns: the one place where that is written."""

import functools
import inspect
import re
from collections.abc import Mapping

from eqforge.schemas.tables.datasets import TABLE_TYPES

ENTRY = re.compile(r"^  (\w+(?:,\s+\w+)*):\s(.+?)(?=^  \w|\Z)", re.M | re.S)
_SAME = re.compile(r"as in ([A-Z]\w+)")
_RECORDS = {table.record.__name__: table.record for table in TABLE_TYPES}


@functools.cache
def meanings(record: type) -> Mapping[str, str]:
    """Returns what the docstring of a record says about each field, without the final full stop.

    "as in PairSample" stands for what the docstring of that record says of the same field.
    """
    _, _, said = inspect.cleandoc(record.__doc__ or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    for names, meaning in ENTRY.findall(said):
        text = " ".join(meaning.split()).removesuffix(".").replace("None", "null")
        for name in names.replace("\n", " ").split(","):
            found[name.strip()] = text
    for name, text in found.items():
        if same := _SAME.match(text):
            found[name] = meanings(_RECORDS[same[1]])[name] + text[same.end() :]
    return found


def summary(record: type) -> str:
    """Returns the first paragraph of a record's docstring."""
    return " ".join(inspect.cleandoc(record.__doc__ or "").partition("\n\n")[0].split())
