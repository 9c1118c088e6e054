"""Ask a language model, and never ask the same question twice.

`CaptionWriter` runs a model of transformers, `Endpoint` asks an OpenAI-compatible server;
`open_model` opens either from settings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eqforge.core.identity import sha256_hex
from eqforge.core.ledger import Ledger


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A prompt to complete; equal questions have one answer.

    Attributes:
      seed: draws the answer, in [0, 2**63); None takes the likeliest tokens.
      image: a PNG file that the prompt is about, for a server's chat model; empty without one.
    """

    prompt: str
    seed: int | None
    max_new_tokens: int
    image: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A model's text, which is untrusted: nothing in it is ever followed.

    Attributes:
      model: the model and its version as rows store them; a server reports its own.
      refusal: why there is no answer, in the server's words; empty if there is one.
      is_cut: whether it ran out of tokens.
      tokens_in, tokens_out: tokens of the prompt and of the answer, if a server counts them.
    """

    text: str
    model: str
    refusal: str = ""
    is_cut: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


class LanguageModel(Protocol):
    """Answers questions, each independently of the others."""

    @property
    def fingerprint(self) -> str:
        """Digest of everything that determines an answer, except the question."""

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """Yield the index of each question and its answer, in order of arrival.

        Raises:
          BuildError: the model cannot be reached any more; earlier answers are kept.
        """


def ask(
    model: LanguageModel, questions: Sequence[Question], memory: Ledger | None = None
) -> list[Answer]:
    """Return the answers to questions, in order; equal questions are asked once.

    Args:
      memory: keeps answers as they come, by model and question; None keeps none.
    """
    known: dict[Question, Answer] = {}
    unknown: list[Question] = []
    for question in dict.fromkeys(questions):
        found = None if memory is None else memory.recall(key(model, question), Answer)
        if found is None:
            unknown.append(question)
        else:
            known[question] = found
    for position, answer in model.answers(unknown) if unknown else ():
        if memory is not None:
            memory.write(key(model, unknown[position]), answer)
        known[unknown[position]] = answer
    return [known[question] for question in questions]


def key(model: LanguageModel, question: Question) -> list[Any]:
    content = [model.fingerprint, question.prompt, question.seed, question.max_new_tokens]
    return [*content, sha256_hex(question.image)] if question.image else content
