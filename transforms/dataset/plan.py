"""Selects what to build, and passes the plan to the workers as files."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import is_sampled
from eqforge.core.visible import nearest
from eqforge.schemas.records.frames import Clip

RECORDS_PER_FILE = 200
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The part of a plan to build; the rest is neither built nor counted.

    Attributes:
      only: ids of the samples to build; empty means all.
      limit: maximum number of candidate pairs, from the first videos of the plan.
      sample: the share of the videos in [0, 1], chosen by a hash of the video's id.
    """

    only: tuple[str, ...] = ()
    limit: int | None = None
    sample: float = 1.0


def is_wanted(name: str, only: tuple[str, ...]) -> bool:
    """Return True if `only` is empty, or names this record, one of its samples or its parent."""
    return not only or any(
        name == other or other.startswith(f"{name}/") or name.startswith(f"{other}/")
        for other in only
    )


def select(clips: Iterable[Clip], selection: Selection) -> Iterator[Clip]:
    """Yield the selected clips with the selected pairs and only the frames that these need."""
    wanted = set(selection.only)
    left = selection.limit
    seen: list[str] = []
    videos: dict[str, str] = {}
    for clip in clips:
        if selection.only:
            seen += (pair.sample_id for pair in clip.pairs)
            first = next((pair.sample_id for pair in clip.pairs), "")
            videos |= {clip.clip_id: first, clip.root: first}
        if selection.only and not any(pair.sample_id in wanted for pair in clip.pairs):
            continue
        if not is_sampled(clip.clip_id, selection.sample) or left == 0:
            continue
        pairs = [pair for pair in clip.pairs if not selection.only or pair.sample_id in wanted]
        chosen = pairs if left is None else pairs[:left]
        left = None if left is None else left - len(chosen)
        wanted -= {pair.sample_id for pair in chosen}
        if len(chosen) < len(clip.pairs):
            needed = {name for pair in chosen for name in (pair.frame_0_id, pair.frame_1_id)}
            frames = tuple(frame for frame in clip.frames if frame.frame_id in needed)
            clip = replace(clip, pairs=tuple(chosen), frames=frames)
        yield clip
    if wanted:
        name = min(wanted)
        if example := videos.get(name):
            raise InputError(
                f"--only {name} is a video; pass ids of its samples, such as {example}"
            )
        raise InputError(no_sample(name, seen))


def select_whole(
    groups: Iterable[tuple[str, tuple[T, ...]]], selection: Selection, id_of: Callable[[T], str]
) -> Iterator[tuple[T, ...]]:
    """Yield the selected groups of records, whole; the limit counts records.

    Args:
      groups: (key, records); groups are sampled by a hash of the key.
      selection: names records or samples made from them.
    """
    missing, number = set(selection.only), 0
    seen: list[str] = []
    for key, group in groups:
        ids = [id_of(record) for record in group] if selection.only else []
        seen += ids
        named = {
            name for name in selection.only for each in ids if f"{name}/".startswith(f"{each}/")
        }
        if selection.only and not named:
            continue
        if not is_sampled(key, selection.sample):
            continue
        if selection.limit is not None and number >= selection.limit:
            continue
        number += len(group)
        missing -= named
        yield group
    if missing:
        raise InputError(no_sample(min(missing), seen))


def no_sample(name: str, known: Iterable[str]) -> str:
    hint = nearest(name, known)
    return (
        f"--only {name}: after --limit and --sample, the plan contains no sample with this id"
        f"{hint or '; `eqforge plan` and `eqforge inspect` show ids'}"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFiles:
    """A plan on disk, with further counts such as frames and pairs."""

    files: tuple[str, ...]
    records: int
    counts: dict[str, int]


def write_plan(
    records: Iterable[Any], folder: str, measure: Callable[[Any], dict[str, int]]
) -> PlanFiles:
    """Write a plan as JSON lines below a folder, a few hundred records per file, in plan order.

    Args:
      measure: returns a record's contribution to the plan's counts.
    """
    from more_itertools import batched

    files: list[str] = []
    counts: Counter[str] = Counter()
    number = 0
    for chunk in batched(records, RECORDS_PER_FILE):
        files.append(storage.join(folder, f"plan-{len(files):05d}.jsonl"))
        storage.write_bytes(files[-1], b"".join(msgspec.json.encode(r) + b"\n" for r in chunk))
        number += len(chunk)
        for record in chunk:
            counts.update(measure(record))
    return PlanFiles(files=tuple(files), records=number, counts=dict(counts))


def copy_plan(plan: PlanFiles, folder: str) -> PlanFiles:
    copies = tuple(storage.join(folder, file.rpartition("/")[2]) for file in plan.files)
    for file, copy in zip(plan.files, copies, strict=True):
        storage.write_bytes(copy, storage.read_bytes(file))
    return replace(plan, files=copies)


def read_plan(kind: type[T], files: Iterable[str]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    lines = (line for url in files for line in storage.read_bytes(url).splitlines())
    return map(decoder.decode, lines)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRecord:
    """A record's place in a plan file: the bytes [start, stop)."""

    file: str
    start: int
    stop: int


def list_plan_file(url: str) -> Iterator[PlannedRecord]:
    start = 0
    for line in storage.read_bytes(url).splitlines(keepends=True):
        yield PlannedRecord(file=url, start=start, stop=start + len(line))
        start += len(line)


def read_planned_record(kind: type[T], planned: PlannedRecord) -> T:
    line = storage.read_range(planned.file, planned.start, planned.stop)
    return msgspec.json.decode(line, type=kind)
