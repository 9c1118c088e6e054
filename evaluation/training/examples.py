"""Training examples, images with their captions, read from a dataset's tables; and their batches.

Batches follow from (units, seed, step), so a killed run resumes with the same batch.
Examples are pairs of images with a caption each, captions with hard texts in the same or in
separate rows (`training-captions`), or plain captions (`captions` of `retrieval-perturbations`).
"""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.identity import derive_seed
from eqforge.schemas.dataset.reader import Dataset

PAIRS = ("sample_id", "split", "caption_0", "caption_1", "image_0_id", "image_1_id")
TRIPLES = ("sample_id", "split", "image_id", "caption", "hard_positive", "hard_negative")
TEXTS = ("caption_id", "split", "image_id", "role", "text")
CAPTIONS = ("caption_id", "split", "image_id", "caption")
ORDER_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """An image with a true caption, and hard texts if there are any."""

    image_id: str
    caption: str
    hard_positive: str | None = None
    hard_negative: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A match, or the two matches of a pair, which enter a batch together; ordered by id."""

    unit_id: str
    matches: tuple[Match, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """All units of a dataset, sorted by id, and the number of records left out by reason."""

    units: list[Unit]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def matches_per_unit(self) -> int:
        return len(self.units[0].matches)

    def image_ids(self) -> list[str]:
        return sorted({match.image_id for unit in self.units for match in unit.matches})

    def count_texts(self, name: str) -> int:
        matches = (match for unit in self.units for match in unit.matches)
        return sum(getattr(match, name) is not None for match in matches)


def read_examples(dataset: Dataset, split: str | None = None) -> Examples:
    left_out: Counter[str] = Counter()
    units = []
    for unit_split, unit_id, matches in _records(dataset, left_out):
        if split is not None and unit_split != split:
            left_out["other_split"] += 1
        elif any(match.image_id is None for match in matches):
            left_out["no_image"] += 1
        else:
            units.append(Unit(unit_id=unit_id, matches=matches))
    units.sort(key=lambda unit: unit.unit_id)
    if not units and left_out["no_image"]:
        raise InputError(
            f"{dataset.folder}: its {left_out['no_image']} captions have no images; build the "
            "dataset with --images FOLDER"
        )
    if not units:
        wanted = "" if split is None else f" in the split {split!r}"
        raise InputError(f"{dataset.folder} contains no samples{wanted} to train on")
    return Examples(units=units, left_out=dict(sorted(left_out.items())))


def _records(
    dataset: Dataset, left_out: Counter[str]
) -> Iterator[tuple[str, str, tuple[Match, ...]]]:
    columns = set(dataset.columns("samples"))
    if columns.issuperset(PAIRS):
        for row in dataset.rows("samples", PAIRS):
            pair = ((row[f"image_{side}_id"], row[f"caption_{side}"]) for side in (0, 1))
            matches = tuple(Match(image_id=image, caption=text) for image, text in pair)
            yield row["split"], row["sample_id"], matches
    elif columns.issuperset(TRIPLES):
        for row in dataset.rows("samples", TRIPLES):
            split, unit_id = row.pop("split"), row.pop("sample_id")
            yield split, unit_id, (Match(**row),)
    elif columns.issuperset(TEXTS):
        yield from _texts(dataset, left_out)
    elif set(dataset.columns("captions")).issuperset(CAPTIONS):
        for row in dataset.rows("captions", CAPTIONS):
            split, unit_id = row.pop("split"), row.pop("caption_id")
            yield split, unit_id, (Match(**row),)
    else:
        raise InputError(
            f"{dataset.folder}: {dataset.manifest.dataset} contains nothing to train on. Pass a "
            "dataset with pairs of images, hard positives, hard negatives, or a table of captions"
        )


def _texts(
    dataset: Dataset, left_out: Counter[str]
) -> Iterator[tuple[str, str, tuple[Match, ...]]]:
    """Join each caption's texts, which may be in different files."""
    found: dict[str, dict[str, Any]] = {}
    for row in dataset.rows("samples", TEXTS):
        known = found.setdefault(row["caption_id"], {"split": row["split"]})
        known["image_id"], known[row["role"]] = row["image_id"], row["text"]
    for caption_id, known in found.items():
        if "original" not in known:
            left_out["no_original"] += 1
            continue
        texts = {role: known.get(role) for role in ("hard_positive", "hard_negative")}
        match = Match(image_id=known["image_id"], caption=known["original"], **texts)
        yield known["split"], caption_id, (match,)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """The n matches of a batch, in order.

    Attributes:
      partners: int64 [n], the index of the other match of a pair; -1 without one.
      excluded: bool [n, n], matches that share an image or a caption; false on the diagonal.
      has_negative, has_positive: bool [n], whether a match has such a hard text.
    """

    matches: tuple[Match, ...]
    partners: NDArray[np.int64]
    excluded: NDArray[np.bool_]
    has_negative: NDArray[np.bool_]
    has_positive: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The batches of a run.

    Attributes:
      batch_size: units per batch; an epoch's remainder opens the next epoch, in a new order.
      exclude_repeats: exclude matches that share an image or a caption as negatives.
    """

    units: Sequence[Unit]
    batch_size: int
    steps: int
    seed: int
    exclude_repeats: bool = True

    @functools.cached_property
    def _orders(self) -> dict[int, list[int]]:
        return {}

    def batch(self, step: int) -> Batch:
        epoch, place = divmod(step, len(self.units) // self.batch_size)
        if epoch not in self._orders:
            self._orders.clear()
            self._orders[epoch] = epoch_order([u.unit_id for u in self.units], self.seed, epoch)
        chosen = self._orders[epoch][place * self.batch_size : (place + 1) * self.batch_size]
        return make_batch([self.units[n] for n in chosen], self.exclude_repeats)


def count_steps(units: int, batch_size: int, epochs: int, steps: int | None) -> int:
    if units < batch_size:
        raise InputError(
            f"--batch-size {batch_size}: expected at most {units}, the number of samples"
        )
    return epochs * (units // batch_size) if steps is None else steps


def epoch_order(unit_ids: Sequence[str], seed: int, epoch: int) -> list[int]:
    """Return an epoch's order of unit indices, which depends on ids, seed and epoch."""
    step = f"epoch {epoch}"
    keys = [(derive_seed(seed, name, step, ORDER_VERSION), name) for name in unit_ids]
    return sorted(range(len(unit_ids)), key=keys.__getitem__)


def make_batch(units: Sequence[Unit], exclude_repeats: bool = True) -> Batch:
    matches = tuple(match for unit in units for match in unit.matches)
    partners: list[int] = []
    for unit in units:
        start = len(partners)
        partners += [start + 1, start] if len(unit.matches) == 2 else [-1]
    excluded = np.zeros((len(matches), len(matches)), dtype=bool)
    if exclude_repeats:
        for texts in ([m.image_id for m in matches], [m.caption for m in matches]):
            _, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
            excluded |= codes[:, None] == codes[None, :]
        np.fill_diagonal(excluded, False)
    return Batch(
        matches=matches,
        partners=np.array(partners, dtype=np.int64),
        excluded=excluded,
        has_negative=np.array([match.hard_negative is not None for match in matches]),
        has_positive=np.array([match.hard_positive is not None for match in matches]),
    )
