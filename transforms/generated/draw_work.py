"""Draws a pair from several seeds and keeps the best drawing.

A drawing is a pair, `<sample_id>/seed-2`, until the best one takes the sample's id. All drawings
are counted.
"""

import functools
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, ParamSpec, TypeVar

from eqforge.core.identity import derive_seed
from eqforge.schemas.records.scores import Rejection, Score
from eqforge.schemas.records.stages import Stage
from eqforge.transforms.dataset.failures import error_rejection
from eqforge.transforms.filters.plausibility import REASONS, refuse_implausible
from eqforge.transforms.generated.pairs import (
    GeneratedRules,
    RankSettings,
    drop_generated,
    measure_generated,
)
from eqforge.transforms.generated.work import PairWork
from eqforge.transforms.oracle.judges import margin_of

SEEDS_STAGE: Final = Stage(
    "seeds",
    {"not_best": "Another seed of the pair has a better score (--seeds, --best-by)."},
    note="This stage compares several seeds of a pair.",
)

Work = TypeVar("Work", bound=PairWork)
Model = TypeVar("Model")


class Shared(Generic[Model]):
    """A model that the threads of a process share, one pair at a time.

    `device` becomes the accelerator's name; its type if torch does not know the name.
    """

    def __init__(self, model: Model, device: str) -> None:
        import torch

        found = torch.device(device)
        self.model, self.lock = model, threading.Lock()
        self.device = torch.cuda.get_device_name(found) if found.type == "cuda" else found.type


Arguments = ParamSpec("Arguments")
Loaded = TypeVar("Loaded")


class load_once(Generic[Arguments, Loaded]):
    """Decorates a model loader: a process keeps the last model, shared by its threads."""

    def __init__(self, load: Callable[Arguments, Loaded]) -> None:
        self._kept: Any = functools.lru_cache(maxsize=1)(load)
        self._loading = threading.Lock()
        self.cache_clear = self._kept.cache_clear

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Loaded:
        with self._loading:
            loaded: Loaded = self._kept(*args, **kwargs)
            return loaded


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawings:
    """The drawings of one pair by seed number; none if the pair was rejected earlier."""

    pair: PairWork
    works: tuple[PairWork, ...]


def seed_of(first: int, number: int) -> int:
    """Return the seed of a drawing; number 0 has the pair's own."""
    return first if number == 0 else derive_seed(first, "drawing", str(number), 1)


def drawings_of(pair: Work, seeds: int, draw: Callable[[Work, int], PairWork]) -> Drawings:
    """Draw a pair from several seeds, unless it was rejected; `draw` gets a work without counts."""
    if pair.proposal is None or pair.rejects:
        return Drawings(pair=pair, works=())
    works, name = [], pair.proposal.sample_id
    for number in range(seeds):
        proposal = replace(pair.proposal, sample_id=f"{name}/seed-{number}" if seeds > 1 else name)
        works.append(draw(replace(pair, proposal=proposal, rejects=(), tallies=()), number))
    return Drawings(pair=pair, works=tuple(works))


def choose_best(drawings: Drawings, rules: GeneratedRules) -> PairWork:
    """Measure and judge a pair's drawings; keep the best, of equal ones the lowest seed number."""
    works = [drop_generated(measure_generated(work, rules), rules) for work in drawings.works]
    if len(works) > 1:
        works = _keep_best(works, rules.ranking)
    kept = next((work for work in works if work.made is not None), works[0] if works else None)
    pair = drawings.pair
    return replace(
        pair if kept is None else replace(kept, proposal=pair.proposal),
        rejects=(*pair.rejects, *(one for work in works for one in work.rejects)),
        tallies=(*pair.tallies, *(one for work in works for one in work.tallies)),
    )


def _keep_best(works: list[PairWork], settings: RankSettings) -> list[PairWork]:
    scores: list[float | None] = []
    for work in works:
        if work.made is None or work.measured is None:
            scores.append(None)
        elif settings.best_by == "oracle_margin":
            scores.append(margin_of(work.scores))
        else:
            scores.append(work.measured.measures.background_ssim)
    left = [number for number, work in enumerate(works) if work.made is not None]
    if not left:
        return works
    best = max(left, key=lambda number: -math.inf if (it := scores[number]) is None else it)
    proposal = works[best].proposal
    assert proposal is not None
    decided = list(works)
    for number in left:
        rejection = Rejection(
            reason="not_best",
            value=scores[number],
            threshold=scores[best],
            detail=f"kept {proposal.sample_id}",
        )
        decided[number] = works[number].decided(SEEDS_STAGE, None if number == best else rejection)
    return decided


PROMPTS_STAGE: Final = Stage("prompts", REASONS, note="This stage runs only with --plausibility.")


def weigh(work: Work, rules: GeneratedRules, sides: Sequence[int] = (0, 1)) -> Work:
    """Score a planned pair's captions for plausibility, and reject implausible ones.

    Rejected pairs, and all pairs without a model, are returned unchanged.
    """
    plausibility, proposal = rules.plausibility, work.proposal
    if plausibility.model is None or proposal is None or work.rejects:
        return work
    captions = proposal.captions
    try:
        scores = rules.ledger("weigh", plausibility.basis()).remember(
            list(captions), tuple[Score, ...], lambda: plausibility.scores(captions)
        )
    except Exception as error:
        return work.refused(PROMPTS_STAGE, error_rejection(error))
    weighed = replace(work, scores=(*work.scores, *scores))
    rejection = refuse_implausible(
        [scores[side] for side in sides], plausibility.settings, [captions[side] for side in sides]
    )
    return weighed.decided(PROMPTS_STAGE, rejection)
