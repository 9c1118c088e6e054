"""The note of an export: its dataset, settings and files.

`eqforge-export.json` is written last. Until then `eqforge-export.partial.json` names the complete
files, so that the same command resumes where it stopped. Replacing an earlier export deletes the
files that its note names, and then the note; other or changed files stop it.
"""

import dataclasses
import errno
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import owned, storage
from eqforge.core.files.checked import clipped
from eqforge.core.visible import escaped_json
from eqforge.schemas.dataset.manifest import EXPORT_NOTE, MAX_BYTES, Count, DataFile

NOTE: Final = EXPORT_NOTE
PARTIAL: Final = "eqforge-export.partial.json"
NOTES: Final = frozenset((NOTE, PARTIAL))
_FORMAT: Final = "eqforge export"
_SAVED_EVERY_S: Final = 5.0
_MAX_BYTES: Final = 32 * MAX_BYTES
_PIECE_BYTES: Final = 1 << 20
_REFUSED: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportNote:
    """The contents of an export.

    Attributes:
      dataset_sha256: SHA-256 of the dataset's manifest.
      settings: format, table, image encoding and other settings that affect the exported bytes.
      versions: versions of the packages that wrote the files.
      left_out: number of rows that `--redistributable` excluded, by licence.
      files: exported files, except `eqforge-export.json`. For an image, `rows` is 0.
    """

    format: str = _FORMAT
    format_version: int = 1
    dataset: str
    dataset_sha256: str
    settings: dict[str, Any]
    versions: dict[str, str]
    left_out: dict[str, Count] = field(default_factory=dict)
    files: list[DataFile] = field(default_factory=list)

    def is_of(self, other: "ExportNote") -> bool:
        """Return True if both are notes of the same export, however far each got."""
        return dataclasses.replace(self, files=[]) == dataclasses.replace(other, files=[])


class Ledger:
    """The complete files of an export; `opened` names files that this run opened, in lower case."""

    def __init__(self, folder: str, note: ExportNote, done: Iterable[DataFile] = ()) -> None:
        self.folder, self._note = folder, note
        self.done = {file.path: file for file in done}
        self.is_finished, self._saved = False, time.monotonic()
        self.opened = set[str]()

    def add(self, file: DataFile) -> None:
        self.done[file.path] = file
        if time.monotonic() - self._saved > _SAVED_EVERY_S:
            self.save()

    def save(self) -> None:
        _write(self.folder, PARTIAL, self.note())
        self._saved = time.monotonic()

    def finish(self) -> ExportNote:
        _write(self.folder, NOTE, self.note())
        storage.delete(storage.join(self.folder, PARTIAL))
        self.is_finished = True
        return self.note()

    def keep(self) -> None:
        if not self.is_finished:
            self.save()

    def note(self) -> ExportNote:
        files = [self.done[path] for path in sorted(self.done)]
        return dataclasses.replace(self._note, files=files)


def begin(folder: str, note: ExportNote, overwrite: bool) -> Ledger:
    """Check the folder of an export, and delete an earlier export if requested."""
    storage.check_reachable(folder)
    finished, unfinished = _read(folder, NOTE), _read(folder, PARTIAL)
    earlier = unfinished or finished
    if earlier is None:
        for name in storage.list_names(folder):
            if not storage.TEMPORARY.fullmatch(name):
                raise InputError(
                    f"{storage.join(folder, clipped(name))} is not part of an export; choose a "
                    "new or empty folder, or the folder of an earlier export"
                )
        ledger = Ledger(folder, note)
    elif earlier.is_of(note) and (unfinished is not None or not overwrite):
        root = storage.locate(folder)[1]
        links = [path for path in owned.files_below(folder) if os.path.islink(f"{root}/{path}")]
        owned.check_owned(folder, links, (), "--output")
        ledger = Ledger(folder, note, _complete(folder, earlier, unfinished is None))
        ledger.is_finished = unfinished is None and len(ledger.done) == len(earlier.files)
    elif not overwrite:
        raise InputError(
            f"{folder} already contains an export of {earlier.dataset} as "
            f"{earlier.settings.get('format')}, made from different data, settings or versions; "
            "pass --overwrite to replace it"
        )
    else:
        listed = {(f.path, f.sha256) for each in (finished, unfinished) if each for f in each.files}
        paths = [path for path in owned.files_below(folder) if path not in NOTES]
        owned.check_owned(folder, paths, listed, "--output")
        owned.delete_files(folder, paths)
        for name in (NOTE, PARTIAL):
            storage.delete(storage.join(folder, name))
        ledger = Ledger(folder, note)
    try:
        ledger.keep()
        owned.remove_half_written(folder)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        raise InputError(f"--output {folder}: cannot be written: {error.strerror}") from error
    return ledger


def _complete(folder: str, note: ExportNote, is_finished: bool) -> list[DataFile]:
    found = []
    for file in note.files:
        url = storage.join(folder, file.path)
        if not storage.exists(url):
            continue
        if storage.digest(url) == (file.num_bytes, file.sha256):
            found.append(file)
        elif is_finished:
            raise InputError(f"{url}: the file was changed after the export; move it elsewhere")
    return found


def _write(folder: str, name: str, note: ExportNote) -> None:
    text = msgspec.json.format(msgspec.json.encode(note), indent=1).decode()
    storage.write_bytes(storage.join(folder, name), escaped_json(text).encode() + b"\n")


def _read(folder: str, name: str) -> ExportNote | None:
    url = storage.join(folder, name)
    try:
        with storage.open_below(folder, name) as stream:
            # Requesting it all at once would allocate that much memory first.
            pieces = iter(lambda: stream.read(_PIECE_BYTES), b"")
            data = b"".join(islice(pieces, _MAX_BYTES // _PIECE_BYTES))
        note = msgspec.json.decode(data, type=ExportNote)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{url}: not an export note, or damaged; choose another folder") from error
    if (note.format, note.format_version) != (_FORMAT, 1):
        raise InputError(f"{url}: this version of eqforge cannot read this export note")
    return note
