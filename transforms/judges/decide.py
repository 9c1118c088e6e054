"""Turns judges' answers into a probability and rejections."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from more_itertools import map_reduce

from eqforge.core.files.pictures import read_pixels
from eqforge.core.ledger import Ledger
from eqforge.generators.text.rule_precision import precision_of
from eqforge.schemas.records.judgements import OF_RULES, OF_SOURCE, QUESTIONS, JudgeAnswer, Part
from eqforge.schemas.records.scores import Identity, Rejection
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.schemas.tables.texts import Judgement
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.judges.settings import READS_PICTURES, JudgeSettings, Judging, basis_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.transforms.judges.models import Wanted


JUDGE_REASONS: Final = {
    "not_entailed": "A judge does not confirm that the caption and the hard positive entail "
    "each other.",
    "not_contradicted": "A judge finds no contradiction between the hard negative and a true "
    "caption.",
    "not_shown": "A judge does not confirm that the image shows what the caption or hard "
    "positive says.",
    "shown": "A judge finds that the hard negative fits the image.",
    "not_judged": "A judge could not read the texts or the image.",
    "low_probability": "The row's probability of being correct is unknown or below "
    "--probability-min.",
}

_LIMIT_OF: Final = {
    "not_entailed": "entailed_min",
    "not_contradicted": "contradicted_min",
    "not_shown": "shown_min",
    "shown": "shown_min",
}


def judge_sample(
    sample_id: str, answers: Sequence[JudgeAnswer], kinds: Mapping[Part, str], judging: Judging
) -> Judgement | Rejection:
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
    return tuple(answer for answer in answers if QUESTIONS[answer.question].part in parts)


def refuse(answers: Sequence[JudgeAnswer], settings: JudgeSettings) -> Rejection | None:
    against = [(each, found) for each in answers if (found := _against(each, settings))]
    if not against:
        return None
    if settings.refuse_by == "all":
        refusing = {(each.by, QUESTIONS[each.question].part) for each, _ in against}
        votes = {(each.by, QUESTIONS[each.question].part) for each in answers}
        kept = {part for _, part in votes - refusing}
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


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedTexts:
    """A caption with its hard positive and hard negative."""

    key: str
    picture: Hashable
    caption: str
    hard_positive: str | None
    hard_negative: str | None
    image: ImageRow | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Given:
    probabilities: tuple[float | None, ...]


def ask_judges(
    texts: Iterable[JudgedTexts], judging: Judging
) -> dict[str, tuple[JudgeAnswer, ...] | Rejection]:
    found: dict[str, tuple[JudgeAnswer, ...] | Rejection] = {}
    for group in map_reduce(texts, lambda each: each.picture).values():
        answers = guarded(partial(_ask, group, judging))
        if isinstance(answers, Rejection):
            found |= {each.key: answers for each in group}
        else:
            found |= answers
    return found


def _ask(group: Sequence[JudgedTexts], judging: Judging) -> dict[str, tuple[JudgeAnswer, ...]]:
    answers: dict[str, list[JudgeAnswer]] = {each.key: [] for each in group}
    for number, judge in enumerate(judging.judges):
        wanted = {each.key: list(_questions(each, judge.kind)) for each in group}
        claims = sorted({want for named in wanted.values() for _, want in named})
        if not claims:
            continue
        probabilities = dict(zip(claims, _remembered(claims, group, judging, number), strict=True))
        for key, named in wanted.items():
            answers[key] += (_answer(judge, name, probabilities[want]) for name, want in named)
    return {key: tuple(found) for key, found in answers.items()}


def _questions(texts: JudgedTexts, kind: str) -> Iterator[tuple[str, Wanted]]:
    from eqforge.transforms.judges.models import Wanted

    caption, positive, negative = texts.caption, texts.hard_positive, texts.hard_negative
    if kind == READS_PICTURES:
        yield "caption_shown", Wanted("shown", (caption,))
        if positive is not None:
            yield "positive_shown", Wanted("shown", (positive,))
        if negative is not None:
            yield "negative_not_shown", Wanted("not_shown", (negative,))
        return
    if positive is not None:
        yield "caption_entails_positive", Wanted("entails", (caption, positive))
        yield "positive_entails_caption", Wanted("entails", (positive, caption))
    if negative is not None:
        yield "negative_contradicts_caption", Wanted("contradicts", (caption, negative))
    if positive is not None and negative is not None:
        yield "negative_contradicts_positive", Wanted("contradicts", (positive, negative))


def _remembered(
    claims: Sequence[Wanted], group: Sequence[JudgedTexts], judging: Judging, number: int
) -> tuple[float | None, ...]:
    judge = judging.judges[number]
    image = group[0].image if judge.kind == READS_PICTURES else None
    ledger = Ledger(root=judging.ledger_root, step="judge", basis=basis_of(judge))
    inputs = [None if image is None else image.image_id, [list(each) for each in claims]]

    def compute() -> _Given:
        return _Given(probabilities=_given(claims, image, judging, number))

    return ledger.remember(inputs, _Given, compute).probabilities


def _given(
    claims: Sequence[Wanted], image: ImageRow | None, judging: Judging, number: int
) -> tuple[float | None, ...]:
    from eqforge.models.pretrained import torch_threads
    from eqforge.transforms.judges.models import shared_judge

    def pixels() -> NDArray[np.uint8]:
        assert image is not None  # checked before the run
        assert judging.media_root is not None
        return read_pixels(MediaStore(judging.media_root).get(image.image_id, image.suffix))

    memory = Ledger(root=judging.ledger_root, step="answers", basis=None)
    shared = shared_judge(judging.specs[number], judging.judges[number])
    with shared.lock, torch_threads(1):
        found = shared.model.answer(claims, pixels, memory)
    answers = (found[each] for each in claims)
    return tuple(None if each is None else round(each, 6) for each in answers)


def _answer(judge: Identity, question: str, probability: float | None) -> JudgeAnswer:
    return JudgeAnswer(
        judge=judge.kind,
        model=judge.model,
        revision=judge.revision,
        question=question,
        probability=probability,
    )
