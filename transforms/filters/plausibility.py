"""Scores captions with a language model before anything is drawn; off by default.

The score is the mean negative log likelihood of a caption's tokens, in nats. It separates odd from
usual captions of one kind and length, not false from true ones.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from eqforge.core.errors import BuildError, InputError
from eqforge.core.identity import TraceOf, versions_of
from eqforge.core.ranges import check_range
from eqforge.models.scorer import Identity
from eqforge.schemas.records.scores import Rejection, Score, compact_json

if TYPE_CHECKING:
    from eqforge.models.language_models import CausalLikelihood
    from eqforge.models.spec import ScorerSpec

IMPLAUSIBILITY: Final = "implausibility"
VERSION: Final = "1"
MOST: Final = 1000.0
REASONS: Final = {
    "implausible": "The --plausibility model finds a caption more implausible than "
    "--max-implausibility allows.",
    "not_weighed": "The --plausibility model cannot score a caption, and --max-implausibility is "
    "set.",
}
KIND: Final = "likelihood"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PlausibilitySettings:
    """Language model that measures how plausible captions are, and the limit on its score."""

    plausibility: Annotated[str | None, TraceOf(weighers_of)] = None
    """Causal language model that scores captions before images are generated. The score is the
    negative log-likelihood per token, in nats. Pass a folder, or ID@COMMIT from the Hugging Face
    Hub."""

    max_implausibility: float | None = None
    """Maximum negative log-likelihood per caption token. The scale depends on the model."""

    def __post_init__(self) -> None:
        check_range("max_implausibility", self.max_implausibility, 0, MOST)
        if self.plausibility is not None:
            _spec_of(self.plausibility)
        elif self.max_implausibility is not None:
            raise InputError(
                f"--max-implausibility {self.max_implausibility}: also pass a model, such as "
                "--plausibility FOLDER"
            )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Plausibility:
    """The language model and its limit; sent to workers, which load the model."""

    settings: PlausibilitySettings = dataclasses.field(default_factory=PlausibilitySettings)
    model: Identity | None = None

    @property
    def uses_gpu(self) -> bool:
        name = self.settings.plausibility
        return name is not None and _spec_of(name).device != "cpu"

    def basis(self) -> list[object]:
        """Return everything a score depends on besides the caption and the limit."""
        assert self.model is not None
        packages = ("torch", "transformers", "tokenizers")
        return [VERSION, dataclasses.asdict(self.model), versions_of(*packages)]

    def scores(self, captions: Sequence[str]) -> tuple[Score, ...]:
        """Return the scores of captions, `implausibility_0` and so on.

        Each is a mean negative log likelihood in nats, to 6 decimals; None if the model cannot read
        the caption.
        """
        name, expected = self.settings.plausibility, self.model
        assert name is not None
        assert expected is not None
        found = _weigh(_spec_of(name), captions, expected)
        identity = dataclasses.asdict(expected) | {"plausibility": VERSION}
        scorer, version = identity.pop("kind"), identity.pop("revision")
        return tuple(
            Score(
                name=f"{IMPLAUSIBILITY}_{place}",
                value=None if value is None else round(value, 6),
                scorer=scorer,
                version=version,
                settings=compact_json(identity),
            )
            for place, value in enumerate(found)
        )


_one_at_a_time = threading.Lock()


def _weigh(spec: ScorerSpec, captions: Sequence[str], expected: Identity) -> list[float | None]:
    from eqforge.models.pretrained import torch_threads

    with _one_at_a_time:
        model = _loaded(spec)
        if model.identity != expected:
            raise BuildError(f"the model {expected.name} has changed since the run began")
        found: list[float | None] = []
        with torch_threads(1):
            for caption in captions:
                try:
                    found.append(model.surprise(caption))
                except ValueError:  # the model cannot read it
                    found.append(None)
        return found


@functools.cache
def _loaded(spec: ScorerSpec) -> CausalLikelihood:
    from eqforge.core.files.source_file import unchanged
    from eqforge.models.language_models import CausalLikelihood

    with unchanged([spec.source]):
        return CausalLikelihood(spec.weights())


def prepare_plausibility(settings: PlausibilitySettings) -> Plausibility:
    name = settings.plausibility
    model = None if name is None else weighers_of(name)[0]
    return Plausibility(settings=settings, model=model)


@functools.cache
def weighers_of(text: str) -> tuple[Identity, ...]:
    from eqforge.models.spec import identify

    spec = _spec_of(text)
    return (identify(spec, _loaded),)


def refuse_implausible(
    scores: Sequence[Score], settings: PlausibilitySettings, captions: Sequence[str]
) -> Rejection | None:
    limit = settings.max_implausibility
    if limit is None:
        return None
    known = [(score.value, text) for score, text in zip(scores, captions, strict=True)]
    unknown = [text for value, text in known if value is None]
    if unknown:
        return Rejection(reason="not_weighed", threshold=limit, detail=unknown[0][:200])
    worst, text = max((value, text) for value, text in known if value is not None)
    if worst <= limit:
        return None
    return Rejection(reason="implausible", value=worst, threshold=limit, detail=text[:200])


def _spec_of(text: str) -> ScorerSpec:
    from eqforge.models.spec import parse_spec

    try:
        return parse_spec(f"{KIND}:{text}", {KIND: frozenset({"device", "precision"})})
    except InputError as error:
        raise InputError(f"--plausibility {error}") from error
