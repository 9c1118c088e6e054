"""A pair that is drawn from several seeds: its drawings, and the best of them.

A drawing is a pair of its own, `<sample_id>/seed-2`, until the best one takes the sample's id. All
of them go through the books: nothing is lost between what was drawn and what was kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from eqforge.core.identity import derive_seed
from eqforge.schemas.records.books import Stage
from eqforge.schemas.records.scores import Rejection, Score, compact_json
from eqforge.transforms.dataset.books import error_rejection
from eqforge.transforms.generated.pairs import (
    GeneratedRules,
    drop_generated,
    measure_generated,
    pixels_of,
)
from eqforge.transforms.generated.work import PairWork
from eqforge.transforms.ranking.best import Measured, mean_ranks, measured_of
from eqforge.transforms.ranking.model_scores import direction_score, vqa_scores
from eqforge.transforms.ranking.settings import VERSION, Ranking, basis_of

SEEDS_STAGE: Final = Stage(
    "seeds",
    {"not_best": "Another seed of --seeds drew a better pair; the detail has what was measured."},
    note="Drawings of one pair from several seeds, those that nothing else refuses.",
)
MEAN_RANK: Final = "mean_rank"

Work = TypeVar("Work", bound=PairWork)
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawings:
    """The drawings of one pair.

    Attributes:
      pair: what they are of, with the books so far.
      works: the drawings, by the number of their seed; none where the pair was refused before.
    """

    pair: PairWork
    works: tuple[PairWork, ...]


def seed_of(first: int, number: int) -> int:
    """Returns the seed of a drawing of a pair; that of number 0 is the pair's own."""
    return first if number == 0 else derive_seed(first, "drawing", str(number), VERSION)


def drawing_name(sample_id: str, number: int) -> str:
    """Returns the id of one of several drawings of a pair."""
    return f"{sample_id}/seed-{number}"


def drawings_of(pair: Work, seeds: int, draw: Callable[[Work, int], PairWork]) -> Drawings:
    """Returns the drawings of a pair.

    Args:
      pair: what is drawn; one that was refused is left alone.
      seeds: how many drawings are made.
      draw: makes the drawing of a number from an empty work.
    """
    if pair.proposal is None or pair.rejects:
        return Drawings(pair=pair, works=())
    works = (draw(_empty(pair, number, seeds), number) for number in range(seeds))
    return Drawings(pair=pair, works=tuple(works))


def _empty(pair: Work, number: int, seeds: int) -> Work:
    """Returns the work of one drawing, without the books of the pair."""
    assert pair.proposal is not None
    name = pair.proposal.sample_id
    own = name if seeds == 1 else drawing_name(name, number)
    return replace(pair, proposal=replace(pair.proposal, sample_id=own), rejects=(), tallies=())


def choose_best(drawings: Drawings, rules: GeneratedRules) -> PairWork:
    """Returns the best drawing of a pair as the pair, with the books of all of them.

    Each is measured and judged by itself; of those that nothing refuses, the one with the least
    mean rank is kept, of equal ones that with the lowest number.
    """
    judged = [_judge(work, rules) for work in drawings.works]
    ranked = [_scored(work, rules) if work.made is not None else work for work in judged]
    decided = _decide(ranked)
    best = next((work for work in decided if work.made is not None), None)
    merged = replace(
        drawings.pair,
        rejects=(*drawings.pair.rejects, *(one for work in decided for one in work.rejects)),
        tallies=(*drawings.pair.tallies, *(one for work in decided for one in work.tallies)),
    )
    if best is None:
        return merged
    return replace(merged, made=best.made, measured=best.measured, scores=best.scores)


def _judge(work: PairWork, rules: GeneratedRules) -> PairWork:
    return drop_generated(measure_generated(work, rules), rules)


def _scored(work: PairWork, rules: GeneratedRules) -> PairWork:
    """Returns a drawing that nothing refuses with what the models of the ranking say of it."""
    try:
        scores = _model_scores(work, rules, rules.ranking)
    except Exception as error:
        return work.refused(SEEDS_STAGE, error_rejection(error))
    return replace(work, scores=(*work.scores, *scores))


def _model_scores(work: PairWork, rules: GeneratedRules, ranking: Ranking) -> list[Score]:
    assert work.proposal is not None
    assert work.made is not None
    stored, captions = work.made.images, work.proposal.captions
    pixels = [pixels_of(image, rules) for image in stored]
    inputs = [[image.image_id for image in stored], captions]
    scores: list[Score] = []
    if ranking.direction is not None:
        model = ranking.direction
        ledger = rules.ledger("direct", basis_of(model))
        scores.append(
            ledger.remember(
                inputs, Score, lambda: direction_score(ranking.settings, model, pixels, captions)
            )
        )
    if ranking.vqa is not None:
        answers, known = ranking.vqa, rules.ledger("vqa", basis_of(ranking.vqa))
        scores += known.remember(
            inputs,
            tuple[Score, ...],
            lambda: vqa_scores(ranking.settings, answers, pixels, captions, known),
        )
    return scores


def _decide(works: Sequence[PairWork]) -> list[PairWork]:
    """Returns the drawings after the decision which of them is the best."""
    places = [place for place, work in enumerate(works) if work.made is not None]
    measured = [_measured(works[place]) for place in places]
    ranks = mean_ranks(measured)
    decided = list(works)
    if not places:
        return decided
    best = min(range(len(places)), key=lambda one: (ranks[one], places[one]))
    for one, place in enumerate(places):
        work = works[place]
        if one == best:
            decided[place] = _kept(work, ranks[one], measured[one], len(works), len(places))
        else:
            decided[place] = work.refused(
                SEEDS_STAGE,
                Rejection(
                    reason="not_best",
                    value=round(ranks[one], 6),
                    threshold=round(ranks[best], 6),
                    detail=compact_json({**measured[one], "kept": _name(works[places[best]])}),
                ),
            )
    return decided


def _measured(work: PairWork) -> Measured:
    assert work.made is not None
    assert work.measured is not None
    return measured_of((*work.made.scores, *work.scores), work.measured.measures)


def _kept(work: PairWork, rank: float, measured: Measured, seeds: int, ranked: int) -> PairWork:
    settings = {"seeds": seeds, "ranked": ranked, "measured": sorted(measured)}
    score = Score(
        name=MEAN_RANK,
        value=round(rank, 6),
        scorer="eqforge.seeds",
        version=str(VERSION),
        settings=compact_json(settings),
    )
    scores = (*work.scores, score) if seeds > 1 else work.scores
    return replace(work, scores=scores).passed(SEEDS_STAGE)


def _name(work: PairWork) -> str:
    assert work.proposal is not None
    return work.proposal.sample_id


def measure_drawn(drawn: PairWork | Drawings, rules: GeneratedRules) -> PairWork:
    """Returns what was drawn with its measures; of several drawings the best one."""
    if isinstance(drawn, Drawings):
        return choose_best(drawn, rules)
    return measure_generated(drawn, rules)
