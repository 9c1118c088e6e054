"""URLs: in messages without what gives access, and as options of a command that name a file.

A command reads its options before it reads files. So an option that names a file in a store gets
the path of a copy that does not exist yet; `core.files.input_copies` makes the copies later.
"""

import contextlib
import posixpath
import re
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from urllib.parse import unquote, urlsplit

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.objects import FetchFailed, fetch, retried, stat

# A container of Azure stands before an @, too: abfs://CONTAINER@ACCOUNT.dfs.core.windows.net.
_USER = re.compile(r"(https?://)[^/\s@'\"]*@|(://)[^/\s@'\"]*:[^/\s@'\"]*@")
_QUERY = re.compile(r"(?<=\S)\?[^\s'\"<>)]*=[^\s'\"<>)]*")
_copies: ContextVar[tuple[Path, dict[str, Path]] | None] = ContextVar("copies", default=None)


def public(text: str) -> str:
    """Returns a URL, or a message with URLs, without users, passwords and signatures."""
    return _QUERY.sub("", _USER.sub(r"\1\2", text))


def is_http(url: str) -> bool:
    """Tells whether a URL names a web server, which lists no files."""
    return url.startswith(("https://", "http://"))


@contextlib.contextmanager
def copied_urls(folder: str) -> Iterator[None]:
    """Lets options that name a file take URLs in the block.

    Args:
      folder: where the copies will lie; the caller deletes it.
    """
    token = _copies.set((Path(folder), {}))
    try:
        yield
    finally:
        _copies.reset(token)


def takes_urls() -> bool:
    """Tells whether options that name a file take URLs."""
    return _copies.get() is not None


def copies() -> dict[str, Path]:
    """Returns the URLs that options named, and where their copies lie or will lie."""
    _, named = _copies.get() or (None, {})
    return named


def copy_of(url: str) -> Path | None:
    """Returns where the copy of a file or folder in a store will lie; None if there is to be none.

    It has the name of the file, so that a dataset is the same as of a local file.

    Raises:
      InputError: the URL holds a user's name or password.
    """
    known = _copies.get()
    if known is None:
        return None
    if _USER.search(url):
        raise InputError(
            f"{public(url)}: holds a password or a user's name; put them where the store's own "
            "tools look for them"
        )
    folder, named = known
    path = unquote(urlsplit(url).path) if is_http(url) else url
    name = posixpath.basename(path.rstrip("/")) or "input"
    return named.setdefault(url, folder / str(len(named)) / name)


def fetch_inputs() -> None:
    """Copies the files and folders of stores that options named, unless they are here already.

    Raises:
      InputError: one is missing, or cannot be read.
    """
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
    """Copies a file; the copy has its name once it is whole."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(f"{copy.name}.part")
    with open(part, "wb") as stream:
        fetch(url, stat(url), stream)
    part.rename(copy)
