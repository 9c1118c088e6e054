"""URLs: masked in messages, and as options that name a file.

A command reads its options before it reads files. An option that names a file in a store therefore
gets the path of a copy that does not exist yet; `core.files.objects` makes the copies later.
"""

import contextlib
import posixpath
import re
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from urllib.parse import unquote, urlsplit

from eqforge.core.errors import InputError

# A container of Azure stands before an @, too: abfs://CONTAINER@ACCOUNT.dfs.core.windows.net.
_USER = re.compile(r"(https?://)[^/\s@'\"]*@|(://)[^/\s@'\"]*:[^/\s@'\"]*@")
_QUERY = re.compile(r"(?<=\S)\?[^\s'\"<>)]*=[^\s'\"<>)]*")
_copies: ContextVar[tuple[Path, dict[str, Path]] | None] = ContextVar("copies", default=None)


def public(text: str) -> str:
    """Mask users, passwords and signatures in a URL or a message with URLs."""
    return _QUERY.sub("", _USER.sub(r"\1\2", text))


def is_http(url: str) -> bool:
    """Return True for the URL of a web server, which lists no files."""
    return url.startswith(("https://", "http://"))


@contextlib.contextmanager
def copied_urls(folder: str) -> Iterator[None]:
    """Allow URLs in file options during the block; the caller deletes the copies in `folder`."""
    token = _copies.set((Path(folder), {}))
    try:
        yield
    finally:
        _copies.reset(token)


def takes_urls() -> bool:
    return _copies.get() is not None


def copies() -> dict[str, Path]:
    _, named = _copies.get() or (None, {})
    return named


def copy_of(url: str) -> Path | None:
    """Return the path of the later copy of a file or folder in a store; None if copies are off.

    It has the name of the file, so that a dataset is the same as from a local file.
    """
    known = _copies.get()
    if known is None:
        return None
    if _USER.search(url):
        raise InputError(
            f"{public(url)} contains a user name or a password. Remove the credentials, and store "
            "them where your cloud provider's tools look for them."
        )
    folder, named = known
    path = unquote(urlsplit(url).path) if is_http(url) else url
    name = posixpath.basename(path.rstrip("/")) or "input"
    return named.setdefault(url, folder / str(len(named)) / name)
