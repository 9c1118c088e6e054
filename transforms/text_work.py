"""A batch of captions on its way through a text pipeline, and what leaves the pipeline of it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from eqforge.generators.text.caption_lint import CaptionSettings, lint_caption
from eqforge.schemas.caption_sources import CaptionRecord
from eqforge.schemas.clips import Tally
from eqforge.schemas.scores import Rejection
from eqforge.schemas.tables import ImageRow, Reject
from eqforge.transforms.images import ImageFolder

CAPTIONS = "captions"


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionBatch:
    """Captions that are analysed together; the same captions in every run."""

    captions: tuple[CaptionRecord, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TextWork:
    """What has been made of a batch.

    Attributes:
      samples: rows of the samples table.
      captions: rows of the captions table, for datasets that have one.
      images: the images of the captions.
      rejects: what was refused.
      tallies: the books.
    """

    samples: tuple[Any, ...] = ()
    captions: tuple[Any, ...] = ()
    images: tuple[ImageRow, ...] = ()
    rejects: tuple[Reject, ...] = ()
    tallies: tuple[Tally, ...] = ()


def reject(record: CaptionRecord, candidate_id: str, stage: str, rejection: Rejection) -> Reject:
    """Returns the reject of a candidate made from a caption."""
    return Reject(
        candidate_id=candidate_id,
        stage=stage,
        reason=rejection.reason,
        value=rejection.value,
        threshold=rejection.threshold,
        detail=rejection.detail,
        source_id=record.image,
        source_path=record.image,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Admitted:
    """The captions of a batch that can be worked on, and the books of those that cannot.

    Attributes:
      captions: the captions, each with its image's row; None where no folder of images was named.
      rejects: the others.
      tally: the books of the stage.
    """

    captions: tuple[tuple[CaptionRecord, ImageRow | None], ...]
    rejects: tuple[Reject, ...]
    tally: Tally

    @property
    def images(self) -> tuple[ImageRow, ...]:
        """The images of the captions, each once."""
        rows = {row.image_id: row for _, row in self.captions if row is not None}
        return tuple(rows.values())


def admit_captions(
    captions: Iterable[CaptionRecord], settings: CaptionSettings, images: ImageFolder | None
) -> Admitted:
    """Checks captions, and finds their images where a folder is named."""
    admitted: list[tuple[CaptionRecord, ImageRow | None]] = []
    rejects: list[Reject] = []
    for record in captions:
        rejection = lint_caption(record.caption.strip(), settings)
        found = None if rejection is not None or images is None else images.find(record.image)
        if isinstance(found, Rejection):
            rejection = found
        if rejection is not None:
            rejects.append(reject(record, record.caption_id, CAPTIONS, rejection))
        else:
            admitted.append((record, found if isinstance(found, ImageRow) else None))
    tally = Tally(stage=CAPTIONS, candidates=len(rejects) + len(admitted), kept=len(admitted))
    return Admitted(captions=tuple(admitted), rejects=tuple(rejects), tally=tally)


def field_of(name: str) -> Callable[[TextWork], Iterator[Any]]:
    """Returns a function that yields one field of a work, for a FlatMap."""
    return _FIELDS[name]


def _samples(work: TextWork) -> Iterator[Any]:
    yield from work.samples


def _captions(work: TextWork) -> Iterator[Any]:
    yield from work.captions


def _images(work: TextWork) -> Iterator[ImageRow]:
    yield from work.images


def _rejects(work: TextWork) -> Iterator[Reject]:
    yield from work.rejects


def _tallies(work: TextWork) -> Iterator[tuple[str, tuple[int, int]]]:
    for tally in work.tallies:
        yield tally.stage, (tally.candidates, tally.kept)


_FIELDS: dict[str, Callable[[TextWork], Iterator[Any]]] = {
    "samples": _samples,
    "captions": _captions,
    "images": _images,
    "rejects": _rejects,
    "tallies": _tallies,
}
