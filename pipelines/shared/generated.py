"""Shared by the pipelines that generate pairs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import is_sampled
from eqforge.pipelines.shared.pilot_report import PilotYield, yield_of
from eqforge.pipelines.shared.settings import RunSettings, selection_of
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.tables.description import DatasetType
from eqforge.schemas.tables.generated import GENERATED_PAIRS
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.plan import no_sample
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import generated_tables
from eqforge.transforms.generated.pairs import GeneratedRules, drop_generated
from eqforge.transforms.generated.work import PairWork

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
    seen: list[str] = []
    for pair in pairs:
        name = sample_id(pair)
        seen += [name] * bool(selection.only)
        if selection.only and name not in selection.only:
            continue
        if left == 0 or not is_sampled(name, selection.sample):
            continue
        left = None if left is None else left - 1
        missing.discard(name)
        yield pair
    if missing:
        raise InputError(no_sample(min(missing), seen))


def tables_of(
    run: RunSettings, pairs: int, kind: DatasetType = GENERATED_PAIRS
) -> tuple[Table, ...]:
    """Returns the tables of a dataset, sized for a number of candidate pairs."""
    media = MediaStore(storage.join(run.output, WORK, "media"))
    return generated_tables(pairs, run.samples_per_file, run.images_per_file, media, kind)


def made_of(works: Sequence[PairWork], rules: GeneratedRules) -> PilotYield:
    """Returns what the measured pairs of a pilot become."""
    decided = [drop_generated(work, rules) for work in works]
    measured = [(work.measured, work.scores) for work in works if work.measured is not None]
    return yield_of(
        sum(work.made is not None for work in decided),
        (reject for work in decided for reject in work.rejects),
        (image.scores for found, _ in measured for image in found.images),
        ((found.measures, scores) for found, scores in measured),
    )
