"""Copies of annotations from stores, made once, before they are read."""

from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.objects import FetchFailed, fetch, retried, stat
from eqforge.core.urls import copies, is_http, public


def fetch_inputs() -> None:
    """Copy the files and folders of stores that options named, unless they are here already."""
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
    """Copy a file; the copy gets its name when it is complete."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(f"{copy.name}.part")
    with open(part, "wb") as stream:
        fetch(url, stat(url), stream)
    part.rename(copy)
