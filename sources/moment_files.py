"""Read the records of a file of captions with times, in any common format.

The suffix decides: JSON lines, a JSON array, the JSON object of a published dataset
(dense_captions.py), CSV, TSV, SubRip, WebVTT, or text whose lines begin with times. A folder holds
subtitles and such texts, or is one of Hugging Face's. The content of records is not checked here.

Both are named after their videos: `talk.srt`, or `talk.en-US.vtt` by yt-dlp. Only the name
determines the language, so that ids do not depend on other folders. Subtitle libraries skip an
unreadable cue; here it is returned with its problem.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, listed
from eqforge.core.visible import series
from eqforge.schemas.records.frames import VIDEO_SUFFIXES
from eqforge.sources.dense_captions import read_dense_file, spread
from eqforge.sources.hugging_face import FORMS, row_folder
from eqforge.sources.moments import UNCLEAR, split_line
from eqforge.sources.record_files import (
    Record,
    read_content,
    read_json,
    read_json_lines,
    read_table,
)

TEXT = ".txt"
SUBTITLES = (".srt", ".vtt")
ENDINGS = (*SUBTITLES, TEXT)
_PROBED_LINES, _LONGEST_PROBED = 20, 2000
# The languages of ISO 639-1, and those of three letters that YouTube and players of films use.
_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da
de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz
ia id ie ig ii ik io is it iu iw ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li
ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa
pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th
ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
ara bho ceb chi ces ckb cze dan deu doi dut ell eng fil fin fra fre ger gom gre haw heb hin hmn
hun ilo ind ita jpn kor kri lus mai mni nld nor nso pol por ron rum rus spa swe tha tur ukr und
vie yue zho
"""
_LANGUAGES = frozenset(_CODES.split())
_TAG = re.compile(r"(?P<video>.+)\.(?P<tag>(?P<language>[A-Za-z]{2,3})(?:[-_][A-Za-z0-9_]{1,20})*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subtitles:
    """A subtitle file.

    Attributes:
        video: name of its video, without a suffix.
        language: tag in its name, such as `en-US`, or empty.
        problem: why it is not read; else empty.
    """

    file: Path
    video: str
    language: str = ""
    problem: str = ""


def subtitles_of(path: Path, language: str | None) -> list[Subtitles]:
    """Return one subtitle file or text per video: the path itself, or the files below a folder.

    Subtitles win over a text.

    Args:
        language: the wanted one; `en` includes `en-US`. Without it each video must have one file.
            Names without a language match any.
    """
    if not path.is_dir():
        files = [path] if path.suffix.lower() in ENDINGS else []
    else:
        files = _caption_files(path)
    found = sorted((_named(file, path) for file in files), key=attrgetter("video"))
    subtitled = {each.video for each in found if each.file.suffix.lower() in SUBTITLES}
    found = [e for e in found if e.file.suffix.lower() != TEXT or e.video not in subtitled]
    chosen: list[Subtitles] = []
    problems: list[str] = []
    for video, group in groupby(found, key=attrgetter("video")):
        wanted = list(_wanted(list(group), language))
        if len(wanted) > 1:
            names = series(each.file.name for each in wanted)
            problems.append(f"the video {video!r} has the subtitle files {names}")
        chosen += wanted
    if problems:
        example = min((each.language for each in chosen if each.language), default="en")
        raise InputError(
            f"{path}: {listed(problems)}. Choose a language, as in --subtitle-language {example}, "
            "or keep only one file per video."
        )
    return sorted(chosen, key=attrgetter("file"))


def _caption_files(folder: Path) -> list[Path]:
    """Return the subtitles in a folder and below, and the texts beside a video or with times.

    Half of the first lines must begin with times, so that tables and notes are no captions.
    """
    paths = sorted(folder.rglob("*"))
    videos = {path.with_suffix("") for path in paths if path.suffix.lower() in VIDEO_SUFFIXES}
    return [
        path
        for path in paths
        if path.suffix.lower() in SUBTITLES
        or (
            path.suffix.lower() == TEXT
            and path.is_file()
            and (path.with_suffix("") in videos or _has_times(path))
        )
    ]


def _has_times(file: Path) -> bool:
    with file.open(encoding="utf-8-sig", errors="replace") as stream:
        lines = list(islice(filter(str.strip, stream), _PROBED_LINES))
    found = [split_line(line.strip()) for line in lines if len(line) <= _LONGEST_PROBED]
    return bool(lines) and 2 * sum(map(bool, found)) >= len(lines)


def _named(file: Path, root: Path) -> Subtitles:
    name = Path(file.name) if file == root else file.relative_to(root)
    video = Node(str(file), "the video's name", name.with_suffix("").as_posix()).name()
    tag = _TAG.fullmatch(Path(video).name)
    if tag is None or tag["language"].lower() not in _LANGUAGES:
        return Subtitles(file=file, video=video)
    return Subtitles(file=file, video=video[: -len(tag["tag"]) - 1], language=tag["tag"])


def _wanted(group: list[Subtitles], language: str | None) -> Iterator[Subtitles]:
    """Yield the files in a language; an exact tag wins over a longer one.

    If no file matches, each has a problem, except a single file whose name has no language.
    """
    if language is None:
        yield from group
        return
    wanted = language.lower().replace("_", "-")
    tags = [each.language.lower().replace("_", "-") for each in group]
    exact = [each for each, tag in zip(group, tags, strict=True) if tag == wanted]
    longer = [each for each, tag in zip(group, tags, strict=True) if tag.startswith(f"{wanted}-")]
    unnamed = [each for each in group if not each.language]
    if found := exact or longer or unnamed:
        yield from found
        return
    languages = ", ".join(sorted(each.language for each in group))
    problem = f"no subtitles in {language!r}; found {languages}"
    yield replace(group[0], problem=problem)


_ARROW = "-->"
_TIME = r"(?:(\d{1,4}):)?([0-5]?\d):([0-5]?\d)(?:[.,](\d{1,3}))?"
_TIMES = re.compile(rf"\s*{_TIME}\s*{_ARROW}\s*{_TIME}(?:\s.*)?")
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")
_OTHER_BLOCKS = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(?:\s|$)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cue:
    """A cue of a subtitle file.

    Attributes:
        line: where it begins in the file, from 1.
        text: on one line, without tags.
        problem: what is wrong with the cue; its times and text are then meaningless.
    """

    line: int
    source: str
    start_s: float = 0.0
    end_s: float = 0.0
    text: str = ""
    problem: str = ""


def read_cues(content: str, is_webvtt: bool) -> Iterator[Cue]:
    """Yield the cues of a file in order, without numbers, positions and tags.

    WebVTT's notes, styles and regions are skipped.

    Args:
        content: lines end with a line feed.
        is_webvtt: WebVTT writes `&` as `&amp;`.
    """
    for number, lines in _blocks(content):
        if not (is_webvtt and _OTHER_BLOCKS.match(lines[0])):
            yield _cue(number, lines, is_webvtt)


def _blocks(content: str) -> Iterator[tuple[int, list[str]]]:
    block: list[str] = []
    for number, line in enumerate([*content.split("\n"), ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _cue(number: int, lines: list[str], is_webvtt: bool) -> Cue:
    source = "\n".join(lines)
    place = next((n for n, line in enumerate(lines[:2]) if _ARROW in line), None)
    if place is None:
        return Cue(line=number, source=source, problem=f"no line has times with {_ARROW}")
    if any(_ARROW in line for line in lines[place + 1 :]):
        problem = "a blank line between two cues is missing"
        return Cue(line=number, source=source, problem=problem)
    times = _TIMES.fullmatch(lines[place])
    if times is None:
        problem = f"times: expected 00:00:01.000 {_ARROW} 00:00:02.500, found {lines[place][:80]!r}"
        return Cue(line=number, source=source, problem=problem)
    text = _MARKUP.sub("", " ".join(lines[place + 1 :]))
    return Cue(
        line=number,
        source=source,
        start_s=_seconds(*times.groups()[:4]),
        end_s=_seconds(*times.groups()[4:]),
        text=" ".join((html.unescape(text) if is_webvtt else text).split()),
    )


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str | None) -> float:
    whole = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
    return float(f"{whole}.{fraction or 0}")


def moment_files(path: Path, language: str | None = None) -> list[Path]:
    rows, subtitles = row_folder(path), subtitles_of(path, language)
    if rows is not None and subtitles:
        raise InputError(
            f"{path} contains both {rows.files[0].name} and subtitles, such as "
            f"{subtitles[0].file.name}; move one of them into a separate folder"
        )
    if path.is_dir() and not subtitles and rows is None:
        raise InputError(
            f"{path}: this folder contains no captions. Pass a file, or a folder with "
            f"subtitles (.srt or .vtt), .txt files with times, {FORMS}."
        )
    if language is not None and not subtitles:
        raise InputError(
            f"--subtitle-language {language}: {path} is not a file or folder of subtitles"
        )
    if rows is not None:
        return rows.files
    return [each.file for each in subtitles] or [path]


def read_records(path: Path, language: str | None = None) -> Iterator[Record]:
    for record in _read_records(path, language):
        yield from spread(record, path.name)


def _read_records(path: Path, language: str | None) -> Iterator[Record]:
    (first, *_) = moment_files(path, language)
    table = partial(read_table, required={"video", "caption"})
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        ".jsonl": read_json_lines,
        ".ndjson": read_json_lines,
        ".json": read_json,
        ".csv": table,
        ".tsv": table,
    }
    if (rows := row_folder(path)) is not None:
        yield from rows.rows("video")
    elif first.suffix.lower() in ENDINGS:
        for each in subtitles_of(path, language):
            yield from _read_subtitles(each, path)
    elif first.suffix.lower() in readers:
        dense = read_dense_file(first) if first.suffix.lower() == ".json" else None
        yield from readers[first.suffix.lower()](first) if dense is None else dense
    else:
        known = series([*readers, *ENDINGS], "or")
        raise InputError(f"{path}: expected a file name that ends in {known}")


def _read_subtitles(found: Subtitles, root: Path) -> Iterator[Record]:
    file, video = found.file, found.video
    unit = "line" if file == root else f"{file.relative_to(root).as_posix()}: line"
    if found.problem:
        yield Record(unit=unit, number=1, source="", video=video, problem=found.problem)
        return
    if file.suffix.lower() == TEXT:
        yield from _read_text(file, unit, video)
        return
    cues = list(read_cues(read_content(file), is_webvtt=file.suffix.lower() == ".vtt"))
    if not cues:
        yield Record(
            unit=unit, number=1, source="", video=video, problem="the file contains no cues"
        )
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


def _read_text(file: Path, unit: str, video: str) -> Iterator[Record]:
    """Yield the lines of a text with times; without any time, the file is one bad record."""
    lines = [line.strip() for line in read_content(file).split("\n")]
    found = [(n, line, split_line(line)) for n, line in enumerate(lines, start=1) if line]
    if not any(parts for _, _, parts in found):
        found = [(1, "", None)]
    for number, line, parts in found:
        place = Record(unit=unit, number=number, source=line, video=video)
        if parts is None:
            yield replace(place, problem=UNCLEAR)
        else:
            value = {"video": video, "timestamp_s": parts[0], "caption": parts[1]}
            yield replace(place, value=value)
