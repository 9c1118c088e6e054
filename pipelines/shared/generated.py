"""Shared by the pipelines that generate pairs."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from eqforge.pipelines.shared.settings import RunSettings, selection_of
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.errors import InputError
from eqforge.schemas.identity import is_sampled
from eqforge.schemas.io import storage
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import generated_tables

Planned = TypeVar("Planned")


def select_pairs(
    pairs: Iterable[Planned], sample_id: Callable[[Planned], str], run: RunSettings
) -> Iterator[Planned]:
    """Yields the pairs of a plan that the run settings select.

    Raises:
      InputError: a selection is wrong, or a sample named in `only` is not in the plan.
    """
    selection = selection_of(run)
    missing, left = set(selection.only), selection.limit
    for pair in pairs:
        name = sample_id(pair)
        if selection.only and name not in selection.only:
            continue
        if left == 0 or not is_sampled(name, selection.sample):
            continue
        left = None if left is None else left - 1
        missing.discard(name)
        yield pair
    if missing:
        raise InputError(
            f"--only: the plan has no sample {min(missing)!r}, or --limit or --sample excludes it"
        )


def tables_of(run: RunSettings, pairs: int) -> tuple[Table, ...]:
    """Returns the tables of a dataset, sized for a number of candidate pairs."""
    media = MediaStore(storage.join(run.output, WORK, "media"))
    return generated_tables(pairs, run.samples_per_file, run.images_per_file, media)
