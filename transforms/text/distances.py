"""How far texts are from their caption: words, characters, and what named models say."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from eqforge.core.errors import BuildError, InputError
from eqforge.generators.text.words import word_edit
from eqforge.models.pretrained import one_thread
from eqforge.transforms.oracle.scores import shared_scorer

if TYPE_CHECKING:
    from eqforge.models.nli import NliModel
    from eqforge.models.scorer import DualEncoder
    from eqforge.models.spec import ScorerSpec
    from eqforge.schemas.records.scores import Identity

_NLI: Final = {"nli": frozenset({"precision", "device"})}
_LOCK = threading.Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class Distance:
    """How far a text is from its caption; see GradedCaption."""

    words: int
    characters: int
    embedding: float | None
    entailment: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TextModels:
    """The models that measure texts; they are loaded in the worker.

    Attributes:
      embedding: `KIND:MODEL` of a dual encoder; None for none.
      entailment: `nli:MODEL`; None for none.
      embedding_name, entailment_name: kind, model and revision of each, when the run began.
    """

    embedding: str | None = None
    entailment: str | None = None
    embedding_name: str | None = None
    entailment_name: str | None = None

    @property
    def uses_gpu(self) -> bool:
        """Whether one of the models runs on another device than the CPU."""
        specs = [_encoder_spec(self.embedding)] if self.embedding else []
        specs += [_nli_spec(self.entailment)] if self.entailment else []
        return any(spec.device != "cpu" for spec in specs)

    def measure(self, caption: str, texts: Sequence[str]) -> list[Distance]:
        """Returns how far each text is from its caption.

        The texts of one call are one batch of a model, so call it with the same texts in every run.

        Raises:
          BuildError: a model changed since the run began.
        """
        from rapidfuzz.distance import Levenshtein

        embeddings = self._embeddings(caption, texts)
        entailments = self._entailments(caption, texts)
        return [
            Distance(
                words=word_edit(caption, text).distance,
                characters=Levenshtein.distance(caption.casefold(), text.casefold()),
                embedding=embedding,
                entailment=entailment,
            )
            for text, embedding, entailment in zip(texts, embeddings, entailments, strict=True)
        ]

    def _embeddings(self, caption: str, texts: Sequence[str]) -> Sequence[float | None]:
        if self.embedding is None or not texts:
            return [None] * len(texts)
        encoder, lock = _encoder(self.embedding)
        _check_same(encoder.identity.name, self.embedding_name)
        with lock, one_thread():
            first, *others = encoder.encode_captions([caption, *texts])
        return [round(1 - float(first @ other), 6) for other in others]

    def _entailments(self, caption: str, texts: Sequence[str]) -> Sequence[float | None]:
        if self.entailment is None or not texts:
            return [None] * len(texts)
        with _LOCK, one_thread():
            model = _nli(self.entailment)
            _check_same(model.identity.name, self.entailment_name)
            found = model.probabilities([(caption, text) for text in texts])
        return [round(float(value), 6) for value in found[:, 0]]


def _check_same(found: str, expected: str | None) -> None:
    if found != expected:
        raise BuildError(f"the model {expected} changed since the run began")


def text_models(embedding: str | None, entailment: str | None) -> TextModels:
    """Returns the models that are named, each loaded once, as a check.

    Raises:
      InputError: one is not named as expected, cannot be loaded, or is of another kind.
      MissingExtra: a package is not installed.
    """
    return TextModels(
        embedding=embedding,
        entailment=entailment,
        embedding_name=None if embedding is None else encoders_of(embedding)[0].name,
        entailment_name=None if entailment is None else inference_models_of(entailment)[0].name,
    )


def inference_models_of(text: str) -> tuple[Identity]:
    """Returns the identity of the classifier in a setting, loaded as a check.

    Raises:
      InputError, MissingExtra: see text_models.
    """
    return (_nli(text).identity,)


def encoders_of(text: str) -> tuple[Identity]:
    """Returns the identity of the dual encoder in a setting, loaded as a check.

    Raises:
      InputError, MissingExtra: see text_models.
    """
    encoder, _ = _encoder(text)
    return (encoder.identity,)


def _encoder(text: str) -> tuple[DualEncoder, threading.Lock]:
    """Returns the dual encoder of this process, and the lock of its threads."""
    from eqforge.models.scorer import is_dual_encoder

    shared = shared_scorer(_encoder_spec(text))
    if not is_dual_encoder(shared.scorer):
        raise InputError(
            f"--embedding {text}: reads image and caption together and has no vectors of captions; "
            "name a dual encoder, such as clip:MODEL"
        )
    return shared.scorer, shared.lock


@functools.cache
def _encoder_spec(text: str) -> ScorerSpec:
    from eqforge.models.spec import parse_specs

    try:
        (spec,) = parse_specs(text)
    except ValueError as error:
        raise InputError(f"--embedding {text}: name one model") from error
    return spec


@functools.cache
def _nli(text: str) -> NliModel:
    from eqforge.models.nli import NliModel

    return NliModel(_nli_spec(text).weights())


@functools.cache
def _nli_spec(text: str) -> ScorerSpec:
    from eqforge.models.spec import parse_spec

    return parse_spec(text, _NLI)
