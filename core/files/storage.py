"""Files of a dataset on a local disk or an object store, written completely or not at all."""

import contextlib
import fcntl
import functools
import ipaddress
import logging
import os
import posixpath
import queue
import re
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from eqforge.core.errors import InputError, room_named
from eqforge.core.files import disk
from eqforge.core.urls import public

TEMPORARY_PREFIX = ".tmp-"
TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{32}(\.\w+)?")

# Errors that they log are in the exceptions too; without a handler Python prints them.
LIBRARIES = ("fsspec", "gcsfs", "s3fs", "aiobotocore", "botocore", "adlfs")
for _library in LIBRARIES:
    logging.getLogger(_library).addHandler(logging.NullHandler())

_LOCAL = ("file", "local")
# fsspec's other protocols are archives, caches of other stores, or parts of other programs.
_STORES = frozenset((*_LOCAL, "memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl")) | {
    "hdfs",
    "webhdfs",
    "oci",
    "oss",
    "hf",
    "http",
    "https",
}

# Stores without folders; asked for one they create a bucket, even of a misspelt name.
_WITHOUT_FOLDERS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs"})


def join(root: str, *parts: str) -> str:
    return "/".join([root.rstrip("/"), *parts])


def locate(url: str) -> tuple[Any, str]:
    import fsspec
    from fsspec.registry import known_implementations

    scheme = fsspec.core.split_protocol(url)[0]
    if "::" in url or (scheme in known_implementations and scheme not in _STORES):
        raise InputError(
            f"{public(url)} is not a supported store; use a local folder, or a URL that starts "
            "with gs://, s3://, abfs://, hdfs://, hf:// or https://"
        )
    try:
        options = http_options() if scheme in ("http", "https") else {}
        return fsspec.core.url_to_fs(url, **options)
    except (ValueError, ImportError, OSError) as error:
        raise InputError(f"{public(url)}: {_sentence(error)}") from error


def check_reachable(url: str, timeout_s: float = 20.0) -> None:
    """Check that a store answers and grants this user access.

    Args:
        timeout_s: longest wait; clients retry missing stores endlessly.
    """
    import fsspec

    if fsspec.core.split_protocol(url)[0] in (None, *_LOCAL):
        return
    answer: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def ask() -> None:
        try:
            system, path = locate(url)
            system.exists(path)
        except Exception as error:
            answer.put(error)
        else:
            answer.put(None)

    # A daemon, as a call to a store cannot be cancelled and must not keep the program alive.
    threading.Thread(target=ask, daemon=True).start()
    try:
        found = answer.get(timeout=timeout_s)
    except queue.Empty:
        raise InputError(
            f"{public(url)}: cannot be reached: no answer within {timeout_s:g} s; check the "
            "network and the credentials"
        ) from None
    if isinstance(found, InputError):
        raise found
    if found is not None:
        raise InputError(f"{public(url)}: cannot be reached: {_sentence(found)}") from found


def _sentence(error: Exception) -> str:
    return public(" ".join(str(error).split())) or type(error).__name__


def is_local(url: str) -> bool:
    return _is_disk(locate(url)[0])


def is_below(url: str, folder: str) -> bool:
    """Return True if a file, links resolved, lies below a folder of this machine."""
    path, root = (os.path.realpath(locate(each)[1]) for each in (url, folder))
    return is_local(folder) and path.startswith(f"{root}/")


def _is_disk(system: Any) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(system, LocalFileSystem)


def make_parents(system: Any, path: str) -> None:
    names = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
    if not names & _WITHOUT_FOLDERS:
        system.makedirs(posixpath.dirname(path), exist_ok=True)


def exists(url: str) -> bool:
    system, path = locate(url)
    return system.exists(path)


def is_file(url: str) -> bool:
    system, path = locate(url)
    return system.isfile(path)


def info(url: str) -> dict[str, Any] | None:
    """Return a store's metadata of a file, different for each version; None if it is missing."""
    system, path = locate(url)
    system.invalidate_cache()
    with contextlib.suppress(FileNotFoundError):
        return system.info(path)
    return None


def read_bytes(url: str) -> bytes:
    system, path = locate(url)
    return system.cat_file(path)


@contextlib.contextmanager
def open_below(folder: str, path: str) -> Iterator[IO[bytes]]:
    """Open a plain file below an untrusted folder, which may itself be a link, for reading.

    On a local disk, links, linked folders, pipes and devices are rejected, even if the file is
    replaced meanwhile.
    """
    names = path.split("/")
    if not {"", ".", ".."}.isdisjoint(names) or "\0" in path or "::" in path:
        raise InputError(f"{folder}: the path {path!r} leads out of the folder")
    system, root = locate(folder)
    if not _is_disk(system):
        with system.open(join(root, path), "rb") as stream:
            yield stream
        return
    with open(disk.open_plain(root, names, join(folder, path)), "rb") as stream:
        yield stream


def read_range(url: str, start: int, stop: int) -> bytes:
    system, path = locate(url)
    return system.cat_file(path, start=start, end=stop)


def digest(url: str) -> tuple[int, str]:
    system, path = locate(url)
    with system.open(path, "rb") as stream:
        return disk.digest_stream(stream)


def write_bytes(url: str, data: bytes, synced: bool = True) -> None:
    with open_atomic(url, synced) as stream:
        stream.write(data)


@contextlib.contextmanager
def open_atomic(url: str, synced: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when complete.

    On a disk the bytes go to a temporary file in the same folder, which is renamed. For an object
    store they are collected in a temporary file on this machine and uploaded at the end, because
    threads that share fsspec's file system would share its transactions. After an exception
    nothing appears.

    Args:
      synced: whether the bytes survive a power cut after the block; costs some milliseconds.
    """
    system, path = locate(url)
    if not _is_disk(system):
        with tempfile.NamedTemporaryFile(prefix="eqforge-") as stream:
            with room_named(stream.name):
                yield stream
                stream.flush()
            system.put_file(stream.name, path)
        return
    folder = Path(path).parent
    disk.make_folder(folder, synced)
    temporary = folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    try:
        with room_named(path), open(temporary, "wb") as stream:
            with contextlib.suppress(OSError):  # a disk without locks
                fcntl.flock(stream, fcntl.LOCK_SH)  # until the file is closed it is no leftover
            yield stream
            stream.flush()
            if synced:
                os.fsync(stream.fileno())
        os.replace(temporary, path)
        if synced:
            disk.sync(folder)
    finally:
        temporary.unlink(missing_ok=True)


def list_files(url: str) -> list[str]:
    return sorted(file_sizes(url))


def file_sizes(url: str) -> dict[str, int]:
    """Return the sizes in bytes of the files directly in a folder; none if it is missing.

    Changes by other processes are seen, even in a store that caches its listings.
    """
    system, path = locate(url)
    system.invalidate_cache()
    if not system.isdir(path):
        return {}
    found = (entry for entry in system.ls(path, detail=True) if entry["type"] == "file")
    return {entry["name"].rsplit("/", 1)[-1]: entry["size"] for entry in found}


def list_names(url: str) -> list[str]:
    system, path = locate(url)
    if not system.isdir(path):
        return []
    return sorted(
        {entry["name"].rstrip("/").rsplit("/", 1)[-1] for entry in system.ls(path, detail=True)}
    )


def delete(url: str) -> None:
    system, path = locate(url)
    with contextlib.suppress(FileNotFoundError):
        system.rm_file(path)


def delete_folder(url: str) -> None:
    system, path = locate(url)
    with contextlib.suppress(FileNotFoundError):
        system.rm(path, recursive=True)


CONNECT_S = 20.0
READ_S = 60.0
_MORE_BYTES = 1 << 20
_WHOLE_BYTES = 1 << 30
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


@functools.cache
def http_options() -> dict[str, Any]:
    """Return fsspec's options for https:// and http://; always the same object."""
    from fsspec.implementations.http import aiohttp  # which is what it opens URLs by

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_check_redirect)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=READ_S)

    class Bounded(aiohttp.ClientResponse):  # type: ignore[misc]
        _body: bytes | None = None

        async def read(self) -> bytes:
            """Return the body; reject a body longer than the requested range."""
            span = _RANGE.fullmatch(self.request_info.headers.get("Range", ""))
            most = int(span[2]) - int(span[1]) + _MORE_BYTES if span else _WHOLE_BYTES
            body = bytearray(self._body or b"")
            if self._body is None:
                async for piece in self.content.iter_any():
                    body += piece
                    if len(body) > most:
                        self.close()
                        raise ValueError(f"the server sends more than {most:,} bytes")
                self._body = bytes(body)
            return bytes(body)

    client = {"timeout": timeout, "trace_configs": [trace], "response_class": Bounded}
    return {"client_kwargs": client}


async def _check_redirect(_session: Any, _context: Any, redirect: Any) -> None:
    """Reject redirects from https to http, and from elsewhere into this machine or its network.

    Files of one host often lie on another, so redirects to other hosts are allowed.
    """
    target = redirect.url.join(type(redirect.url)(redirect.response.headers.get("Location", "")))
    if redirect.url.scheme == "https" and target.scheme != "https":
        raise ValueError("the server redirects from https:// to an unencrypted address")
    if _is_inner(target.host) and not _is_inner(redirect.url.host):
        raise ValueError("the server redirects to an address on this machine or its network")


def _is_inner(host: str | None) -> bool:
    try:
        return not ipaddress.ip_address(host or "").is_global
    except ValueError:
        return host == "localhost"
