"""The folder of the files that annotations name: on a disk, in a store, or in tar shards.

The process that starts a run lists a store once, and writes the list for the workers. A web server
lists nothing, so names are tried there in parallel.
"""

import functools
import glob
import itertools
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

import msgspec
from more_itertools import batched

from eqforge.core.errors import InputError
from eqforge.core.files import shards, storage
from eqforge.core.files.find_file import MISSING, MissingFile, candidates, find_file, reject_name
from eqforge.core.files.found_file import CACHE_GB, FoundFile
from eqforge.core.files.objects import DOWNLOAD_FAILED, FetchFailed, State, retried, stat, state_of
from eqforge.core.urls import is_http, public
from eqforge.core.visible import visible

Item = TypeVar("Item")
ASKED_AT_ONCE = 32
_SHARDS = (shards.SUFFIX, *shards.COMPRESSED)
# Other files allowed in a folder of shards.
_BESIDE = (".json", ".jsonl", ".txt", ".csv", ".tsv", ".md", ".parquet", ".idx", ".md5", ".sha256")


class _Index(msgspec.Struct, frozen=True):
    """The files of a store or of shards.

    Attributes:
      places: URL and state of each object or shard.
      files: by name: number of the place; start in the shard, else None; size.
    """

    places: list[tuple[str, State]]
    files: Mapping[str, tuple[int, int | None, int]]


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """A folder of files that annotations name.

    Attributes:
      root: path or URL of a folder or a shard, or a pattern of shards.
      follow_links: whether a symbolic link may lead out of it; stores have none.
      cache_gb: limit for copies of its files, if it is in a store.
      index: URL of the list of its files, for workers.
    """

    root: str
    follow_links: bool = False
    cache_gb: float = CACHE_GB
    index: str | None = None

    @property
    def is_on_disk(self) -> bool:
        return _kind(self.root) == "disk"

    @property
    def names(self) -> frozenset[str] | None:
        """The names of all files; None for disks and web servers, which are not listed."""
        return _names(self) if _kind(self.root) == "listed" else None

    def check(self, flag: str) -> None:
        """Check that the folder exists, and list it again; `flag` is the option for messages."""
        for cached in (_kind, _index, _names, _find_on_web):
            cached.cache_clear()
        if "://" in self.root and public(self.root) != self.root:
            raise InputError(
                f"--{flag} {public(self.root)} contains a password or a signature. Remove it, "
                "because logs would show it. Store it where your cloud provider's tools look for "
                "credentials."
            )
        kind = _kind(self.root)
        if kind == "disk":
            if not os.path.isdir(self.root):
                found = " is a file; expected a folder"
                found = found if os.path.exists(self.root) else ": no such folder"
                raise InputError(f"--{flag} {self.root}{found}")
            return
        if kind == "listed":
            storage.check_reachable(self.root)
        try:
            is_empty = kind == "listed" and not self.names
            if kind == "web":  # what it says of the folder does not matter
                system, path = storage.locate(self.root)
                retried(lambda: system.info(path))
        except FetchFailed as error:
            if kind == "listed" or error.reason == DOWNLOAD_FAILED:
                raise InputError(f"--{flag} {self.root}: {error.detail}") from error
        if is_empty:
            raise InputError(
                f"--{flag} {self.root}: no such folder, or the folder contains no files"
            )

    def share(self, url: str) -> None:
        if _kind(self.root) == "listed":
            storage.write_bytes(url, msgspec.json.encode(_index(self)))

    def find(self, name: str, suffixes: Sequence[str] = ()) -> FoundFile | MissingFile:
        """Return a file, or why there is none; raise FetchFailed if the store fails."""
        if self.is_on_disk:
            path = find_file(self.root, name, suffixes, self.follow_links)
            if isinstance(path, MissingFile):
                return path
            return FoundFile(name=os.path.relpath(path, self.root), place=path)
        if (rejected := reject_name(name)) is not None:
            return rejected
        names = tuple(map(posixpath.normpath, candidates(name, suffixes)))
        if _kind(self.root) == "web":
            return _find_on_web(self, names)
        index = _index(self)
        listed = next((each for each in names if each in index.files), None)
        if listed is None:
            return MISSING
        number, start, size = index.files[listed]
        place, state = index.places[number]
        return FoundFile(
            name=listed, place=place, listed=state, start=start, size=size, cache_gb=self.cache_gb
        )

    def find_all(
        self, items: Iterable[Item], name: Callable[[Item], str], suffixes: Sequence[str] = ()
    ) -> Iterator[tuple[Item, FoundFile | MissingFile]]:
        """Yield each item with the file that it names, in order.

        If a web server fails, the reason is DOWNLOAD_FAILED.
        """
        if _kind(self.root) != "web":
            yield from ((item, self.find(name(item), suffixes)) for item in items)
            return

        def find(item: Item) -> FoundFile | MissingFile:
            try:
                return self.find(name(item), suffixes)
            except FetchFailed as error:
                return MissingFile(reason=error.reason, detail=error.detail)

        with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            for chunk in batched(items, 32 * ASKED_AT_ONCE):
                yield from zip(chunk, pool.map(find, chunk), strict=True)


@functools.lru_cache
def _kind(root: str) -> str:
    """Return how files are found: on a `disk`, on the `web`, or `listed`."""
    if root.endswith(_SHARDS) and not os.path.isdir(root):
        return "listed"
    if "://" not in root:
        if not os.path.isdir(root):
            return "disk"
        with os.scandir(root) as entries:  # a link may lead round in a circle
            names = (e.name + "/" * e.is_dir(follow_symlinks=False) for e in entries)
            return "listed" if _holds_shards(names) else "disk"
    return "web" if is_http(root) else "listed"


def _holds_shards(names: Iterable[str]) -> bool:
    """Return True if a folder holds shards and, apart from descriptions, nothing else."""
    found = False
    for name in names:
        if "/" in name or not name.lower().endswith((*_SHARDS, *_BESIDE)):
            return False
        found = found or name.lower().endswith(_SHARDS)
    return found


@functools.lru_cache
def _index(folder: SourceFolder) -> _Index:
    """Return the list of a store or of shards: the shared one, or the current one."""
    if folder.index is not None and storage.exists(folder.index):
        return msgspec.json.decode(storage.read_bytes(folder.index), type=_Index)
    found = _list_shards(folder.root)
    if found is None:
        listed = _list(folder.root)
        if not _holds_shards(listed):
            places = list(listed.values())
            return _Index(places=places, files={n: (i, None, 0) for i, n in enumerate(listed)})
        found = [url for name, (url, _) in listed.items() if name.lower().endswith(_SHARDS)]
    numbers: dict[tuple[str, State], int] = {}
    members = {
        each.name: (
            numbers.setdefault((each.shard, each.state), len(numbers)),
            each.start,
            each.size,
        )
        for each in shards.read_shards(found)
    }
    return _Index(places=list(numbers), files=members)


@functools.lru_cache
def _names(folder: SourceFolder) -> frozenset[str]:
    return frozenset(_index(folder).files)


def _list(root: str) -> dict[str, tuple[str, State]]:
    system, path = storage.locate(root)

    def ask() -> dict[str, dict[str, object]]:
        system.invalidate_cache()
        return dict(system.find(path, detail=True))

    try:
        found, base = retried(ask), path.rstrip("/") + "/"
    except FetchFailed as error:
        if error.reason == DOWNLOAD_FAILED:
            raise
        return {}
    named = ((key.removeprefix(base), info) for key, info in sorted(found.items()))
    return {
        name: (storage.join(root, name), state_of(info))
        for name, info in named
        if info["type"] == "file" and name and not name.endswith("/")
    }


def _list_shards(root: str) -> list[str] | None:
    """Return the shards that a root names directly or by a pattern; None for a folder."""
    if not root.endswith(_SHARDS):
        return None
    if not glob.has_magic(root.rpartition("/")[2]) or is_http(root):
        return [root]
    if "://" not in root:
        return sorted(glob.glob(root))
    system, path = storage.locate(root)
    return retried(lambda: [system.unstrip_protocol(each) for each in sorted(system.glob(path))])


@functools.lru_cache(maxsize=1 << 20)
def _find_on_web(folder: SourceFolder, names: tuple[str, ...]) -> FoundFile | MissingFile:
    for name in names:
        url = storage.join(folder.root, quote(name))
        try:
            info = stat(url)
        except FetchFailed as error:
            if error.reason == DOWNLOAD_FAILED:
                raise
            continue
        if not str(info.get("url", "")).endswith("/"):  # the page of a folder
            state = state_of(info)
            return FoundFile(name=name, place=url, listed=state, cache_gb=folder.cache_gb)
    return MISSING


LOOKED_AT = 100_000
"""Maximum number of files searched; a folder of frames may hold millions."""


def namesakes(
    folder: SourceFolder, names: Sequence[str], suffixes: Sequence[str]
) -> dict[str, str]:
    """Return `; did you mean …?` for each name whose file lies elsewhere in the folder.

    Case and `suffixes` are ignored. Of several matches, the one sharing most folders is suggested.
    """
    wanted = {_own_name(name, suffixes) for name in names}
    found: dict[str, list[str]] = {}
    for file in itertools.islice(_files(folder), LOOKED_AT) if names else ():
        base = _own_name(file, suffixes)
        if base in wanted and isinstance(folder.find(file), FoundFile):  # a link may be rejected
            found.setdefault(base, []).append(file)
    return {
        name: f"; did you mean {visible(_nearest(name, files))!r}?"
        for name in names
        if (files := found.get(_own_name(name, suffixes)))
    }


def _own_name(name: str, suffixes: Sequence[str]) -> str:
    base = posixpath.basename(name).casefold()
    stem, ending = os.path.splitext(base)
    return stem if ending in suffixes else base


def _nearest(name: str, files: Iterable[str]) -> str:
    """Return the file that shares most folders with a name, counted from the end."""

    def distance(file: str) -> tuple[int, str]:
        pairs = zip(name.split("/")[-2::-1], file.split("/")[-2::-1], strict=False)
        return -len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))), file

    return min(files, key=distance)


def _files(folder: SourceFolder) -> Iterator[str]:
    if not folder.is_on_disk:
        yield from folder.names or ()
        return
    for path, _, files in os.walk(folder.root):
        for file in files:
            yield os.path.relpath(os.path.join(path, file), folder.root)
