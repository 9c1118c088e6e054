"""Reads the records of a file of captioned moments, in any of the forms that people have.

The ending of the file chooses: JSON lines, a JSON array, CSV, TSV, SubRip or WebVTT. A folder holds
subtitles, or is one of Hugging Face's. What a record says is not looked at here.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.sources.hugging_face import FORMS, row_folder
from eqforge.sources.record_files import (
    Record,
    read_content,
    read_json,
    read_json_lines,
    read_table,
)
from eqforge.sources.subtitle_files import ENDINGS, Subtitles, subtitles_of
from eqforge.sources.subtitles import read_cues


def moment_files(path: Path, language: str | None = None) -> list[Path]:
    """Returns the files of captions that a path names: itself, or those of a folder.

    Args:
      path: a file or folder.
      language: of subtitles; see subtitles_of.

    Raises:
      InputError: the folder holds none, or both subtitles and tables; a video has several
        subtitles, or a language is asked for and there are none.
    """
    rows, subtitles = row_folder(path), subtitles_of(path, language)
    if rows is not None and subtitles:
        raise InputError(
            f"{path}: holds both {rows.files[0].name} and subtitles, such as "
            f"{subtitles[0].file.name}; put one of them into a folder of its own"
        )
    if path.is_dir() and not subtitles and rows is None:
        raise InputError(
            f"{path}: no captions in this folder; expected subtitles ({' or '.join(ENDINGS)}), "
            f"{FORMS}; or name a file"
        )
    if language is not None and not subtitles:
        raise InputError(
            f"--subtitle-language {language}: {path} is no file or folder of subtitles"
        )
    if rows is not None:
        return rows.files
    return [each.file for each in subtitles] or [path]


def read_records(path: Path, language: str | None = None) -> Iterator[Record]:
    """Yields the records of a file or of a folder; see moment_files.

    Raises:
      InputError: the ending is unknown, or a file cannot be read as what it is named.
    """
    (first, *_) = moment_files(path, language)
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        ".jsonl": read_json_lines,
        ".ndjson": read_json_lines,
        ".json": read_json,
        ".csv": _read_moments,
        ".tsv": _read_moments,
    }
    if (rows := row_folder(path)) is not None:
        yield from rows.rows("video")
    elif first.suffix.lower() in ENDINGS:
        for each in subtitles_of(path, language):
            yield from _read_subtitles(each, path)
    elif first.suffix.lower() in readers:
        yield from readers[first.suffix.lower()](first)
    else:
        known = ", ".join([*readers, *ENDINGS])
        raise InputError(f"{path}: its ending says no form of captions; known are {known}")


def _read_moments(path: Path) -> Iterator[Record]:
    return read_table(path, {"video", "caption"})


def _read_subtitles(found: Subtitles, root: Path) -> Iterator[Record]:
    """Yields the cues of a file."""
    file, video = found.file, found.video
    unit = "line" if file == root else f"{file.relative_to(root).as_posix()}: line"
    if found.problem:
        yield Record(unit=unit, number=1, source="", video=video, problem=found.problem)
        return
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
