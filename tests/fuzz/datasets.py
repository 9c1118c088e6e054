"""Whole datasets as inputs: small good ones, ways to damage them, and every command that reads one.

A dataset is handed around as one zip archive of its files.
"""

import contextlib
import functools
import hashlib
import io
import json
import random
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge import cli
from eqforge.core.errors import InputError
from eqforge.evaluation.efficiency.measure import choose_items
from eqforge.evaluation.scoring.batches import cut_batches
from eqforge.evaluation.scoring.index import make_index, make_pairs, task_of
from eqforge.evaluation.scoring.pictures import Preparation
from eqforge.evaluation.shortcuts.command import _read as read_audited
from eqforge.evaluation.tables.samples import read_samples
from eqforge.evaluation.training.examples import read_examples
from eqforge.evaluation.training.feeds import copy_pictures
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.dataset.shelf import make_shelf
from tests.fuzz import mutate
from tests.fuzz.limits import refuse_without_memory
from tests.made_datasets import write_captions, write_squares

MANIFEST = "dataset.json"
_SPOILT: tuple[Any, ...] = (*("", "../x", "\x1b[2J", "\u202e", "x" * 5_000, "a\nb"), None)


@functools.cache
def seeds() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        pairs = write_squares(Path(folder, "pairs"), seeds=1)
        captions = write_captions(Path(folder, "captions"))
        return tuple(_packed(_files(made)) for made in (pairs, captions))


def _files(folder: Path) -> dict[str, bytes]:
    """The files of a dataset, without what the build leaves beside them: it names this machine."""
    found = {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file()}
    return {name: p.read_bytes() for name, p in found.items() if not name.startswith(f"{WORK}/")}


def _described(files: dict[str, bytes]) -> dict[str, bytes]:
    """Brings the manifest to what the files are."""
    manifest = json.loads(files[MANIFEST])
    for entry in (entry for entries in manifest["tables"].values() for entry in entries):
        data = files[entry["path"]]
        entry |= {"num_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        with contextlib.suppress(Exception):
            entry["rows"] = pq.read_metadata(io.BytesIO(data)).num_rows
    return files | {MANIFEST: json.dumps(manifest).encode()}


def _packed(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return stream.getvalue()


def _unpacked(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # of a mutation that knows nothing of archives
        return {MANIFEST: data}


def _unpack(data: bytes, folder: Path) -> None:
    for name, content in _unpacked(data).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def spoil_manifest(data: bytes, rng: random.Random) -> bytes:
    """Changes the manifest of a dataset."""
    files = _unpacked(data)
    return _packed(files | {MANIFEST: mutate.json_text(files[MANIFEST], rng)})


def spoil_tables(data: bytes, rng: random.Random) -> bytes:
    """Changes a table in its columns, values or bytes; mostly the manifest knows of it."""
    files = _unpacked(data)
    path = rng.choice(sorted(name for name in files if name.endswith(".parquet")))
    if rng.random() < 0.5:
        try:
            changed = _rewritten(files[path], rng)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError, OSError):
            changed = mutate.damage(files[path], rng)
    else:
        changed = _damaged(files[path], rng)
    files[path] = changed
    return _packed(_described(files) if rng.random() < 0.9 else files)


def _damaged(data: bytes, rng: random.Random) -> bytes:
    """Damages the footer or the pages, and keeps what every reader looks at first."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = len(data) - 8 - length
    if rng.random() < 0.1:
        return mutate.damage(data, rng)
    if rng.random() < 0.5 or footer == 4:  # a table without rows has no pages
        made_anew = mutate.damage(data[footer:-8], rng)
        return data[:footer] + made_anew + len(made_anew).to_bytes(4, "little") + b"PAR1"
    pages = bytearray(data[:footer])
    place = rng.randrange(4, footer)
    for byte in range(place, min(footer, place + rng.choice((1, 1, 2, 8)))):
        pages[byte] = rng.choice((0, 255, 127, 128, pages[byte] ^ 1, rng.randrange(256)))
    return bytes(pages) + data[footer:]


def _rewritten(data: bytes, rng: random.Random) -> bytes:
    table = pq.read_table(io.BytesIO(data))
    for _ in range(rng.choice((1, 1, 2))):
        table = _changed(table, rng)
    stream = io.BytesIO()
    pq.write_table(
        table,
        stream,
        compression=rng.choice(("zstd", "snappy", "gzip", "none")),
        use_dictionary=rng.random() < 0.7,
        store_schema=rng.random() < 0.5,
        row_group_size=rng.choice((1, 3, 1_000)),
        data_page_version=rng.choice(("1.0", "2.0")),
        write_statistics=rng.random() < 0.5,
    )
    return stream.getvalue()


def _changed(table: pa.Table, rng: random.Random) -> pa.Table:
    place, rows = rng.randrange(table.num_columns), table.num_rows
    name = table.column_names[place]
    column = table.column(place)
    way = rng.randrange(7)
    if way == 0:
        return table.drop_columns([name])
    if way == 1:
        return table.rename_columns([rng.choice(table.column_names) if n == name else n
                                     for n in table.column_names])  # fmt: skip
    if way == 2:
        return pa.concat_tables([table, table.slice(0, 1)])
    if way == 3:
        kinds: tuple[Any, ...] = (
            pa.array([1] * rows),
            pa.array([None] * rows),
            pa.array([2.5] * rows, pa.float32()),
            pa.array([b"\xff\xfe"] * rows),
            pa.array([b"\xff\xfe"] * rows).view(pa.string()),
            pa.array([["a", None]] * rows),
            pa.array([{"bytes": None, "path": None}] * rows),
            pa.array([{"bytes": "x" * 9, "path": 3}] * rows),
            pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 10**6]),
            pa.array([["x" * 10**4] * 300] * rows).cast(pa.list_(pa.string())),
            pa.array(np.zeros(rows, "M8[s]")),
        )
        return table.set_column(place, name, rng.choice(kinds))
    values = column.to_pylist()
    if values:
        spoilt = rng.randrange(len(values))
        if isinstance(values[spoilt], str):
            values[spoilt] = rng.choice(_SPOILT)
        elif isinstance(values[spoilt], int | float):
            values[spoilt] = rng.choice((0, -1, 2**31 - 1, None))
        else:
            values[spoilt] = mutate.change(values[spoilt], rng)
    field = table.schema.field(place).with_nullable(True)
    return table.set_column(place, field, pa.array(values, column.type))


def _command(*line: str) -> Callable[[Path], object]:
    def run(folder: Path) -> object:
        words = [word.format(dataset=folder / "d", folder=folder) for word in line]
        return cli.main(words)

    return run


def _scored(folder: Path) -> object:
    dataset = open_dataset(str(folder / "d"))
    task = task_of(dataset)
    index = make_index(dataset, task)
    make_pairs(dataset, task, index)
    batches, _ = cut_batches(dataset, index.image_numbers(), 4, 1)
    ready = Preparation(
        dataset=dataset, batches=batches, prepare=str, reads_pixels=True, max_pixels=10**6
    )
    return [ready[number] for number in range(len(ready))], choose_items(dataset, task, 3, 0)[0]


def _trained(folder: Path) -> object:
    dataset = open_dataset(str(folder / "d"))
    copy_pictures(dataset, read_examples(dataset).image_ids(), folder / "pictures.arrow")
    return make_shelf(dataset)


def _measured(folder: Path) -> object:
    dataset: Dataset = open_dataset(str(folder / "d"))
    return read_samples(dataset, "source_id", "split")


def _audited(folder: Path) -> object:
    pairs, _ = read_audited(folder / "d")
    return list(pairs)


_VL = ("--format", "vl-checklist", "--output", "{folder}/export", "--overwrite")
_PAIRS = ("--format", "pairs", "--output", "{folder}/pairs", "--overwrite")
_SHOWN = ("--report", "{folder}/shown", "--overwrite")
_ASKED = ("--protocol", "true-and-false", "--reviewers", "ada", "--overwrite")
READERS: tuple[Callable[[Path], object], ...] = (
    _command("verify", "{dataset}"),
    _command("inspect", "{dataset}", "--full"),
    _command("inspect", "{dataset}", "--sheet", "{folder}/sheet.png"),
    _command("lint", "{dataset}"),
    _command("overlap", "{dataset}", "--training-ids", "{folder}/ids", "--output", "{folder}/o"),
    _command("export", "{dataset}", *_VL),
    _command("export", "{dataset}", *_PAIRS),
    _command("metrics", "{dataset}", "{folder}/scores"),
    _scored,
    _trained,
    _measured,
    _audited,
    _command("report", "{dataset}", "--output", "{folder}/report", "--overwrite"),
    _command("review", "plan", "{dataset}", *_ASKED, "--output", "{folder}/tasks"),
    _command("diff", "{folder}/good0", "{dataset}", *_SHOWN),
    _command("diff", "{folder}/good1", "{dataset}", *_SHOWN),
)


def read(data: bytes, folder: Path) -> Any:
    """Gives a dataset to three of the readers, which its bytes choose, or a good one to all."""
    shutil.rmtree(folder / "d", ignore_errors=True)
    _unpack(data, folder / "d")
    for number, good in enumerate(seeds()):
        if not (folder / f"good{number}").exists():
            _unpack(good, folder / f"good{number}")
    (folder / "ids").write_text("1\n")
    first, number = zlib.crc32(data), len(READERS) if data in seeds() else 3
    chosen = [READERS[(first + 3 * n) % len(READERS)] for n in range(number)]
    outcomes = {outcome_of_reader(reader, folder) for reader in chosen}
    return "records" if "records" in outcomes else "refused"


def outcome_of_reader(reader: Callable[[Path], object], folder: Path) -> str:
    """Tells whether a command took a dataset or refused it, in one sentence."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = reader(folder)
    except SystemExit as error:
        refuse_without_memory(error)
        status = error.code
    except InputError as error:
        refuse_without_memory(error)
        said.write(f"{error}\n")
        status = 2
    lines = said.getvalue().splitlines()
    if status == 2:
        assert lines, "refused without a word"
        assert all(line.isprintable() for line in lines), f"not one sentence: {lines}"
        assert len(lines[-1].replace(str(folder), "")) <= 1_000, f"a long message: {lines}"
    return "refused" if status == 2 else "records"
