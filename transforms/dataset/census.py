"""Checks whether a dataset's source media changed since it was built, reading few of them.

Before a build, eqforge records the size, times and inode of every file that the build will read, or
the version marker of an object store. The finishing step binds this census to the manifest. A file
that still matches has not changed. For other files, or if the census was deleted, the SHA-256 is
compared with the lineage in the dataset's rows. In doubt a file counts as changed: that costs a
question, never a dataset.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from eqforge.core.files import storage
from eqforge.core.files.checked import shown
from eqforge.core.files.found_file import FoundFile
from eqforge.core.files.objects import FetchFailed
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import sha256_hex
from eqforge.schemas.dataset.manifest import WORK, Manifest, to_json, with_final_paths

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset

SHOWN = 5
State = list[int | str]
VIDEOS, IMAGES, MODEL = "videos", "images", "files of the model"
# Columns of any table that name a source file and its digest.
_LINEAGE = (
    ("origin_0.source_path", "origin_0.source_sha256"),
    ("origin_1.source_path", "origin_1.source_sha256"),
    ("source_path", "source_sha256"),
    # The id of an image embedded unchanged is its digest.
    ("image", "image_id"),
    ("image_0", "image_0_id"),
    ("image_1", "image_1_id"),
    ("source_image", "image_id"),
    ("source_image_1", "image_1_id"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Medium:
    """A file that a build reads besides its inputs.

    Attributes:
      kind: label for files of this kind, in the plural.
      name: the file as the rows name it.
      file: None if it is missing.
      is_read: whether its content matters, not just its existence.
    """

    kind: str
    name: str
    file: FoundFile | None
    is_read: bool = True

    def state(self) -> State | None:
        """Return a value that changes with the content; None if the file is missing."""
        if self.file is None:
            return None
        return self.file.state() if self.is_read else []


def media_in(kind: str, folder: SourceFolder, names: Iterable[str]) -> Iterator[Medium]:
    for name, found in folder.find_all(names, str):
        yield Medium(kind=kind, name=name, file=found if isinstance(found, FoundFile) else None)


def model_files(model: str | None, part: str = "") -> Iterator[Medium]:
    """Yield every file of a local model folder; a model from a hub is identified by its commit.

    Args:
      part: prefix of the names, for builds that read several models with equal file names.
    """
    if model is not None and os.path.isdir(model):
        for path in sorted(file for file in Path(model).rglob("*") if file.is_file()):
            name = str(Path(part, path.relative_to(model)))
            yield Medium(kind=MODEL, name=name, file=FoundFile(name=name, place=str(path)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Census:
    """The states of media by kind and name."""

    states: dict[str, dict[str, State | None]]

    def present(self, kind: str) -> dict[str, State]:
        found = self.states.get(kind, {}).items()
        return {name: state for name, state in found if state is not None}


def take_census(media: Iterable[Medium]) -> Census:
    states: dict[str, dict[str, State | None]] = {}
    for each in media:
        found = states.setdefault(each.kind, {})
        # One record may read a file whose existence alone matters to another.
        found[each.name] = found.get(each.name) or each.state()
    return Census(states=states)


def note_census(output: str, census: Census) -> None:
    storage.write_bytes(_begun(output), msgspec.json.encode(census))


def keep_census(output: str, manifest: Manifest) -> None:
    if storage.exists(_begun(output)):
        census = msgspec.json.decode(storage.read_bytes(_begun(output)), type=Census)
        storage.write_bytes(_kept(output), msgspec.json.encode([_digest(manifest), census]))


def known_census(dataset: "Dataset") -> Census | None:
    try:
        form = tuple[str, Census]
        of, census = msgspec.json.decode(storage.read_bytes(_kept(dataset.folder)), type=form)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return census if of == _digest(dataset.manifest) else None


def _digest(manifest: Manifest) -> str:
    return sha256_hex(to_json(with_final_paths(manifest)))


def _begun(output: str) -> str:
    return storage.join(output, WORK, "media-begun.json")


def _kept(output: str) -> str:
    return storage.join(output, WORK, "media.json")


def compare_media(dataset: "Dataset", media: Iterable[Medium]) -> Iterator[str]:
    """Yield the differences between media and those that a finished dataset was built from."""
    all_media = list(media)
    now, known = take_census(all_media), known_census(dataset)
    files = {(each.kind, each.name): each.file for each in all_media}
    lineage: dict[str, set[str]] | None = None
    if known is None:
        lineage = read_lineage(dataset)
        of_rows: dict[str, State | None] = {name: [0] for name, sha in lineage.items() if sha}
        known = Census(states={kind: of_rows for kind in now.states if kind != MODEL})
    for kind in dict.fromkeys((*known.states, *now.states)):
        before, after = known.present(kind), now.present(kind)
        suspects = [name for name in after if name in before and after[name] != before[name]]
        if suspects and lineage is None:
            lineage = read_lineage(dataset)
        changed = [
            name
            for name in suspects
            if after[name] and not _is_known(files[kind, name], (lineage or {}).get(name, set()))
        ]
        of = f"of {len(before.keys() | after.keys()):,} {kind}"
        missing = [name for name in before if name not in after]
        new = [name for name in after if name not in before]
        yield from _named(of, missing, "no longer exists", "no longer exist")
        yield from _named(of, new, "is new", "are new")
        yield from _named(
            of, changed, ("has changed or may have changed"), ("have changed or may have changed")
        )


def _named(of: str, names: list[str], of_one: str, of_many: str) -> Iterator[str]:
    if names:
        more = [f"and {len(names) - SHOWN:,} more"] * (len(names) > SHOWN)
        listed = ", ".join([*map(shown, sorted(names)[:SHOWN]), *more])
        yield f"{len(names):,} {of} {of_one if len(names) == 1 else of_many}: {listed}"


def _is_known(file: FoundFile | None, digests: set[str]) -> bool:
    if file is None or not digests:
        return False
    try:
        return {file.digest()} == digests
    except FetchFailed:
        return False


def read_lineage(dataset: "Dataset") -> dict[str, set[str]]:
    """Return the digests of source files in a dataset's rows, by file name."""
    found: dict[str, set[str]] = {}
    for file in (file for files in dataset.manifest.tables.values() for file in files):
        for name, digest in _pairs(dataset, file.path):
            found.setdefault(name, set()).update({digest} - {None})
    return found


def _pairs(dataset: "Dataset", path: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, digest) from the rows of a file, with few duplicates."""
    import pyarrow as pa

    from eqforge.schemas.tables.columns import holds_pictures

    with dataset.open_file(path) as opened:
        schema = opened.schema
    if holds_pictures(schema):
        return
    pairs = [pair for pair in _LINEAGE if _outer(pair).issubset(schema.names)]
    columns = _outer(column for pair in pairs for column in pair)
    for batch in dataset.file_batches(path, sorted(columns)):
        flat = pa.Table.from_batches([batch]).flatten()
        for name, digest in pairs:
            rows = flat.select([name, digest]).group_by([name, digest]).aggregate([])
            both = zip(rows[name].to_pylist(), rows[digest].to_pylist(), strict=True)
            yield from ((source, sha) for source, sha in both if source is not None)


def _outer(columns: Iterable[str]) -> set[str]:
    return {column.partition(".")[0] for column in columns}
