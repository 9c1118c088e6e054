"""The judges: models that answer questions about texts, or about a text and an image.

Source: the question about an image, and P(yes) as its answer, are from Lin et al. 2024, "Evaluating
  Text-to-Visual Generation with Image-to-Text Generation" (VQAScore), section 3.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files.source_file import unchanged
from eqforge.core.ledger import Ledger
from eqforge.generators.text.llm.endpoint import Endpoint, address_of, is_endpoint
from eqforge.generators.text.llm.model import Question, ask
from eqforge.models.chat import ChatModel, load_chat_model
from eqforge.models.language_models import CLASSES, NliModel, TextYesNo
from eqforge.models.scorer import Identified
from eqforge.schemas.records.scores import Identity
from eqforge.transforms.oracle.scores import Shared, shared

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.models.spec import ScorerSpec

AT_ONCE: Final = 8
TIMEOUT_S: Final = 120.0
MAX_TOKENS: Final = 16
"""Of a server's answer: a yes or a no, with some words around it."""
BATCH: Final = 64

_IF_THEN: Final = (
    "Two sentences describe pictures.\nA: {0}\nB: {1}\n"
    "Is B true of every picture that A is true of? Answer yes or no."
)
_TOGETHER: Final = (
    "Two sentences describe one picture.\nA: {0}\nB: {1}\n"
    "Can both be true of this picture? Answer yes or no."
)
_SHOWS: Final = 'Does this picture show "{0}"? Answer yes or no.'


_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


class Wanted(NamedTuple):
    """A claim to check, and its texts."""

    relation: Literal["entails", "contradicts", "shown", "not_shown"]
    texts: tuple[str, ...]


Probabilities: TypeAlias = "dict[Wanted, float | None]"
"""P(true); None if the judge could not read the texts or the image."""

Pixels: TypeAlias = "Callable[[], NDArray[np.uint8]]"
"""Returns the RGB image, uint8 [height, width, 3]."""


class Judge(Identified, Protocol):
    """Answers questions."""

    def answer(self, claims: Sequence[Wanted], pixels: Pixels, memory: Ledger) -> Probabilities:
        """Return the answers to questions about one image, each asked once.

        Args:
          claims: what to check, sorted.
          pixels: called by a judge that looks at the image.
          memory: stores expensive answers one by one.
        """


class NliJudge:
    """Judges with a classifier of natural language inference."""

    def __init__(self, spec: ScorerSpec) -> None:
        self._model = NliModel(spec.weights())
        self.identity = self._model.identity

    def answer(self, claims: Sequence[Wanted], _: Pixels, __: Ledger) -> Probabilities:
        """Return P(entailment), or P(contradiction), of each pair of texts."""
        pairs = {each: (each.texts[0], each.texts[1]) for each in claims}
        distinct = list(dict.fromkeys(pairs.values()))
        found = _in_batches(distinct, lambda batch: self._model.probabilities(batch).tolist())
        return {each: _of_class(each, found[pair]) for each, pair in pairs.items()}


class LlmJudge:
    """Judges with a language model that answers yes or no."""

    def __init__(self, spec: ScorerSpec) -> None:
        self._model = TextYesNo(spec.weights())
        self.identity = self._model.identity

    def answer(self, claims: Sequence[Wanted], _: Pixels, __: Ledger) -> Probabilities:
        """Return P(yes) for entailment, P(no) for contradiction."""
        return _said_of(claims, lambda texts: _in_batches(texts, self._model.shares))


class EndpointJudge:
    """Judges with a server's language model, which says yes or no without probabilities."""

    def __init__(self, spec: ScorerSpec) -> None:
        with _of_verify():
            self._endpoint = Endpoint(
                address=address_of(spec.source),
                at_once=spec.whole("parallel", AT_ONCE),
                timeout_s=TIMEOUT_S,
                temperature=1.0,
                top_p=1.0,
            )
            self._endpoint.check()
        self.identity = Identity(
            kind="llm",
            family="server",
            model=self._endpoint.address.name,
            revision="unversioned",
            precision="served",
            preprocessing=self._endpoint.fingerprint,
            calibration="none",
        )

    def answer(self, claims: Sequence[Wanted], _: Pixels, memory: Ledger) -> Probabilities:
        """Return 1 if the server agrees, 0 if it denies; each answer is stored."""

        def say(texts: Sequence[str]) -> dict[str, float | None]:
            posed = [Question(prompt=text, seed=None, max_new_tokens=MAX_TOKENS) for text in texts]
            with _of_verify():
                answers = ask(self._endpoint, posed, memory)
            return dict(zip(texts, (yes_or_no(each.text) for each in answers), strict=True))

        return _said_of(claims, say)


def yes_or_no(text: str) -> float | None:
    """Return 1 for a yes and 0 for a no, by the first word of an answer; None for anything else.

    Text up to `</think>` is ignored.
    """
    answer = text.rpartition("</think>")[2]
    word = re.search(r"[^\W\d_]+", answer)
    return None if word is None else {"yes": 1.0, "no": 0.0}.get(word[0].lower())


@contextlib.contextmanager
def _of_verify() -> Iterator[None]:
    """Make an error name the option that judges are given by."""
    try:
        yield
    except InputError as error:
        message = str(error).replace("--model ", "--verify llm:")
        raise InputError(message) from error


class VqaJudge:
    """Judges with a multimodal language model that answers yes or no about the image."""

    def __init__(self, spec: ScorerSpec) -> None:
        self._model: ChatModel = load_chat_model(spec.weights())
        self.identity = dataclasses.replace(self._model.identity, kind="vqa")
        self._model.check_yes_no()

    def answer(self, claims: Sequence[Wanted], pixels: Pixels, _: Ledger) -> Probabilities:
        """Return P(yes) if the image should show the text, P(no) if not."""
        picture = pixels()

        def look(batch: Sequence[str]) -> list[float]:
            return [self._model.yes(picture, self._model.prompt(text)) for text in batch]

        return _said_of(claims, lambda texts: _in_batches(texts, look, size=1))


JUDGES: Final[Mapping[str, Callable[[ScorerSpec], Judge]]] = {
    "nli": NliJudge,
    "llm": LlmJudge,
    "vqa": VqaJudge,
}


def in_words(wanted: Wanted) -> str:
    form = {"entails": _IF_THEN, "contradicts": _TOGETHER}.get(wanted.relation, _SHOWS)
    return form.format(*wanted.texts)


def _said_of(
    claims: Sequence[Wanted], say: Callable[[Sequence[str]], Mapping[str, float | None]]
) -> Probabilities:
    questions = {each: in_words(each) for each in claims}
    found = say(list(dict.fromkeys(questions.values())))
    return {each: _as_wanted(each, found[text]) for each, text in questions.items()}


def _of_class(wanted: Wanted, probabilities: Sequence[float] | None) -> float | None:
    if probabilities is None:
        return None
    name = "entailment" if wanted.relation == "entails" else "contradiction"
    return probabilities[CLASSES.index(name)]


def _as_wanted(wanted: Wanted, yes: float | None) -> float | None:
    if yes is None or wanted.relation in ("entails", "shown"):
        return yes
    return 1 - yes


def _in_batches(
    items: Sequence[_Item], ask: Callable[[Sequence[_Item]], Iterable[_Found]], size: int = BATCH
) -> dict[_Item, _Found | None]:
    found: dict[_Item, _Found | None] = {}
    for start in range(0, len(items), size):
        found |= _one_batch(items[start : start + size], ask)
    return found


def _one_batch(
    items: Sequence[_Item], ask: Callable[[Sequence[_Item]], Iterable[_Found]]
) -> dict[_Item, _Found | None]:
    try:
        return dict(zip(items, ask(items), strict=True))
    except ValueError:  # a text is too long, or the picture is of no use
        if len(items) == 1:
            return {items[0]: None}
    return {item: found for each in items for item, found in _one_batch([each], ask).items()}


def load_judge(spec: ScorerSpec) -> Judge:
    if spec.kind == "llm" and is_endpoint(spec.source):
        return EndpointJudge(spec)
    with unchanged([spec.source]):
        return JUDGES[spec.kind](spec)


def shared_judge(spec: ScorerSpec, expected: Identity) -> Shared[Judge]:
    """Return the judge of this process, loaded on first use."""
    found = shared(load_judge, spec)
    if found.model.identity != expected:
        raise BuildError(f"the judge {expected.name} has changed since the run began")
    return found
