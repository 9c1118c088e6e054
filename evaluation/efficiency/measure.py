"""Measure a model: one image with one caption, or one question, at a time; then larger batches."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import cycle, islice
from typing import Any, TypeVar

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import pictures
from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import derive_seed
from eqforge.core.ranges import usable_cores
from eqforge.evaluation.efficiency.detector import Detector
from eqforge.evaluation.efficiency.machine import Action, clocks, machine, seconds_of, synchroniser
from eqforge.evaluation.efficiency.result import (
    BatchSpeed,
    Efficiency,
    EfficiencySettings,
    spread,
    write_efficiency,
)
from eqforge.evaluation.scoring.answer import inputs_of, questions_of
from eqforge.evaluation.scoring.index import Task, task_of
from eqforge.evaluation.tables.samples import read_columns
from eqforge.models.answerers import BlipGrounder, load_answerer
from eqforge.models.pretrained import exact_convolutions, torch_threads
from eqforge.models.scorer import Picture, Scorer
from eqforge.models.spec import device_of, load_model, parse_spec
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.dataset.shelf import make_shelf
from eqforge.schemas.records.questions import VLUE, Question
from eqforge.schemas.records.scores import Identity
from eqforge.sources.vlue import read_answer_list

STAGES = ("decode", "prepare", "model")
ANSWERER = "answer"
"""KIND of a model that answers a task of VLUE, as `eqforge answer` runs it."""
MISSING = "missing image"
"""The key of a failure: the dataset does not contain the image."""
_PROTOCOL = ("warm_up", "repeats", "batches", "max_pixels", "seed", "resamples")

T = TypeVar("T")
Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """An encoded image and a caption."""

    image_id: str
    image: bytes
    caption: str


Ready = list[tuple[Any, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """Seconds by stage of each item, the speed of batches, and the errors of unused images."""

    seconds: dict[str, list[float]]
    sweep: list[BatchSpeed]
    stopped: str | None
    failures: Counter[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """A loaded model, and the function that times it on the items of a task."""

    identity: Identity
    device: str
    task: str
    items: int
    detector: Detector
    time: Callable[[], Times]


def measure_efficiency(settings: EfficiencySettings) -> Efficiency:
    dataset = open_dataset(settings.dataset)
    is_answerer = settings.model.startswith(f"{ANSWERER}:")
    model = (_load_answerer if is_answerer else _load_scorer)(dataset, settings)
    with torch_threads(settings.threads), exact_convolutions():
        before = clocks(model.device)
        times = model.time()
        after, described = clocks(model.device), machine(model.device)
    total = [sum(parts) for parts in zip(*times.seconds.values(), strict=True)]
    found = Efficiency(
        model=model.identity,
        dataset=dataset.manifest.dataset,
        dataset_sha256=dataset.sha256,
        machine=described,
        clocks={"before": before, "after": after},
        settings={
            "task": model.task,
            "items": model.items,
            **{name: getattr(settings, name) for name in _PROTOCOL},
            "decoder": pictures.VERSION,
        },
        detector_s=settings.detector_s,
        detector=model.detector.name,
        stages={
            stage: spread(found, settings.resamples, settings.seed)
            for stage, found in (*times.seconds.items(), ("total", total))
        },
        seconds=total,
        sweep=times.sweep,
        best_batch=max(times.sweep, key=lambda speed: speed.per_second).batch,
        stopped=times.stopped,
        failures=dict(sorted(times.failures.items())),
        warnings=list(_warnings(before["load_average"][0], len(total))),
    )
    write_efficiency(settings.output, found)
    return found


def _load_scorer(dataset: Dataset, settings: EfficiencySettings) -> Loaded:
    task = task_of(dataset, settings.task)
    device = device_of(settings.model) or "cpu"
    scorer = load_model(settings.model, device)
    detector = Detector(settings, scorer.identity, scorer.reads_pixels, device)
    items, missing = choose_items(dataset, task, settings.items, settings.seed)

    wait, stages = synchroniser(device), (*STAGES, *detector.stages)

    def time_one(item: Item) -> tuple[list[float], tuple[Any, str]]:
        times, prepared = _time_one(scorer, item, settings.max_pixels, wait)
        return [*times, *detector.seconds([item.image], wait)], (prepared, item.caption)

    def time_scorer() -> Times:
        seconds, ready, failures = time_each(items, time_one, stages, settings.warm_up)
        failures += Counter({MISSING: missing})
        speeds, stopped = sweep(scorer, ready, settings, device)
        return Times(seconds=seconds, sweep=speeds, stopped=stopped, failures=failures)

    return Loaded(
        identity=scorer.identity,
        device=device,
        task=task.name,
        items=len(items) + missing,
        detector=detector,
        time=time_scorer,
    )


def _load_answerer(dataset: Dataset, settings: EfficiencySettings) -> Loaded:
    """Load a model that answers a task of VLUE; it answers one question at a time."""
    usual = {each.name: each.default for each in fields(settings)}
    for name in ("batches", "repeats"):
        if getattr(settings, name) != usual[name]:
            flag = name.replace("_", "-")
            raise InputError(f"--{flag} cannot be used with --model {ANSWERER}; omit --{flag}")
    options = frozenset({"precision", "device", "list", "features"})
    spec = parse_spec(settings.model, {ANSWERER: options})
    if settings.task is None:
        raise InputError(f"--task: expected one of {', '.join(VLUE)}")
    task = settings.task
    questions = questions_of(dataset, task)
    listed = spec.path("list")
    if listed is not None and task != "vqa":
        raise InputError(f"list={listed} applies only to --task vqa, not {task}; omit it")
    answers = () if listed is None else read_answer_list(listed)
    model, is_chat = load_answerer(spec.weights(), task, answers, spec.path("features"))
    if isinstance(model, BlipGrounder):
        raise InputError(
            f"--model {settings.model}: eqforge cannot time models that choose regions; choose a "
            "different model"
        )
    detector = Detector(settings, model.identity, model.reads_pixels, spec.device)
    chosen = heapq.nsmallest(
        settings.items,
        questions,
        key=lambda one: derive_seed(settings.seed, one[0]["sample_id"], "efficiency", 1),
    )
    images = make_shelf(dataset).read({key for _, one in chosen for key in one.images})
    sample_size = len(chosen)
    chosen = [one for one in chosen if images.keys() >= {*one[1].images}]
    if not chosen:
        raise InputError(
            f"{dataset.folder} contains no images for the questions; build the dataset with "
            "--images FOLDER"
        )
    wait, stages = synchroniser(spec.device), ("decode", "answer", *detector.stages)

    def time_one(item: tuple[dict[str, Any], Question]) -> tuple[list[float], None]:
        row, question = item
        read: list[Any] = []

        def decode() -> None:
            read.extend(
                read_pixels(images[key], settings.max_pixels) if model.reads_pixels else key
                for key in question.images
            )

        def answer() -> None:
            model.answer(*inputs_of(task, row, question, read, is_chat=is_chat))

        times = [seconds_of(action, wait) for action in (decode, answer)]
        return [*times, *detector.seconds([images[key] for key in question.images], wait)], None

    def time_answers() -> Times:
        seconds, _, failures = time_each(chosen, time_one, stages, settings.warm_up)
        failures += Counter({MISSING: sample_size - len(chosen)})
        one = spread(seconds["answer"], settings.resamples, settings.seed)
        peak = _peak_memory_mib(spec.device)
        speed = BatchSpeed(batch=1, seconds=one, per_second=1 / one.median, peak_memory_mib=peak)
        stopped = "larger batches were not timed, because the model answers one question at a time"
        return Times(seconds=seconds, sweep=[speed], stopped=stopped, failures=failures)

    return Loaded(
        identity=model.identity,
        device=spec.device,
        task=task,
        items=sample_size,
        detector=detector,
        time=time_answers,
    )


def _warnings(load: float, items: int) -> Iterator[str]:
    cores = usable_cores()
    if load > cores / 2:
        yield (
            f"the machine was already busy, with a load of {load:.1f} on {cores} cores; measure "
            "again when it is idle"
        )
    if items < 30:
        yield f"{items} timed items are too few for a reliable interval"


def choose_items(dataset: Dataset, task: Task, count: int, seed: int) -> tuple[list[Item], int]:
    """Return images with a caption each, and how many of the chosen images are missing.

    The order depends only on the seed and the ids.

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
        raise InputError(f"{dataset.folder} contains no captioned images")
    return items, len(chosen) - len(items)


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


def time_each(
    items: Sequence[T],
    time_one: Callable[[T], tuple[list[float], Made]],
    stages: Sequence[str],
    warm_up: int,
) -> tuple[dict[str, list[float]], list[Made], Counter[str]]:
    """Time each item after a warm-up; return seconds by stage, what was made, and errors."""
    seconds: dict[str, list[float]] = {stage: [] for stage in stages}
    results: list[Made] = []
    failures: Counter[str] = Counter()
    example = ""
    warm = items[:warm_up]
    for number, item in enumerate([*warm, *items]):
        try:
            times, one = time_one(item)
        except ValueError as error:  # broken, or unsuitable for the model
            failures[type(error).__name__] += number >= len(warm)
            example = str(error)
            continue
        if number >= len(warm):
            for stage, found in zip(stages, times, strict=True):
                seconds[stage].append(found)
            results.append(one)
    if not results:
        reasons = ", ".join(f"{count:,} {name}" for name, count in (+failures).items())
        raise InputError(f"none of the {len(items)} items could be timed: {reasons} ({example})")
    return seconds, results, +failures


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

    wait, on_gpu = synchroniser(device), device.startswith("cuda")
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
            return found, f"batches of {batch} or more were not timed, because memory ran out"
        times = spread(seconds, settings.resamples, settings.seed)
        speed, peak = batch / times.median, _peak_memory_mib(device)
        found.append(BatchSpeed(batch=batch, seconds=times, per_second=speed, peak_memory_mib=peak))
    return found, None


def _peak_memory_mib(device: str) -> float | None:
    import torch

    if not device.startswith("cuda"):
        return None
    return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
