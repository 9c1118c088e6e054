"""What reviewers see of a sample: its row, beside what it has to be compared with."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.evaluation.report.items import Item, Tone, plain
from eqforge.evaluation.report.kinds import kind_of
from eqforge.schemas.dataset.reader import Dataset

Row = dict[str, Any]
_AT_ONCE: Final = 10_000
_ORIGINAL: Final = "original"
_TONES: Final[dict[str, Tone]] = {"hard_positive": "true", "hard_negative": "false"}


def ids_of(dataset: Dataset) -> list[str]:
    """Returns the ids of the samples that can be reviewed.

    Perturbations that changed no word have no text that could be judged.
    """
    there = dataset.columns("samples")
    # Earlier versions wrote `applied` alone.
    changed = next((name for name in ("words_changed", "applied") if name in there), "")
    columns = ["sample_id", *([changed] if changed else [])]
    return [row["sample_id"] for row in dataset.rows("samples", columns) if row.get(changed, True)]


def items_of(dataset: Dataset, ids: Sequence[str]) -> dict[str, Item]:
    """Returns what is shown of some samples, by their ids; the other rows are not held.

    What is decided on is a sample, so each is shown by itself, also where reports show several
    rows as one: a text to train on stands beside the original that it was made from.

    Args:
      dataset: what is reviewed.
      ids: of its samples.

    Raises:
      InputError: a file is missing or damaged.
    """
    kind = kind_of(dataset)
    rows = list(_rows(dataset, lambda batch: _is_in(batch, "sample_id", ids)))
    make = kind.make(dataset)
    if kind.needs[:1] != ("role",):
        return {row["sample_id"]: make([row]) for row in rows}
    originals = _originals(dataset, rows)
    return {row["sample_id"]: _to_train_on(row, originals, make) for row in rows}


def _to_train_on(row: Row, originals: dict[str, Row], make: Callable[[list[Row]], Item]) -> Item:
    """Returns a text to train on beside its original, or alone where the dataset has none."""
    if row["role"] == _ORIGINAL:
        return make([row])
    if (original := originals.get(row["caption_id"])) is not None:
        return make([original, row])
    text = plain(row["text"], row["role"].replace("_", " "), _TONES.get(row["role"], ""))
    return msgspec.structs.replace(make([row]), texts=(text,))


def _originals(dataset: Dataset, rows: Sequence[Row]) -> dict[str, Row]:
    """Returns the originals of texts to train on, by the captions' ids."""
    wanted = sorted({row["caption_id"] for row in rows})

    def is_original(batch: pa.RecordBatch) -> pa.Array:
        of_them = _is_in(batch, "caption_id", wanted)
        return pc.and_(of_them, pc.equal(batch.column("role"), _ORIGINAL))

    return {row["caption_id"]: row for row in _rows(dataset, is_original)}


def _rows(dataset: Dataset, wanted: Callable[[pa.RecordBatch], pa.Array]) -> Iterator[Row]:
    for batch in dataset.batches("samples", rows=_AT_ONCE):
        yield from batch.filter(wanted(batch)).to_pylist()


def _is_in(batch: pa.RecordBatch, column: str, values: Sequence[str]) -> pa.Array:
    return pc.is_in(batch.column(column), value_set=pa.array(values, pa.string()))
