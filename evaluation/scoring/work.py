"""The units of work of a run, and the files on disk that processes fill unit by unit.

Vectors and scores are in memory-mapped files with a slot for every image, caption or pair. A
finished unit is flushed to disk before its note is written. So a run that is killed at any time
resumes after the last note, and ends with the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import BuildError, EqforgeError, InputError
from eqforge.core.files import storage
from eqforge.evaluation.scoring.batches import Batch, encode_captions, encode_images, score_pairs
from eqforge.evaluation.scoring.index import load_pairs
from eqforge.evaluation.scoring.pictures import (
    Failure,
    Preparation,
    Prepared,
    prepared_batches,
    process_context,
)
from eqforge.models.pretrained import exact_convolutions, torch_threads
from eqforge.models.scorer import DualEncoder, Scorer, is_dual_encoder, sends_preparer
from eqforge.models.spec import load_model
from eqforge.schemas.dataset.reader import Dataset

if TYPE_CHECKING:
    from eqforge.evaluation.scoring.command import ScoreSettings

BATCHES_OF_A_WORKER = 4
"""Minimum number of batches per worker; starting a worker takes as long as preparing them."""


def caption_unit(settings: ScoreSettings) -> int:
    return 16 * settings.caption_batch


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Job:
    """The work of one process."""

    folder: Path
    dataset: Dataset
    batches: Sequence[Batch]
    caption_units: Sequence[int]
    captions: Sequence[str]
    images: int
    device: str
    settings: ScoreSettings


def note_name(kind: str, unit: int) -> str:
    return f"{kind}-{unit:06d}.json"


def done(folder: Path) -> set[str]:
    return {path.name for path in (folder / "done").glob("*.json")}


def read_failures(folder: Path) -> list[Failure]:
    notes = (path.read_bytes() for path in sorted((folder / "done").glob("*.json")))
    found = [one for note in notes for one in msgspec.json.decode(note, type=list[Failure])]
    return sorted(found, key=lambda failure: failure.image)


def _finish(folder: Path, kind: str, unit: int, failures: list[Failure], *maps: Any) -> None:
    for mapped in maps:
        if mapped is not None:
            mapped.flush()
    place = str(folder / "done" / note_name(kind, unit))
    storage.write_bytes(place, msgspec.json.encode(failures))


def run_job(job: Job, scorer: Scorer) -> Iterator[str]:
    """Do the work of one process; yield the name of each unit's note once it is written."""
    import torch

    kind = job.device.partition(":")[0]
    autocast: Any = contextlib.nullcontext()
    if job.settings.autocast is not None:
        autocast = torch.autocast(kind, dtype=torch.bfloat16)
    try:
        with torch_threads(1 if kind == "cpu" else None), exact_convolutions(), autocast:
            if is_dual_encoder(scorer):
                yield from _encode_captions(job, scorer)
            yield from _go_through_images(job, scorer)
    except torch.OutOfMemoryError as error:
        raise BuildError(
            f"{job.device} ran out of memory. Lower --image-batch, --caption-batch or "
            "--pair-batch, and choose a different --output. These settings can change the last "
            "bits of a score"
        ) from error


def _encode_captions(job: Job, scorer: DualEncoder) -> Iterator[str]:
    size = caption_unit(job.settings)
    for unit in job.caption_units:
        part = slice(unit * size, (unit + 1) * size)
        found = encode_captions(scorer, job.captions[part], job.settings.caption_batch)
        vectors = make_map(job.folder, "caption_vectors", (len(job.captions), found.shape[1]))
        vectors[part] = found
        _finish(job.folder, "captions", unit, [], vectors)
        yield note_name("captions", unit)


def _go_through_images(job: Job, scorer: Scorer) -> Iterator[str]:
    if not job.batches:
        return
    sends = sends_preparer(scorer)
    preparation = Preparation(
        dataset=job.dataset,
        batches=job.batches,
        prepare=scorer.preparer if sends_preparer(scorer) else scorer.prepare,
        reads_pixels=scorer.reads_pixels,
        max_pixels=job.settings.max_pixels,
    )
    workers = min(job.settings.workers, len(job.batches) // BATCHES_OF_A_WORKER) if sends else 0
    take = _Vectors(job, scorer) if is_dual_encoder(scorer) else _Scores(job, scorer)
    failures: list[Failure] = []
    batches = prepared_batches(preparation, workers, job.settings.prefetch, job.device)
    for number, prepared in enumerate(batches):
        failures += [*prepared.failures, *(take(prepared) if prepared.images else ())]
        last = number + 1 == len(job.batches) or job.batches[number + 1].unit != prepared.unit
        if last:
            _finish(job.folder, "images", prepared.unit, failures, take.map)
            failures = []
            yield note_name("images", prepared.unit)


class _Vectors:
    def __init__(self, job: Job, scorer: Scorer) -> None:
        self.map: Any = None
        self._job, self._scorer = job, scorer

    def __call__(self, prepared: Prepared) -> Iterator[Failure]:
        job = self._job
        found = encode_images(self._scorer, prepared.inputs, job.settings.image_batch)
        vectors = _stacked(self._scorer, found)
        if self.map is None:
            self.map = make_map(job.folder, "image_vectors", (job.images, vectors.shape[1]))
        self.map[prepared.images] = vectors
        for image, vector in zip(prepared.images, vectors, strict=True):
            if not np.isfinite(vector).all():
                yield Failure(image=image, reason="not_finite", detail="the image's vector")


def _stacked(scorer: Scorer, found: Sequence[Any]) -> NDArray[np.float32]:
    vectors = [np.asarray(vector, dtype=np.float32) for vector in found]
    shapes = sorted({vector.shape for vector in vectors})
    if len(shapes) > 1 or len(shapes[0]) != 1:
        raise InputError(
            f"{scorer.identity.model}: expected vectors of equal length for all images, found "
            f"arrays of shape {' and '.join(map(str, shapes))}"
        )
    return np.stack(vectors)


class _Scores:
    def __init__(self, job: Job, scorer: Scorer) -> None:
        self.map = open_map(job.folder, "values")
        self._job, self._scorer, self._pairs = job, scorer, load_pairs(job.folder)

    def __call__(self, prepared: Prepared) -> Iterator[Failure]:
        settings, captions = self._job.settings, self._job.captions
        states = encode_images(self._scorer, prepared.inputs, settings.image_batch)
        found = score_pairs(
            self._scorer, prepared.images, states, self._pairs, captions, settings.pair_batch
        )
        for image, logits in zip(prepared.images, found, strict=True):
            start = self._pairs.starts[image]
            self.map[start : start + len(logits)] = logits
        return iter(())


_PAGE = 4096


def make_map(folder: Path, name: str, shape: tuple[int, ...]) -> Any:
    """Memory-map a float32 file; create it, with zeros, if it is missing."""
    path = folder / f"{name}.npy"
    if not path.exists():
        temporary = folder / f".{name}-{uuid.uuid4().hex}.npy"
        np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float32, shape=shape).flush()
        # Allocated up front: writing to a mapped page on a full disk kills the process silently.
        with open(temporary, "r+b") as stream:
            size = temporary.stat().st_size
            if sys.platform == "linux":
                os.posix_fallocate(stream.fileno(), 0, size)
            for start in range(0, 0 if sys.platform == "linux" else size, _PAGE):
                stream.seek(start)
                page = stream.read(_PAGE)
                stream.seek(start)
                stream.write(page)
        # Only one of several processes creates it: link, unlike rename, never replaces a file.
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
        temporary.unlink()
    return open_map(folder, name)


def open_map(folder: Path, name: str, mode: str = "r+") -> Any:
    mapped: NDArray[np.float32] = np.lib.format.open_memmap(folder / f"{name}.npy", mode=mode)
    return mapped


def share(job: Job, devices: Sequence[str]) -> list[Job]:
    units = sorted({batch.unit for batch in job.batches})
    of_unit = {unit: place % len(devices) for place, unit in enumerate(units)}
    return [
        dataclasses.replace(
            job,
            device=device,
            batches=[batch for batch in job.batches if of_unit[batch.unit] == place],
            caption_units=job.caption_units[place :: len(devices)],
        )
        for place, device in enumerate(devices)
    ]


def run_processes(jobs: Sequence[Job], show: Callable[[Iterable[str]], None]) -> None:
    """Run jobs in parallel; if one fails, stop the others.

    Args:
      show: called with the names of the finished units' notes, earlier runs included.
    """
    context = process_context()
    problems: Any = context.SimpleQueue()
    # Not daemons: they start their own workers.
    processes = [context.Process(target=_run, args=(job, problems), daemon=False) for job in jobs]
    for process in processes:
        process.start()
    try:
        while any(process.exitcode is None for process in processes):
            if any(process.exitcode not in (None, 0) for process in processes):
                break
            show(done(jobs[0].folder))
            time.sleep(0.2)
    finally:
        for process in processes:
            if process.exitcode is None:
                process.terminate()
            process.join()
    if not problems.empty():
        raise problems.get()
    if ended := [process.exitcode for process in processes if process.exitcode != 0]:
        raise BuildError(
            f"a scoring process stopped early with exit code {ended[0]}; run the same command "
            "again to resume"
        )


def _run(job: Job, problems: Any) -> None:
    try:
        for _ in run_job(job, load_model(job.settings.model, job.device)):
            pass
    except (EqforgeError, OSError) as error:
        problems.put(error)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # the parent reports it
