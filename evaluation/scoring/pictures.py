"""Read, decode and prepare the images of a dataset, in worker processes ahead of the model.

Workers read row groups themselves and return batches in shared memory, pinned for a GPU.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files.pictures import BadImage, TooManyPixels, read_pixels
from eqforge.evaluation.scoring.batches import Batch
from eqforge.models.scorer import Picture
from eqforge.schemas.dataset.reader import Dataset


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why an image has no score: a reason of FAILURE_REASONS and a detail."""

    image: int
    reason: str
    detail: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Prepared:
    """A batch ready for a model; `inputs` is one tensor, or a list if shapes differ."""

    unit: int
    images: list[int]
    inputs: Any
    failures: list[Failure]

    def pin_memory(self) -> "Prepared":
        """Pin the batch's memory. torch's DataLoader calls this method."""
        if isinstance(self.inputs, list):
            return self
        return dataclasses.replace(self, inputs=self.inputs.pin_memory())


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Preparation:
    """Prepares batches for a model in any process; rejects images above `max_pixels` undecoded."""

    dataset: Dataset
    batches: Sequence[Batch]
    prepare: Callable[[Picture], Any]
    reads_pixels: bool
    max_pixels: int

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int) -> Prepared:
        """Prepare a batch; unusable images do not affect the others."""
        batch = self.batches[number]
        numbers: list[int] = []
        inputs: list[Any] = []
        failures: list[Failure] = []
        for image, key, data in self._rows(batch):
            try:
                inputs.append(self._prepare(key, data))
                numbers.append(image)
            except _Unusable as error:
                failures.append(Failure(image=image, reason=error.reason, detail=error.detail))
        return Prepared(unit=batch.unit, images=numbers, inputs=_stacked(inputs), failures=failures)

    def _rows(self, batch: Batch) -> Iterator[tuple[int, str, bytes | None]]:
        columns = ["image_id", "image"] if self.reads_pixels else ["image_id"]
        for piece in batch.pieces:
            table = _GROUPS.read(self.dataset, piece.path, piece.group, columns)
            rows = table.take(pa.array(piece.rows)).to_pylist()
            for image, row in zip(piece.images.tolist(), rows, strict=True):
                yield image, row["image_id"], (row.get("image") or {}).get("bytes")

    def _prepare(self, key: str, data: bytes | None) -> Any:
        pixels = None
        if self.reads_pixels:
            try:
                pixels = read_pixels(data or b"", self.max_pixels)
            except TooManyPixels as error:
                raise _Unusable("too_many_pixels", error) from error
            except BadImage as error:
                raise _Unusable("undecodable_image", error) from error
        try:
            return self.prepare(Picture(key=key, pixels=pixels))
        except ValueError as error:
            raise _Unusable("unusable_image", error) from error


class _Unusable(Exception):
    def __init__(self, reason: str, error: Exception) -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, f"{type(error).__name__}: {error}"[:200]


def _stacked(inputs: list[Any]) -> Any:
    shapes = {getattr(one, "shape", None) for one in inputs}
    if len(shapes) != 1 or not isinstance(inputs[0], np.ndarray):
        return inputs
    import torch

    return torch.from_numpy(np.stack(inputs))


class _Groups:
    """Caches the last row group read, separately in each process."""

    def __init__(self) -> None:
        self._key: Any = None
        self._table: pa.Table | None = None

    def read(self, dataset: Dataset, path: str, group: int, columns: list[str]) -> pa.Table:
        key = (dataset.folder, dataset.sha256, path, group, tuple(columns))
        if self._table is None or self._key != key:
            self._table = None
            (self._table,) = dataset.groups(path, columns, [group])
            self._key = key
        return self._table


_GROUPS = _Groups()


def process_context() -> Any:
    """Return the multiprocessing context: a fork server with the libraries preloaded.

    A fork of this process would hold its threads' locks and its GPU context.
    """
    context = _Context()
    context.set_forkserver_preload(["torch", "transformers.image_processing_utils", __name__])
    return context


class _Process(ForkServerProcess):
    """A process that does not rerun the user's script, so the script needs no `__main__` guard."""

    def start(self) -> None:
        main = vars(sys.modules["__main__"])
        names = ("__file__", "__spec__")
        original: dict[str, Any] = {name: main[name] for name in names if name in main}
        main["__spec__"] = main["__file__"] = None  # multiprocessing finds the script by these
        try:
            super().start()
        finally:
            del main["__file__"]
            main |= original


class _Context(ForkServerContext):
    Process: ClassVar[Any] = _Process


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Remove the worker's traceback that torch adds to the message of an InputError."""
    try:
        yield
    except InputError as error:
        text = str(error).strip().splitlines()[-1]
        raise InputError(text.partition("InputError: ")[2] or text) from error


def prepared_batches(
    preparation: Preparation, workers: int, prefetch: int, device: str
) -> Iterator[Prepared]:
    """Yield the batches in order, prepared ahead by workers or, without any, in this process.

    Raises:
      BuildError: a worker was killed.
    """
    from torch.utils.data import DataLoader

    if workers == 0:
        yield from (preparation[number] for number in range(len(preparation)))
        return
    loader: Any = DataLoader(
        preparation,  # type: ignore[arg-type, unused-ignore]
        batch_size=None,
        shuffle=False,
        num_workers=workers,
        prefetch_factor=prefetch,
        pin_memory=device.startswith("cuda"),
        multiprocessing_context=process_context(),
    )
    try:
        with plain_errors():
            yield from loader
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):  # torch 2.13 has no class for it
            raise
        raise BuildError(
            "an image-loading process was killed, possibly because memory ran out. Lower "
            "--workers, --prefetch or --image-batch, and run the command again to resume. In a "
            "container, you can also enlarge /dev/shm"
        ) from error
