"""Chooses what is timed: images of a dataset, each with one caption."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

from eqforge.core.errors import InputError
from eqforge.core.identity import derive_seed
from eqforge.evaluation.scoring.tasks import Task
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.shelf import make_shelf


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """An encoded image and a caption."""

    image_id: str
    image: bytes
    caption: str


def choose_items(dataset: Dataset, task: Task, count: int, seed: int) -> list[Item]:
    """Returns images with a caption each, in an order that depends only on the seed and the ids.

    Captions need not describe their images: it makes no difference to the time.

    Args:
      dataset: a dataset with images.
      task: names the columns of images and captions; the first image column is paired with
        the first caption column, the second with the second.
      count: maximum number of items.
      seed: of the draw.

    Raises:
      InputError: there is no image with a caption.
    """
    chosen = heapq.nsmallest(
        count, set(_named(dataset, task)), key=lambda one: (_rank(one, seed), one)
    )
    images = make_shelf(dataset).read([image for image, _ in chosen])
    items = [
        Item(image_id=image, image=images[image], caption=caption)
        for image, caption in chosen
        if image in images
    ]
    if not items:
        raise InputError(f"{dataset.folder}: has no image with a caption")
    return items


def _rank(item: tuple[str, str], seed: int) -> int:
    return derive_seed(seed, "\n".join(item), "efficiency", 1)


def _named(dataset: Dataset, task: Task) -> Iterator[tuple[str, str]]:
    if task.images[0].table != task.captions[0].table:
        texts = sorted(set(_values(dataset, task.captions[0].table, task.captions[0].name)))
        ids = sorted(set(_values(dataset, task.images[0].table, task.images[0].name)))
        yield from zip(ids, cycle(texts), strict=False)
        return
    for image, caption in zip(task.images, task.captions, strict=False):
        for batch in dataset.batches(image.table, [image.name, caption.name], 20_000):
            columns = (batch.column(one.name).to_pylist() for one in (image, caption))
            rows = zip(*columns, strict=True)
            yield from ((key, text) for key, text in rows if key and text)


def _values(dataset: Dataset, table: str, name: str) -> Iterator[str]:
    for batch in dataset.batches(table, [name], 20_000):
        yield from (value for value in batch.column(name).to_pylist() if value)
