"""Who answers the questions: a model of transformers, or one that a server runs."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.ledger import Ledger
from eqforge.generators.text.llm.endpoint import Endpoint, address_of, is_endpoint
from eqforge.generators.text.llm.model import Question, ask
from eqforge.models.chat import load_chat_model
from eqforge.models.scorer import Identified
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.records.scores import Identity

if TYPE_CHECKING:
    from eqforge.evaluation.conversations.command import ConverseSettings
    from eqforge.evaluation.conversations.run import Pair

Pixels = NDArray[np.uint8]

AT_ONCE = 8
TIMEOUT_S = 120.0
LETTERS_PER_TOKEN = 4


class Respondent(Identified, Protocol):
    """A model that answers questions about an image each."""

    def prompt(self, question: str) -> str: ...

    def respond(
        self, questions: Sequence[tuple[Pixels, str]], max_tokens: int
    ) -> list[str | ValueError]: ...


class Refused(ValueError):
    """A server does not answer a question."""


class ServedModel:
    """A model of an OpenAI-compatible server; `memory` keeps its answers as they come."""

    def __init__(self, endpoint: Endpoint, memory: Ledger) -> None:
        self._endpoint, self._memory = endpoint, memory
        self.identity = Identity(
            kind="server",
            family="server",
            model=endpoint.address.name,
            revision="unversioned",
            precision="served",
            preprocessing=endpoint.fingerprint,
            calibration="none",
        )

    def prompt(self, question: str) -> str:
        return question

    def respond(
        self, questions: Sequence[tuple[Pixels, str]], max_tokens: int
    ) -> list[str | ValueError]:
        requests = [
            Question(prompt=prompt, seed=None, max_new_tokens=max_tokens, image=_png(pixels))
            for pixels, prompt in questions
        ]
        answers = ask(self._endpoint, requests, self._memory)
        return [Refused(each.refusal) if each.refusal else each.text for each in answers]


def open_respondent(pairs: Sequence[Pair], settings: ConverseSettings) -> Respondent:
    """Load the model, or check the server and print what the questions cost."""
    if settings.endpoint is None:
        return load_chat_model(settings.weights(), settings.chat_template)
    model = f"{settings.model}@{settings.endpoint}"
    if not is_endpoint(model):
        raise InputError(f"--endpoint {settings.endpoint}: expected http://… or https://…")
    endpoint = Endpoint(
        address=address_of(model),
        at_once=AT_ONCE,
        timeout_s=TIMEOUT_S,
        temperature=1.0,
        top_p=1.0,
    )
    if not endpoint.address.chat:
        raise InputError(
            f"--endpoint {settings.endpoint}: the completions API does not accept images; pass an "
            "address that ends in /v1"
        )
    endpoint.check()
    count = len(pairs) * settings.orders
    letters = sum(len(settings.question) + sum(map(len, pair.captions)) for pair in pairs)
    tokens = letters * settings.orders // LETTERS_PER_TOKEN
    print(
        f"sending {count:,} requests with one image each: about {tokens:,} tokens of text, plus "
        f"the images, and at most {count * settings.max_tokens:,} tokens of answers",
        file=sys.stderr,
    )
    root = storage.join(str(settings.folder()), WORK)
    kept = Ledger(root=root, step="answers", basis=None)
    return ServedModel(endpoint, kept)


def _png(pixels: Pixels) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels, "RGB").save(stream, "PNG")
    return stream.getvalue()
