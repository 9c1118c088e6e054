"""Times a model: one image with one caption at a time, then batches of growing size."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import read_pixels
from eqforge.evaluation.efficiency.clock import seconds_of, spread, synchroniser
from eqforge.evaluation.efficiency.items import Item
from eqforge.evaluation.efficiency.result import BatchSpeed
from eqforge.models.scorer import Picture, Scorer

STAGES = ("decode", "prepare", "model")


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """How times are measured.

    Attributes:
      device: the model's device, as torch names it.
      warm_up: uncounted runs before the items, and before every batch size.
      repeats: counted runs of every batch size.
      batches: sizes of batches, ascending.
      max_pixels: images with more pixels are skipped.
      seed, resamples: settings of the bootstrap.
    """

    device: str
    warm_up: int
    repeats: int
    batches: tuple[int, ...]
    max_pixels: int
    seed: int
    resamples: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ready:
    """Prepared images with a caption each, ready for the model."""

    inputs: list[Any]
    captions: list[str]


def time_items(
    scorer: Scorer, items: Sequence[Item], protocol: Protocol
) -> tuple[dict[str, list[float]], Ready, Counter[str]]:
    """Times each image with its caption by itself, after a warm-up on the first ones.

    Args:
      scorer: the model.
      items: the pairs to time, each once.
      protocol: how to time.

    Returns:
      The seconds of each stage of STAGES, one per item; the prepared items; and the number of
      unusable items by error.

    Raises:
      InputError: no item can be used.
    """
    wait = synchroniser(protocol.device)
    seconds: dict[str, list[float]] = {stage: [] for stage in STAGES}
    ready, failures = Ready(inputs=[], captions=[]), Counter[str]()
    warm = items[: protocol.warm_up]
    for number, item in enumerate([*warm, *items]):
        try:
            times, prepared = _time_one(scorer, item, protocol, wait)
        except ValueError as error:  # a broken image, or one the model cannot take
            failures[type(error).__name__] += number >= len(warm)
            continue
        if number >= len(warm):
            for stage, found in zip(STAGES, times, strict=True):
                seconds[stage].append(found)
            ready.inputs.append(prepared)
            ready.captions.append(item.caption)
    if not ready.inputs:
        raise InputError(f"not one of {len(items)} images could be used: {dict(failures)}")
    return seconds, ready, +failures


def _time_one(scorer: Scorer, item: Item, protocol: Protocol, wait: Any) -> tuple[list[float], Any]:
    kept: dict[str, Any] = {"pixels": None}

    def decoded() -> None:
        if scorer.reads_pixels:
            kept["pixels"] = read_pixels(item.image, protocol.max_pixels)

    def prepared() -> None:
        kept["input"] = scorer.prepare(Picture(key=item.image_id, pixels=kept["pixels"]))

    def matched() -> None:
        run_batch(scorer, [kept["input"]], [item.caption])

    return [seconds_of(action, wait) for action in (decoded, prepared, matched)], kept["input"]


def run_batch(scorer: Scorer, inputs: Sequence[Any], captions: Sequence[str]) -> None:
    """Runs the model on prepared images, each with its caption, and discards the scores."""
    rows = np.arange(len(inputs), dtype=np.int64)
    scorer.match(scorer.encode_images(inputs), captions, np.stack([rows, rows], axis=1))


def sweep(scorer: Scorer, ready: Ready, protocol: Protocol) -> tuple[list[BatchSpeed], str | None]:
    """Times batches of growing size until GPU memory is exhausted.

    Args:
      scorer: the model.
      ready: images and captions; they are repeated where a batch is larger.
      protocol: how to time.

    Returns:
      The speed of every size, and why larger ones are missing, or None.
    """
    import torch

    found: list[BatchSpeed] = []
    try:
        found.extend(_speeds(scorer, ready, protocol, found))
    except torch.OutOfMemoryError:
        if not found:
            raise
        return found, f"out of memory at a batch of {_next(protocol, found)}"
    return found, None


def _next(protocol: Protocol, found: Sequence[BatchSpeed]) -> int:
    return protocol.batches[len(found)]


def _speeds(
    scorer: Scorer, ready: Ready, protocol: Protocol, found: Sequence[BatchSpeed]
) -> Iterator[BatchSpeed]:
    wait = synchroniser(protocol.device)
    for batch in protocol.batches[len(found) :]:
        places = [place % len(ready.inputs) for place in range(batch)]
        inputs = [ready.inputs[place] for place in places]
        captions = [ready.captions[place] for place in places]
        _reset_peak(protocol.device)
        seconds = [
            seconds_of(lambda i=inputs, c=captions: run_batch(scorer, i, c), wait)  # type: ignore[misc]
            for _ in range(protocol.warm_up + protocol.repeats)
        ][protocol.warm_up :]
        times = spread(seconds, protocol.resamples, protocol.seed)
        yield BatchSpeed(
            batch=batch,
            seconds=times,
            per_second=batch / times.median,
            peak_memory_mib=_peak_mib(protocol.device),
        )


def _reset_peak(device: str) -> None:
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def _peak_mib(device: str) -> float | None:
    if not device.startswith("cuda"):
        return None
    import torch

    return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
