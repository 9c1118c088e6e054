"""What targets share: a file is written, and records go to JSON and back as those of a plan do."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

Outcome = Literal["records", "rejects", "refused"]


def file_of(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def planned(records: Iterable[Any], kind: type) -> Outcome:
    found = list(records)
    back = msgspec.json.decode(msgspec.json.encode(found), type=list[kind])  # type: ignore[valid-type]
    assert back == found, "a record is another after JSON"
    return "records" if found else "rejects"
