"""Run a model on batches of fixed shape, so that a score depends only on its image and caption.

The last bits of a row's result can depend on the number of rows and on the padding of captions.
So all batches of one kind have the same number of rows; captions are padded to the next multiple
of 16 tokens, and incomplete batches by repeating the last row, whose extra results are dropped.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.scoring.index import Pairs
from eqforge.models.scorer import DualEncoder, Scorer, Vectors, counts_tokens
from eqforge.schemas.dataset.reader import Dataset

LENGTH_STEP = 16

Item = TypeVar("Item")


def full(items: Sequence[Item], size: int) -> Sequence[Item]:
    """Return the items, padded to `size` by repeating the last; a tensor stays a tensor."""
    short = size - len(items)
    if short <= 0:
        return items
    if isinstance(items, list):
        return [*items, *[items[-1]] * short]
    import torch

    tensor: Any = items
    filled: Any = torch.cat([tensor, tensor[-1:].expand(short, *tensor.shape[1:])])
    return filled


def by_length(
    scorer: Scorer, captions: Sequence[str], batch_size: int
) -> Iterator[tuple[NDArray[np.int64], int | None]]:
    """Yield for each batch the indices of its captions and the number of tokens to pad to.

    Captions of the same padded length stay in order. If the scorer counts no tokens, the length is
    None and captions stay in order.
    """
    if not counts_tokens(scorer):
        for start in range(0, len(captions), batch_size):
            yield np.arange(start, min(start + batch_size, len(captions))), None
        return
    counts = np.array(scorer.count_tokens(captions), dtype=np.int64)
    lengths = -(-counts // LENGTH_STEP) * LENGTH_STEP
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        for start in range(0, len(places), batch_size):
            yield places[start : start + batch_size], length


def _check(scorer: Scorer, fits: bool, kind: str, count: int, found: Any) -> None:
    """Check the shape of a batch's result; the model may be a user's own."""
    if not fits:
        of = "captions" if kind == "vectors" else "pairs"
        raise InputError(
            f"{scorer.identity.model}: expected {count} {kind} for {count} {of}, found an "
            f"array of shape {found.shape}"
        )


def encode_captions(scorer: DualEncoder, captions: Sequence[str], batch_size: int) -> Vectors:
    """Encode each caption once [captions, d]."""
    found: list[tuple[NDArray[np.int64], Vectors]] = []
    for places, length in by_length(scorer, captions, batch_size):
        read = full([captions[place] for place in places], batch_size)
        padded = {} if length is None else {"length": length}
        every = np.asarray(scorer.encode_captions(read, **padded))
        _check(scorer, every.ndim == 2 and len(every) == len(read), "vectors", len(read), every)
        vectors = every[: len(places)]
        found.append((places, vectors.astype(np.float32, copy=False)))
    answer = np.empty((len(captions), found[0][1].shape[1]), np.float32)
    for places, vectors in found:
        answer[places] = vectors
    return answer


def encode_images(scorer: Scorer, inputs: Any, batch_size: int) -> Sequence[Any]:
    read = full(inputs, batch_size)
    found = scorer.encode_images(read)
    if len(found) != len(read):
        raise InputError(
            f"{scorer.identity.model}: expected {len(read)} encoded images for {len(read)} images, "
            f"found {len(found)}"
        )
    return found[: len(inputs)]


def score_pairs(
    scorer: Scorer,
    images: Sequence[int],
    states: Sequence[Any],
    pairs: Pairs,
    captions: Sequence[str],
    batch_size: int,
) -> list[NDArray[np.float32]]:
    """Score the images of one batch with all of their captions, each pair once.

    Returns the logits of each image's captions, in the order of `pairs`.
    """
    caption_numbers = [pairs.captions_of(image) for image in images]
    rows = np.repeat(np.arange(len(images)), [len(numbers) for numbers in caption_numbers])
    numbers = np.concatenate([*caption_numbers, np.empty(0, np.int64)])
    distinct, which = np.unique(numbers, return_inverse=True)
    texts = [captions[number] for number in distinct]
    logits = np.empty(len(numbers), np.float32)
    for places, length in _pair_batches(scorer, texts, which, batch_size):
        chosen = np.asarray(full(places.tolist(), batch_size))
        read = [texts[number] for number in which[chosen]]
        index = np.stack([rows[chosen], np.arange(len(chosen))], axis=1)
        padded = {} if length is None else {"length": length}
        found = np.asarray(scorer.match(states, read, index, **padded).logits)
        _check(scorer, found.shape == (len(index),), "logits", len(index), found)
        logits[places] = found[: len(places)]
    return np.split(logits, np.cumsum([len(one) for one in caption_numbers])[:-1])


def _pair_batches(
    scorer: Scorer, texts: Sequence[str], which: NDArray[np.int64], batch_size: int
) -> Iterator[tuple[NDArray[np.int64], int | None]]:
    """Batch pairs as `by_length` batches captions; each distinct text is tokenized once."""
    lengths = np.empty(len(texts), dtype=np.int64)
    for places, length in by_length(scorer, texts, max(len(texts), 1)):
        lengths[places] = -1 if length is None else length
    of_pairs = lengths[which]
    for length in np.unique(of_pairs).tolist():
        places = np.flatnonzero(of_pairs == length)
        for start in range(0, len(places), batch_size):
            yield places[start : start + batch_size], None if length < 0 else length


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Piece:
    """The requested images of one row group."""

    path: str
    group: int
    rows: NDArray[np.int64]
    images: NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """The locations of one batch's images."""

    unit: int
    pieces: tuple[Piece, ...]


def cut_batches(
    dataset: Dataset, numbers: dict[str | None, int], batch_images: int, unit_batches: int
) -> tuple[list[Batch], list[str]]:
    """Cut images into batches and units, numbered from 0; also return ids that do not exist."""
    batches: list[Batch] = []
    seen = np.zeros(len(numbers), dtype=bool)
    pieces: list[Piece] = []
    room = batch_images

    def close() -> None:
        nonlocal room
        if pieces:
            batches.append(Batch(unit=len(batches) // unit_batches, pieces=tuple(pieces)))
        pieces.clear()
        room = batch_images

    for path, group, rows, found in _wanted(dataset, numbers):
        if seen[found].any() or len(np.unique(found)) < len(found):
            raise InputError(f"{dataset.url(path)}: an image appears twice in the table of images")
        seen[found] = True
        start = 0
        while start < len(rows):
            part = slice(start, start + room)
            pieces.append(Piece(path=path, group=group, rows=rows[part], images=found[part]))
            start += len(pieces[-1].rows)
            room -= len(pieces[-1].rows)
            if room == 0:
                close()
    close()
    missing = [image for image, number in numbers.items() if not seen[number]]
    return batches, sorted(str(image) for image in missing)


def _wanted(
    dataset: Dataset, numbers: dict[str | None, int]
) -> Iterator[tuple[str, int, NDArray[np.int64], NDArray[np.int64]]]:
    for file in dataset.files("images"):
        for group, table in enumerate(dataset.groups(file.path, ["image_id"])):
            ids = table.column("image_id").to_pylist()
            found = np.array([numbers.get(image, -1) for image in ids], dtype=np.int64)
            rows = np.flatnonzero(found >= 0)
            yield file.path, group, rows, found[rows]
