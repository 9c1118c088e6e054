"""Index of the members of tar shards, read from their headers without unpacking.

Shards are in the layout of WebDataset or any other plain tar, on a local disk or in a store that
serves byte ranges.
"""

import io
import itertools
import posixpath
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import IO

from eqforge.core.errors import InputError
from eqforge.core.files.disk import RangeStream
from eqforge.core.files.objects import FetchFailed, State, read_part, stat, state_of
from eqforge.core.urls import public

SUFFIX = ".tar"
COMPRESSED = tuple(
    f".{name}" for name in ("tar.gz", "tgz", "tar.bz2", "tbz2", "tar.xz", "txz", "tar.zst", "tzst")
)
READERS = 16
# A piece holds the headers of several small members, and costs little more than one header.
_PIECE_BYTES = 64 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A file in a shard: `size` bytes from `start`, in version `state` of the shard."""

    name: str
    shard: str
    state: State
    start: int
    size: int


def read_shards(shards: list[str]) -> Iterator[Member]:
    """Yield the files in plain tar shards in order; only headers are read."""
    first: dict[str, str] = {}
    with ThreadPoolExecutor(READERS) as readers:
        for member in itertools.chain.from_iterable(readers.map(_read_shard, shards)):
            if member.name in first:
                other = posixpath.basename(public(first[member.name]))
                is_same = first[member.name] == member.shard
                raise InputError(
                    f"{public(member.shard)}: the file {member.name!r} "
                    f"{'appears twice' if is_same else f'is also in {other}'}. Give every file a "
                    "unique name."
                )
            first[member.name] = member.shard
            yield member


def _read_shard(shard: str) -> list[Member]:
    if shard.lower().endswith(COMPRESSED):
        raise InputError(
            f"{public(shard)} is compressed. Decompress it, because eqforge can read individual "
            "files only from a plain .tar."
        )
    try:
        info = stat(shard)
        whole = RangeStream(partial(_read, shard), info["size"])
        with io.BufferedReader(whole, _PIECE_BYTES) as stream:
            return list(_members(stream, shard, state_of(info)))
    except FetchFailed as error:
        raise InputError(f"{public(shard)}: {error.detail}") from error
    except (tarfile.TarError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        # Sizes, names and headers of headers that lie make `tarfile` raise these.
        why = f": {error}" if isinstance(error, tarfile.TarError) else ""
        raise InputError(
            f"{public(shard)} is not an uncompressed tar file, or it is damaged{why}"
        ) from error


def _members(stream: IO[bytes], shard: str, state: State) -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r:") as tar:
        for entry in tar:
            if entry.isdir():
                continue
            name = posixpath.normpath(entry.name)
            if not entry.isreg() or entry.issparse():
                kind = "a sparse file" if entry.issparse() else "a link, a pipe or a device"
                raise InputError(f"{public(shard)}: {name!r} is {kind}; expected a regular file")
            start = entry.offset_data
            yield Member(name=name, shard=shard, state=state, start=start, size=entry.size)
        # tarfile takes a damaged header for the end, or a missing one, and leaves what follows.
        stream.seek(tar.offset)
        end = stream.read(tarfile.BLOCKSIZE)
        if not end:
            raise tarfile.ReadError(
                "the two zero blocks at its end are missing, so the file may be truncated"
            )
        if any(end):
            raise tarfile.ReadError(f"the header at byte {tar.offset:,} is damaged")
        while piece := stream.read(_PIECE_BYTES):
            if any(piece):
                raise tarfile.ReadError(
                    "data follows the end of the archive; the file may be two joined tar files"
                )


def _read(url: str, start: int, count: int) -> bytes:
    pieces: list[bytes] = []
    read_part(url, start, count, pieces.append)
    return b"".join(pieces)
