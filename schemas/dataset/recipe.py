"""Recipes: the origin and records of a dataset, without images and texts.

A recipe is a folder with `recipe.json`, which has the fields of a dataset's manifest, and a table
of records for each of the dataset's. It keeps ids, image keys (SHA-256s of their bytes), names of
sources, times, boxes and numbers. Every other column becomes a SHA-256, with the suffix `_sha256`:
of a text in UTF-8, of other values as compact JSON with sorted keys. Unknown columns are hashed
too, so that a future text column is not given away.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.schemas.dataset.manifest import MAX_BYTES, Manifest, manifest_of
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.tables.datasets import table_type

FILE_NAME: Final = "recipe.json"
FORMAT: Final = "eqforge recipe"
SUFFIX: Final = "_sha256"
LEFT_OUT: Final = frozenset(("images", "masks", "rejects"))
"""Tables without records in a recipe."""

_PLAIN: Final = frozenset(
    (
        *("dataset", "split", "kind", "group", "source_id", "source_path", "source_sha256"),
        *("image", "image_0", "image_1", "source_image", "source_image_1"),
        # Frames of a video with their times, and the boxes of objects.
        *("origin_0", "origin_1", "objects_0", "objects_1"),
    )
)


def tables_of(manifest: Manifest) -> list[str]:
    name = manifest.dataset
    tables = [table for table in manifest.tables if table not in LEFT_OUT]
    return [table for table in tables if manifest.num_rows(table) and table_type(name, table)]


def recorded_columns(dataset: str, table: str, schema: pa.Schema) -> dict[str, str]:
    """Return the columns of a recipe's table, each with its column in the dataset."""
    kind = table_type(dataset, table)
    assert kind is not None
    known = {*kind.key, *kind.references}
    found = {}
    for name in schema.names:
        is_key = name in known or name in _PLAIN or name.endswith("_id")
        is_plain = is_key or _is_of_numbers(schema.field(name).type)
        found[name if is_plain else name + SUFFIX] = name
    return found


def _is_of_numbers(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_is_of_numbers(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _is_of_numbers(kind.value_type)
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )


def recorded_schema(schema: pa.Schema, columns: dict[str, str]) -> pa.Schema:
    return pa.schema(
        [
            schema.field(source)
            if name == source
            else pa.field(name, pa.string(), schema.field(source).nullable)
            for name, source in columns.items()
        ]
    )


def recorded(rows: pa.RecordBatch, columns: dict[str, str]) -> pa.RecordBatch:
    schema = recorded_schema(rows.schema, columns)
    arrays = [
        rows.column(source)
        if name == source
        else pa.array(map(_digest, rows.column(source).to_pylist()), pa.string())
        for name, source in columns.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _digest(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(value.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedDataset(Dataset):
    """A finished dataset whose rows are read in a recipe's form."""

    whole: Dataset

    def schema(self, table: str) -> pa.Schema:
        schema = self.whole.schema(table)
        return recorded_schema(schema, recorded_columns(self.manifest.dataset, table, schema))

    def file_batches(
        self, path: str, columns: Sequence[str] | None = None, rows: int = 1_000
    ) -> Iterator[pa.RecordBatch]:
        table, _ = self._listed(path)
        found = recorded_columns(self.manifest.dataset, table, self.whole.schema(table))
        wanted = found if columns is None else {name: found[name] for name in columns}
        for batch in self.whole.file_batches(path, list(wanted.values()), rows):
            yield recorded(batch, wanted)


def as_recorded(dataset: Dataset) -> Dataset:
    if dataset.manifest.format == FORMAT:
        return dataset
    kept = {name: dataset.manifest.tables[name] for name in tables_of(dataset.manifest)}
    return RecordedDataset(
        folder=dataset.folder,
        manifest=replace(dataset.manifest, tables=kept),
        sha256=dataset.sha256,
        whole=dataset,
    )


def sources_of(dataset: Dataset) -> dict[str, str]:
    """Return the source files of records, by name, with the SHA-256 of each.

    All names are held in memory; records without such digests have none.
    """
    found: dict[str, str] = {}
    for table in tables_of(dataset.manifest):
        places = _source_places(dataset.schema(table))
        names = list(dict.fromkeys(name.partition(".")[0] for place in places for name in place))
        for batch in dataset.batches(table, names, 10_000) if names else ():
            flat = pa.Table.from_batches([batch]).flatten()
            for path, sha256 in places:
                distinct_rows = flat.select([path, sha256]).group_by([path, sha256]).aggregate([])
                pairs = zip(*(column.to_pylist() for column in distinct_rows.columns), strict=True)
                found |= {name: digest for name, digest in pairs if name and digest}
    return found


def _source_places(schema: pa.Schema) -> list[tuple[str, str]]:
    found = [
        (f"{field.name}.source_path", f"{field.name}.source_sha256")
        for field in schema
        if pa.types.is_struct(field.type)
        and {"source_path", "source_sha256"} <= {inner.name for inner in field.type}
    ]
    own = next((name for name in ("source_path", "image") if name in schema.names), None)
    return found + ([(own, "source_sha256")] if own and "source_sha256" in schema.names else [])


def open_recipe(folder: str) -> Dataset:
    """Open a recipe as a dataset of records, from a folder or the URL of its `recipe.json`."""
    place, _, name = folder.rpartition("/")
    if name == FILE_NAME:
        folder = place or ("/" if folder.startswith("/") else ".")
    url = storage.join(folder, FILE_NAME)
    storage.check_reachable(url)
    try:
        with storage.open_below(folder, FILE_NAME) as stream:
            data = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"{folder} is not a recipe: it contains no {FILE_NAME}. To write a recipe, run "
            "eqforge export DATASET --format recipe."
        ) from error
    except OSError as error:
        raise InputError(f"{url}: cannot be read: {error.strerror or error}") from error
    manifest = manifest_of(data, url, FORMAT, "a recipe")
    name = manifest.dataset
    unknown = [each for each in manifest.tables if each in LEFT_OUT or not table_type(name, each)]
    if unknown:
        raise InputError(f"{url}: invalid recipe: the dataset {name} has no table {unknown[0]!r}")
    return Dataset(folder=folder.rstrip("/") or "/", manifest=manifest)


def open_dataset_or_recipe(folder: str) -> Dataset:
    is_file = folder.rpartition("/")[2] == FILE_NAME
    is_recipe = is_file or storage.exists(storage.join(folder, FILE_NAME))
    return open_recipe(folder) if is_recipe else open_dataset(folder)
