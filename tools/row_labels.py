"""Reads what people say of rows of hard positives: JSON lines, in any order, one for each row.

{"id": "coco/235578", "positive": ["ok", "unidiomatic"], "negative": ["false", "false"]}
{"id": "coco/235579", "positive": true, "negative": false, "texts": "d836d4c58fd1dddf"}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_lines

POSITIVE: Final = ("ok", "unidiomatic", "ungrammatical", "wrong")
"""What a reader calls a hard positive; the first is right."""

NEGATIVE: Final = ("false", "unclear", "ungrammatical", "true")
"""What a reader calls a hard negative; the first is right."""

Reading = bool | str
"""What one reader says: whether it is right, or one of the words above."""


class RowLabel(msgspec.Struct, frozen=True, kw_only=True):
    """What people say of a row.

    Attributes:
      id: `sample_id` of hard positives, `caption_id` of training captions.
      positive, negative: of the hard positive and the hard negative, by one reader or several;
        empty where none read it.
      near: whether a reader found that the hard positive nearly says what the hard negative says.
      texts: digest of caption, hard positive and hard negative; empty where it is not known.
      sample: of which sample the row was drawn.
      positive_kind, negative_kind: how the texts were made.
    """

    id: str
    positive: Reading | list[Reading] = []
    negative: Reading | list[Reading] = []
    near: bool | list[bool] = []
    texts: str = ""
    sample: str = ""
    positive_kind: str = ""
    negative_kind: str = ""

    def is_right(self, part: str) -> bool | None:
        """Tells whether every reader found a text right; None where none read it."""
        if part == "hard_positive":
            right = [_is(reading, POSITIVE[0]) for reading in _several(self.positive)]
            return all(right) and not any(_several(self.near)) if right else None
        found = [_is(reading, NEGATIVE[0]) for reading in _several(self.negative)]
        return all(found) if found else None


def read_labels(path: Path) -> Iterator[RowLabel]:
    """Yields the labels of a file.

    Raises:
      InputError: a line is no label, or a row is labelled twice; the message says which.
    """
    seen: dict[str, int] = {}
    for number, line in read_lines(path):
        where = f"line {number}"
        label = decode(line, RowLabel, str(path), where)
        _check(label, f"{path}: {where}")
        key = f"{label.sample}\n{label.id}"
        if key in seen:
            raise InputError(
                f"{path}: lines {seen[key]} and {number}: {shown(label.id)} is labelled twice"
            )
        seen[key] = number
        yield label


def _check(label: RowLabel, where: str) -> None:
    for name, known in (("positive", POSITIVE), ("negative", NEGATIVE)):
        for reading in _several(getattr(label, name)):
            if isinstance(reading, str) and reading not in known:
                raise InputError(
                    f"{where}: {name}: expected {', '.join(known)}, true or false, found "
                    f"{shown(reading)}"
                )


def _several(value: Reading | list[Reading] | list[bool]) -> list[Reading]:
    return list(value) if isinstance(value, list) else [value]


def _is(reading: Reading, right: str) -> bool:
    return reading if isinstance(reading, bool) else reading == right
