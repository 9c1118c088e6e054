"""Asks an oracle about pairs of stored images, and remembers its answers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from eqforge.schemas.records.scores import Rejection, Score
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.oracle.scores import PairScorer
from eqforge.transforms.video.clip_work import error_rejection

Answer: TypeAlias = tuple[Score, ...] | Rejection
"""The scores of a pair, or why it has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A pair: the ids of its two images, and its captions; caption i describes image i."""

    images: tuple[str, str]
    captions: tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What the oracle says of some pairs, in order."""

    found: tuple[Answer, ...]


def ask(questions: Sequence[Question], scorer: PairScorer, ledger: Ledger) -> tuple[Answer, ...]:
    """Returns what the oracle says of each pair, or said when it was asked the same before.

    A pair on which it fails takes no other along, and is asked about again in the next run.
    """
    answers = ledger.remember(
        [asdict(question) for question in questions],
        Answers,
        lambda: Answers(found=tuple(_ask(question, scorer) for question in questions)),
        _has_no_error,
    )
    return answers.found


def _ask(question: Question, scorer: PairScorer) -> Answer:
    try:
        return scorer.score(question.images, question.captions)
    except Exception as error:
        return error_rejection(error)


def _has_no_error(answers: Answers) -> bool:
    return not any(isinstance(answer, Rejection) for answer in answers.found)
