"""The tensors that networks take for each batch: pixels and tokens, or frozen vectors.

Images are copied once into a memory-mapped Arrow file, as Parquet offers no random access.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from more_itertools import chunked
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import BadImage, TooManyPixels, read_pixels
from eqforge.core.files.table_file import ADVICE
from eqforge.core.visible import counted
from eqforge.evaluation.scoring.pictures import plain_errors
from eqforge.evaluation.training.examples import Batch, Match, Plan, Unit
from eqforge.models.dual_encoders import Architecture, CaptionTokenizer
from eqforge.models.pretrained import prepare_pixels
from eqforge.models.scorer import Picture
from eqforge.models.stored_vectors import StoredVectors
from eqforge.schemas.dataset.reader import Dataset

if TYPE_CHECKING:
    from eqforge.evaluation.training.networks import Start

ENCODED_AT_ONCE = 256
_SCHEMA = pa.schema([pa.field("image_id", pa.string()), pa.field("data", pa.large_binary())])


def copy_pictures(dataset: Dataset, image_ids: Iterable[str], path: Path) -> None:
    """Copy the encoded bytes of images into an Arrow file; nulls become empty."""
    missing = set(image_ids)
    with storage.open_atomic(str(path)) as stream, pa.ipc.new_file(stream, _SCHEMA) as writer:
        for batch in dataset.batches("images", ["image_id", "image"], rows=100):
            rows = [row for row in batch.to_pylist() if row["image_id"] in missing]
            missing.difference_update(row["image_id"] for row in rows)
            data = [(row["image"] or {}).get("bytes") or b"" for row in rows]
            columns = [[row["image_id"] for row in rows], data]
            writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
        if missing:
            raise InputError(
                f"{dataset.folder}: {counted(len(missing), 'images')} of its samples cannot be "
                f"found, such as {name_of(min(missing))}; {ADVICE}"
            )


class Pictures:
    """Reads images by id from a file of `copy_pictures`; every process maps the file itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        names = self._table["image_id"].to_pylist()
        self._places = {name: place for place, name in enumerate(names)}

    def __reduce__(self) -> tuple[type["Pictures"], tuple[Path]]:
        return Pictures, (self._path,)

    def read(self, image_id: str) -> bytes:
        data: bytes = self._table["data"][self._places[image_id]].as_py()
        return data

    def pixels(self, image_id: str) -> NDArray[np.uint8]:
        try:
            return read_pixels(self.read(image_id))
        except (BadImage, TooManyPixels) as error:
            raise InputError(f"image {name_of(image_id)} cannot be decoded: {error}") from error

    def prepare(self, processor: Any, image_ids: Sequence[str]) -> Any:
        """Return preprocessed images, float32 [images, 3, height, width]."""
        import torch

        return torch.stack(self.prepare_each(processor, image_ids))

    def prepare_each(self, processor: Any, image_ids: Sequence[str]) -> list[Any]:
        """Return preprocessed images, float32 [3, height, width], whose sizes may differ."""
        import torch

        shown = (Picture(key=name, pixels=self.pixels(name)) for name in image_ids)
        return [torch.from_numpy(prepare_pixels(processor, each)) for each in shown]


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """Chooses the texts of each match to encode: its caption, and hard texts if needed."""

    negatives: bool
    positives: bool

    def of(self, matches: Sequence[Match]) -> list[str]:
        """Return all captions, then all hard negatives, then all hard positives.

        A caption replaces its missing hard texts, so that all batches have the same shape.
        """
        texts = [match.caption for match in matches]
        if self.negatives:
            texts += [match.hard_negative or match.caption for match in matches]
        if self.positives:
            texts += [match.hard_positive or match.caption for match in matches]
        return texts


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PixelFeed:
    """Makes the arguments of a network's `forward` from matches, on the CPU."""

    pictures: Pictures
    processor: Any
    tokenizer: CaptionTokenizer
    texts: Texts
    stacked: bool = True

    def __call__(self, matches: Sequence[Match]) -> dict[str, Any]:
        prepare = self.pictures.prepare if self.stacked else self.pictures.prepare_each
        return {
            "pixels": prepare(self.processor, [match.image_id for match in matches]),
            "tokens": self.tokenizer.encode(self.texts.of(matches)),
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class VectorFeed:
    """Looks up frozen vectors of images and captions, float32 tensors [items, dimensions]."""

    images: Any
    captions: Any
    image_rows: Mapping[str, int]
    caption_rows: Mapping[str, int]
    texts: Texts

    def __call__(self, matches: Sequence[Match]) -> dict[str, Any]:
        texts = [self.caption_rows[text] for text in self.texts.of(matches)]
        return {
            "images": self.images[[self.image_rows[match.image_id] for match in matches]],
            "texts": self.captions[texts],
        }


def encode_frozen(
    start: "Start", pictures: Pictures, units: Sequence[Unit], texts: Texts, workers: int
) -> VectorFeed:
    import torch
    from torch.utils.data import DataLoader

    matches = [match for unit in units for match in unit.matches]
    image_ids = sorted({match.image_id for match in matches})
    words = sorted(set(texts.of(matches)))
    model, encoder = start.model, start.encoder
    assert isinstance(encoder, Architecture)
    loader: Any = DataLoader(
        list(chunked(image_ids, ENCODED_AT_ONCE)),  # type: ignore[arg-type, unused-ignore]
        batch_size=None,
        collate_fn=partial(pictures.prepare, start.preprocessor.image),
        num_workers=workers,
    )
    with torch.no_grad(), plain_errors():
        images = [encoder.image(model, chunk.to(model.device)).float().cpu() for chunk in loader]
        tokens = (
            start.tokenizer.encode(chunk, model.device) for chunk in chunked(words, ENCODED_AT_ONCE)
        )
        captions = [encoder.text(model, chunk).float().cpu() for chunk in tokens]
    return VectorFeed(
        images=torch.cat(images),
        captions=torch.cat(captions),
        image_rows={name: row for row, name in enumerate(image_ids)},
        caption_rows={text: row for row, text in enumerate(words)},
        texts=texts,
    )


def stored_feed(stored: StoredVectors, units: Sequence[Unit], texts: Texts) -> VectorFeed:
    import torch

    matches = [match for unit in units for match in unit.matches]
    stored.check((match.image_id for match in matches), texts.of(matches))
    return VectorFeed(
        images=torch.from_numpy(stored.images),
        captions=torch.from_numpy(stored.captions),
        image_rows=stored.image_rows,
        caption_rows=stored.caption_rows,
        texts=texts,
    )


def share_of_step(
    plan: Plan, feed: PixelFeed | VectorFeed, rank: int, processes: int, step: int
) -> tuple[Batch, dict[str, Any]]:
    """Return the whole batch of a step, and the inputs of one process's share of it."""
    batch = plan.batch(step)
    share = np.array_split(np.arange(len(batch.matches)), processes)[rank]
    return batch, feed([batch.matches[place] for place in share])
