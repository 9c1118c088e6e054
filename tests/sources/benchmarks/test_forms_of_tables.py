"""The same rows in the forms in which programs write tables: read, or refused with what to do.

Most forms come from bug reports of other readers of tables: separators and byte order marks that
the ending does not say, the orientations of pandas' `to_json`, Arrow IPC under the name feather,
packed files, and files that are not what their ending says. Eight more stand with their reports in
tests/pipelines/test_other_tables.py.
"""

import bz2
import csv
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.sources.benchmarks.items import read_items

ROWS = [
    {"id": "a", "image": "x/1.jpg", "caption": "a dog, on a mat", "hard_negative": "a cat, inside"},
    {"id": "b", "image": "2.jpg", "caption": 'two "cups" stand', "hard_negative": "no cups"},
    {"id": "c", "image": "3.jpg", "caption": "一只狗", "hard_negative": "一只猫"},
]
TABLE = pa.Table.from_pylist(ROWS)
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
ARRAY = json.dumps(ROWS).encode()
BY_ID = {row["id"]: {k: v for k, v in row.items() if k != "id"} for row in ROWS}
Write = Callable[[Path], object]


def text(separator: str = ",", encoding: str = "utf-8", **options: Any) -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, ROWS[0].keys(), delimiter=separator, **options)
    writer.writeheader()
    writer.writerows(ROWS)
    return stream.getvalue().encode(encoding)


def cast(kind: pa.DataType) -> pa.Table:
    return TABLE.cast(pa.schema([(name, kind) for name in TABLE.column_names]))


def save(data: bytes) -> Write:
    return lambda path: path.write_bytes(data)


def parquet(table: pa.Table = TABLE, **options: Any) -> Write:
    return lambda path: pq.write_table(table, path, **options)


def pandas(method: str, **options: Any) -> Write:
    return lambda path: getattr(TABLE.to_pandas(), method)(path, **options)


def arrow(path: Path, writer: Callable[..., Any], compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, writer(file, TABLE.schema, options=options) as stream:
        stream.write_table(TABLE)


def packed(path: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, data)


def tarred(path: Path, name: str, data: bytes) -> None:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))


def hugging_face(method: str) -> Write:
    def write(path: Path) -> None:
        datasets = pytest.importorskip("datasets")
        getattr(datasets.Dataset.from_list(ROWS), method)(str(path))

    return write


READ: dict[str, tuple[str, Write]] = {
    "CSV": ("t.csv", save(text())),
    "CSV with CRLF": ("t.csv", save(text(lineterminator="\r\n"))),
    "CSV with a byte order mark": ("t.csv", save(text(encoding="utf-8-sig"))),
    "CSV in UTF-16": ("t.csv", save(text(encoding="utf-16"))),
    "pipes in .csv": ("t.csv", save(text("|"))),
    "CSV with all cells quoted": ("t.csv", save(text(quoting=csv.QUOTE_ALL))),
    "CSV with pandas' index": ("t.csv", pandas("to_csv")),
    "upper case": ("T.CSV", save(text())),
    "TSV": ("t.tsv", save(text("\t"))),
    "commas in .tsv": ("t.tsv", save(text(","))),
    "JSON array": ("t.json", save(ARRAY)),
    "JSON by id": ("t.json", save(json.dumps(BY_ID).encode())),
    "JSON with an array of records": ("t.json", save(b'{"version": 1, "data": ' + ARRAY + b"}")),
    "JSON lines": ("t.jsonl", save(LINES)),
    "JSON lines in .ndjson": ("t.ndjson", save(LINES)),
    "JSON lines with a byte order mark": ("t.jsonl", save(b"\xef\xbb\xbf" + LINES)),
    "JSON lines with blank lines": ("t.jsonl", save(LINES.replace(b"\n", b"\n\n"))),
    "pandas' records": ("t.json", pandas("to_json", orient="records")),
    "pandas' lines": ("t.jsonl", pandas("to_json", orient="records", lines=True)),
    "pandas' index": ("t.json", pandas("to_json", orient="index")),
    "pandas' table": ("t.json", pandas("to_json", orient="table")),
    "Parquet": ("t.parquet", parquet()),
    "Parquet of pandas": ("t.parquet", pandas("to_parquet")),
    "Parquet of polars": ("t.parquet", parquet(cast(pa.large_string()), compression="zstd")),
    "Parquet of string views": ("t.parquet", parquet(cast(pa.string_view()))),
    "Parquet of dictionaries": ("t.parquet", parquet(cast(pa.dictionary(pa.int32(), pa.string())))),
    "Parquet in brotli": ("t.parquet", parquet(compression="brotli")),
    "feather of polars": ("t.feather", partial(arrow, writer=pa.ipc.new_file)),
    "Arrow file": ("t.arrow", partial(arrow, writer=pa.ipc.new_file)),
    "Arrow file in zstd": ("t.arrow", partial(arrow, writer=pa.ipc.new_file, compression="zstd")),
    "Arrow stream": ("t.arrow", partial(arrow, writer=pa.ipc.new_stream)),
    "Arrow file in .ipc": ("t.ipc", partial(arrow, writer=pa.ipc.new_file)),
    "CSV in gzip": ("t.csv.gz", save(gzip.compress(text()))),
    "JSON in gzip": ("t.json.gz", save(gzip.compress(ARRAY))),
    "CSV in zip": ("t.csv.zip", partial(packed, name="t.csv", data=text())),
    "JSON lines in zip": ("t.zip", partial(packed, name="t.jsonl", data=LINES)),
    "datasets' save_to_disk": ("d", hugging_face("save_to_disk")),
    "datasets' to_json": ("t.jsonl", hugging_face("to_json")),
    "datasets' to_csv": ("t.csv", hugging_face("to_csv")),
    "datasets' to_parquet": ("t.parquet", hugging_face("to_parquet")),
}

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 57569\n"
TEXT_FORMS = ".json, .jsonl, .ndjson, .csv, .tsv, .parquet, .arrow, .feather or .ipc"
REFUSED: dict[str, tuple[str, Write, str]] = {
    "Latin-1": ("t.csv", save(b"id,caption\n1,d\xe9\n"), "UTF-8 text: line 2: invalid byte 0xe9"),
    "an array in .jsonl": ("t.jsonl", save(ARRAY), "a file with a JSON array must end in .json"),
    "pandas' split": ("t.json", pandas("to_json", orient="split"), "expected the fields 'caption'"),
    "ORC": ("t.orc", lambda path: pa.orc.write_table(TABLE, str(path)), TEXT_FORMS),
    "pickle": ("t.pkl", pandas("to_pickle"), TEXT_FORMS),
    "Excel": ("t.xlsx", save(b"PK\x03\x04"), "save its sheet as CSV"),
    "CSV in bzip2": ("t.csv.bz2", save(bz2.compress(text())), "unpack it"),
    "Parquet in gzip": (
        "t.parquet.gz",
        save(gzip.compress(b"PAR1")),
        "unpack it, and pass the unpacked file",
    ),
    "a table in a tar": (
        "t.tar",
        partial(tarred, name="t.csv", data=text()),
        "found t.csv; each row needs KEY.json",
    ),
    "a compressed tar": ("t.tar.gz", partial(tarred, name="t.csv", data=text()), "plain .tar"),
    "no ending": ("table", save(LINES), TEXT_FORMS),
    "a pointer of Git LFS": ("t.parquet", save(LFS), "`git lfs pull`"),
    "a page in .json": ("t.json", save(b"<!DOCTYPE html>"), "not valid JSON"),
    "an empty file": ("t.csv", save(b""), "contains no records"),
    "a header alone": ("t.csv", save(b"id,image,caption,hard_negative\n"), "contains no records"),
}


def texts(source: Path) -> list[tuple[str, Any]]:
    found = read_items("own-foils", source)
    return [(item.item_id, item.texts) for item in found]


@pytest.mark.parametrize("form", READ)
def test_the_same_rows_are_read_from_every_form(form: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(LINES)
    name, write = READ[form]
    write(tmp_path / name)
    assert texts(tmp_path / name) == texts(tmp_path / "rows.jsonl")


@pytest.mark.parametrize("form", REFUSED)
def test_other_forms_are_refused_with_what_to_do(form: str, tmp_path: Path) -> None:
    name, write, message = REFUSED[form]
    write(tmp_path / name)
    with pytest.raises(InputError) as refused:
        texts(tmp_path / name)
    assert message in str(refused.value)
