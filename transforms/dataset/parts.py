"""Copies rows of finished datasets into a combined one."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import msgspec
import pyarrow as pa

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped
from eqforge.core.files.table_file import ADVICE
from eqforge.core.visible import series
from eqforge.schemas.dataset.reader import Dataset, columns_of, open_dataset, records_of
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.benchmark_rows import COMBINE_STAGE, COMBINED, PAIRS_NAME, CombinedPair
from eqforge.schemas.tables.datasets import TYPES, dataset_type, table_type
from eqforge.schemas.tables.description import TableType
from eqforge.transforms.dataset.part_pictures import Part
from eqforge.transforms.dataset.tables import BatchWork

BATCH_ROWS: Final = 1_000
_SHARED: Final = frozenset(field.name for field in fields(CombinedPair))
_FROM_COLUMNS: Final = frozenset(("dataset", "kind", "image_0", "image_1"))
_encode = msgspec.json.Encoder(order="deterministic").encode
PAIR_COLUMNS: Final = ("sample_id", "split", "caption_0", "caption_1", "image_0_id", "image_1_id")
_SHOWN: Final = 8
_NAMED: Final = re.compile(r"([^/:=]*)=(.*)", re.DOTALL)
"""NAME=FOLDER; write a folder whose name looks like this as ./NAME=FOLDER."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def open_parts(arguments: Sequence[str]) -> list[tuple[str, Dataset]]:
    """Open the datasets to combine, in a canonical order, each with its name.

    Args:
      arguments: folders or URLs, or NAME=FOLDER; parts without a name get an empty one.
    """
    if len(arguments) < 2:
        raise InputError("pass two or more datasets to combine")
    named = map(_name_and_folder, arguments)
    opened = [(name, open_dataset(folder)) for name, folder in named]
    opened.sort(key=lambda each: (each[1].manifest.dataset, each[1].sha256))
    for (_, one), (_, other) in itertools.pairwise(opened):
        if one.sha256 == other.sha256:
            raise InputError(
                f"{one.folder} and {other.folder} are the same dataset; omit one of them"
            )
    names = Counter(name or each.manifest.dataset for name, each in opened)
    for name, each in opened:
        if name and names[name] > 1:
            raise InputError(
                f"{name}={each.folder}: another dataset has the name {name!r}; choose a different "
                "NAME"
            )
    return opened


def _name_and_folder(text: str) -> tuple[str, str]:
    found = _NAMED.fullmatch(text)
    if not found:
        return "", text
    name, folder = found.groups()
    if not _NAME.fullmatch(name) or not folder:
        raise InputError(
            f"{clipped(text)}: expected NAME=FOLDER. NAME begins with a letter or digit, and has "
            "up to 64 characters: A-Z, a-z, digits, '.', '_' and '-'. If the name of the folder "
            "contains '=', write ./FOLDER."
        )
    return name, folder


def kind_of(datasets: dict[str, str]) -> str:
    for folder, name in datasets.items():
        if name not in TYPES:
            raise InputError(
                f"{folder}: this version of eqforge does not know the dataset {name!r}"
            )
    tables = {folder: dataset_type(name).table("samples") for folder, name in datasets.items()}
    if all({*PAIR_COLUMNS} <= {*table.schema.names} for table in tables.values()):
        return PAIRS_NAME
    records = {table.record for table in tables.values()}
    if len(records) == 1:
        (record,) = records
        for name, kind in COMBINED.items():
            if kind.table("samples").record is record:
                return name
        raise InputError(
            f"{series(datasets)}: eqforge cannot combine "
            f"{series(sorted(set(datasets.values())))} datasets; it combines only datasets of "
            "pairs, foils, rewordings, questions, hard positives or training captions"
        )
    columns = {folder: [*table.schema.names] for folder, table in tables.items()}
    common = set.intersection(*(set(names) for names in columns.values()))
    differences = "; ".join(
        f"{folder} ({datasets[folder]}): {_some([repr(c) for c in names if c not in common])}"
        for folder, names in columns.items()
    )
    raise InputError(
        "the datasets have different columns. Combine datasets with the same columns, or datasets "
        f"of pairs, which have the columns {series(map(repr, PAIR_COLUMNS))}. Columns that not all "
        f"of these datasets have: {differences}"
    )


def _some(names: list[str]) -> str:
    more = [f"and {len(names) - _SHOWN} more"] * (len(names) > _SHOWN)
    return ", ".join([*names[:_SHOWN], *more]) or "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Rows of one row group of a part that are taken together.

    Attributes:
      table: name of the table; empty for the part's counts.
      rows: their positions in the group; None for all.
      duplicates: positions of samples that another part provides.
    """

    part: int
    table: str
    path: str = ""
    group: int = 0
    size: int = 0
    rows: tuple[int, ...] | None = None
    duplicates: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CombineRules:
    """How rows are combined; `kind` names the combined dataset."""

    kind: str
    parts: tuple[Part, ...]


def convert_piece(piece: Piece, rules: CombineRules) -> BatchWork:
    part = rules.parts[piece.part]
    dataset = part.open()
    if not piece.table:
        stages = dataset.manifest.stages.items()
        tallies = (
            Stage(f"{part.label}: {name}").tally(counts.candidates, counts.kept)
            for name, counts in stages
        )
        return BatchWork(tallies=tuple(tallies))
    found = tuple(read_group(dataset, rules.kind, piece.table, piece.path, piece.group, piece.rows))
    if piece.table == "images":
        return BatchWork(images=found)
    if piece.table == "judgements":
        return BatchWork(judgements=found)
    if piece.table == "rejects":
        named = (replace(each, stage=f"{part.label}: {each.stage}") for each in found)
        return BatchWork(rejects=tuple(named))
    doubles = read_group(
        dataset, rules.kind, piece.table, piece.path, piece.group, piece.duplicates
    )
    rejection = Rejection(reason="duplicate", detail=f"of {part.label}")
    rejects = tuple(
        COMBINE_STAGE.reject(f"{part.label}: {each.sample_id}", rejection, source_id=each.sample_id)
        for each in doubles
    )
    tally = COMBINE_STAGE.tally(len(found) + len(rejects), len(found))
    samples = tuple(_of_part(each, part) for each in found)
    return BatchWork(samples=samples, rejects=rejects, tallies=(tally,))


def _of_part(record: Any, part: Part) -> Any:
    """Put the part's name in front of a sample's kind.

    A pair's kind already begins with its dataset, which the name replaces. Find equal samples
    before this, as the name would make them differ.
    """
    if not part.is_named or not hasattr(record, "dataset"):
        return record  # of texts `kind` is that of an edit
    kind = record.kind
    if isinstance(record, CombinedPair) and part.open().manifest.dataset != PAIRS_NAME:
        kind = kind.removeprefix(record.dataset).removeprefix("/")
    return replace(record, kind=f"{part.label}/{kind}" if kind else part.label)


def read_group(
    dataset: Dataset,
    kind: str,
    table: str,
    path: str,
    group: int,
    rows: tuple[int, ...] | None = None,
) -> Iterator[Any]:
    """Yield rows of a row group of a part as records of the combined dataset `kind`."""
    if rows == ():
        return
    described = _described(dataset.manifest.dataset, table)
    record = _described(kind, table).record
    for found in dataset.groups(path, columns_of(described), [group]):
        wanted = found if rows is None else found.take(pa.array(rows))
        for batch in wanted.to_batches(max_chunksize=BATCH_ROWS):
            try:
                if table == "samples" and described.record is not record:
                    yield from map(combined_pair, batch.to_pylist())
                else:
                    yield from records_of(batch, described)
            except (msgspec.ValidationError, KeyError, TypeError) as error:
                raise InputError(
                    f"{dataset.url(path)}: a row does not fit table {table!r}: {error}; {ADVICE}"
                ) from error


@functools.cache
def _described(dataset: str, table: str) -> TableType:
    described = table_type(dataset, table)
    assert described is not None  # the plan names tables that the part has
    return described


def combined_pair(row: dict[str, Any]) -> CombinedPair:
    name, kind = row["dataset"], row.get("kind")
    common = {column: row[column] for column in _SHARED - _FROM_COLUMNS - {"annotation"}}
    extras = {column: value for column, value in row.items() if column not in _SHARED}
    annotation = row.get("annotation")
    if extras and annotation is not None:
        try:
            extras["annotation"] = msgspec.json.decode(annotation)
        except (msgspec.DecodeError, RecursionError):
            extras["annotation"] = annotation
    return msgspec.convert(
        {
            **common,
            "dataset": name,
            "kind": f"{name}/{kind}" if kind else name,
            "image_0": _source(row, 0),
            "image_1": _source(row, 1),
            "annotation": _encode(extras).decode() if extras else annotation or "{}",
        },
        CombinedPair,
    )


def _source(row: dict[str, Any], number: int) -> str | None:
    return row.get(f"image_{number}") or (row.get(f"origin_{number}") or {}).get("source_path")
