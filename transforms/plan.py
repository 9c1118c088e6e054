"""Selects what is to be built, and passes the plan to the workers as files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import apache_beam as beam

from eqforge.schemas import storage
from eqforge.schemas.clips import Clip, PairCandidate, from_json_lines, to_json_line
from eqforge.schemas.errors import InputError
from eqforge.schemas.identity import is_sampled

CLIPS_PER_FILE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which part of a plan is built; the rest are no candidates and stand in no books.

    Attributes:
      only: ids of the samples to build; empty means all.
      limit: at most so many candidate pairs, from the first videos of the plan.
      sample: the share of the videos in [0, 1], chosen by a hash of the video's id.
    """

    only: tuple[str, ...] = ()
    limit: int | None = None
    sample: float = 1.0


def select(clips: Iterable[Clip], selection: Selection) -> Iterator[Clip]:
    """Yields the selected clips with the selected pairs and just the frames these need.

    Raises:
      InputError: a sample named in `only` is not in the plan.
    """
    wanted = set(selection.only)
    left = selection.limit
    for clip in clips:
        if selection.only and not any(pair.sample_id in wanted for pair in clip.pairs):
            continue
        if not is_sampled(clip.clip_id, selection.sample) or left == 0:
            continue
        pairs = [pair for pair in clip.pairs if not selection.only or pair.sample_id in wanted]
        chosen = pairs if left is None else pairs[:left]
        left = None if left is None else left - len(chosen)
        wanted -= {pair.sample_id for pair in chosen}
        yield clip if len(chosen) == len(clip.pairs) else _narrow(clip, chosen)
    if wanted:
        raise InputError(
            f"--only: the plan has no sample {min(wanted)!r}; `eqforge plan` shows what it has"
        )


def _narrow(clip: Clip, pairs: list[PairCandidate]) -> Clip:
    needed = {frame_id for pair in pairs for frame_id in (pair.frame_0_id, pair.frame_1_id)}
    frames = tuple(frame for frame in clip.frames if frame.frame_id in needed)
    return replace(clip, pairs=tuple(pairs), frames=frames)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanTotals:
    """What a plan holds: its files, and counts of videos, frames, candidate pairs and rejects."""

    files: tuple[str, ...]
    videos: int
    frames: int
    pairs: int
    rejects: int


def write_plan(clips: Iterable[Clip], folder: str) -> PlanTotals:
    """Writes a plan as JSON lines below a folder, a few hundred clips a file, in plan order."""
    files: list[str] = []
    videos = frames = pairs = rejects = 0
    for chunk in _chunks(clips):
        files.append(storage.join(folder, f"clips-{len(files):05d}.jsonl"))
        storage.write_bytes(files[-1], b"".join(map(to_json_line, chunk)))
        videos += len(chunk)
        frames += sum(len(clip.frames) for clip in chunk)
        pairs += sum(len(clip.pairs) for clip in chunk)
        rejects += sum(len(clip.rejects) for clip in chunk)
    return PlanTotals(
        files=tuple(files), videos=videos, frames=frames, pairs=pairs, rejects=rejects
    )


def _chunks(clips: Iterable[Clip]) -> Iterator[list[Clip]]:
    chunk: list[Clip] = []
    for clip in clips:
        chunk.append(clip)
        if len(chunk) == CLIPS_PER_FILE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def read_plan_file(url: str) -> Iterator[Clip]:
    """Yields the clips of one file of a plan."""
    return from_json_lines(storage.read_bytes(url).splitlines())


@dataclass
class ReadPlan(beam.PTransform):
    """Reads the clips of a plan and deals them out to the workers."""

    files: tuple[str, ...]

    def expand(self, root: beam.Pipeline) -> beam.PCollection[Clip]:
        return (
            root
            | "PlanFiles" >> beam.Create(self.files, reshuffle=False)
            | "ReadPlanFile" >> beam.FlatMap(read_plan_file)
            | "DealOut" >> beam.Reshuffle()
        )
