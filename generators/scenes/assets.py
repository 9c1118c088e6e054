"""Look up the assets of scenes by id, check their digests, and unpack them once."""

import contextlib
import difflib
import functools
import gzip
import io
import json
import os
import shlex
import shutil
import tarfile
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.objects import FetchFailed, fetch, stat
from eqforge.core.files.source_file import digest_input, one_content
from eqforge.core.identity import sha256_hex
from eqforge.core.urls import public
from eqforge.generators.scenes.manifest import Asset, read_manifest
from eqforge.schemas.records.scenes import Vector

Place = Literal["indoors", "outdoors"]  # of an environment picture, and of floors
BUILTIN = "builtin"
BUILTIN_MANIFEST = str(Path(__file__).parent / "data" / "assets.json")
STAGE_MANIFEST = str(Path(__file__).parent / "data" / "stage.json")
MAX_ARCHIVE_BYTES = 512 * 1024**2
_LISTING = ".listing.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetFiles:
    """An asset on this machine's disk; its files must not be changed.

    Attributes:
      render: the file to render: a mesh (`.obj`, `.glb`), or the image of an HDRI.
      simulation: the URDF file, which names the collision mesh; None if there is none.
      bounds: the corners of its box, in its own units, z up. Scenes place it by the middle of its
        base.
      parts: material names that a scene's colour and material replace; None for all.
    """

    folder: Path
    render: Path
    simulation: Path | None
    import_kwargs: Mapping[str, Any]
    bounds: tuple[Vector, Vector]
    parts: tuple[str, ...] | None


@functools.cache
def stage_assets() -> Mapping[str, Asset]:
    return read_manifest(STAGE_MANIFEST).assets


class AssetLibrary:
    """The assets of a manifest (`builtin` for eqforge's own) and of the photographic stage.

    Several processes may share the cache of unpacked assets, and any of them may be killed at any
    time. With a SHA-256, the manifest must match it.
    """

    def __init__(self, manifest: str, cache: str, sha256: str | None = None) -> None:
        self.url = BUILTIN_MANIFEST if manifest == BUILTIN else manifest
        with one_content():
            self.assets = read_manifest(self.url).assets
            if sha256 not in (None, digest_input(self.url)):
                raise InputError(f"{public(self.url)}: the manifest changed during the run")
        self._cache = Path(cache)

    def __contains__(self, asset_id: str) -> bool:
        return asset_id in self.assets or asset_id in stage_assets()

    def asset(self, asset_id: str) -> Asset:
        if asset_id not in self.assets:
            if asset_id in stage_assets():
                return stage_assets()[asset_id]
            near = difflib.get_close_matches(asset_id, self.assets, cutoff=0.0)
            raise InputError(
                f"{self.url}: no asset {asset_id!r}; the closest ids are {', '.join(near)}"
            )
        return self.assets[asset_id]

    def unpack(self, asset_id: str) -> AssetFiles:
        asset = self.asset(asset_id)
        if asset.sha256 is None:
            raise InputError(
                f"{self.url}: asset {asset_id!r} has no 'sha256'. To get a manifest with digests, "
                f"run `eqforge assets fetch --manifest {shlex.quote(self.url)}`."
            )
        # An image without an archive has no name in its bytes.
        key = asset.sha256
        if not _is_packed(asset):
            key = sha256_hex(f"{key} {asset.render}".encode())
        folder = self._cache / key[:2] / key
        if not _is_complete(folder):
            _install(asset, fetch_archive(asset), folder)
        return files_of(asset, folder)

    def unpack_all(self, asset_ids: Iterable[str]) -> None:
        for asset_id in sorted(set(asset_ids)):
            if asset_id in self:
                self.unpack(asset_id)


@functools.cache
def is_remote(manifest: str) -> bool:
    if manifest == BUILTIN:
        return False
    archives = (asset.archive for asset in read_manifest(manifest).assets.values())
    return any("://" in address for address in (manifest, *archives))


def fetch_archive(asset: Asset) -> bytes:
    address, copy = public(asset.archive), io.BytesIO()
    try:
        info = stat(asset.archive)
        if info["size"] <= MAX_ARCHIVE_BYTES:
            fetch(asset.archive, info, copy)
    except FetchFailed as error:
        raise InputError(f"asset {asset.asset_id!r}: {address}: {error.detail}") from error
    if info["size"] > MAX_ARCHIVE_BYTES:
        raise InputError(
            f"asset {asset.asset_id!r}: {address} is {info['size']:,} bytes, but the limit is "
            f"{MAX_ARCHIVE_BYTES:,} bytes"
        )
    data = copy.getvalue()
    if asset.sha256 is not None and (found := sha256_hex(data)) != asset.sha256:
        raise InputError(
            f"asset {asset.asset_id!r}: {asset.archive} is not the pinned archive: expected "
            f"SHA-256 {asset.sha256}, found {found} ({len(data):,} bytes)"
        )
    return data


def files_of(asset: Asset, folder: Path) -> AssetFiles:
    for name in filter(None, (asset.render, asset.simulation)):
        if not (folder / name).is_file():
            raise InputError(f"asset {asset.asset_id!r}: {asset.archive} does not contain {name}")
    return AssetFiles(
        folder=folder,
        render=folder / asset.render,
        simulation=None if asset.simulation is None else folder / asset.simulation,
        import_kwargs=asset.import_kwargs,
        bounds=asset.bounds,
        parts=None if asset.words is None else asset.words.parts,
    )


def unpack_into(asset: Asset, data: bytes, folder: Path) -> dict[str, int]:
    """Write an asset's files into a folder; return their lengths in bytes."""
    if not _is_packed(asset):
        (folder / asset.render).write_bytes(data)
        return {asset.render: len(data)}
    try:
        return unpack_archive(data, folder, asset.asset_id)
    except BadArchive as error:
        raise InputError(f"asset {asset.asset_id!r}: {asset.archive}: {error}") from error


def _is_packed(asset: Asset) -> bool:
    return asset.archive.endswith((".tar.gz", ".tgz"))


def _install(asset: Asset, data: bytes, folder: Path) -> None:
    """Unpack an archive under a temporary name and rename the folder when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.parent / f"{storage.TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    temporary.mkdir()
    try:
        lengths = unpack_into(asset, data, temporary)
        (temporary / _LISTING).write_text(json.dumps(lengths))
        try:
            os.rename(temporary, folder)
        except OSError:
            # Another process was faster, or the existing folder is damaged.
            if not _is_complete(folder):
                shutil.rmtree(folder, ignore_errors=True)
                os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _is_complete(folder: Path) -> bool:
    try:
        lengths: dict[str, int] = json.loads((folder / _LISTING).read_text())
        return all((folder / name).stat().st_size == length for name, length in lengths.items())
    except (OSError, ValueError):
        return False


MAX_FILES = 1_000
MAX_NAME_BYTES = 255
MAX_UNPACKED_BYTES = 2 * 1024**3
MAX_HEADER_BYTES = 8 * 1024**2  # tarfile holds long names and headers in memory


class BadArchive(ValueError):
    """An archive is damaged, or contains something that assets never do."""


def packed(files: Mapping[str, bytes], level: int = 0) -> bytes:
    """Build a gzipped tar archive; the same content always gives the same bytes."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    return gzip.compress(stream.getvalue(), level, mtime=0)


class _Unzipped:
    def __init__(self, data: bytes) -> None:
        self._stream = gzip.GzipFile(fileobj=io.BytesIO(data))
        self._room, self._header_room = MAX_UNPACKED_BYTES, MAX_HEADER_BYTES
        self.in_content = False

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, place: int) -> None:
        """Seek forward only; a header that points back would be read forever."""
        if place < self.tell():
            raise BadArchive("a header points to an earlier part of the archive")
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


def archive_files(data: bytes, folder_name: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name (without folders) and content of each file in a gzipped tar archive.

    Reading the content of a damaged archive raises various errors; see one_error.

    Raises:
      BadArchive: the archive cannot be read, is too large, or has a link, a device, a path outside
        it or a repeated name. Damage may show only after the last file, since gzip's checksum
        covers all of it.
    """
    unzipped: Any = _Unzipped(data)  # tarfile needs only this much of the file interface
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
                raise BadArchive(f"{member.name!r} is outside the asset's folder")
            if len(name.encode(errors="surrogateescape")) > MAX_NAME_BYTES:
                raise BadArchive("a file name is too long")
            if name in names:
                raise BadArchive(f"{member.name!r} appears twice")
            if len(names) == MAX_FILES:
                raise BadArchive(f"the archive has more than {MAX_FILES:,} files")
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
    try:
        yield
    except BadArchive:
        raise
    except (
        *(tarfile.TarError, gzip.BadGzipFile, zlib.error),
        *(EOFError, ValueError, RecursionError),
    ) as error:
        raise BadArchive(f"damaged, or not a .tar.gz archive ({error})") from error


def unpack_archive(data: bytes, folder: Path, folder_name: str) -> dict[str, int]:
    lengths = {}
    for name, content in archive_files(data, folder_name):
        with (folder / name).open("xb") as file, one_error():
            shutil.copyfileobj(content, file)
            lengths[name] = file.tell()
    return lengths


def _below(name: str, folder_name: str) -> str:
    if name.startswith("/"):
        return f"/{name}"
    path = PurePosixPath(name)
    parts = path.parts[1:] if path.parts[:1] == (folder_name,) else path.parts
    return "/".join(parts)
