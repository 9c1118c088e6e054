"""What the pipelines over captions have in common."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from more_itertools import batched

from eqforge.pipelines.header import WORK
from eqforge.pipelines.settings import DatasetConfig, RunSettings, selection_of
from eqforge.schemas import storage
from eqforge.schemas.caption_sources import CaptionRecord, Source
from eqforge.schemas.errors import InputError
from eqforge.schemas.identity import is_sampled
from eqforge.transforms.images import ImageFolder
from eqforge.transforms.text_work import CaptionBatch

BATCH = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionDataset(DatasetConfig):
    """What every dataset made of captions is configured with."""

    captions: Path
    """COCO captions, a Karpathy-split JSON, Flickr30k's token or CSV file, or your own JSON lines:
    {"image": "a.jpg", "caption": "...", "id": "...", "split": "..."}."""

    source: Source | None = None
    """The format of the captions; told by the file where it is not given."""

    images: Path | None = None
    """Folder of the images: they are embedded, and a caption whose image is missing is a reject.
    Without it the rows name the images alone."""

    spacy_model: str | None = None
    """A spaCy pipeline for tokens, tags and noun phrases, such as en_core_web_sm; without it a
    tagger that needs no data."""


def check_images(images: Path | None) -> None:
    """Checks the folder of images, where one is named.

    Raises:
      InputError: it is no folder.
    """
    if images is not None and not images.is_dir():
        raise InputError(f"--images {images}: no such folder")


def image_folder(images: Path | None, run: RunSettings) -> ImageFolder | None:
    """Returns the folder of images with its media store; None where none is named."""
    return None if images is None else ImageFolder(str(images), media_root(run))


def media_root(run: RunSettings) -> str:
    """Returns the folder of the media store."""
    return storage.join(run.output, WORK, "media")


def select_captions(captions: Iterable[CaptionRecord], run: RunSettings) -> Iterator[CaptionRecord]:
    """Yields the captions that the run settings select; the limit counts captions.

    Raises:
      InputError: a selection is wrong, or a sample named in `only` is of no caption.
    """
    selection = selection_of(run)
    wanted = {sample_id.rpartition("/")[0] for sample_id in selection.only}
    missing, number = set(wanted), 0
    for record in captions:
        if wanted and record.caption_id not in wanted:
            continue
        if not is_sampled(record.image, selection.sample) or number == selection.limit:
            continue
        number += 1
        missing.discard(record.caption_id)
        yield record
    if missing:
        raise InputError(f"--only: there is no caption {min(missing)!r}")


def batch_captions(captions: Iterable[CaptionRecord]) -> Iterator[CaptionBatch]:
    """Yields batches of captions in the order of the source."""
    return (CaptionBatch(captions=tuple(chunk)) for chunk in batched(captions, BATCH))


def batch_images(captions: Iterable[CaptionRecord]) -> Iterator[CaptionBatch]:
    """Yields batches of captions with all captions of an image in one batch, ordered by image.

    The captions are held in memory to order them: about 0.4 kB each.
    """
    ordered = sorted(captions, key=lambda record: (record.image, record.caption_id))
    batch: list[CaptionRecord] = []
    for _, group in groupby(ordered, key=lambda record: record.image):
        batch += group
        if len(batch) >= BATCH:
            yield CaptionBatch(captions=tuple(batch))
            batch = []
    if batch:
        yield CaptionBatch(captions=tuple(batch))
