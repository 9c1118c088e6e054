"""Read tar shards in WebDataset's layout: the files of a row share a name up to its first dot.

`KEY.json` holds the fields of a row. Other texts are fields named by their suffix: `KEY.txt` is
`txt`. An image is named by the part before its suffix: `KEY.image_0.png` is `image_0`, and
`KEY.png` is `image`. Other files are ignored. A shard `train-000000.tar` has the split `train`.
"""

import itertools
import re
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import parse_json
from eqforge.core.files.pictures import FILE_SUFFIXES
from eqforge.core.files.shards import COMPRESSED, SUFFIX, Member, read_shards
from eqforge.core.files.source_file import open_seekable
from eqforge.schemas.records.scores import compact_json
from eqforge.sources.record_files import Record

_NAME: Final = re.compile(r"(?P<key>(?:.*/)?[^./]+)\.(?P<ending>[^/]+)")
_SPLIT: Final = re.compile(r"(?P<split>train|validation|val|dev|test)[-_]\d+")
_TEXTS: Final = frozenset(("json", "txt", "cls", "text"))
_MOST_BYTES: Final = 16 << 20


def shards_of(source: Path) -> list[Path]:
    """Return the tar shards at a path, or in a folder or its `data`, sorted."""
    if source.is_dir():
        return sorted([*source.glob(f"*{SUFFIX}"), *source.glob(f"data/*{SUFFIX}")])
    if source.name.lower().endswith(COMPRESSED):
        raise InputError(f"{source} is compressed; unpack it to a plain .tar file")
    return [source] if source.is_file() and source.suffix == SUFFIX else []


def pictures_of(shards: list[Path]) -> str | None:
    if not any(member.name.lower().endswith(FILE_SUFFIXES) for member in _members(shards)):
        return None
    return str(shards[0] if len(shards) == 1 else Path(escape(str(shards[0].parent))) / "*.tar")


def _members(shards: list[Path]) -> Iterator[Member]:
    return read_shards([str(shard) for shard in shards])


def read_shard(path: Path, *, has_split: bool) -> Iterator[Record]:
    """Yield the rows of a shard; a row with unreadable JSON has a problem.

    Args:
        has_split: give rows without a split the one that starts the shard's name.
    """
    named_members = ((_NAME.fullmatch(member.name), member) for member in _members([path]))
    parts = ((found["key"], found["ending"], member) for found, member in named_members if found)
    groups = itertools.groupby(parts, lambda part: part[0])
    named = _SPLIT.fullmatch(path.stem) if has_split else None
    split = {"split": named["split"]} if named else {}
    with open_seekable(path) as stream:
        for number, (key, files) in enumerate(groups, start=1):
            value: dict[str, Any] = dict(split)
            pictures: dict[str, str] = {}
            problem = ""
            members = list(files)
            for _, ending, member in members:
                name, _, kind = ending.rpartition(".")
                if f".{kind}".lower() in FILE_SUFFIXES:
                    pictures[name or "image"] = member.name
                elif kind in _TEXTS and member.size <= _MOST_BYTES:
                    stream.seek(member.start)
                    text = stream.read(member.size).decode("utf-8-sig", "replace")
                    try:
                        part = parse_json(text, member.name).value if kind == "json" else text
                    except InputError as error:
                        problem = str(error)
                        continue
                    value |= part if isinstance(part, dict) else {ending: part}
            value = {f"{n}_name" if n in pictures else n: v for n, v in value.items()}
            value |= pictures
            if value == split and not problem:
                names = ", ".join(member.name for _, _, member in members)
                problem = (
                    f"found {names}; each row needs KEY.json or KEY.txt, and images such as "
                    "KEY.jpg; unpack a table before you pass it"
                )
            yield Record(
                unit=f"{key}, row",
                number=number,
                source=compact_json(value),
                value=value,
                problem=problem,
            )
