"""The folder of a report: what may be there before, and the note of what wrote it."""

from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage

NOTE: Final = "eqforge-report.json"
_FOLDERS: Final = ("assets", "data", "masks", "pictures", "thumbnails")
_PAGES: Final = ".html"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a report was made of.

    Attributes:
      dataset: name of the dataset.
      sha256: of its manifest; of two datasets that are compared, of both.
      made_of: everything else that the report depends on.
      complete: whether it was written to its end.
    """

    dataset: str
    sha256: list[str]
    made_of: dict[str, object]
    complete: bool = False


def check_place(output: str, note: Note, *, overwrite: bool, option: str = "--output") -> None:
    """Checks that a report may be written into a folder.

    Args:
      output: the folder.
      note: of the report that is to be written.
      overwrite: whether a report of something else may be replaced.
      option: which names the folder, for the message.

    Raises:
      InputError: the folder holds something else.
    """
    there = _read(output)
    if there is None and storage.list_names(output):
        raise InputError(f"{option} {output}: holds files that are no report; name another folder")
    if not overwrite and there is not None and _without_end(there) != _without_end(note):
        raise InputError(
            f"{option} {output}: holds pages of {there.dataset} that were made of something "
            "else; name another folder, or add --overwrite to replace them"
        )


def take_place(output: str, note: Note, *, overwrite: bool, option: str = "--output") -> None:
    """Prepares a folder for a report: a new one, or one of the same report that was not finished.

    Args:
      output: the folder.
      note: of the report that is to be written.
      overwrite: whether a report of something else is replaced.
      option: which names the folder, for the message.

    Raises:
      InputError: the folder holds something else.
    """
    check_place(output, note, overwrite=overwrite, option=option)
    there = _read(output)
    if there is not None and _without_end(there) != _without_end(note):
        delete_report(output)
    storage.write_bytes(storage.join(output, NOTE), _encoded(note))


def finish(output: str, note: Note) -> None:
    """Notes that a report is complete."""
    done = msgspec.structs.replace(note, complete=True)
    storage.write_bytes(storage.join(output, NOTE), _encoded(done))


def delete_report(output: str) -> None:
    """Deletes what a report has written, and nothing else."""
    for name in storage.list_names(output):
        if name in _FOLDERS:
            storage.delete_folder(storage.join(output, name))
        elif name.endswith(_PAGES):
            storage.delete(storage.join(output, name))


def _read(output: str) -> Note | None:
    try:
        return msgspec.json.decode(storage.read_bytes(storage.join(output, NOTE)), type=Note)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def _without_end(note: Note) -> bytes:
    """Returns a note as it is written: once read, its tuples are lists."""
    return _encoded(msgspec.structs.replace(note, complete=False))


def _encoded(note: Note) -> bytes:
    return msgspec.json.format(msgspec.json.encode(note, order="sorted"), indent=2) + b"\n"
