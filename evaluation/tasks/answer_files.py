"""Read files of answers by sample id, or by the ids in VLUE's released files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_bytes, read_lines
from eqforge.core.visible import counted, series

RELEASED_IDS: Final = {
    "question_id": "vqa",
    "image_id": "captioning",
    "ref_id": "grounding",
    "identifier": "nlvr2",
}
"""Ids in the released files, and their task."""


class _Line(msgspec.Struct):
    """A line of answers: its sample, or the question as its source names it."""

    sample_id: str | None = None
    question_id: int | str | None = None
    image_id: int | str | None = None
    ref_id: int | str | None = None
    identifier: str | None = None
    answer: Any = None
    caption: str | None = None
    bbox: Any = None

    @property
    def value(self) -> Any:
        values = (self.answer, self.caption, self.bbox)
        return next((value for value in values if value is not None), None)


def read_answers(
    path: Path, columns: Mapping[str, Mapping[str, list[Any]]] = MappingProxyType({})
) -> dict[str, Any]:
    """Read answers by sample id from JSON Lines, or from one JSON array of the same objects.

    Args:
        columns: by task, the columns `sample_id` and `source_id`, for answers that name questions
            as the released files do.
    """
    by_source: dict[tuple[str, str], list[str]] = {}
    for name, task in RELEASED_IDS.items():
        known = columns.get(task, {})
        ids = zip(known.get("source_id", []), known.get("sample_id", []), strict=False)
        for source_id, key in ids:
            by_source.setdefault((name, str(source_id)), []).append(key)
    found: dict[str, Any] = {}
    for where, line in _lines(path):
        key = line.sample_id or _sample_of(line, by_source, f"{path}: {where}")
        if key in found:
            raise InputError(f"{path}: {where}: {shown(key)} has two answers; keep one")
        found[key] = line.value
    return found


def _lines(path: Path) -> Iterator[tuple[str, _Line]]:
    if path.suffix == ".json":
        for place, line in enumerate(decode(read_bytes(path), list[_Line], str(path))):
            yield f"[{place}]", line
    else:
        for number, data in read_lines(path):
            where = f"line {number}"
            yield where, decode(data, _Line, str(path), where)


def _sample_of(line: _Line, by_source: Mapping[tuple[str, str], Sequence[str]], where: str) -> str:
    released = [(name, getattr(line, name)) for name in RELEASED_IDS]
    name, value = next((each for each in released if each[1] is not None), ("", None))
    if not name:
        raise InputError(
            f"{where}: expected one of the fields sample_id, {series(RELEASED_IDS, 'or')}"
        )
    keys = by_source.get((name, str(value)), ())
    if len(keys) != 1:
        raise InputError(
            f"{where}: {name} {shown(str(value))}: {len(keys) or 'no'} samples have this id; "
            "use sample_id instead"
        )
    return keys[0]


def check_answered(path: Path, answers: Mapping[str, Any], known: set[str]) -> None:
    if strange := sorted(answers.keys() - known):
        raise InputError(
            f"{path}: found answers for {counted(len(strange), 'samples')} outside the dataset, "
            f"such as {shown(strange[0])}"
        )
