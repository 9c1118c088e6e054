"""Combines all filters of images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from eqforge.core.files import pictures
from eqforge.core.identity import versions_of
from eqforge.schemas.records.frames import StoredImage
from eqforge.schemas.records.scores import Rejection, Score
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.filters import minimality
from eqforge.transforms.filters.faces import FACES, FaceSettings
from eqforge.transforms.filters.image_filter import ImageFilter
from eqforge.transforms.filters.quality import QUALITY, QualitySettings

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class ImageFilters:
    """The settings of every image filter; add a filter as a line here.

    A dataset's settings inherit from this class, so its command line and manifest include them. The
    filter on the last line scores and decides first.
    """

    faces: FaceSettings = field(default_factory=FaceSettings, metadata={"filter": FACES})
    quality: QualitySettings = field(default_factory=QualitySettings, metadata={"filter": QUALITY})

    @classmethod
    def off(cls, **others: Any) -> Self:
        return cls(**{name: each.off for name, each in _FILTERS.items()} | others)

    def prepare(self) -> None:
        for each, settings in self._in_order():
            each.prepare(settings)

    def basis(self) -> list[object]:
        """Return everything the scores depend on besides the image, with library versions."""
        packages = {name for each in _FILTERS.values() for name in each.packages} | {"imagehash"}
        own = [each.basis(getattr(self, name)) for name, each in _FILTERS.items()]
        return [*own, minimality.VERSION, pictures.VERSION, versions_of(*sorted(packages))]

    def score(self, pixels: NDArray[np.uint8]) -> ScoredImage:
        """Score an RGB image, uint8 [height, width, 3]; exceptions propagate."""
        scores = [found for each, own in self._in_order() for found in each.score(pixels, own)]
        return ScoredImage(phash=minimality.perceptual_hash(pixels), scores=tuple(scores))

    def refuse(self, scores: Sequence[Score]) -> Rejection | None:
        decided = (each.refuse(scores, settings) for each, settings in self._in_order())
        return next((rejection for rejection in decided if rejection is not None), None)

    def _in_order(self) -> Iterator[tuple[ImageFilter[Any], Any]]:
        yield from ((each, getattr(self, name)) for name, each in reversed(_FILTERS.items()))


_FILTERS: dict[str, ImageFilter[Any]] = {
    each.name: each.metadata["filter"] for each in fields(ImageFilters)
}

IMAGE_FILTER_REASONS = {
    reason: text for each in _FILTERS.values() for reason, text in each.reasons.items()
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredImage:
    """The measures of one image, or the reason why there are none."""

    phash: str = ""
    scores: tuple[Score, ...] = ()
    rejection: Rejection | None = None


def image_row(stored: StoredImage, scored: ScoredImage) -> ImageRow:
    return ImageRow(
        image_id=stored.image_id,
        suffix=stored.suffix,
        width_px=stored.width_px,
        height_px=stored.height_px,
        num_bytes=stored.num_bytes,
        phash=scored.phash,
        scores=scored.scores,
    )
