"""Find and read the rows of folders in the formats of Hugging Face's `datasets`.

  saved           output of `save_to_disk`: `state.json` and Arrow files; several splits have a
                  folder each, next to `dataset_dict.json`
  hub             a snapshot of the hub: `data/train-00000-of-00002.parquet` and others; if its
                  card names configurations, the files of the default one
  image folder    `metadata.csv`, `.jsonl` or `.parquet` in it or in folders below, one row a file,
                  whose `file_name` is relative to the table

In the first and the third, a split is a folder by itself. In all, `FOLDER/SPLIT` names a split, and
`FOLDER/CONFIGURATION` a configuration of the card. Only tables are opened here, no images.
"""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of, shown
from eqforge.core.files.foreign_rows import read_rows, with_names
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.visible import series
from eqforge.schemas.dataset.manifest import FILE_NAME
from eqforge.schemas.records.scores import compact_json
from eqforge.sources.hub_configurations import CARD, Configuration, configurations, default_of
from eqforge.sources.record_files import TIMES, Record, read_json_lines, read_table

STATE, SPLITS = "state.json", "dataset_dict.json"
FORMS = (
    f"{STATE} or {SPLITS} (from Dataset.save_to_disk), *.parquet (from the hub), or metadata.csv, "
    ".jsonl or .parquet (an image folder)"
)
_METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_PICTURES = frozenset((".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"))
_SHARD = re.compile(r"(?P<split>\w[\w.]*)-(?P<number>\d{5,})-of-(?P<all>\d{5,})(?:-\w+)?")
_PART = re.compile(r"(?P<split>.+)-(?P<number>\d{5,})-of-(?P<all>\d{5,})(?:-\w+)?")
"""A file of a configuration; its name may have any prefix."""
_NUMBERS = (*TIMES, "bbox_x", "bbox_y", "bbox_w", "bbox_h")


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFile:
    """A table of a folder.

    Attributes:
      split: its split; None if unknown.
      base: folder below the root that its file names are relative to; None for tables that are not
        metadata of an image folder.
    """

    path: Path
    split: str | None = None
    base: PurePosixPath | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFolder:
    """The tables of a folder, sorted by name, and the `others` files that list them."""

    root: Path
    tables: tuple[RowFile, ...]
    others: tuple[Path, ...] = ()

    @property
    def files(self) -> list[Path]:
        return sorted([*self.others, *(table.path for table in self.tables)])

    def has_pictures(self) -> bool:
        """Return True if images lie next to the metadata of an image folder."""
        bases = [self.root / table.base for table in self.tables if table.base is not None]
        paths = (path for base in bases for path in base.rglob("*"))
        return any(path.suffix.lower() in _PICTURES for path in paths)

    def one_split(self) -> "RowFolder":
        """Return the folder; check that its rows, which name no split, belong to one."""
        splits = _splits(self.tables)
        if len(splits) > 1:
            raise InputError(
                f"{self.root} has the splits {series(map(shown, splits))}; pass one of them, such "
                f"as {self.root / splits[0]}"
            )
        tables = tuple(replace(table, split=None) for table in self.tables)
        return replace(self, tables=tables)

    def rows(self, media: str, *, has_cells: bool = False) -> Iterator[Record]:
        """Yield the rows; rows without a `split` get that of their file.

        Args:
            media: the field that replaces `file_name`, `image` or `video`.
            has_cells: return embedded images as `Cell`; by default only their names are read.
        """
        for table in self.tables:
            yield from _rows(self.root, table, media, has_cells)


def row_folder(path: Path) -> RowFolder | None:
    """Return the folder, split or configuration at a path; None for eqforge datasets and others."""
    if path.is_dir():
        return _folder(path)
    if path.suffix or path.exists():
        return None
    named, whole = _around(path)
    if named is not None or whole is None:
        return named
    tables = tuple(table for table in whole.tables if table.split == path.name)
    if not tables:
        splits = series([*map(shown, _splits(whole.tables))] or ["none"])
        raise InputError(f"{path}: no such file or split; the splits of {path.parent} are {splits}")
    return RowFolder(root=whole.root, tables=tables, others=whole.others)


def _around(path: Path) -> tuple[RowFolder | None, RowFolder | None]:
    """Return the configuration at a path, and the folder of which the path may be a split.

    A missing path is not reported against its parent folder, which was not named.
    """
    with contextlib.suppress(*([InputError] if path.parent == Path() else [])):
        is_dataset = (path.parent / FILE_NAME).exists()
        for one in () if is_dataset else configurations(path.parent):
            if one.name == path.name and one.files:
                return _configured(path.parent, one), None
        return None, _folder(path.parent)
    return None, None


def _configured(root: Path, one: Configuration) -> RowFolder:
    tables = tuple(RowFile(path=path, split=split) for split, path in one.files)
    names = (path.relative_to(root).with_suffix("").as_posix() for path in one.matched)
    _check_whole(root, filter(None, map(_PART.fullmatch, names)))
    return RowFolder(root=root, tables=tables, others=(root / CARD,))


def _splits(tables: Sequence[RowFile]) -> list[str]:
    return sorted({table.split for table in tables if table.split is not None})


def _folder(root: Path) -> RowFolder | None:
    if not root.is_dir() or (root / FILE_NAME).exists():
        return None
    if (root / STATE).exists() or (root / SPLITS).exists():
        return _saved(root)
    if found := [one for one in configurations(root) if one.files]:
        return _configured(root, default_of(root, found))
    if any(root.glob("data/samples-*.parquet")):  # a dataset that lost its manifest
        return None
    parquet, metadata = _parquet(root), _image_folder(root)
    if parquet and metadata:
        raise InputError(
            f"{root} contains both {_below(root, parquet[0])} and {_below(root, metadata[0])}; "
            "move the captions into a separate folder"
        )
    tables = sorted(parquet or metadata, key=lambda table: table.path)
    return RowFolder(root=root, tables=tuple(tables)) if tables else None


def _below(root: Path, table: RowFile) -> str:
    return table.path.relative_to(root).as_posix()


class _Split(msgspec.Struct):
    splits: list[str]


class _DataFile(msgspec.Struct):
    filename: str


class _State(msgspec.Struct):
    data_files: list[_DataFile] = msgspec.field(name="_data_files")
    split: str | None = msgspec.field(name="_split", default=None)
    indices: list[_DataFile] | None = msgspec.field(name="_indices_data_files", default=None)


def _saved(root: Path) -> RowFolder:
    if (root / STATE).exists():
        split = root.name if (root.parent / SPLITS).exists() else None
        return RowFolder(root=root, tables=tuple(_arrow(root, split)), others=(root / STATE,))
    named = decode(read_bytes(root / SPLITS), _Split, SPLITS).splits
    names = [_plain_name(root / SPLITS, name) for name in named]
    tables = [table for name in sorted(set(names)) for table in _arrow(root / name, name)]
    states = [root / name / STATE for name in sorted(set(names))]
    return RowFolder(root=root, tables=tuple(tables), others=(root / SPLITS, *states))


def _arrow(folder: Path, split: str | None = None) -> Iterator[RowFile]:
    state = decode(read_bytes(folder / STATE), _State, f"{folder.name}/{STATE}")
    if state.indices:
        raise InputError(
            f"{folder}: eqforge cannot read a dataset with an indices mapping. Save it again with "
            "dataset.flatten_indices().save_to_disk(...)."
        )
    for file in state.data_files:
        path = folder / _plain_name(folder / STATE, file.filename)
        if not path.is_file():
            raise InputError(f"{folder}: {STATE} lists {file.filename}, which does not exist")
        yield RowFile(path=path, split=split or state.split)


def _plain_name(file: Path, name: str) -> str:
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise InputError(f"{file}: expected a file name, found {name_of(name)!r}")
    return name


def _parquet(root: Path) -> list[RowFile]:
    """Return the Parquet files in a folder, in its `data`, or in the folders of its splits."""
    found = {folder: _parquet_in(folder) for folder in (root, root / "data")}
    all_paths = [path for paths in found.values() for path in paths]
    if all_paths:
        # Such as `train-00000-of-00002-1f3c.parquet`, or `test.parquet`.
        shards = [_SHARD.fullmatch(path.stem) for path in all_paths]
        _check_whole(root, filter(None, shards))
        plain = [path.stem if path.stem.isidentifier() else None for path in all_paths]
        return [
            RowFile(path=path, split=shard["split"] if shard else stem)
            for path, shard, stem in zip(all_paths, shards, plain, strict=True)
        ]
    below = {p: _parquet_in(p) for p in sorted(root.iterdir()) if p.is_dir()}
    below = {folder: paths for folder, paths in below.items() if paths}
    if any(_SHARD.fullmatch(path.stem) for paths in below.values() for path in paths):
        names = series(shown(folder.name) for folder in below)
        raise InputError(
            f"{root} has the configurations {names}; pass one of them, such as {next(iter(below))}"
        )
    return [
        RowFile(path=path, split=path.parent.name) for paths in below.values() for path in paths
    ]


def _parquet_in(folder: Path) -> list[Path]:
    paths = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
    return [path for path in paths if path.name not in _METADATA]


def _check_whole(root: Path, parts: Iterable[re.Match[str]]) -> None:
    """Check by their names that all parts of each split exist."""
    shards = list(parts)
    numbers = Counter((shard["split"], int(shard["all"]), int(shard["number"])) for shard in shards)
    for split, count in sorted({(split, count) for split, count, _ in numbers}):
        copies = [numbers[split, count, number] for number in range(min(count, len(shards) + 1))]
        if set(copies) != {1}:
            number = next(n for n, times in enumerate(copies) if times != 1)
            problem = "is missing" if not copies[number] else "appears twice"
            raise InputError(f"{root}: {split}: part {number:05} of {count:05} {problem}")


def _image_folder(root: Path) -> list[RowFile]:
    """Return the metadata in a folder and below; several folders with metadata are splits."""
    paths = sorted(path for path in root.rglob("metadata.*") if path.name in _METADATA)
    folders = Counter(path.parent for path in paths)
    if twice := [folder for folder, count in folders.items() if count > 1]:
        names = [path.name for path in paths if path.parent == twice[0]]
        raise InputError(f"{twice[0]} contains {' and '.join(names)}; keep one of them")
    bases = [PurePosixPath(path.parent.relative_to(root).as_posix()) for path in paths]
    return [
        RowFile(path=path, base=base, split=base.parts[0] if base.parts else None)
        for path, base in zip(paths, bases, strict=True)
    ]


def _rows(root: Path, table: RowFile, media: str, has_cells: bool) -> Iterator[Record]:
    for record in _records(table.path, has_cells):
        placed = replace(record, unit=f"{_below(root, table)}: {record.unit}")
        if record.problem or not isinstance(record.value, dict):
            yield placed
            continue
        value = record.value if table.base is None else _named(record.value, table.base, media)
        if table.split is not None:
            value = {"split": table.split} | value
        yield replace(placed, source=compact_json(with_names(value)), value=value)


def _records(path: Path, has_cells: bool) -> Iterator[Record]:
    if path.suffix == ".csv":
        yield from read_table(path, {"file_name"}, _NUMBERS)
    elif path.suffix == ".jsonl":
        yield from read_json_lines(path)
    else:
        for number, value in enumerate(read_rows(path, has_cells=has_cells), start=1):
            yield Record(unit="row", number=number, source="", value=value)


def _named(value: dict[str, object], base: PurePosixPath, media: str) -> dict[str, object]:
    """Return a metadata row with file names relative to the root.

    `file_name` becomes the field `media`; `image_0_file_name` becomes `image_0`.
    """
    found: dict[str, object] = {}
    for name, part in value.items():
        if name == "file_name" or name.endswith("_file_name"):
            name = media if name == "file_name" else name.removesuffix("_file_name")
            part = str(base / part) if isinstance(part, str) and part else part
        found[name] = part
    return found
