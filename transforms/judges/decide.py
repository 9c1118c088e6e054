"""What follows from the answers of judges: a probability, and what is refused."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from eqforge.generators.text.rule_precision import precision_of
from eqforge.schemas.records.judgements import OF_RULES, OF_SOURCE, QUESTIONS, JudgeAnswer, Part
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.tables.texts import Judgement
from eqforge.transforms.judges.settings import JudgeSettings, Judging

JUDGE_REASONS: Final = {
    "not_entailed": "A judge does not find that caption and hard positive follow from each other.",
    "not_contradicted": "A judge does not find that the hard negative contradicts a true caption.",
    "not_shown": "A judge does not find that the picture shows the text that is to be true.",
    "shown": "A judge finds that the picture shows the hard negative.",
    "not_judged": "A judge could not read the texts or the picture.",
    "low_probability": "The probability that the row is right is too low, or not known.",
}
"""Why judges refuse what was made."""

_LIMIT_OF: Final = {
    "not_entailed": "entailed_min",
    "not_contradicted": "contradicted_min",
    "not_shown": "shown_min",
    "shown": "shown_min",
}


def judge_sample(
    sample_id: str,
    answers: Sequence[JudgeAnswer],
    kinds: Mapping[Part, str],
    judging: Judging,
) -> Judgement | Rejection:
    """Returns what is known of a sample, or why judges refuse it.

    Args:
      sample_id: of the sample.
      answers: about the texts that it holds.
      kinds: how each of these was made; empty of an original.
      judging: the limits, and whether rules made the texts.
    """
    if (refused := refuse(answers, judging.settings)) is not None:
        return refused
    found = _judgement(sample_id, answers, kinds, judging)
    limit = judging.settings.probability_min
    if limit is None or not kinds or (found.probability or -1.0) >= limit:
        return found
    return Rejection(
        reason="low_probability", value=found.probability, threshold=limit, detail=found.basis
    )


def answers_about(answers: Iterable[JudgeAnswer], *parts: Part) -> tuple[JudgeAnswer, ...]:
    """Returns the answers that speak for or against some texts."""
    return tuple(answer for answer in answers if QUESTIONS[answer.question].part in parts)


def refuse(answers: Sequence[JudgeAnswer], settings: JudgeSettings) -> Rejection | None:
    """Returns why the limits refuse a text; None if they do not."""
    against = [(each, found) for each in answers if (found := _against(each, settings))]
    if not against:
        return None
    if settings.refuse_by == "all":
        refusing = {(each.by, QUESTIONS[each.question].part) for each, _ in against}
        asked = {(each.by, QUESTIONS[each.question].part) for each in answers}
        kept = {part for _, part in asked - refusing}
        against = [pair for pair in against if QUESTIONS[pair[0].question].part not in kept]
    return against[0][1] if against else None


def _against(answer: JudgeAnswer, settings: JudgeSettings) -> Rejection | None:
    reason = QUESTIONS[answer.question].reason
    limit = getattr(settings, _LIMIT_OF[reason])
    if limit is None or (answer.probability is not None and answer.probability >= limit):
        return None
    return Rejection(
        reason="not_judged" if answer.probability is None else reason,
        value=answer.probability,
        threshold=limit,
        detail=f"{answer.by}: {answer.question}",
    )


def _judgement(
    sample_id: str, answers: Sequence[JudgeAnswer], kinds: Mapping[Part, str], judging: Judging
) -> Judgement:
    probability = low = high = None
    basis = "" if kinds else OF_SOURCE
    if kinds and judging.by_rules:
        precisions = [precision_of(part, kind) for part, kind in kinds.items()]
        found = [precision for precision in precisions if precision is not None]
        if len(found) == len(kinds):
            ends = [precision.interval for precision in found]
            probability = round(math.prod(precision.share for precision in found), 6)
            low, high = (round(math.prod(end), 6) for end in zip(*ends, strict=True))
            basis = OF_RULES
    return Judgement(
        sample_id=sample_id,
        probability=probability,
        low=low,
        high=high,
        basis=basis,
        answers=tuple(answers),
    )
