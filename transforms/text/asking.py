"""Counts the questions for a language model, then asks them before the runner starts.

The process that starts a build asks the server: it alone needs the key and the network. Workers
read the stored answers, so that neither their number nor a stop changes a row.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from eqforge.core.console import Ticker
from eqforge.core.errors import InputError
from eqforge.generators.text.llm.endpoint import Endpoint
from eqforge.generators.text.llm.model import Answer, Question, key
from eqforge.generators.text.llm.writer import open_model
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.text.caption_edits import EditRules, captions_left, positives_of

_CHARS_PER_TOKEN: Final = 4
_TOKENS_AROUND: Final = 12
FIRST: Final = 32
"""Number of questions asked before all others: a server that rejects these would reject all."""
_TELLING: Final = 3
"""Fewer rejections may be due to single captions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """The questions for a model, counted before any is asked.

    Attributes:
      questions: those without a stored answer; equal ones count once.
      tokens_in: of the questions, estimated from their letters.
      tokens_out: of the answers, at most.
      tries: maximum number of tries per question.
    """

    questions: int = 0
    known: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tries: int = 1

    def __add__(self, other: "Estimate") -> "Estimate":
        return replace(
            self,
            questions=self.questions + other.questions,
            known=self.known + other.known,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
        )

    def price(self, prices: tuple[float, float]) -> float:
        return (self.tokens_in * prices[0] + self.tokens_out * prices[1]) / 1e6


def estimate(batches: Iterable[Sequence[CaptionRecord]], rules: EditRules) -> Estimate:
    written = rules.written
    assert written is not None
    model = open_model(written.model)
    names = frozenset() if written.ledger is None else written.ledger.names()
    questions: dict[Question, bool] = {}
    for record in (each for batch in batches for each in captions_left(batch, rules)):
        first = written.asking.question(record.caption_id, record.caption)
        if first is not None and first not in questions:
            ledger = written.ledger
            questions[first] = ledger is not None and ledger.name(key(model, first)) in names
    left = [each for each, is_known in questions.items() if not is_known]
    return _estimate(left, known=len(questions) - len(left), tries=1 + written.asking.retries)


def _estimate(questions: Sequence[Question], known: int = 0, tries: int = 1) -> Estimate:
    return Estimate(
        questions=len(questions),
        known=known,
        tokens_in=sum(len(each.prompt) // _CHARS_PER_TOKEN + _TOKENS_AROUND for each in questions),
        tokens_out=sum(each.max_new_tokens for each in questions),
        tries=tries,
    )


@dataclass(kw_only=True, slots=True)
class Counted:
    """A server's model whose answers are counted as they come.

    Attributes:
      expected: number of answers, if each is accepted at once.
      check: raises an error if more is asked than is allowed.
      works: whether the server has answered any question.
    """

    model: Endpoint
    ticker: Ticker
    expected: int
    check: Callable[[Estimate], None]
    works: bool
    total: Estimate = Estimate()
    answered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """Yield the model's answers; raise InputError if the server rejects all questions."""
        self.total += _estimate(questions)
        self.check(self.total)
        first = 0 if self.works else FIRST
        yield from self._first_answers(questions[:first])
        for position, answer in self._answers(questions[first:]):
            yield first + position, answer

    def _first_answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """Yield answers, rejections last: they only count if the server answers anything.

        The order of the rejections depends on the questions alone, since rejections come quickly.
        """
        refused: list[tuple[int, Answer]] = []
        for position, answer in self._answers(questions):
            if answer.refusal:
                refused.append((position, answer))
                continue
            self.works = True
            yield position, answer
        if len(refused) >= _TELLING and not self.works:
            _, answer = min(refused, key=itemgetter(0))
            raise InputError(
                f"{self.model.title}: the server rejected the request: {answer.refusal}"
            )
        yield from refused

    def _answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        for position, answer in self.model.answers(questions):
            self.answered += 1
            self.tokens_in += answer.tokens_in
            self.tokens_out += answer.tokens_out
            self.ticker.show(min(self.answered, self.expected))
            yield position, answer


def ask_ahead(
    model: Endpoint,
    batches: Iterable[Sequence[CaptionRecord]],
    rules: EditRules,
    found: Estimate,
    check: Callable[[Estimate], None],
) -> Counted:
    ticker = Ticker(found.questions, "answers", task="language model")
    counted = Counted(
        model=model, ticker=ticker, expected=found.questions, check=check, works=found.known > 0
    )
    try:
        for batch in batches:
            positives_of(batch, rules, counted)
    finally:
        ticker.close()
    return counted
