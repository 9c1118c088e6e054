"""Files of a dataset on a local disk or an object store, written whole or not at all."""

import contextlib
import errno
import hashlib
import io
import logging
import os
import posixpath
import queue
import stat
import tempfile
import threading
import uuid
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import fsspec
from fsspec.implementations.local import LocalFileSystem
from fsspec.registry import known_implementations

from eqforge.schemas.errors import InputError, room_named

TEMPORARY_PREFIX = ".tmp-"
REACH_S = 20.0

# What they log of an error is in the exception too; without a handler Python prints it.
LIBRARIES = ("fsspec", "gcsfs", "s3fs", "aiobotocore", "botocore", "adlfs")
for _library in LIBRARIES:
    logging.getLogger(_library).addHandler(logging.NullHandler())

# Others that fsspec knows are archives, copies of something else, or parts of another program.
_STORES = frozenset(
    (*LocalFileSystem.protocol, "memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl")
) | {"hdfs", "webhdfs", "oci", "oss", "hf", "http", "https"}

# Stores without folders; asked to make one they make a bucket, also of a name with a slip in it.
_WITHOUT_FOLDERS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs"})


def join(root: str, *parts: str) -> str:
    """Returns a path or URL below a root."""
    return "/".join([root.rstrip("/"), *parts])


def locate(url: str) -> tuple[Any, str]:
    """Returns the file system of a path or URL, and the path on it.

    Raises:
      InputError: nothing is installed for URLs of that kind, or they name no store.
    """
    scheme = fsspec.core.split_protocol(url)[0]
    if "::" in url or (scheme in known_implementations and scheme not in _STORES):
        raise InputError(
            f"{url}: is no store that datasets lie in; they lie on a disk of this machine, or "
            "behind gs://, s3://, abfs://, hdfs://, hf:// or https://"
        )
    try:
        return fsspec.core.url_to_fs(url)
    except (ValueError, ImportError, OSError) as error:
        raise InputError(f"{url}: {_sentence(error)}") from error


def check_reachable(url: str, timeout_s: float = REACH_S) -> None:
    """Asks a store whether a file is there, which shows whether it answers at all.

    Args:
      url: of the file, or its path.
      timeout_s: how long it is waited for; stores that are not there are tried again and again.

    Raises:
      InputError: it does not, or lets this user not in. Each store says so by exceptions of its
        own.
    """
    if fsspec.core.split_protocol(url)[0] in (None, *LocalFileSystem.protocol):
        return
    answer: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    # A daemon, for nothing ends a call of a store; it must not keep the program from ending.
    threading.Thread(target=_ask, args=(url, answer), daemon=True).start()
    try:
        found = answer.get(timeout=timeout_s)
    except queue.Empty:
        raise InputError(
            f"{url}: cannot be reached: no answer within {timeout_s:g} s; are network and "
            "credentials there?"
        ) from None
    if isinstance(found, InputError):
        raise found
    if found is not None:
        raise InputError(f"{url}: cannot be reached: {_sentence(found)}") from found


def _ask(url: str, answer: "queue.SimpleQueue[Exception | None]") -> None:
    try:
        system, path = locate(url)
        system.exists(path)
    except Exception as error:
        answer.put(error)
    else:
        answer.put(None)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def is_local(url: str) -> bool:
    """Tells whether a path or URL lies on a disk of this machine."""
    return isinstance(locate(url)[0], LocalFileSystem)


def make_parents(system: Any, path: str) -> None:
    """Makes the folder of a file and those above it, on a file system that has folders."""
    names = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
    if not names & _WITHOUT_FOLDERS:
        system.makedirs(posixpath.dirname(path), exist_ok=True)


def exists(url: str) -> bool:
    """Tells whether a file or folder is there."""
    system, path = locate(url)
    return system.exists(path)


def info(url: str) -> dict[str, Any] | None:
    """Returns what a store knows of a file, which tells its versions apart; None for no file."""
    system, path = locate(url)
    system.invalidate_cache()
    with contextlib.suppress(FileNotFoundError):
        return system.info(path)
    return None


def read_bytes(url: str) -> bytes:
    """Returns a whole file.

    Raises:
      FileNotFoundError: it is not there.
    """
    system, path = locate(url)
    return system.cat_file(path)


@contextlib.contextmanager
def open_below(folder: str, path: str) -> Iterator[IO[bytes]]:
    """Opens a plain file below a folder that may be another's, for reading.

    On a disk of this machine nothing else is opened, whatever takes the file's place meanwhile: no
    link, no folder that is a link, no pipe and no device.

    Args:
      folder: its path or URL, which may be a link.
      path: of the file below it, its names separated by `/`.

    Raises:
      InputError: it is no plain file, or the path leads elsewhere.
      OSError: it is not there, or may not be read.
    """
    names = path.split("/")
    if not {"", ".", ".."}.isdisjoint(names) or "\0" in path or "::" in path:
        raise InputError(f"{folder}: the path {path!r} leads out of the folder")
    system, root = locate(folder)
    if not isinstance(system, LocalFileSystem):
        with system.open(join(root, path), "rb") as stream:
            yield stream
        return
    with open(_plain_file(root, names, join(folder, path)), "rb") as stream:
        yield stream


def _plain_file(root: str, names: list[str], url: str) -> int:
    """Returns the descriptor of a plain file below a folder."""
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number, name in enumerate(names, start=1):
            kind = os.O_NONBLOCK if number == len(names) else os.O_DIRECTORY
            above, place = place, os.open(name, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=place)
            os.close(above)
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise InputError(f"{url}: is no plain file")
    except OSError as error:
        os.close(place)
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise InputError(f"{url}: is no plain file, or a link leads to it") from error
        raise OSError(error.errno, error.strerror, url) from error
    except InputError:
        os.close(place)
        raise
    return place


def read_range(url: str, start: int, stop: int) -> bytes:
    """Returns the bytes [start, stop) of a file.

    Raises:
      FileNotFoundError: it is not there.
    """
    system, path = locate(url)
    return system.cat_file(path, start=start, end=stop)


def digest(url: str) -> tuple[int, str]:
    """Returns the length of a file and its SHA-256, read in small pieces."""
    system, path = locate(url)
    with system.open(path, "rb") as stream:
        return digest_stream(stream)


def digest_stream(stream: Any) -> tuple[int, str]:
    """Returns the length of an open file and its SHA-256, read in small pieces."""
    sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    stream.seek(0, os.SEEK_END)  # files in memory are digested without being read through
    return stream.tell(), sha256


def write_bytes(url: str, data: bytes, synced: bool = True) -> None:
    """Writes a whole file; a reader sees the old content or the new, never a part.

    Args:
      url: the file's path or URL.
      data: its content.
      synced: whether it has to outlast a power cut; see open_atomic.
    """
    with open_atomic(url, synced) as stream:
        stream.write(data)


@contextlib.contextmanager
def open_atomic(url: str, synced: bool = True) -> Iterator[IO[bytes]]:
    """Opens a file for writing that appears under its name only when it is complete.

    On a disk the bytes go to a temporary name in the same folder and are renamed. To an object
    store they go when they are all there, by way of a temporary file on this machine: threads that
    share fsspec's file system would share its transactions. After an exception nothing appears.

    Args:
      url: the file's path or URL.
      synced: whether the bytes outlast a power cut when the body has ended; it takes a disk some
        milliseconds. Of a file that is not synced a power cut may leave other bytes.
    """
    system, path = locate(url)
    if not isinstance(system, LocalFileSystem):
        with tempfile.NamedTemporaryFile(prefix="eqforge-") as stream:
            with room_named(stream.name):
                yield stream
                stream.flush()
            system.put_file(stream.name, path)
        return
    folder = Path(path).parent
    make_folder(folder, synced)
    temporary = folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    try:
        with room_named(path), open(temporary, "wb") as stream:
            yield stream
            stream.flush()
            if synced:
                os.fsync(stream.fileno())
        os.replace(temporary, path)
        if synced:
            sync(folder)
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(folder: Path, synced: bool = True) -> None:
    """Makes a folder of this machine and those above it; synced, they outlast a power cut.

    Raises:
      NotADirectoryError: there is something else of that name.
    """
    if not folder.is_dir():
        make_folder(folder.parent, synced)
        try:
            folder.mkdir(exist_ok=True)
        except FileExistsError:
            error = errno.ENOTDIR
            raise NotADirectoryError(error, os.strerror(error), str(folder)) from None
        if synced:
            sync(folder.parent)


def sync(path: str | Path) -> None:
    """Returns when a file's bytes, or the names in a folder, are on the disk.

    Raises:
      OSError: it is not there, or the disk fails.
    """
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


class DigestingStream(io.RawIOBase):
    """A stream for writing that takes the SHA-256 of what passes, in a thread beside the writing.

    Args:
      stream: where the bytes go; it is left open.
    """

    PENDING = 8

    def __init__(self, stream: IO[bytes]) -> None:
        """Starts with nothing written."""
        self._stream, self._size, self._sha256 = stream, 0, hashlib.sha256()
        self._thread = ThreadPoolExecutor(1)
        self._pending: deque[Future[None]] = deque()

    def writable(self) -> bool:
        """Tells that it can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Writes bytes; waits where the digest lags behind by several pieces."""
        piece = bytes(data)
        self._stream.write(piece)
        self._size += len(piece)
        self._pending.append(self._thread.submit(self._sha256.update, piece))
        if len(self._pending) > self.PENDING:
            self._pending.popleft().result()
        return len(piece)

    def tell(self) -> int:
        """Returns how many bytes were written."""
        return self._size

    def digest(self) -> tuple[int, str]:
        """Returns how many bytes were written, and their SHA-256."""
        self._thread.shutdown()
        return self._size, self._sha256.hexdigest()


def list_files(url: str) -> list[str]:
    """Returns the names of the files directly in a folder, sorted; none where it is missing."""
    return sorted(file_sizes(url))


def file_sizes(url: str) -> dict[str, int]:
    """Returns the bytes of the files directly in a folder, by name; none where it is missing.

    What other processes did in the meantime is seen, also in a store that remembers its listings.
    """
    system, path = locate(url)
    system.invalidate_cache()
    if not system.isdir(path):
        return {}
    found = (entry for entry in system.ls(path, detail=True) if entry["type"] == "file")
    return {entry["name"].rsplit("/", 1)[-1]: entry["size"] for entry in found}


def list_names(url: str) -> list[str]:
    """Returns the names of the files and folders directly in a folder; none where it is missing."""
    system, path = locate(url)
    if not system.isdir(path):
        return []
    return sorted(
        {entry["name"].rstrip("/").rsplit("/", 1)[-1] for entry in system.ls(path, detail=True)}
    )


def delete(url: str) -> None:
    """Deletes a file; it is no error that it is not there."""
    system, path = locate(url)
    with contextlib.suppress(FileNotFoundError):
        system.rm_file(path)


def delete_folder(url: str) -> None:
    """Deletes a folder with all that is in it; it is no error that it is not there."""
    system, path = locate(url)
    with contextlib.suppress(FileNotFoundError):
        system.rm(path, recursive=True)
