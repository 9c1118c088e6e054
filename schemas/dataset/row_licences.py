"""The licences that rows state: one rule for what is counted and for what may be passed on.

A row states them in `licence` or `license`: of its own, in the lineage of a picture (`origin_0`,
`origin_1`), or in its `annotation`, which holds the other fields of a record, lineage among them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

FIELDS: Final = ("licence", "license")
ORIGINS: Final = ("origin_0", "origin_1")
ANNOTATION: Final = "annotation"


def annotated(text: Any) -> dict[str, Any]:
    """Returns the other fields of a record; none where they are no JSON object."""
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def stated(values: Mapping[str, Any]) -> list[str | None]:
    """Returns every licence that is stated; None for one that is no text."""
    found = filter(None, (values.get(name) for name in FIELDS))
    return [each if isinstance(each, str) else None for each in found]


def of_record(said: Mapping[str, Any]) -> list[str | None]:
    """Returns the licences of an annotation, that of a combined dataset's part in it included."""
    inner = said.get(ANNOTATION)
    return [*stated(said), *(stated(inner) if isinstance(inner, dict) else [])]


def origins(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the lineage of pictures that an annotation has."""
    return [values[name] for name in ORIGINS if isinstance(values.get(name), dict)]


def of_picture(
    own: list[str | None], lineage: list[dict[str, Any]], number: int, count: int
) -> list[str | None]:
    """Returns the licences of a picture of a row; None for one that is not stated.

    Args:
      own: licences of the row.
      lineage: of its pictures; where one has none, the row's own licences stand for all.
      number: which picture it is.
      count: how many the row has.
    """
    if lineage and len(lineage) >= count:
        return [*(stated(lineage[number]) or [None]), *own]
    return own or [None]
