"""Reads the records of a file of captioned moments, in any of the forms that people have.

The ending of the file chooses: JSON lines, a JSON array, CSV, TSV, SubRip or WebVTT. A folder holds
subtitles, or is one of Hugging Face's. What a record says is not looked at here.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import Node
from eqforge.schemas.sources.hugging_face import FORMS, row_folder
from eqforge.schemas.sources.record_files import (
    Record,
    read_content,
    read_json,
    read_json_lines,
    read_table,
)
from eqforge.schemas.sources.subtitles import read_cues

SUBTITLES = (".srt", ".vtt")


def moment_files(path: Path) -> list[Path]:
    """Returns the files of captions that a path names: itself, or those of a folder.

    Raises:
      InputError: the folder holds none, or both subtitles and tables.
    """
    rows = row_folder(path)
    subtitles = _subtitles(path) if path.is_dir() else []
    if rows is not None and subtitles:
        raise InputError(
            f"{path}: holds both {rows.files[0].name} and subtitles, such as {subtitles[0].name}; "
            "put one of them into a folder of its own"
        )
    if rows is not None:
        return rows.files
    if path.is_dir() and not subtitles:
        raise InputError(
            f"{path}: no captions in this folder; expected subtitles ({' or '.join(SUBTITLES)}), "
            f"{FORMS}; or name a file"
        )
    return subtitles or [path]


def _subtitles(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUBTITLES)


def read_records(path: Path) -> Iterator[Record]:
    """Yields the records of a file or of a folder.

    Raises:
      InputError: the ending is unknown, or a file cannot be read as what it is named.
    """
    if (rows := row_folder(path)) is not None:
        yield from rows.rows("video")
        return
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        ".jsonl": read_json_lines,
        ".ndjson": read_json_lines,
        ".json": read_json,
        ".csv": _read_moments,
        ".tsv": _read_moments,
    }
    for file in moment_files(path):
        suffix = file.suffix.lower()
        if suffix in SUBTITLES:
            yield from _read_subtitles(file, path)
        elif suffix in readers:
            yield from readers[suffix](file)
        else:
            known = ", ".join([*readers, *SUBTITLES])
            raise InputError(f"{path}: its ending says no form of captions; known are {known}")


def _read_moments(path: Path) -> Iterator[Record]:
    return read_table(path, {"video", "caption"})


def _read_subtitles(file: Path, root: Path) -> Iterator[Record]:
    """Yields the cues of a file, whose name without its ending is that of the video."""
    name = Path(file.name) if file == root else file.relative_to(root)
    video = Node(str(file), "the video's name", name.with_suffix("").as_posix()).name()
    unit = "line" if file == root else f"{name.as_posix()}: line"
    cues = list(read_cues(read_content(file), is_webvtt=file.suffix.lower() == ".vtt"))
    if not cues:
        yield Record(unit=unit, number=1, source="", video=video, problem="no cue in the file")
    for cue in cues:
        times = {"start_s": cue.start_s, "end_s": cue.end_s}
        yield Record(
            unit=unit,
            number=cue.line,
            source=cue.source,
            value={"video": video, "caption": cue.text, **times},
            video=video,
            problem=cue.problem,
        )
