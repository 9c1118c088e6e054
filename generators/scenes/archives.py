"""Packs archives; unpacks untrusted ones within their folder and within limits of size."""

import contextlib
import gzip
import io
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

MAX_FILES = 1_000
MAX_NAME_BYTES = 255
MAX_UNPACKED_BYTES = 2 * 1024**3
MAX_HEADER_BYTES = 8 * 1024**2
"""Of all that is no file's content: tarfile holds long names and extended headers in memory."""


class BadArchive(ValueError):
    """An archive is damaged, or contains what an asset's archive never does."""


_DAMAGE = (
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    ValueError,
    RecursionError,
)


def packed(files: Mapping[str, bytes], level: int = 0) -> bytes:
    """Returns a gzipped tar archive of files: the same bytes for the same content.

    Args:
      files: contents by name.
      level: of compression; other than 0, the bytes depend on the version of zlib.
    """
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    return gzip.compress(stream.getvalue(), level, mtime=0)


class _Unzipped:
    """What a gzipped archive unpacks to, read once from its beginning to its end.

    Attributes:
      in_content: whether a file's content is being read, not a header.
    """

    def __init__(self, data: bytes, max_bytes: int) -> None:
        self._stream = gzip.GzipFile(fileobj=io.BytesIO(data))
        self._room, self._header_room = max_bytes, MAX_HEADER_BYTES
        self.in_content = False

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, place: int) -> None:
        """Seeks forward only; a header that leads back would be read forever."""
        if place < self.tell():
            raise BadArchive("a header that leads back")
        self._take(place - self.tell())
        self._stream.seek(place)

    def read(self, size: int) -> bytes:
        if not self.in_content:
            self._header_room -= size
        self._take(size if self._header_room < 0 else 0)
        found = self._stream.read(size)
        self._take(len(found))
        return found

    def _take(self, count: int) -> None:
        self._room -= count
        if min(self._room, self._header_room) < 0:
            raise BadArchive("the archive is too large")


def archive_files(
    data: bytes, folder_name: str, max_bytes: int = MAX_UNPACKED_BYTES
) -> Iterator[tuple[str, IO[bytes]]]:
    """Yields the files of a gzipped tar archive: names without folders, and their contents.

    Reading a content raises various errors if the archive is damaged; see one_error.

    Args:
      data: the archive.
      folder_name: a folder in which all files may lie; kubric allows the asset's id.
      max_bytes: the most that the archive may unpack to.

    Raises:
      BadArchive: it cannot be read, or has a link, a device, a name that leads elsewhere, a folder
        below the allowed one, the same name twice, or more than the limits allow. Damage may show
        only after the last file: gzip's sum is over all of them.
    """
    unzipped: Any = _Unzipped(data, max_bytes)  # tarfile needs only this much of the file interface
    names: set[str] = set()
    with one_error(), tarfile.open(fileobj=unzipped, mode="r:") as archive:
        for number, member in enumerate(archive):
            if number > MAX_FILES:
                raise BadArchive("the archive is too large")
            name = _below(member.name, folder_name)
            if member.isdir() and name in ("", "."):
                continue
            if not member.isreg() or member.issparse():
                raise BadArchive(f"{member.name!r} is not a plain file")
            if not name or "/" in name or "\\" in name or "\0" in name or name == "..":
                raise BadArchive(f"{member.name!r} leads out of the asset's folder")
            if len(name.encode(errors="surrogateescape")) > MAX_NAME_BYTES:
                raise BadArchive("a name is longer than disks take")
            if name in names or len(names) == MAX_FILES:
                raise BadArchive(f"{member.name!r} is there twice, or the archive is too large")
            names.add(name)
            stream = archive.extractfile(member)
            assert stream is not None
            unzipped.in_content = True
            yield name, stream
            unzipped.in_content = False
        unzipped.in_content = True
        while unzipped.read(2**20):  # gzip checks sum and length only at its end
            pass


@contextlib.contextmanager
def one_error() -> Iterator[None]:
    """Turns all errors that damaged archives raise into BadArchive."""
    try:
        yield
    except BadArchive:
        raise
    except _DAMAGE as error:
        raise BadArchive(f"not a gzipped tar archive: {error}") from error


def unpack_archive(data: bytes, folder: Path, folder_name: str) -> dict[str, int]:
    """Writes the files of an archive into a folder; returns their lengths by name.

    Raises:
      BadArchive: see archive_files; some files may have been written.
      OSError: the disk is full.
    """
    lengths = {}
    for name, content in archive_files(data, folder_name):
        with (folder / name).open("xb") as file, one_error():
            shutil.copyfileobj(content, file)
            lengths[name] = file.tell()
    return lengths


def _below(name: str, folder_name: str) -> str:
    """Returns a member's name without the one folder that may precede it."""
    if name.startswith("/"):
        return f"/{name}"
    path = PurePosixPath(name)
    parts = path.parts[1:] if path.parts[:1] == (folder_name,) else path.parts
    return "/".join(parts)
