"""Objects of stores: their versions, and downloads.

Failures that may be temporary are retried on a fixed schedule. Bytes are read in pieces that are
retried one by one, so that a long download does not start again. The length is checked, and the
checksum where the store gives one. Annotations in stores are copied once, before they are read.
"""

import base64
import hashlib
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.urls import copies, is_http, public

T = TypeVar("T")
State = tuple[str, ...]

DOWNLOAD_FAILED = "download_failed"
STORE_REASONS = {
    DOWNLOAD_FAILED: "Downloading the file failed repeatedly. These failures count towards "
    "--max-error-rate.",
    "too_large_to_copy": "The file does not fit into the cache for remote files (--cache-gb).",
}
"""Additional reasons for which a stored file cannot be used."""

WAITS_S = (1.0, 2.0, 4.0, 8.0)
TIMEOUT_S = 120.0
PIECE_BYTES = 8 << 20
_VERSIONS = (
    *("generation", "ETag", "etag", "Last-Modified", "LastModified", "last_modified"),
    *("updated", "mtime", "created"),
)
_MD5 = re.compile("[0-9a-f]{32}")


class FetchFailed(Exception):
    """A file of a store cannot be read; `reason` may be a key of STORE_REASONS."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


def state_of(info: dict[str, Any]) -> State:
    """Return the size of an object and its version, from whichever field its store has."""
    known = [str(info[name]) for name in _VERSIONS if info.get(name)]
    return (str(info["size"]), *known[:1])


def stat(url: str) -> dict[str, Any]:
    system, path = storage.locate(url)

    def ask() -> dict[str, Any]:
        system.invalidate_cache()
        info: dict[str, Any] = system.info(path, **_timeout(system))
        if info["type"] != "file":
            raise FileNotFoundError(path)
        if info["size"] is None:
            raise FetchFailed(DOWNLOAD_FAILED, "the server does not report the file size")
        return info

    return retried(ask)


def retried(call: Callable[[], T]) -> T:
    """Call a store, and retry failures that may pass.

    Raises:
        FetchFailed: the object does not exist, or every call failed.
    """
    for wait_s in (*WAITS_S, None):
        try:
            return call()
        except (FetchFailed, InputError):
            raise
        except Exception as error:  # every file system of fsspec raises its own
            if _is_missing(error):
                raise FetchFailed("file_missing", "no file of that name") from error
            final = isinstance(error, PermissionError | ValueError)
            if wait_s is None or final or isinstance(error.__cause__, ValueError):
                cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
                text = " ".join(str(cause).split()) or type(cause).__name__
                detail = public(re.sub(r"0x[0-9a-f]+", "0x", text))[:300]
                raise FetchFailed(DOWNLOAD_FAILED, detail) from error
            time.sleep(wait_s)
    raise AssertionError("the last call returned or raised")


def _is_missing(error: Exception) -> bool:
    """Return True if there is no object; fsspec also raises FileNotFoundError if a server fails."""
    cause = error.__cause__
    if not isinstance(error, FileNotFoundError):
        return getattr(error, "status", None) in (404, 410)
    status = getattr(cause, "status", None)
    if type(cause).__module__.startswith("aiohttp"):
        return status is not None and 400 <= status < 500 and status not in (408, 425, 429)
    return not isinstance(cause, TimeoutError | ConnectionError | ValueError)


def _timeout(system: Any) -> dict[str, float]:
    return {"timeout": TIMEOUT_S} if getattr(system, "async_impl", False) else {}


def fetch(url: str, info: dict[str, Any], copy: IO[bytes]) -> None:
    """Write an object to an empty file; check length and checksum. See `stat` for `info`."""
    field = next((name for name in ("md5Hash", "Content-MD5") if info.get(name)), "ETag")
    tag = str(info.get("ETag", "")).strip('"')
    is_amazon = "StorageClass" in info and _MD5.fullmatch(tag)
    stated = tag if is_amazon else None
    if field != "ETag":
        try:
            stated = base64.b64decode(info[field]).hex()
        except ValueError as error:
            raise FetchFailed(DOWNLOAD_FAILED, f"its {field} is not base64: {error}") from error
    found: list[str] = []
    while len(found) <= len(WAITS_S):
        copy.seek(0)
        digest = hashlib.md5(usedforsecurity=False)
        read_part(url, 0, info["size"], partial(_take, copy, digest))
        # What Amazon calls an ETag is no MD5 where a key encrypts the object: then the bytes that
        # come twice are the right ones.
        if stated in (None, digest.hexdigest()) or (
            field == "ETag" and digest.hexdigest() in found
        ):
            return
        found.append(digest.hexdigest())
    raise FetchFailed(DOWNLOAD_FAILED, f"its MD5 is {found[-1]}, but the store says {stated}")


def _take(copy: IO[bytes], digest: Any, piece: bytes) -> None:
    copy.write(piece)
    digest.update(piece)


def read_part(url: str, start: int, size: int, take: Callable[[bytes], object]) -> None:
    """Read a part of an object in pieces, and pass each to `take` in order."""
    system, path = storage.locate(url)
    end = start + size
    for begin in range(start, end, PIECE_BYTES):
        stop = min(begin + PIECE_BYTES, end)
        take(retried(partial(_piece, system, path, begin, stop)))


def _piece(system: Any, path: str, begin: int, stop: int) -> bytes:
    data: bytes
    if is_http(path):  # its `cat_file` takes a whole file where the server knows no ranges
        with system.open(path, size=stop, cache_type="none") as stream:
            stream.seek(begin)
            data = stream.read(stop - begin)
    else:
        data = system.cat_file(path, start=begin, end=stop, **_timeout(system))
    if len(data) != stop - begin:
        raise OSError(f"the download ended after {begin + len(data):,} bytes")
    return data


def fetch_inputs() -> None:
    """Copy the stored files and folders that options named, unless they are copied already."""
    for url, copy in copies().items():
        if copy.exists():
            continue
        try:
            _fetch(url, copy)
        except FetchFailed as error:
            found = "no such file" if error.reason == "file_missing" else error.detail
            raise InputError(f"{public(url)}: {found}") from error


def _fetch(url: str, copy: Path) -> None:
    if not is_http(url):
        storage.check_reachable(url)
    system, path = storage.locate(url)
    if is_http(url) or not retried(lambda: system.isdir(path)):
        _fetch_file(url, copy)
        return
    base = path.rstrip("/") + "/"
    for file in retried(lambda: sorted(system.find(path))):
        name = file.removeprefix(base)
        if ".." in name.split("/"):
            raise InputError(f"{url}: the file {name!r} leads out of the folder")
        _fetch_file(storage.join(url, name), copy / name)


def _fetch_file(url: str, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(f"{copy.name}.part")
    with open(part, "wb") as stream:
        fetch(url, stat(url), stream)
    part.rename(copy)
