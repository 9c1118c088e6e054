"""Whether the captions of a pair are plausible enough to be drawn."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from eqforge.schemas.records.books import Stage
from eqforge.schemas.records.scores import Score
from eqforge.transforms.dataset.books import error_rejection
from eqforge.transforms.filters.plausibility import REASONS, refuse_implausible
from eqforge.transforms.generated.pairs import GeneratedRules
from eqforge.transforms.generated.work import PairWork

PROMPTS_STAGE: Final = Stage(
    "prompts", REASONS, note="What is to be drawn, where --plausibility names a model."
)

Work = TypeVar("Work", bound=PairWork)


def weigh(work: Work, rules: GeneratedRules, drawn: Sequence[int] = (0, 1)) -> Work:
    """Returns a planned pair with the plausibility of its captions, or refused for it.

    One that was refused before is left alone, as are all where no model is asked for.

    Args:
      work: the pair, before it is drawn.
      rules: name the model and the limit.
      drawn: which of the captions are to be drawn; the limit is for them.
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
        [scores[side] for side in drawn], plausibility.settings, [captions[side] for side in drawn]
    )
    return weighed.decided(PROMPTS_STAGE, rejection)
