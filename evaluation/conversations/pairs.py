"""Chooses the pairs to ask about: all of a dataset, or some of each subset."""

from collections import defaultdict
from dataclasses import dataclass

from eqforge.core.errors import InputError
from eqforge.core.identity import derive_seed
from eqforge.evaluation.tables.samples import check_label_column
from eqforge.schemas.dataset.reader import Dataset

COLUMNS = ("sample_id", "image_0_id", "image_1_id", "caption_0", "caption_1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two images and two captions; caption i describes image i."""

    sample_id: str
    images: tuple[str | None, str | None]
    captions: tuple[str, str]


def choose_pairs(dataset: Dataset, per_subset: int | None, by: str | None, seed: int) -> list[Pair]:
    """Returns the chosen pairs, sorted by id.

    Args:
      dataset: its samples have two images and two captions.
      per_subset: how many to draw from each subset; None for all.
      by: the column with a sample's subset; None for a single subset.
      seed: seed of the draw. With one seed, a larger draw contains every smaller one.

    Raises:
      InputError: the samples are not pairs, or have no such column of strings or integers.
    """
    wanted = [*COLUMNS, *([] if by is None or by in COLUMNS else [by])]
    subsets: dict[str | None, list[Pair]] = defaultdict(list)
    schema = dataset.schema("samples")
    missing = [name for name in wanted if name not in schema.names]
    if schema.names and missing:
        raise InputError(
            f"{dataset.folder}: its samples have no column {missing[0]!r}: expected pairs of "
            f"images and captions with {', '.join(wanted)}"
        )
    if schema.names and by is not None:
        check_label_column(schema, by, dataset.folder)
    for batch in dataset.batches("samples", wanted, 20_000) if schema.names else ():
        for row in batch.to_pylist():
            pair = Pair(
                sample_id=row["sample_id"],
                images=(row["image_0_id"], row["image_1_id"]),
                captions=(row["caption_0"], row["caption_1"]),
            )
            subsets[None if by is None else row[by]].append(pair)
    chosen = [pair for pairs in subsets.values() for pair in _drawn(pairs, per_subset, seed)]
    if not chosen:
        raise InputError(f"{dataset.folder}: has no pair to ask about")
    return sorted(chosen, key=lambda pair: pair.sample_id)


def _drawn(pairs: list[Pair], count: int | None, seed: int) -> list[Pair]:
    if count is None:
        return pairs
    return sorted(pairs, key=lambda pair: derive_seed(seed, pair.sample_id, "converse", 1))[:count]
