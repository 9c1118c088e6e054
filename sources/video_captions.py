"""Read a user's own captioned videos.

A file of captioned videos is JSON lines, one caption with its time per line:

    {"video": "kitchen/take1.mp4", "start_s": 2.0, "end_s": 5.5, "caption": "cut the onion"}
    {"video": "kitchen/take1.mp4", "timestamp_s": 9.25, "caption": "fry the onion", "id": "fry"}

A CSV or TSV file has these fields as columns, and empty cells are ignored. A JSON file is an array
of these objects. A Hugging Face folder has them as columns (see hugging_face.py; `file_name` in
metadata is `video`). Subtitles are one file per video, named after it, with or without a language;
each cue gives a time and a caption.

Times are seconds, or text such as `0:01`, `0:01-0:03` or `frame 240` (see moments.py). `frame` may
replace a time. All captions of a video must be in seconds, or all in frames. A text beside the
video has one line per caption, after its time; for published datasets see dense_captions.py.

`video` is a path below the videos folder. Optional fields: `id` (unique within the video; made from
times and caption by default), `split` (default `all`) and `licence`; a line without the last two
takes them from other lines of its video. Any other field is kept as annotation.

The order of the lines never matters. Invalid lines are rejected; too many of them raise an error
that lists the first.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, name_of, names_of, shown
from eqforge.core.identity import sha256_hex
from eqforge.core.visible import near_name
from eqforge.schemas.records.frames import VIDEO_SUFFIXES
from eqforge.schemas.records.scores import compact_json
from eqforge.sources.captioned_videos import CaptionedSegment, CaptionedVideo, RefusedRecord
from eqforge.sources.moment_files import read_records
from eqforge.sources.moments import FORMS, Moment, parse_moment
from eqforge.sources.record_files import TIMES, Record, allowed_bad, problems_listed

FIELDS = ("video", "start_s", "end_s", "timestamp_s", "caption", "id", "split", "licence")
MAX_TIME_S = 10_000_000
"""A third of a year: no video is longer, so larger numbers are not times in seconds."""
MAX_CARRIED_CHARS = 10_000
"""Limit for all other fields of a line, which are repeated in every pair of its frame."""
_WHOLE = re.compile(r"(\d+)\.0+")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """A record of the file: a caption with its time, or its problem."""

    unit: str
    number: int
    digest: str
    video: str = ""
    split: str | None = None
    licence: str | None = None
    times: str | None = None
    """Time unit: `seconds` or `frames`."""
    segment: CaptionedSegment | None = None
    problem: str = ""


def read_captioned_videos(
    path: str | Path, max_bad_share: float = 0.0, language: str | None = None
) -> list[CaptionedVideo]:
    """Return the videos of a user's caption file, sorted by name.

    Args:
        path: the file, or a folder of subtitles or of Hugging Face's `datasets`.
        max_bad_share: share of records, in [0, 1], that may be unreadable.
        language: of subtitles; see moment_files.py.
    """
    path = Path(path)
    lines = _one_name([_read_line(path.name, record) for record in read_records(path, language)])
    lines.sort(key=lambda line: line.video)
    videos = [list(group) for _, group in groupby(lines, key=lambda line: line.video)]
    agreed = [_agreed(group) for group in videos]
    _check_share(path, list(chain(*agreed)), max_bad_share)
    return [_video(group) for group in agreed]


def _one_name(lines: Sequence[_Line]) -> list[_Line]:
    """Name a video by its file if other lines add the extension; `a` is `a.mp4`."""
    files: dict[str, set[str]] = {}
    for line in lines:
        if line.video.lower().endswith(VIDEO_SUFFIXES):
            files.setdefault(line.video.rpartition(".")[0], set()).add(line.video)
    full = {
        stem: names.pop()
        for stem, names in files.items()
        if len(names) == 1 and not stem.lower().endswith(VIDEO_SUFFIXES)
    }
    return [replace(line, video=full.get(line.video, line.video)) for line in lines]


def _check_share(path: str | Path, lines: Sequence[_Line], max_bad_share: float) -> None:
    bad = [(line.unit, line.number, line.problem) for line in lines if line.problem]
    if len(bad) == len(lines):
        raise InputError(f"{path} contains no captioned frames{problems_listed(bad)}")
    if len(bad) > (allowed := allowed_bad(max_bad_share, len(lines))):
        raise InputError(
            f"{path}: {len(bad):,} of {len(lines):,} records cannot be used as captioned frames, "
            f"but --max-error-rate {max_bad_share:g} allows "
            f"{f'{allowed:,}' if allowed else 'none'}. The errors{problems_listed(bad)}"
        )


def _read_line(file: str, record: Record) -> _Line:
    known = _Line(
        unit=record.unit,
        number=record.number,
        digest=sha256_hex(record.source.encode(errors="surrogatepass"))[:16],
        video=record.video,
        problem=record.problem,
    )
    if record.problem:
        return known
    where = record.where
    try:
        line = Node(file, where, record.value)
        known = replace(known, video=line["video"].name())
        split, licence = line.get("split"), line.get("licence")
        moment = _times(line)
        return replace(
            known,
            times="frames" if moment.in_frames else "seconds",
            split=None if split is None else split.name(),
            licence=None if licence is None else licence.name(),
            segment=_segment(line, moment),
        )
    except InputError as error:
        # Without the line number a reject does not depend on the order of the lines.
        problem = str(error).removeprefix(f"{file}: {where}").lstrip(".: ")
        return replace(known, problem=problem)


def _segment(line: Node, moment: Moment) -> CaptionedSegment:
    own_id, caption = line.get("id"), line["caption"].line()
    if moment.in_frames:
        frame_index = int(moment.start + moment.end) // 2
        times, start_s, end_s = f"frames{moment.start:06.0f}-{moment.end:06.0f}", 0.0, 0.0
    else:
        frame_index, start_s, end_s = None, moment.start, moment.end
        times = f"{_milliseconds(start_s)}-{_milliseconds(end_s)}"
    return CaptionedSegment(
        segment_id=f"{times}-{sha256_hex(caption.encode())[:8]}"
        if own_id is None
        else own_id.name(),
        start_s=start_s,
        end_s=end_s,
        frame_index=frame_index,
        caption=caption,
        annotation=_carried(line),
    )


def _carried(line: Node) -> dict[str, str]:
    """Return the fields that eqforge does not know; values that are not text as JSON."""
    carried = {
        name: node.text() if isinstance(node.value, str) else compact_json(node.value)
        for name, node in line.items()
        if name not in FIELDS and not (name == "frame" and _is_by_frame(line))
    }
    if "segment" in carried:
        line["segment"].fail("a different field name, because eqforge itself writes `segment`")
    if sum(map(len, carried.values())) > MAX_CARRIED_CHARS:
        line.fail(f"at most {MAX_CARRIED_CHARS:,} characters in total in the additional fields")
    return carried


def _is_by_frame(line: Node) -> bool:
    return all(line.get(name) is None for name in TIMES) and line.get("frame") is not None


def _times(line: Node) -> Moment:
    if _is_by_frame(line):
        return _frames(line["frame"])
    at = line.get("timestamp_s")
    if at is None:
        if line.get("start_s") is None and line.get("end_s") is None:
            line.fail("timestamp_s, or start_s and end_s, or frame", _named(line))
        start, end = _moment(line["start_s"]), _moment(line["end_s"])
        moment = start.to(end)
        if moment is None:
            line["end_s"].fail(
                f"one time in the same unit as start_s = {shown(line['start_s'].value)}"
            )
        if not 0 <= moment.start <= moment.end <= MAX_TIME_S:
            first = shown(line["start_s"].value)
            line["end_s"].fail(f"a time not before start_s = {first}, from 0 to {MAX_TIME_S:,} s")
        return moment
    if line.get("start_s") is not None or line.get("end_s") is not None:
        line.fail("either timestamp_s or start_s and end_s, not both")
    moment = _moment(at)
    if not 0 <= moment.start <= moment.end <= MAX_TIME_S:
        at.fail(f"a time or range between 0 and {MAX_TIME_S:,} s, with the start before the end")
    return moment


def _moment(time: Node) -> Moment:
    """Return the time or range of a field: a number, a text, or an array of two."""
    if isinstance(time.value, str):
        return parse_moment(time.value) or time.fail(FORMS)
    if isinstance(time.value, list | tuple):
        bounds = [_moment(bound) for bound in time.elements()]
        pair = bounds[0].to(bounds[1]) if len(bounds) == 2 else None
        return pair or time.fail("an array with the start and end time")
    return Moment(start=time.number(), end=time.number())


def _frames(field: Node) -> Moment:
    parts = field.value if isinstance(field.value, list | tuple) else [field.value]
    text = _WHOLE.sub(r"\1", "-".join(str(part) for part in parts)).casefold()
    moment = parse_moment(f"frame {text.removeprefix('frame')}")
    if moment is None or not moment.in_frames or moment.start > moment.end:
        field.fail("a frame number, counted from 0, or a range such as 240-300")
    return moment


def _named(line: Node) -> str:
    """Return the fields of a line without a time, and the names of missing ones."""
    names = list(line.mapping())
    found = names_of(sorted(names, key=str))
    near = {name: near_name(str(name), TIMES) for name in names if name not in FIELDS}
    meant = " and ".join(
        f"{there} instead of {name_of(name)}" for name, there in near.items() if there
    )
    named = f"only {found}" if found else "no fields"
    return f"{named}; did you mean {meant}?" if meant else named


def _milliseconds(time_s: float) -> str:
    return f"{round(time_s * 1000):08d}"


def _agreed(lines: Sequence[_Line]) -> list[_Line]:
    """Give all lines of a video its split and licence; lines that differ get a problem.

    Frames cannot be ordered among seconds before the video is read, so they count as different.
    """
    common = {
        column: _commonest(getattr(line, column) for line in lines if not line.problem)
        for column in ("split", "licence", "times")
    }
    agreed = []
    for line in lines:
        for column, value in common.items():
            line = _contradicted(line, column, value)
        agreed.append(replace(line, split=common["split"], licence=common["licence"]))
    return agreed


def _contradicted(line: _Line, column: str, common: str | None) -> _Line:
    value = getattr(line, column)
    if line.problem or value in (None, common):
        return line
    problem = f"{column}: expected {common!r}, as in the video's other lines, found {value!r}"
    return replace(line, segment=None, problem=problem)


def _commonest(values: Iterable[str | None]) -> str | None:
    """Return the most frequent text, on a tie the first in sort order; None without any."""
    counts = Counter(value for value in values if value is not None)
    return min(counts, key=lambda value: (-counts[value], value), default=None)


def _video(lines: Sequence[_Line]) -> CaptionedVideo:
    """Return a video; of several records with one id, the first in order of content counts."""
    moments = sorted((line for line in lines if line.segment is not None), key=_content)
    segments: dict[str, CaptionedSegment] = {}
    rejected = [(line, "bad_segment", line.problem) for line in lines if line.problem]
    for line in moments:
        assert line.segment is not None
        if segments.setdefault(line.segment.segment_id, line.segment) is not line.segment:
            rejected.append((line, "duplicate_moment", line.segment.segment_id))
    times: Counter[str] = Counter()
    records = []
    for line, reason, detail in rejected:  # named by their text; repeated texts get a number
        times[line.digest] += 1
        again = f".{times[line.digest]}" if times[line.digest] > 1 else ""
        name = f"line-{line.digest}{again}"
        records.append(RefusedRecord(record_id=name, reason=reason, detail=detail))
    first = lines[0]
    return CaptionedVideo(
        video_id=first.video,
        video=first.video,
        split=first.split or "all",
        licence=first.licence,
        segments=tuple(segments.values()),
        refused=tuple(records),
    )


def _content(line: _Line) -> tuple[int, float, float, str, str, str]:
    segment = line.segment
    assert segment is not None
    carried, frame = compact_json(segment.annotation), segment.frame_index or 0
    return frame, segment.start_s, segment.end_s, segment.caption, carried, line.digest
