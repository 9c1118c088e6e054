"""The checks of `eqforge verify`; each yields a line per fault."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from eqforge.commands.row_checks import (
    MAX_MEASURED,
    check_locked_areas,
    check_scene_captions,
    check_scores,
    check_specs,
    watched,
)
from eqforge.core.console import ticked
from eqforge.core.errors import InputError
from eqforge.core.files import disk, storage
from eqforge.core.files.pictures import BadImage, TooManyPixels, read_untrusted
from eqforge.core.identity import sha256_hex
from eqforge.core.visible import counted, shortened
from eqforge.generators.text.caption_lint import CaptionSettings, lint_caption, lint_pair
from eqforge.generators.text.lints.lint import lint_records
from eqforge.pipelines import stage_of
from eqforge.schemas.dataset import croissant
from eqforge.schemas.dataset.documents import DOCUMENTS, SUMS
from eqforge.schemas.dataset.manifest import MAX_BYTES, DataFile, with_final_paths
from eqforge.schemas.dataset.reader import Dataset, read_records
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.records.values import SCHEMA_VERSION
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.datasets import TYPES, dataset_type, table_type
from eqforge.schemas.tables.description import TableType
from eqforge.sources.labelled_captions import dataset_captions
from eqforge.transforms.dataset.write import fingerprint_records
from eqforge.transforms.filters.minimality import hash_distance, perceptual_hash


def check_files(dataset: Dataset) -> Iterator[str]:
    listed = {file.path for files in dataset.manifest.tables.values() for file in files}
    folders = {path.rpartition("/")[0] for path in listed}
    there = {f"{at}/{name}" for at in folders for name in storage.list_files(dataset.url(at))}
    yield from (f"{path} is not listed in the manifest" for path in sorted(there - listed))
    yield from (
        f"the table {table} is missing"
        for table in ("samples", "rejects")
        if not dataset.files(table)
    )
    yield from (f"{path}: {fault}" for path, fault in dataset.changed.items())


def changed_files(dataset: Dataset) -> dict[str, str]:
    files = (file for files in dataset.manifest.tables.values() for file in files)
    faults = {file.path: _fault_of_file(dataset, file) for file in files}
    return {path: fault for path, fault in faults.items() if fault is not None}


def _fault_of_file(dataset: Dataset, file: DataFile) -> str | None:
    try:
        with storage.open_below(dataset.folder, file.path) as stream:
            is_as_long = stream.seek(0, os.SEEK_END) == file.num_bytes
            stream.seek(0)
            if is_as_long and disk.digest_stream(stream)[1] == file.sha256:
                return None
    except FileNotFoundError:
        return "the file is missing"
    except OSError as error:
        return f"the file cannot be read: {error.strerror}"
    except InputError as error:
        return str(error).replace(dataset.url(file.path), "it")
    return "its bytes do not match the manifest"


def check_description(dataset: Dataset) -> Iterator[str]:
    """Compare the documents with their digests, and the Croissant description with the manifest.

    While a dataset is moved into place, its documents follow the manifest and are not compared.
    """
    if dataset.manifest != with_final_paths(dataset.manifest):
        return
    sums = _beside(dataset, SUMS).decode("utf-8", "replace")
    for name in DOCUMENTS if sums else ():
        if f"{sha256_hex(_beside(dataset, name))}  {name}\n" not in sums:
            yield f"{name} does not match {SUMS}; run eqforge card to rewrite both"
    if not (description := _beside(dataset, croissant.FILE_NAME)):
        return
    try:
        described = croissant.described_files(description.decode())
    except (ValueError, RecursionError) as error:
        yield f"{croissant.FILE_NAME}: cannot be read: {error}"
        return
    different = described.items() ^ croissant.listed_files(dataset.manifest).items()
    for path in sorted({path for path, _ in different}):
        yield f"{croissant.FILE_NAME}: the entry {shortened(path, 300)} differs from the manifest"


def _beside(dataset: Dataset, name: str) -> bytes:
    """Return a file next to the tables; nothing if missing, as in datasets of earlier versions."""
    try:
        with storage.open_below(dataset.folder, name) as stream:
            return stream.read(MAX_BYTES)
    except FileNotFoundError:
        return b""


def check_schemas(dataset: Dataset) -> Iterator[str]:
    for table, files in dataset.manifest.tables.items():
        if (kind := table_type(dataset.manifest.dataset, table)) is None:
            yield f"{table}: {dataset.manifest.dataset} datasets have no table with this name"
            continue
        for file in files:
            try:
                with dataset.open_file(file.path) as opened:
                    schema = opened.schema
            except InputError as error:
                yield f"{file.path}: cannot be read: {error}"
                continue
            if not schema.equals(kind.schema):
                yield f"{file.path}: its columns do not match the table {table}"
            if (schema.metadata or {}).get(b"schema_version") != SCHEMA_VERSION.encode():
                yield f"{file.path}: the schema version is not {SCHEMA_VERSION}"


def check_rows(dataset: Dataset) -> Iterator[str]:
    """Check every row against its ranges and relations, and every file against its fingerprint."""
    faults: list[str] = []
    for table, files in dataset.manifest.tables.items():
        kind = table_type(dataset.manifest.dataset, table)
        for file in files:
            if kind is None:
                continue
            records = read_records(dataset, file.path, kind)
            records = ticked(records, file.rows, "rows", f"rows of {file.path}")
            try:
                found = fingerprint_records(kind.schema, watched(dataset, kind, records, faults))
                if found != dataset.fingerprint(file.path):
                    faults.append(f"{file.path}: its rows have changed since the file was written")
            except msgspec.ValidationError as error:
                faults.append(f"{file.path}: {error}")
            yield from faults
            faults.clear()


def check_counts(dataset: Dataset) -> Iterator[str]:
    manifest = dataset.manifest
    known = {stage: stage_of(manifest, stage) for stage in manifest.stages}
    stored = Counter(
        (row["stage"], row["reason"]) for row in dataset.rows("rejects", ["stage", "reason"])
    )
    reported: Counter[tuple[str, str]] = Counter()
    for stage, counts in manifest.stages.items():
        reported.update({(stage, reason): count for reason, count in counts.reasons.items()})
        if known[stage] is None:
            yield f"{stage} is not a documented stage"
        if not counts.is_balanced():
            yield (
                f"{stage}: {counts.kept} kept and {counts.rejected} rejected candidates do not add "
                f"up to {counts.candidates}"
            )
    for stage, reason in sorted(stored | reported):
        if stored[stage, reason] != reported[stage, reason]:
            rows, entries = counted(stored[stage, reason], "rows"), reported[stage, reason]
            yield (
                f"{stage}, {reason}: the rejects table has {rows}, but the manifest counts "
                f"{entries:,}"
            )
        if not (known.get(stage) or Stage(stage)).may_reject_for(reason):
            yield f"{stage}: {reason} is not a documented reason"
    findings: Counter[tuple[str, str]] = Counter()
    if "findings" in manifest.tables:
        found = dataset.rows("findings", ["task", "rule"])
        findings.update((row["task"], row["rule"]) for row in found)
    for task, rules in manifest.findings.items():
        findings.subtract({(task, rule): count for rule, count in rules.items()})
    for (task, rule), count in sorted(findings.items()):
        if count:
            yield f"{task}, {rule}: the number of findings differs from the manifest by {count:+}"
    if manifest.unchanged is not None and "words_changed" in dataset.columns("samples"):
        changed = (row["words_changed"] for row in dataset.rows("samples", ["words_changed"]))
        unchanged = sum(not one for one in changed)
        if unchanged != manifest.unchanged:
            yield (
                f"the words of {counted(unchanged, 'samples')} did not change, but the manifest "
                f"says {manifest.unchanged:,}"
            )
    kept = [counts.kept for counts in manifest.stages.values()][-1:]
    if kept != [manifest.num_rows("samples")]:
        yield (
            f"the last stage kept {counted(sum(kept), 'candidates')}, but the samples table has "
            f"{counted(manifest.num_rows('samples'), 'rows')}"
        )


def check_ids(dataset: Dataset) -> Iterator[str]:
    kinds = kinds_of(dataset)
    ids = {
        kind.name: Counter(_key(kind, row) for row in dataset.rows(kind.name, kind.key))
        for kind in kinds
    }
    name = dataset.manifest.dataset
    datasets = TYPES if name in COMBINED else {name}
    if "dataset" in dataset.columns("samples"):
        for row in dataset.rows("samples", ["sample_id", "dataset"]):
            if row["dataset"] not in datasets:
                yield f"sample {row['sample_id']} has the wrong dataset {row['dataset']}"
    details = {kind.name: ids[kind.name] for kind in kinds if "sample_id" in kind.references}
    if "task" in dataset.columns("samples"):
        for row in dataset.rows("samples", ["sample_id", "task"]):
            if row["sample_id"] not in details.get(row["task"], ()):
                yield f"sample {row['sample_id']} has no row in the table {row['task']}"
    for table, found in ids.items():
        yield from (
            f"{table}: {count} rows have the id {name}"
            for name, count in found.items()
            if count > 1
        )
    unused = {kind.name: set(ids[kind.name]) for kind in kinds if kind.holds_pictures}
    for key, other, referred in _references(dataset, kinds):
        unused.get(other.name, set()).discard(referred)
        if referred not in ids.get(other.name, ()):
            yield f"{key} refers to {row_label(other, referred)}, which does not exist"
    for kind in kinds:
        for name in sorted(unused.get(kind.name, ())):
            yield f"{row_label(kind, name)} is not used by any row"


def kinds_of(dataset: Dataset) -> list[TableType]:
    tables = dataset_type(dataset.manifest.dataset).tables
    return [kind for kind in tables if kind.name in dataset.manifest.tables]


def _key(kind: TableType, row: Mapping[str, Any]) -> str:
    return " ".join(row[name] for name in kind.key)


def row_label(kind: TableType, key: str) -> str:
    singular = kind.name.removesuffix("s")
    return f"{singular} {key}" if kind.holds_pictures else f"row {key} of {kind.name}"


def _references(
    dataset: Dataset, kinds: Iterable[TableType]
) -> Iterator[tuple[str, TableType, str]]:
    """Yield (row, other table, key of a row in it) for all references, including deleted tables."""
    table = dataset_type(dataset.manifest.dataset).table
    for kind in kinds:
        tables = {column: table(name) for column, name in kind.references.items()}
        columns = list(dict.fromkeys((*kind.key, *tables)))
        for row in dataset.rows(kind.name, columns) if tables else ():
            key = f"{kind.name}: {_key(kind, row)}"
            yield from ((key, other, row[c]) for c, other in tables.items() if row[c] is not None)


def check_images(dataset: Dataset) -> Iterator[str]:
    for kind in kinds_of(dataset):
        if kind.holds_pictures:
            (key,) = kind.key
            columns = [key, "image", "width_px", "height_px", "num_bytes"]
            columns += ["phash"] if "phash" in kind.schema.names else []
            rows, total = dataset.rows(kind.name, columns), dataset.manifest.num_rows(kind.name)
            for row in ticked(rows, total, kind.name, "pictures"):
                if fault := _fault(row, row[key]):
                    yield f"{row_label(kind, row[key])}: {fault}"


def _fault(row: dict[str, Any], media_id: str) -> str | None:
    data = (row["image"] or {}).get("bytes") or b""
    if sha256_hex(data) != media_id or len(data) != row["num_bytes"]:
        return "its bytes do not match its digest or size"
    try:
        suffix, pixels = read_untrusted(data, row["width_px"] * row["height_px"])
    except BadImage as error:
        return f"it cannot be decoded: {error}"
    except TooManyPixels as error:
        return f"it has {error}, but its row says {row['width_px']}x{row['height_px']}"
    height, width = pixels.shape[:2]
    if (width, height) != (row["width_px"], row["height_px"]):
        return f"it is {width}x{height}, but its row says {row['width_px']}x{row['height_px']}"
    if row["image"]["path"] != media_id + suffix:
        return f"its path is not {media_id + suffix}"
    phash = perceptual_hash(pixels)
    if hash_distance(phash, row.get("phash", phash)) > 4:  # other decoders of JPEG
        return f"its perceptual hash is {phash}, but its row says {row['phash']}"
    return None


def check_captions(dataset: Dataset) -> Iterator[str]:
    settings = dataset.manifest.config.get("settings")
    if settings is None:
        return
    limits = settings.get("captions")  # captions that a generator made are not linted
    for row in dataset.rows("samples", ["sample_id", "caption_0", "caption_1"]):
        for name in ("caption_0", "caption_1") if limits is not None else ():
            if rejection := lint_caption(row[name], CaptionSettings(**limits)):
                yield f"sample {row['sample_id']}: {name} is rejected: {rejection.reason}"
        equal = lint_pair(row["caption_0"], row["caption_1"])
        if equal is not None and settings["distinct_captions"]:
            yield f"sample {row['sample_id']}: its captions are rejected: {equal.reason}"


def check_lints(dataset: Dataset) -> Iterator[str]:
    """Lint a dataset's captions at error level.

    Long edits are left to `eqforge lint`, because a dataset may target models that read longer
    captions, and one built with a token limit has none beyond CLIP's context length.
    """
    for found in lint_records(ticked(dataset_captions(dataset), None, "records", "lints")):
        if found.severity == "error" and found.kind != "edit_beyond_context":
            yield f"sample {found.record_id}: {found.field}: {found.kind}: {found.detail}"


def notes(check: str, dataset: Dataset) -> Iterator[str]:
    """Yield what a check without findings skipped."""
    if check == "description" and not _beside(dataset, SUMS):
        yield f"{SUMS} is missing, so the documents were not checked; run eqforge card to write it"
    for table in dataset.manifest.tables if check == "rows" else ():
        if (rows := dataset.manifest.num_rows(table)) > MAX_MEASURED:
            yield (
                f"{table}: only about {MAX_MEASURED:,} of {rows:,} rows, chosen by hash, were "
                "measured again"
            )


CHECKS: dict[str, Callable[[Dataset], Iterator[str]]] = {
    "files and digests": check_files,
    "description": check_description,
    "schemas": check_schemas,
    "rows": check_rows,
    "counts": check_counts,
    "ids": check_ids,
    "images": check_images,
    "captions": check_captions,
    "specs": check_specs,
    "scene captions": check_scene_captions,
    "locked areas": check_locked_areas,
    "stored scores": check_scores,
    "lints of error level": check_lints,
}


SCORES = "stored scores"
LINTS = "lints of error level"
