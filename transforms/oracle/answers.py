"""Asks an oracle about stored images and their captions, and remembers its answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from eqforge.schemas.records.scores import Rejection, Score
from eqforge.transforms.dataset.books import error_rejection
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.oracle.scores import CellScorer

BATCH = 32
"""Number of an image's captions per batch; fixed, however the work is distributed."""

Answer: TypeAlias = tuple[Score, ...] | Rejection
"""The scores of a pair or of a caption, or why it has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A pair: the ids of its two images, and its captions; caption i describes image i."""

    images: tuple[str, str]
    captions: tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What the oracle says of some pairs or captions, in order."""

    found: tuple[Answer, ...]


def ask(questions: Sequence[Question], scorer: CellScorer, ledger: Ledger) -> tuple[Answer, ...]:
    """Returns the oracle's answer for each pair, or the stored answer to the same question.

    A pair on which it fails does not affect the others, and is asked about again in the next run.
    """
    inputs = [asdict(question) for question in questions]
    return _remember(inputs, ledger, lambda: (_ask(question, scorer) for question in questions))


def ask_captions(
    key: str, image_id: str | None, captions: Sequence[str], scorer: CellScorer, ledger: Ledger
) -> tuple[Answer, ...]:
    """Returns the oracle's answers for an image with each caption, or the stored ones.

    Args:
      key: the image's id for the oracle, by which published scores and features are looked up.
      image_id: the id of the stored image.
      captions: the captions, each scored in a batch with its neighbours.
      scorer: the models that judge.
      ledger: stores the answers that are not failures.
    """
    inputs = [key, image_id, list(captions)]
    return _remember(inputs, ledger, lambda: _ask_batches(key, captions, scorer))


def _remember(
    inputs: Any, ledger: Ledger, answer: Callable[[], Iterable[Answer]]
) -> tuple[Answer, ...]:
    def compute() -> Answers:
        return Answers(found=tuple(answer()))

    def is_final(answers: Answers) -> bool:
        return not any(isinstance(answer, Rejection) for answer in answers.found)

    return ledger.remember(inputs, Answers, compute, is_final).found


def _ask(question: Question, scorer: CellScorer) -> Answer:
    try:
        return scorer.score_pair(question.images, question.captions)
    except Exception as error:
        return error_rejection(error)


def _ask_batches(key: str, captions: Sequence[str], scorer: CellScorer) -> Iterator[Answer]:
    from more_itertools import chunked

    for batch in chunked(captions, BATCH):
        yield from _ask_batch(key, batch, scorer)


def _ask_batch(key: str, captions: Sequence[str], scorer: CellScorer) -> Sequence[Answer]:
    """Returns the scores of each caption; if the batch fails, scores each by itself."""
    try:
        return scorer.score_captions(key, captions)
    except Exception as error:
        rejection = _refusal(error)  # an error of the run is raised again
    if len(captions) == 1:
        return [rejection]
    return [answer for caption in captions for answer in _ask_batch(key, [caption], scorer)]


def _refusal(error: Exception) -> Rejection:
    """Returns why nothing was scored; a ValueError means the image or caption is unusable."""
    if isinstance(error, ValueError):
        return Rejection(reason="not_scored", detail=str(error)[:500])
    return error_rejection(error)
