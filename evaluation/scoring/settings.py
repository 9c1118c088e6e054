"""What is scored, and how: the settings of `eqforge score`, and the columns of each task."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_text_lines
from eqforge.core.files.pictures import MAX_PIXELS
from eqforge.core.ranges import check_workers
from eqforge.core.visible import nearest

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ScoreSettings:
    """Score the images and captions of a dataset with a model: each image and caption once."""

    dataset: tyro.conf.Positional[str]
    """Folder or URL of the dataset."""

    model: str
    """KIND:MODEL, where MODEL is a folder that transformers saved, or ID@COMMIT on the Hugging Face
    hub. Dual encoders: clip, siglip, align, altclip, groupvit, flava, blip-itc, open-clip. Fusion
    encoders: blip-itm, blip2-itm, vilt, lxmert, oscar. A published matrix: matrix. Your own:
    python:MODULE:FACTORY. Options follow after commas, such as ,precision=bfloat16."""

    output: Path
    """Folder the scores are written into; a run that was stopped goes on there."""

    task: str | None = None
    """What is scored: pairs, hard-positives, foils, retrieval-perturbations, simat or retrieval; by
    default what the dataset's tables are made for."""

    devices: tuple[str, ...] = ()
    """Devices as torch names them, such as cuda:0 cuda:1; each has a process. The default is the
    model's own option, or the CPU."""

    processes: int = 1
    """Processes of each device; on a CPU each computes with one thread."""

    workers: int = 2
    """Processes that decode and prepare images, for each process that computes; 0 for none. Fewer
    are started where there is little to prepare."""

    prefetch: int = 2
    """Batches that each worker prepares ahead."""

    image_batch: int = 64
    """Images encoded together; with the model this bounds the memory."""

    caption_batch: int = 128
    """Captions encoded together."""

    pair_batch: int = 64
    """Images and captions that a fusion encoder reads together."""

    autocast: Literal["bf16"] | None = None
    """Compute in bfloat16 where torch holds that safe; scores stay in float32."""

    captions: Path | None = None
    """Text file with captions to be encoded as well, a line each, where vectors are written."""

    candidates: Path | None = None
    """Folder of a dual encoder's vectors of the dataset: where everything is compared with
    everything, a fusion encoder reads only what these put first."""

    top: int = 128
    """Captions of each image, and images of each caption, that are candidates."""

    max_pixels: int = MAX_PIXELS
    """Images of more pixels are refused."""

    def __post_init__(self) -> None:
        batches = ("image_batch", "caption_batch", "pair_batch")
        for name in ("processes", "prefetch", *batches, "top", "max_pixels"):
            if getattr(self, name) < 1:
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} {getattr(self, name)}: expected at least 1")
        check_workers(self.workers, least=0)

    def all_devices(self) -> tuple[str, ...]:
        from eqforge.models.spec import device_of

        own = self.devices or (device_of(self.model) or "cpu",)
        return tuple(device for device in own for _ in range(self.processes))

    def more_captions(self) -> tuple[str, ...]:
        if self.captions is None:
            return ()
        lines = map(str.strip, read_text_lines(self.captions))
        return tuple(dict.fromkeys(filter(None, lines)))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column of image ids or texts, with its table."""

    table: str
    name: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Which images are scored with which captions.

    Attributes:
      crossed: whether all images are compared with all captions; otherwise the images of a row
        of `samples` with the captions of the same row, in the order of the columns.
    """

    name: str
    images: tuple[Column, ...]
    captions: tuple[Column, ...]
    crossed: bool

    def tables(self) -> Mapping[str, tuple[str, ...]]:
        """Columns by table, tables and columns in order."""
        found: dict[str, dict[str, None]] = {}
        for column in (*self.images, *self.captions):
            found.setdefault(column.table, {})[column.name] = None
        return {table: tuple(names) for table, names in found.items()}


def _of(table: str, *names: str) -> tuple[Column, ...]:
    return tuple(Column(table=table, name=name) for name in names)


TASKS: Final[Mapping[str, Task]] = {
    task.name: task
    for task in (
        Task(
            name="pairs",
            images=_of("samples", "image_0_id", "image_1_id"),
            captions=_of("samples", "caption_0", "caption_1"),
            crossed=False,
        ),
        Task(
            name="hard-positives",
            images=_of("samples", "image_id"),
            captions=_of("samples", "caption", "hard_positive", "hard_negative"),
            crossed=False,
        ),
        Task(
            name="foils",
            images=_of("samples", "image_id"),
            captions=_of("samples", "caption", "hard_negative"),
            crossed=False,
        ),
        Task(
            name="retrieval-perturbations",
            images=_of("captions", "image_id"),
            captions=(*_of("captions", "caption"), *_of("samples", "perturbed_caption")),
            crossed=True,
        ),
        Task(
            name="simat",
            images=_of("gallery", "image_id"),
            captions=(
                *_of("captions", "caption", "subject", "relation", "object"),
                *_of("samples", "source_word", "target_word"),
            ),
            crossed=True,
        ),
        Task(
            name="retrieval",
            images=_of("retrieval", "image_id"),
            captions=_of("retrieval", "caption"),
            crossed=True,
        ),
    )
}
"""Tasks by name. A dataset's task is the first whose columns it has."""


def task_of(dataset: Dataset, name: str | None = None) -> Task:
    """Return the named task, or by default the one that the dataset's tables are made for."""
    if name is not None and name not in TASKS:
        known = ", ".join(TASKS)
        raise InputError(f"--task {name}: expected one of {known}{nearest(name, TASKS)}")
    wanted = TASKS.values() if name is None else [TASKS[name]]
    found = {table: set(dataset.columns(table)) for table in dataset.manifest.tables}
    for task in wanted:
        tables = task.tables()
        if all(found.get(table, set()).issuperset(names) for table, names in tables.items()):
            if not dataset.manifest.tables.get("images"):
                raise InputError(f"{dataset.folder}: the dataset holds no images; {dataset.remedy}")
            return task
    dataset.check_samples()
    if "question" in found.get("samples", ()):
        raise InputError(
            f"{dataset.folder}: holds questions, which a model of images and captions does not "
            "answer; `eqforge export --format lmms-eval` or vlmevalkit has them asked, and "
            "`eqforge metrics` measures the answers"
        )
    shown = "; ".join(f"{table}: {', '.join(sorted(found[table]))}" for table in sorted(found))
    raise InputError(
        f"{dataset.folder}: the dataset {dataset.manifest.dataset!r} has no images and captions to "
        f"be scored for {' or '.join(task.name for task in wanted)}; its columns are {shown}"
    )
