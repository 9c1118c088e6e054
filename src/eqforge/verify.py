"""`eqforge verify`: checks a finished dataset against its manifest and against itself."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import tyro
from PIL import Image

from eqforge.generators.text.caption_lint import CaptionSettings, lint_caption, lint_pair
from eqforge.pipelines.command import reported_errors
from eqforge.schemas import storage
from eqforge.schemas.dataset import Dataset, open_dataset
from eqforge.schemas.errors import EqforgeError
from eqforge.schemas.identity import sha256_hex
from eqforge.schemas.tables import SCHEMA_VERSION
from eqforge.transforms.reasons import is_known
from eqforge.transforms.records import is_as_written, table_type

SHOWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Check a finished dataset: files, schemas, books, ids, images and captions."""

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""


def main(argv: list[str]) -> int:
    """Prints what is wrong with a dataset; returns 0 only if nothing is."""
    arguments = tyro.cli(Arguments, args=argv, prog="eqforge verify")
    with reported_errors():
        dataset = open_dataset(arguments.dataset)
        problems = 0
        for name, check in CHECKS.items():
            found = list(_findings(check, dataset))
            problems += len(found)
            print(f"{'ok' if not found else 'FAILED':<7} {name}")
            for line in found[:SHOWN]:
                print(f"        {line}")
            if len(found) > SHOWN:
                print(f"        and {len(found) - SHOWN} more")
        print(f"{dataset.folder}: {'sound' if not problems else f'{problems} problems'}")
        return 1 if problems else 0
    return 2


def _findings(check: Callable[[Dataset], Iterator[str]], dataset: Dataset) -> Iterator[str]:
    """Yields what a check finds; damage that stops it is one more finding."""
    try:
        yield from check(dataset)
    except EqforgeError as error:
        yield str(error)
    except Exception as error:
        # Rows of a file that was tampered with may break any expectation of a check.
        yield f"the rows are not what they should be: {type(error).__name__}: {error}"


def check_files(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every file that is missing, changed or not in the manifest."""
    listed = {file.path for files in dataset.manifest.tables.values() for file in files}
    there = {f"data/{name}" for name in storage.list_files(dataset.url("data"))}
    yield from (f"{path}: not in the manifest" for path in sorted(there - listed))
    for files in dataset.manifest.tables.values():
        for file in files:
            if not storage.exists(dataset.url(file.path)):
                yield f"{file.path}: missing"
            elif storage.digest(dataset.url(file.path)) != (file.num_bytes, file.sha256):
                yield f"{file.path}: its bytes are not those the manifest describes"


def check_schemas(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every file whose columns or rows are not as the manifest says."""
    for table, files in dataset.manifest.tables.items():
        if (kind := table_type(dataset.manifest.dataset, table)) is None:
            yield f"{table}: no table of a {dataset.manifest.dataset} dataset"
            continue
        for file in files:
            system, path = storage.locate(dataset.url(file.path))
            try:
                with system.open(path, "rb") as stream:
                    metadata = pq.read_metadata(stream)
            except (OSError, pa.ArrowInvalid) as error:
                yield f"{file.path}: not readable: {error}"
                continue
            schema = metadata.schema.to_arrow_schema()
            if not schema.equals(kind.schema):
                yield f"{file.path}: its columns are not those of {table}"
            if (schema.metadata or {}).get(b"schema_version") != SCHEMA_VERSION.encode():
                yield f"{file.path}: schema version is not {SCHEMA_VERSION}"
            if metadata.num_rows != file.rows:
                yield f"{file.path}: {metadata.num_rows} rows, the manifest says {file.rows}"


def check_rows(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every file whose rows are not those it was written with."""
    for table, files in dataset.manifest.tables.items():
        kind = table_type(dataset.manifest.dataset, table)
        for file in files:
            if kind is not None and not is_as_written(dataset, file.path, kind):
                yield f"{file.path}: its rows are not those it was written with"


def check_books(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every stage whose books do not balance or do not match the rows."""
    manifest = dataset.manifest
    counted = Counter(
        (row["stage"], row["reason"]) for row in dataset.rows("rejects", ["stage", "reason"])
    )
    booked: Counter[tuple[str, str]] = Counter()
    for stage, books in manifest.stages.items():
        booked.update({(stage, reason): count for reason, count in books.reasons.items()})
        if not books.is_balanced():
            yield f"{stage}: {books.candidates} candidates, {books.kept} + {books.rejected} left"
    for stage, reason in sorted(counted | booked):
        if counted[stage, reason] != booked[stage, reason]:
            rows, entries = counted[stage, reason], booked[stage, reason]
            yield f"{stage}, {reason}: {rows} rows, {entries} booked"
        if not is_known(stage, reason):
            yield f"{stage}, {reason}: not a documented reason"
    kept = [books.kept for books in manifest.stages.values()][-1:]
    if kept != [manifest.num_rows("samples")]:
        yield f"{sum(kept)} candidates kept, {manifest.num_rows('samples')} samples"


def check_ids(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every id that is not unique or refers to nothing."""
    keys = {"samples": "sample_id", "images": "image_id", "captions": "caption_id"}
    ids = {
        table: Counter(row[key] for row in dataset.rows(table, [key]))
        for table, key in keys.items()
        if table in dataset.manifest.tables
    }
    for table, found in ids.items():
        yield from (f"{table}: {name}: {count} rows" for name, count in found.items() if count > 1)
    used: set[str] = set()
    for sample_id, image_id in _image_references(dataset):
        used.add(image_id)
        if image_id not in ids["images"]:
            yield f"sample {sample_id}: no image {image_id}"
    yield from (
        f"image {name}: nothing uses it" for name in sorted(set(ids.get("images", ())) - used)
    )


def _image_references(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Yields (row id, image id) for every reference to an image."""
    for table, key in (("samples", "sample_id"), ("captions", "caption_id")):
        names = _columns(dataset, table)
        references = [name for name in names if name.startswith("image_") and name.endswith("id")]
        if "images" in dataset.manifest.tables and references:
            for row in dataset.rows(table, [key, *references]):
                yield from ((row[key], row[name]) for name in references if row[name] is not None)


def _columns(dataset: Dataset, table: str) -> list[str]:
    first = next(dataset.batches(table, rows=1), None) if table in dataset.manifest.tables else None
    return [] if first is None else first.schema.names


def check_images(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every image that does not decode or is not what its row says."""
    if "images" not in dataset.manifest.tables:
        return
    for row in dataset.rows("images", ["image_id", "image", "width_px", "height_px", "num_bytes"]):
        data = row["image"]["bytes"]
        if sha256_hex(data) != row["image_id"] or len(data) != row["num_bytes"]:
            yield f"image {row['image_id']}: its bytes are others"
            continue
        try:
            with Image.open(io.BytesIO(data)) as image:
                image.load()
                size = image.size
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            yield f"image {row['image_id']}: does not decode: {error}"
            continue
        if size != (row["width_px"], row["height_px"]):
            yield f"image {row['image_id']}: is {size[0]}x{size[1]}, its row says otherwise"


def check_captions(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every caption pair that the dataset's own settings refuse."""
    settings = dataset.manifest.config.get("settings")
    if settings is None:
        return
    limits = CaptionSettings(**settings["captions"])
    for row in dataset.rows("samples", ["sample_id", "caption_0", "caption_1", "annotation"]):
        for name in ("caption_0", "caption_1"):
            rejection = lint_caption(row[name], limits)
            if rejection is not None:
                yield f"sample {row['sample_id']}: {name}: {rejection.reason}"
        equal = lint_pair(row["caption_0"], row["caption_1"])
        if equal is not None and settings["distinct_captions"]:
            yield f"sample {row['sample_id']}: {equal.reason}"
        json.loads(row["annotation"])


CHECKS: dict[str, Callable[[Dataset], Iterator[str]]] = {
    "files and digests": check_files,
    "schemas": check_schemas,
    "rows": check_rows,
    "books": check_books,
    "ids": check_ids,
    "images": check_images,
    "captions": check_captions,
}
