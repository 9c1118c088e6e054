"""Measure a model: one image with one caption at a time, then batches of growing size."""

import heapq
import os
import platform
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import pictures
from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import derive_seed, versions_of
from eqforge.evaluation.efficiency.result import (
    BatchSpeed,
    Efficiency,
    EfficiencySettings,
    spread,
    write_efficiency,
)
from eqforge.evaluation.scoring.index import Task, task_of
from eqforge.evaluation.tables.samples import read_columns
from eqforge.models.pretrained import torch_threads
from eqforge.models.scorer import Picture, Scorer
from eqforge.models.spec import device_of, load_model
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.dataset.shelf import make_shelf

STAGES = ("decode", "prepare", "model")
_PROTOCOL = ("warm_up", "repeats", "batches", "max_pixels", "seed", "resamples")
_LIBRARIES = ("eqforge", "torch", "transformers", "tokenizers", "numpy", "pillow", "pyarrow")
_ASKED = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,persistence_mode"

Action = Callable[[], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """An encoded image and a caption."""

    image_id: str
    image: bytes
    caption: str


Ready = list[tuple[Any, str]]


def measure_efficiency(settings: EfficiencySettings) -> Efficiency:
    dataset = open_dataset(settings.dataset)
    task = task_of(dataset, settings.task)
    device = device_of(settings.model) or "cpu"
    scorer = load_model(settings.model, device)
    _check_detector(scorer, settings)
    items = choose_items(dataset, task, settings.items, settings.seed)
    with torch_threads(settings.threads):
        before = clocks(device)
        seconds, ready, failures = time_items(scorer, items, settings, device)
        speeds, stopped = sweep(scorer, ready, settings, device)
        after, described = clocks(device), machine(device)
    if settings.detector_s is not None:
        seconds["detector"] = [settings.detector_s] * len(ready)
    total = [sum(parts) for parts in zip(*seconds.values(), strict=True)]
    found = Efficiency(
        model=scorer.identity,
        dataset=dataset.manifest.dataset,
        dataset_sha256=dataset.sha256,
        machine=described,
        clocks={"before": before, "after": after},
        settings={
            "task": task.name,
            "items": len(items),
            **{name: getattr(settings, name) for name in _PROTOCOL},
            "decoder": pictures.VERSION,
        },
        detector_s=settings.detector_s,
        stages={
            stage: spread(times, settings.resamples, settings.seed)
            for stage, times in (*seconds.items(), ("total", total))
        },
        seconds=total,
        sweep=speeds,
        best_batch=max(speeds, key=lambda speed: speed.per_second).batch,
        stopped=stopped,
        failures=dict(sorted(failures.items())),
        warnings=list(_warnings(before["load_average"][0], len(total))),
    )
    write_efficiency(settings.output, found)
    return found


def _check_detector(scorer: Scorer, settings: EfficiencySettings) -> None:
    if scorer.reads_pixels and settings.detector_s is not None:
        raise InputError(
            f"--detector-s: {scorer.identity.name} reads pixels, so its whole time is measured; "
            "leave --detector-s out"
        )
    if not scorer.reads_pixels and settings.detector_s is None:
        raise InputError(
            f"{scorer.identity.name} reads features that a detector computed beforehand; pass "
            "the detector's seconds per image with --detector-s, so that times can be compared"
        )


def _warnings(load: float, items: int) -> Iterator[str]:
    cores = len(os.sched_getaffinity(0))
    if load > cores / 2:
        yield (
            f"the machine was already busy, with a load of {load:.1f} on {cores} cores; measure "
            "again when it is idle"
        )
    if items < 30:
        yield f"{items} times are too few for a reliable interval"


def choose_items(dataset: Dataset, task: Task, count: int, seed: int) -> list[Item]:
    """Return images with a caption each, in an order that depends only on the seed and the ids.

    Captions need not describe their images, as this does not change the time. The n-th column of
    images is paired with the n-th of captions.
    """

    def rank(item: tuple[str, str]) -> tuple[int, tuple[str, str]]:
        return derive_seed(seed, "\n".join(item), "efficiency", 1), item

    chosen = heapq.nsmallest(count, set(_named(dataset, task)), key=rank)
    images = make_shelf(dataset).read([image for image, _ in chosen])
    items = [
        Item(image_id=image, image=images[image], caption=caption)
        for image, caption in chosen
        if image in images
    ]
    if not items:
        raise InputError(f"{dataset.folder}: contains no image with a caption")
    return items


def _named(dataset: Dataset, task: Task) -> Iterator[tuple[str, str]]:
    if task.images[0].table != task.captions[0].table:
        ids, texts = (
            sorted(set(filter(None, read_columns(dataset, one.table, [one.name])[one.name])))
            for one in (task.images[0], task.captions[0])
        )
        yield from zip(ids, cycle(texts), strict=False)
        return
    for image, caption in zip(task.images, task.captions, strict=False):
        columns = read_columns(dataset, image.table, [image.name, caption.name])
        rows = zip(columns[image.name], columns[caption.name], strict=True)
        yield from ((key, text) for key, text in rows if key and text)


def seconds_of(
    action: Action, wait: Action, clock: Callable[[], float] = time.perf_counter
) -> float:
    wait()
    start = clock()
    action()
    wait()
    return clock() - start


def _synchroniser(device: str) -> Action:
    name = device.partition(":")[0]
    if name not in ("cuda", "mps", "xpu"):
        return lambda: None
    import torch

    kind = getattr(torch, name)
    return lambda: kind.synchronize() if device == "mps" else kind.synchronize(device)


def time_items(
    scorer: Scorer, items: Sequence[Item], settings: EfficiencySettings, device: str
) -> tuple[dict[str, list[float]], Ready, Counter[str]]:
    """Time each item alone after a warm-up; return seconds by stage, prepared items, and errors."""
    wait = _synchroniser(device)
    seconds: dict[str, list[float]] = {stage: [] for stage in STAGES}
    ready: Ready = []
    failures: Counter[str] = Counter()
    warm = items[: settings.warm_up]
    for number, item in enumerate([*warm, *items]):
        try:
            times, prepared = _time_one(scorer, item, settings.max_pixels, wait)
        except ValueError as error:  # broken, or unsuitable for the model
            failures[type(error).__name__] += number >= len(warm)
            continue
        if number >= len(warm):
            for stage, found in zip(STAGES, times, strict=True):
                seconds[stage].append(found)
            ready.append((prepared, item.caption))
    if not ready:
        raise InputError(f"none of the {len(items)} images could be used: {dict(failures)}")
    return seconds, ready, +failures


def _time_one(scorer: Scorer, item: Item, max_pixels: int, wait: Action) -> tuple[list[float], Any]:
    kept: dict[str, Any] = {"pixels": None}

    def decoded() -> None:
        if scorer.reads_pixels:
            kept["pixels"] = read_pixels(item.image, max_pixels)

    def prepared() -> None:
        kept["input"] = scorer.prepare(Picture(key=item.image_id, pixels=kept["pixels"]))

    def matched() -> None:
        run_batch(scorer, [kept["input"]], [item.caption])

    return [seconds_of(action, wait) for action in (decoded, prepared, matched)], kept["input"]


def run_batch(scorer: Scorer, inputs: Sequence[Any], captions: Sequence[str]) -> None:
    rows = np.arange(len(inputs), dtype=np.int64)
    scorer.match(scorer.encode_images(inputs), captions, np.stack([rows, rows], axis=1))


def sweep(
    scorer: Scorer, ready: Ready, settings: EfficiencySettings, device: str
) -> tuple[list[BatchSpeed], str | None]:
    """Time batches of growing size until GPU memory is exhausted.

    Returns the speed of every size, and why larger sizes are missing, or None.
    """
    import torch

    wait, on_gpu = _synchroniser(device), device.startswith("cuda")
    found: list[BatchSpeed] = []
    for batch in settings.batches:
        inputs, captions = map(list, zip(*islice(cycle(ready), batch), strict=True))
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        try:
            seconds = [
                seconds_of(lambda i=inputs, c=captions: run_batch(scorer, i, c), wait)  # type: ignore[misc]
                for _ in range(settings.warm_up + settings.repeats)
            ][settings.warm_up :]
        except torch.OutOfMemoryError:
            if not found:
                raise
            return found, f"out of memory with a batch of {batch}"
        times = spread(seconds, settings.resamples, settings.seed)
        speed, peak = batch / times.median, None
        if on_gpu:
            peak = round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
        found.append(BatchSpeed(batch=batch, seconds=times, per_second=speed, peak_memory_mib=peak))
    return found, None


def machine(device: str) -> dict[str, Any]:
    import torch

    names = _in_proc("cpuinfo", "model name")
    sizes = _in_proc("meminfo", "MemTotal")
    found: dict[str, Any] = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": versions_of(*_LIBRARIES),
        "cpu": names[0] if names else platform.machine(),
        "cpu_cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(sizes[0].removesuffix(" kB")) / 2**20, 1) if sizes else None,
        "torch_threads": torch.get_num_threads(),
        "device": device,
    }
    if device.startswith("cuda"):
        found["gpu"] = torch.cuda.get_device_name(device)
        cudnn: Any = torch.backends.cudnn
        found["cuda"], found["cudnn"] = torch.version.cuda, cudnn.version()
        found["tf32"] = torch.backends.cuda.matmul.allow_tf32
    return found


def clocks(device: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "load_average": list(os.getloadavg()),
        "cpu_mhz": [float(mhz) for mhz in _in_proc("cpuinfo", "cpu MHz")],
        "cpu_governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }
    if device.startswith("cuda"):
        found["nvidia_smi"] = _nvidia(device)
    return found


def _in_proc(file: str, name: str) -> list[str]:
    return re.findall(rf"^{name}\s*:\s*(.+)$", _text(f"/proc/{file}") or "", re.MULTILINE)


def _nvidia(device: str) -> dict[str, str] | None:
    number = device.partition(":")[2] or "0"
    command = ["nvidia-smi", f"--id={number}", f"--query-gpu={_ASKED}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(zip(_ASKED.split(","), done.stdout.strip().split(", "), strict=False))


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None
