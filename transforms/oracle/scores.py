"""Runs the models that judge captions: one of each per process, one call at a time."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from eqforge.core.errors import BuildError
from eqforge.core.ledger import Ledger
from eqforge.models.pretrained import torch_threads
from eqforge.models.scorer import Identity, Picture, Scorer
from eqforge.schemas.records.scores import Rejection, Score, compact_json
from eqforge.transforms.dataset.failures import error_rejection, guarded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.models.spec import ScorerSpec


Model = TypeVar("Model")

VERSION = "2"

PAIR_CELLS = {"c0_i0": (0, 0), "c1_i0": (0, 1), "c0_i1": (1, 0), "c1_i1": (1, 1)}
"""Image and caption of the four scores of a pair, by name, in scoring order."""

REMEMBERED_IMAGES = 64
"""Number of image encodings cached while scoring; each is at most a few megabytes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Shared(Generic[Model]):
    """A model that the threads of a process share, one call at a time."""

    model: Model
    lock: threading.Lock


_loading = threading.Lock()


@functools.cache
def _load(load: Callable[[ScorerSpec], Model], spec: ScorerSpec) -> Shared[Model]:
    return Shared(load(spec), threading.Lock())


def shared(load: Callable[[ScorerSpec], Model], spec: ScorerSpec) -> Shared[Model]:
    with _loading:
        return _load(load, spec)


class CellScorer:
    """Scores images with captions, by every model that judges.

    An image is encoded alone, so its encoding does not depend on the captions, and is kept for
    later calls. Each call scores one batch.

    Args:
      pixels: returns the decoded RGB image of a key, uint8 [height, width, 3]; called if a model
        reads pixels and the image's encoding is not cached.
    """

    def __init__(
        self,
        specs: Sequence[ScorerSpec],
        judges: Sequence[Identity],
        pixels: Callable[[str], NDArray[np.uint8]],
    ) -> None:
        self._specs, self._judges, self._pixels = specs, judges, pixels
        self._encodings: OrderedDict[str, list[Any]] = OrderedDict()

    @functools.cached_property
    def _models(self) -> list[Shared[Scorer]]:
        from eqforge.models.spec import load_scorer

        models = [shared(load_scorer, spec) for spec in self._specs]
        for model, judge in zip(models, self._judges, strict=True):
            found = model.model.identity
            if (found.revision, found.preprocessing) != (judge.revision, judge.preprocessing):
                raise BuildError(f"the oracle {judge.name} has changed since the run began")
        return models

    def score_pair(self, keys: tuple[str, str], captions: tuple[str, str]) -> tuple[Score, ...]:
        """Return four scores per model, P(match) to 6 decimals, with the names in PAIR_CELLS."""
        return name_cells(self._score(keys, captions, [*PAIR_CELLS.values()]), PAIR_CELLS)

    def score_captions(self, key: str, captions: Sequence[str]) -> list[tuple[Score, ...]]:
        """Return P(match) of an image and each caption, named `oracle_1`, `oracle_2`."""
        return self._score([key], captions, [(0, number) for number in range(len(captions))])

    def _score(
        self, keys: Sequence[str], captions: Sequence[str], cells: Sequence[tuple[int, int]]
    ) -> list[tuple[Score, ...]]:
        encodings = [self._encode(key) for key in keys]
        columns = []
        for place, judge in enumerate(self._judges):
            model, images = self._models[place], [encoding[place] for encoding in encodings]
            with model.lock, torch_threads(1):
                found = model.model.match(images, captions, np.array(cells)).probabilities
            for (image, caption), value in zip(cells, found, strict=True):
                if not 0 <= value <= 1:
                    answer = f"P(match) = {value} for {captions[caption]!r}"
                    raise ValueError(f"{keys[image]}: {judge.kind} returned {answer}")
            columns.append([_named(f"oracle_{place + 1}", float(value), judge) for value in found])
        return list(zip(*columns, strict=True))

    def _encode(self, key: str) -> list[Any]:
        if key not in self._encodings:
            needed = any(model.model.reads_pixels for model in self._models)
            picture = Picture(key=key, pixels=self._pixels(key) if needed else None)
            self._encodings[key] = [_encode(model, picture) for model in self._models]
        self._encodings.move_to_end(key)
        while len(self._encodings) > REMEMBERED_IMAGES:
            self._encodings.popitem(last=False)
        return self._encodings[key]


def _encode(model: Shared[Scorer], picture: Picture) -> Any:
    prepared = model.model.prepare(picture)
    with model.lock, torch_threads(1):
        (encoded,) = model.model.encode_images([prepared])
    return encoded


def _named(name: str, value: float, judge: Identity) -> Score:
    return Score(
        name=name,
        value=round(value, 6),
        scorer=judge.kind,
        version=judge.revision,
        settings=_settings(judge),
    )


@functools.cache
def _settings(judge: Identity) -> str:
    settings = dataclasses.asdict(judge) | {"oracle": VERSION}
    return compact_json({k: v for k, v in settings.items() if k not in ("kind", "revision")})


def name_cells(found: Iterable[tuple[Score, ...]], names: Iterable[str]) -> tuple[Score, ...]:
    cells = tuple(names)
    return tuple(
        dataclasses.replace(score, name=f"{score.name}_{cell}")
        for scores in zip(*found, strict=True)
        for cell, score in zip(cells, scores, strict=True)
    )


BATCH = 32
"""Captions of an image per batch; fixed, however the work is distributed."""

Answer: TypeAlias = tuple[Score, ...] | Rejection


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A pair: the ids of its two images, and its captions; caption i describes image i."""

    images: tuple[str, str]
    captions: tuple[str, str]


def ask(questions: Sequence[Question], scorer: CellScorer, ledger: Ledger) -> tuple[Answer, ...]:
    """Return the oracle's answer for each pair, stored or new.

    A pair on which it fails does not affect the others, and is tried again in the next run.
    """

    def answers() -> Iterator[Answer]:
        for question in questions:
            yield guarded(partial(scorer.score_pair, question.images, question.captions))

    return _remember([asdict(question) for question in questions], ledger, answers)


def ask_captions(
    key: str, image_id: str | None, captions: Sequence[str], scorer: CellScorer, ledger: Ledger
) -> tuple[Answer, ...]:
    from more_itertools import chunked

    def answers() -> Iterator[Answer]:
        for batch in chunked(captions, BATCH):
            yield from _ask_batch(key, batch, scorer)

    return _remember([key, image_id, list(captions)], ledger, answers)


def _remember(
    inputs: Any, ledger: Ledger, answer: Callable[[], Iterable[Answer]]
) -> tuple[Answer, ...]:
    return ledger.remember(
        inputs,
        tuple[Answer, ...],
        lambda: tuple(answer()),
        lambda answers: not any(isinstance(each, Rejection) for each in answers),
    )


def _ask_batch(key: str, captions: Sequence[str], scorer: CellScorer) -> Sequence[Answer]:
    try:
        return scorer.score_captions(key, captions)
    except Exception as error:
        # A ValueError means that the image or caption is unusable; errors of the run are raised.
        rejection = (
            Rejection(reason="not_scored", detail=str(error)[:500])
            if isinstance(error, ValueError)
            else error_rejection(error)
        )
    if len(captions) == 1:
        return [rejection]
    return [answer for caption in captions for answer in _ask_batch(key, [caption], scorer)]
