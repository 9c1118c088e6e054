"""Find WordNet on this machine, open it with NLTK, and fetch it if the user asks.

It is searched for in eqforge's cache, in NLTK's folders, and where Debian's package wordnet-base
puts it. Only `eqforge setup wordnet` downloads anything.
"""

import contextlib
import functools
import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.files.disk import cache_folder

if TYPE_CHECKING:
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

DEBIAN_FOLDER = Path("/usr/share/wordnet")
# All calls to NLTK's reader seek in the same open files: hold this lock around them.
WORDNET_LOCK = threading.RLock()
_NAMES = ("wordnet", "wordnet.zip")  # a folder or an archive, below `corpora`
_PARTS = ("adj", "adv", "noun", "verb")
_FILES = ("cntlist.rev", *(f"{kind}.{part}" for kind in ("data", "index") for part in _PARTS))
_EXCEPTIONS = tuple(f"{part}.exc" for part in _PARTS)
_REMEDY = "delete it and run `eqforge setup wordnet`"
LEXNAMES = Path(__file__).with_name("data") / "lexnames.tsv"
"""Names and numbers of WordNet 3.0's lexicographer files, as in lexnames(5WN): NLTK needs the file,
and Debian ships only the manual page."""


def open_wordnet() -> "WordNetCorpusReader":
    with WORDNET_LOCK:
        return _open(_remembered(DEBIAN_FOLDER, *_folders()))


def check_wordnet() -> None:
    """Check that WordNet is complete, without NLTK, whose import takes 2 s."""
    place = _find(DEBIAN_FOLDER, *_folders())
    try:
        root = zipfile.Path(place, "wordnet/") if place.is_file() else place
        missing = [name for name in (*_FILES, *_EXCEPTIONS) if not (root / name).is_file()]
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"WordNet at {place} cannot be read: {error}; {_REMEDY}") from error
    if missing:
        raise InputError(f"WordNet at {place} is incomplete: {missing[0]} is missing; {_REMEDY}")


def setup_wordnet(report: Callable[[str], None] = print) -> str:
    """Make WordNet available to this user and return its location.

    If it is missing, NLTK downloads it. If that fails, Debian's package is fetched and unpacked,
    without root, into eqforge's cache.
    """
    target = cache_folder() / "nltk_data"
    with contextlib.suppress(InputError):
        check_wordnet()
        return str(_find(DEBIAN_FOLDER, *_folders()))
    target.mkdir(parents=True, exist_ok=True, mode=0o755)
    failures = []
    for fetch in (_fetch_by_nltk, _fetch_by_apt):
        report(f"{fetch.__doc__} Target: {target}")
        try:
            fetch(target)
            check_wordnet()
            open_wordnet()
            return str(_find(DEBIAN_FOLDER, *_folders()))
        except (InputError, OSError) as error:
            failures.append(f"{fetch.__name__.removeprefix('_fetch_by_')}: {error}")
    raise InputError(
        f"WordNet could not be fetched ({'; '.join(failures)}). Install Debian's package "
        f"wordnet-base, or unpack NLTK's corpora/wordnet.zip into {target / 'corpora'}."
    )


def _folders() -> list[str]:
    cache = str(cache_folder() / "nltk_data")
    if "nltk.data" in sys.modules:
        return [*sys.modules["nltk.data"].path, cache]
    named = filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep))
    ours = (os.path.expanduser("~"), sys.prefix, f"{sys.prefix}/share", f"{sys.prefix}/lib")
    machines = ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
    return [*named, *(f"{parent}/nltk_data" for parent in (*ours, *machines)), cache]


def _find(debian: Path, *folders: str) -> Path:
    """Return WordNet's folder or archive."""
    if find_spec("nltk") is None:
        raise MissingExtra("nltk", "text")
    places = [Path(folder, "corpora", name) for name in _NAMES for folder in folders]
    for place in (*places, debian):
        if place.is_file() or (place / "data.noun").is_file():
            return place
    raise InputError("WordNet is not installed; run `eqforge setup wordnet`")


# Captions ask for WordNet at each word.
_remembered = functools.lru_cache(maxsize=8)(_find)


@functools.lru_cache(maxsize=2)
def _open(place: Path) -> "WordNetCorpusReader":
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    # NLTK reads no files outside its search path.
    nltk.data.path.append(str(place.parent if place.is_file() else place))

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        """Reads only English, and needs neither of the two files that Debian leaves out."""

        def open(self, file: str) -> Any:
            if file == "lexnames":
                return io.StringIO(LEXNAMES.read_text())
            if not file.startswith(("data.", "index.")):
                return super().open(file)
            # NLTK's own stream, for any encoding, takes ten times as long for a line.
            with self.root.join(file).open() as stream:
                return io.TextIOWrapper(io.BytesIO(stream.read()), encoding="utf-8")

        def map_wn(self, version: str = "wordnet") -> None:
            """Skip the map between versions, for other languages only; it needs index.sense."""

    try:
        with warnings.catch_warnings():
            # It warns of missing multilingual files, which are not needed here.
            warnings.simplefilter("ignore", UserWarning)
            if place.is_file():
                pointer = nltk.data.ZipFilePathPointer(str(place), "wordnet/")
            else:
                pointer = nltk.data.FileSystemPathPointer(str(place))
            return Reader(pointer, omw_reader=None)
    except (OSError, LookupError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"WordNet at {place} cannot be read: {error}") from error


def _fetch_by_nltk(target: Path) -> None:
    """Downloading WordNet by NLTK."""
    import nltk

    if not nltk.download("wordnet", download_dir=str(target), quiet=True):
        raise InputError("NLTK's server cannot be reached")


def _fetch_by_apt(target: Path) -> None:
    """Fetching Debian's package wordnet-base by apt-get."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise InputError(f"{tool} is not installed")
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        _run("apt-get", "download", "wordnet-base", folder=scratch)
        package = next(Path(scratch).glob("wordnet-base_*.deb"))
        _run("dpkg-deb", "-x", package.name, "unpacked", folder=scratch)
        source = Path(scratch) / "unpacked" / DEBIAN_FOLDER.relative_to("/")
        shutil.copyfile(LEXNAMES, source / "lexnames")
        (target / "corpora").mkdir(exist_ok=True, mode=0o755)
        source.rename(target / "corpora" / "wordnet")


def _run(*command: str, folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise InputError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
