"""Unpacks archives that may be hostile: nothing is written outside the folder, nothing is huge."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MAX_FILES = 1_000
MAX_UNPACKED_BYTES = 2 * 1024**3


class BadArchive(ValueError):
    """An archive is damaged, or holds what an asset's archive never does."""


def archive_files(data: bytes, folder_name: str) -> Iterator[tuple[str, bytes]]:
    """Yields the files of a gzipped tar archive, by their names without folders.

    Args:
      data: the archive.
      folder_name: a folder in which all files may lie; kubric allows the asset's id.

    Raises:
      BadArchive: it cannot be read, or has a link, a device, a name that leads elsewhere, a folder
        below the allowed one, the same name twice, or more than the limits allow. Damage may show
        only after the last file: gzip's sum is over all of them.
    """
    names: set[str] = set()
    total = 0
    try:
        with (
            gzip.GzipFile(fileobj=io.BytesIO(data)) as unzipped,
            tarfile.open(fileobj=unzipped, mode="r:") as archive,
        ):
            for member in archive:
                if member.isdir() and _below(member.name, folder_name) in ("", "."):
                    continue
                name = _below(member.name, folder_name)
                total += member.size
                if not member.isreg():
                    raise BadArchive(f"{member.name!r} is not a plain file")
                if not name or "/" in name or "\\" in name or name == "..":
                    raise BadArchive(f"{member.name!r} leads out of the asset's folder")
                if name in names or len(names) == MAX_FILES or total > MAX_UNPACKED_BYTES:
                    raise BadArchive(f"{member.name!r} is there twice, or the archive is too large")
                names.add(name)
                stream = archive.extractfile(member)
                assert stream is not None
                yield name, stream.read()
            _read_to_end(unzipped, MAX_UNPACKED_BYTES - total)
    except (tarfile.TarError, zlib.error, OSError, EOFError, ValueError) as error:
        if isinstance(error, BadArchive):
            raise
        raise BadArchive(f"not a gzipped tar archive: {error}") from error


def unpack_archive(data: bytes, folder: Path, folder_name: str) -> dict[str, int]:
    """Writes the files of an archive into a folder; returns their lengths by name.

    Raises:
      BadArchive: see archive_files; some files may have been written.
    """
    lengths = {}
    for name, content in archive_files(data, folder_name):
        (folder / name).write_bytes(content)
        lengths[name] = len(content)
    return lengths


def _read_to_end(unzipped: gzip.GzipFile, limit: int) -> None:
    """Reads what follows the tar's end mark: only at its end does gzip check sum and length."""
    while chunk := unzipped.read(2**20):
        limit -= len(chunk)
        if limit < 0:
            raise BadArchive("the archive is too large")


def _below(name: str, folder_name: str) -> str:
    """Returns a member's name below the one folder that may stand before it."""
    if name.startswith("/"):
        return f"/{name}"
    path = PurePosixPath(name)
    parts = path.parts[1:] if path.parts[:1] == (folder_name,) else path.parts
    return "/".join(parts)
