"""The vectors of frozen encoders: each distinct image and text is encoded once."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eqforge.core.files import storage
from eqforge.evaluation.scoring.pictures import plain_errors
from eqforge.evaluation.training.examples import Unit
from eqforge.evaluation.training.feeds import Texts, VectorFeed
from eqforge.evaluation.training.pictures import Pictures, prepare
from eqforge.evaluation.training.start import Start

ENCODED_AT_ONCE = 256


def encode_frozen(
    start: Start,
    pictures: Pictures,
    units: Sequence[Unit],
    texts: Texts,
    workers: int,
    path: Path,
) -> VectorFeed:
    """Returns a feed of the vectors of all images and texts, kept in a file for a restart.

    Args:
      start: the model, on the device that encodes, and its preprocessing.
      pictures: all images of the units.
      units: the training units.
      texts: which texts of the matches to encode.
      workers: number of processes that decode images.
      path: a safetensors file; read if it exists, else written.
    """
    matches = [match for unit in units for match in unit.matches]
    image_ids = sorted({match.image_id for match in matches})
    words = sorted(set(texts.of(matches)))
    if not path.exists():
        _write(
            path,
            images=_encode_images(
                start, _Pixels(pictures, start.preprocessor.image, image_ids), workers
            ),
            captions=_encode_texts(start, words),
        )
    found = _read(path)
    return VectorFeed(
        images=found["images"],
        captions=found["captions"],
        image_rows={name: row for row, name in enumerate(image_ids)},
        caption_rows={text: row for row, text in enumerate(words)},
        texts=texts,
    )


def _write(path: Path, **tensors: Any) -> None:
    from safetensors.torch import save

    storage.write_bytes(str(path), save(tensors))


def _read(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    found: dict[str, Any] = load_file(path)
    return found


class _Pixels:
    """Prepared images in chunks, as a map-style dataset for a DataLoader."""

    def __init__(self, pictures: Pictures, processor: Any, image_ids: Sequence[str]) -> None:
        self._pictures, self._processor = pictures, processor
        self._chunks = list(_chunks(image_ids))

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, place: int) -> Any:
        import torch

        return torch.from_numpy(prepare(self._processor, self._pictures, self._chunks[place]))


def _encode_images(start: Start, pixels: Any, workers: int) -> Any:
    import torch
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(pixels, batch_size=None, num_workers=workers)
    with torch.no_grad(), plain_errors():
        made = [
            start.called.image(start.model, chunk.to(start.model.device)).float().cpu()
            for chunk in loader
        ]
    return torch.cat(made)


def _encode_texts(start: Start, texts: Sequence[str]) -> Any:
    import torch

    made = []
    with torch.no_grad():
        for chunk in _chunks(texts):
            tokens = start.tokenizer.encode(chunk, start.model.device)
            made.append(start.called.text(start.model, tokens).float().cpu())
    return torch.cat(made)


def _chunks(items: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), ENCODED_AT_ONCE):
        yield items[start : start + ENCODED_AT_ONCE]
