"""Parquet files of each configuration of a Hub folder, according to its card.

The head of `README.md` is YAML. `configs` names the configurations, and `data_files` of each holds
one pattern, several, or a list by split:

  configs:
  - config_name: default
    data_files:
    - split: train
      path: data/train-*

Source: https://huggingface.co/docs/hub/datasets-manual-configuration
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of, shown
from eqforge.core.visible import series

CARD: Final = "README.md"
_DEFAULT: Final = "default"
_TRAIN: Final = "train"
"""Split of files without a named one, as in `datasets`."""
_HEAD: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_CHARS: Final = 1 << 20
_MOST_DEEP: Final = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """A configuration that a card names.

    Attributes:
      is_default: whether the card makes it the default.
      files: the matched files with their splits, ordered by name.
      matched: the files matched by a pattern with a wildcard; all their parts should exist.
    """

    name: str
    is_default: bool
    files: tuple[tuple[str, Path], ...]
    matched: tuple[Path, ...] = ()


def configurations(root: Path) -> tuple[Configuration, ...]:
    entries = _said(root / CARD)
    if not entries:
        return ()
    return tuple(_configuration(root, one) for one in entries)


def default_of(root: Path, found: Sequence[Configuration]) -> Configuration:
    named = [one for one in found if one.is_default] or [
        one for one in found if one.name == _DEFAULT or len(found) == 1
    ]
    if not named:
        names = series(shown(one.name) for one in found)
        raise InputError(
            f"{root} has the configurations {names}; pass one of them, such as "
            f"{root / found[0].name}"
        )
    return named[0]


def _said(card: Path) -> list[dict[str, Any]]:
    if not card.is_file():
        return []
    try:
        with card.open(encoding="utf-8", newline="") as stream:
            head = _HEAD.match(stream.read(_MOST_CHARS))
    except UnicodeDecodeError:
        return []
    except OSError as error:
        raise InputError(f"{card}: cannot be read: {error.strerror}") from error
    if head is None or "configs" not in head[1]:
        return []
    try:
        value = _parsed(head[1])
    except Exception as error:  # YAML can make its reader raise anything
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{card}: its YAML header is not valid: {why}") from error
    entries = value.get("configs") if isinstance(value, dict) else None
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


def _parsed(head: str) -> Any:
    """Parse YAML without aliases: a few lines of aliases can expand to billions of values."""
    import yaml

    loader, depth = getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0
    for event in yaml.parse(head, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(
                f"the alias *{name_of(event.anchor)} is not allowed; replace it with its value"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEEP:
            raise ValueError(f"its values are nested more than {_MOST_DEEP} levels deep")
    return yaml.load(head, Loader=loader)


def _configuration(root: Path, entry: dict[str, Any]) -> Configuration:
    below = entry.get("data_dir")
    start = f"{below.strip('/')}/" if isinstance(below, str) else ""
    found: dict[Path, str] = {}
    matched: set[Path] = set()
    for split, pattern in _patterns(entry.get("data_files", ["**"] if start else [])):
        names = glob(_below(root, f"{start}{pattern}"), root_dir=root, recursive=True)
        paths = {root / name for name in names if name.endswith(".parquet")}
        found = dict.fromkeys(filter(Path.is_file, paths), split) | found
        matched |= paths if has_magic(pattern) else set()
    return Configuration(
        name=str(entry.get("config_name", _DEFAULT)),
        is_default=entry.get("default") is True,
        files=tuple((found[path], path) for path in sorted(found)),
        matched=tuple(sorted(matched & found.keys())),
    )


def _patterns(files: Any) -> Iterator[tuple[str, str]]:
    if isinstance(files, dict):
        files = [{"split": split, "path": path} for split, path in files.items()]
    for one in files if isinstance(files, list) else [files]:
        split, path = (one.get("split"), one.get("path")) if isinstance(one, dict) else ("", one)
        for pattern in path if isinstance(path, list) else [path]:
            if isinstance(pattern, str):
                yield str(split or _TRAIN), pattern


def _below(root: Path, pattern: str) -> str:
    """Replace several `**` in a row, which take forever, by one."""
    parts = pattern.split("/")
    if "" in parts or ".." in parts or ":" in parts[0] or "\0" in pattern:
        raise InputError(
            f"{root / CARD}: data_files: the path {name_of(pattern)!r} leads out of the folder"
        )
    return re.sub(r"(\*\*/)+", "**/", pattern)
