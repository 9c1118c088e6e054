"""Runs the models that judge pairs: one of each in a process, one call at a time."""

import contextlib
import dataclasses
import functools
import importlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.models.scorer import Identity, Picture, Scorer
from eqforge.models.spec import ScorerSpec, load_scorer
from eqforge.schemas.errors import BuildError
from eqforge.schemas.records.scores import Score, compact_json

VERSION = "2"

CROSSINGS = ((0, 0), (0, 1), (1, 0), (1, 1))
"""The (image, caption) pairs of two images and two captions, in the order they are scored in."""

REMEMBERED_IMAGES = 64
"""Encodings that are kept while pairs of one source are scored; one is at most some megabytes."""


@dataclasses.dataclass(frozen=True, slots=True)
class SharedScorer:
    """A scorer that the threads of a process share, one call at a time."""

    scorer: Scorer
    lock: threading.Lock


_loading = threading.Lock()


def shared_scorer(spec: ScorerSpec) -> SharedScorer:
    """Returns the scorer of this process, loaded when it is first asked for.

    Raises:
      InputError: a file is missing or not what it has to be.
      MissingExtra: a package is not installed.
    """
    with _loading:
        return _load(spec)


@functools.cache
def _load(spec: ScorerSpec) -> SharedScorer:
    return SharedScorer(load_scorer(spec), threading.Lock())


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Lets torch compute in one thread: with more, sums are split otherwise and come out otherwise.

    Several workers on one machine would also get in each other's way.
    """
    if "torch" not in sys.modules:
        yield
        return
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class PairScorer:
    """Scores pairs of images with pairs of captions, by every model that judges.

    An image is encoded by itself, so its encoding does not depend on what it is paired with, and
    is kept for the next pairs. The four scores of a pair are one batch.

    Args:
      specs: the models; they are loaded when the first pair is scored.
      judges: what each of them is.
      pixels: returns the decoded image of a key, uint8 of shape (height, width, 3); it is called
        where a model reads pixels and the image is not remembered.
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
    def _models(self) -> list[SharedScorer]:
        models = [shared_scorer(spec) for spec in self._specs]
        for model, judge in zip(models, self._judges, strict=True):
            found = model.scorer.identity
            if (found.revision, found.preprocessing) != (judge.revision, judge.preprocessing):
                raise BuildError(f"the oracle {judge.name} changed since the run began")
        return models

    def score(self, keys: tuple[str, str], captions: tuple[str, str]) -> tuple[Score, ...]:
        """Returns four scores a model, P(match) to 6 decimals.

        Args:
          keys: of the two images.
          captions: caption i describes image i.

        Raises:
          ValueError: an image cannot be used, or a score is not a number.
        """
        encodings = [self._encode(key) for key in keys]
        return tuple(
            score
            for place, judge in enumerate(self._judges)
            for score in self._score(place, judge, keys, captions, [e[place] for e in encodings])
        )

    def _encode(self, key: str) -> list[Any]:
        """Returns what each model computes of an image alone."""
        if key not in self._encodings:
            needed = any(model.scorer.reads_pixels for model in self._models)
            picture = Picture(key=key, pixels=self._pixels(key) if needed else None)
            self._encodings[key] = [_encode(model, picture) for model in self._models]
        self._encodings.move_to_end(key)
        while len(self._encodings) > REMEMBERED_IMAGES:
            self._encodings.popitem(last=False)
        return self._encodings[key]

    def _score(
        self,
        place: int,
        judge: Identity,
        keys: tuple[str, str],
        captions: tuple[str, str],
        images: list[Any],
    ) -> Iterator[Score]:
        model = self._models[place]
        with model.lock, one_thread():
            found = model.scorer.match(images, captions, np.array(CROSSINGS)).probabilities
        for (image, caption), value in zip(CROSSINGS, found, strict=True):
            if not 0 <= value <= 1:
                raise ValueError(
                    f"{keys[image]}: {judge.kind} gives P(match) = {value} of {captions[caption]!r}"
                )
            yield Score(
                name=score_name(place + 1, caption, image),
                value=round(float(value), 6),
                scorer=judge.kind,
                version=judge.revision,
                settings=_settings(judge),
            )


@functools.cache
def _settings(judge: Identity) -> str:
    """Returns what a score depends on beside the kind and revision of its model."""
    settings = dataclasses.asdict(judge) | {"oracle": VERSION}
    return compact_json({k: v for k, v in settings.items() if k not in ("kind", "revision")})


def _encode(model: SharedScorer, picture: Picture) -> Any:
    prepared = model.scorer.prepare(picture)
    with model.lock, one_thread():
        (encoded,) = model.scorer.encode_images([prepared])
    return encoded


def score_name(judge: int, caption: int, image: int) -> str:
    """Returns the name of a score: of which judge, from 1, which caption and which image."""
    return f"oracle_{judge}_c{caption}_i{image}"
