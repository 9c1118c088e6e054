"""Datasets of others: what their manifests and files may not do to any command that reads them."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge import cli
from eqforge.commands import verify
from eqforge.schemas.tables.pairs import IMAGES_TABLE
from tests.fuzz.datasets import READERS, outcome_of_reader
from tests.made_datasets import describe, write_squares

SAMPLES = "data/samples-00000-of-00001.parquet"
PICTURES = "data/images-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_squares(tmp_path_factory.mktemp("datasets") / "d", seeds=1)


@pytest.fixture
def dataset(good: Path, tmp_path: Path) -> Path:
    (tmp_path / "ids").write_text("1\n")
    return Path(shutil.copytree(good, tmp_path / "d"))


def manifest_of(dataset: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((dataset / "dataset.json").read_text())
    change(manifest)
    (dataset / "dataset.json").write_text(json.dumps(manifest))


def named(path: str) -> Callable[[Path], None]:
    return lambda dataset: manifest_of(
        dataset, lambda m: m["tables"]["samples"][0].update(path=path)
    )


def with_manifest(data: bytes) -> Callable[[Path], None]:
    return lambda dataset: void((dataset / "dataset.json").write_bytes(data))


def void(_: object) -> None:
    """Takes what a call returns."""


def of_fields(**fields: Any) -> Callable[[Path], None]:
    return lambda dataset: manifest_of(dataset, lambda manifest: manifest.update(fields))


MANIFESTS: dict[str, Callable[[Path], None]] = {
    "above the folder": named("../d/" + SAMPLES),
    "above, further down": named("data/../../d/" + SAMPLES),
    "absolute": named("/etc/passwd"),
    "a device": named("/dev/zero"),
    "a NUL": named("data/samples\0.parquet"),
    "a URL in a URL": named("data/x::http://127.0.0.1:9/a.parquet"),
    "a terminal's escape": named("data/\x1b[2J.parquet"),
    "empty": named(""),
    "lists in lists": with_manifest(b'{"config": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "17 million bytes": with_manifest(b" " * 17_000_000),
    "no text": with_manifest(b"\xff\xfe\x00"),
    "a list": with_manifest(b"[]"),
    "tables of a wrong type": of_fields(tables=[]),
    "files of a wrong type": of_fields(tables={"samples": [3]}),
    "a count below zero": lambda dataset: manifest_of(
        dataset, lambda m: m["tables"]["samples"][0].update(rows=-1)
    ),
    "a table's name that a terminal obeys": of_fields(tables={"\x1b[2J": []}),
    "a name that is empty": of_fields(dataset=""),
    "the same file twice": lambda dataset: manifest_of(
        dataset, lambda m: m["tables"].update(rejects=m["tables"]["samples"])
    ),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_that_is_none_is_one_sentence_of_every_command(
    dataset: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    MANIFESTS[kind](dataset)

    for reader in READERS:
        assert outcome_of_reader(reader, dataset.parent) == "refused"


def linked(dataset: Path) -> None:
    (dataset / SAMPLES).rename(dataset.parent / "elsewhere")
    (dataset / SAMPLES).symlink_to(dataset.parent / "elsewhere")


def folder_linked(dataset: Path) -> None:
    (dataset / "data").rename(dataset.parent / "elsewhere")
    (dataset / "data").symlink_to(dataset.parent / "elsewhere")


def piped(dataset: Path) -> None:
    (dataset / SAMPLES).unlink()
    os.mkfifo(dataset / SAMPLES)


def endless(dataset: Path) -> None:
    (dataset / SAMPLES).unlink()
    (dataset / SAMPLES).symlink_to("/dev/zero")


def a_folder(dataset: Path) -> None:
    (dataset / SAMPLES).unlink()
    (dataset / SAMPLES).mkdir()


@pytest.mark.timeout(120)  # for what would wait for a pipe, or read forever
@pytest.mark.parametrize("kind", [linked, folder_linked, piped, endless, a_folder])
def test_what_is_no_plain_file_below_the_folder_is_not_read(
    dataset: Path, capsys: pytest.CaptureFixture[str], kind: Callable[[Path], None]
) -> None:
    kind(dataset)

    for reader in READERS[1:]:
        assert outcome_of_reader(reader, dataset.parent) == "refused"
    assert verify.main([str(dataset)]) == 1
    assert "is not a regular file" in capsys.readouterr().out


@pytest.mark.parametrize("place", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_manifest_that_is_no_plain_file_is_not_read(
    dataset: Path, place: Callable[[Path], None]
) -> None:
    (dataset / "dataset.json").unlink()
    place(dataset / "dataset.json")

    for reader in READERS:
        assert outcome_of_reader(reader, dataset.parent) == "refused"


def changed(dataset: Path, path: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Writes a table anew, and the manifest so that it knows of it."""
    pq.write_table(change(pq.read_table(dataset / path)), dataset / path)
    describe(dataset)


def without(name: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns([name])


def as_column(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = pa.array([value] * table.num_rows)
        return table.set_column(table.column_names.index(name), name, values)

    return change


TABLES: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "no ids": (without("sample_id"), "its samples have no column 'sample_id'"),
    "no second caption": (without("caption_1"), "its samples have no column 'caption_1'"),
    "null ids": (as_column("sample_id", None), "a row has no value in the column 'sample_id'"),
    "null captions": (as_column("caption_0", None), "a row has no value in the column 'caption_0'"),
    "null images": (as_column("image_0_id", None), "a row has no value in the column 'image_0_id'"),
    "numbers for captions": (as_column("caption_0", 3), "expected string"),
    "lists for ids": (as_column("sample_id", ["a"]), "expected string"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_columns_that_a_table_does_not_have_are_one_sentence(
    dataset: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Of the contact sheet; other commands are told by the same reader."""
    change, message = TABLES[kind]
    changed(dataset, SAMPLES, change)

    with pytest.raises(SystemExit) as left:
        cli.main(["inspect", str(dataset), "--sheet", str(dataset.parent / "sheet.png")])

    said = capsys.readouterr().err
    assert (left.value.code, said.count("\n")) == (2, 1)
    assert message in said
    assert verify.main([str(dataset)]) == 1


SHA256 = "0123456789abcdef" * 4
PICTURE_FIELDS: dict[str, tuple[str, Any, str]] = {
    "an id above the folder": (
        "image_id",
        "../../out",
        "the image id ../../out is not a SHA",
    ),
    "an id that is absolute": ("image_id", "/tmp/out", "the image id /tmp/out is not a SHA"),
    "an id with a line after it": ("image_id", f"{SHA256}\n", "is not a SHA-256 digest"),
    "an id in capitals": ("image_id", SHA256.upper(), "is not a SHA-256 digest"),
    "a suffix of a program": ("path", f"{SHA256}.desktop", "the image suffix .desktop is not"),
    "a suffix that is none": ("path", SHA256, "is not one of"),
    "no path": ("path", None, "is not one of"),
    "no picture": ("image", None, "is not one of"),
}
WRITERS: dict[str, tuple[str, ...]] = {
    "report": ("report", "{d}", "--output", "{o}"),
    "diff": ("diff", "{a}", "{d}", "--report", "{o}"),
    "review": ("review", "plan", "{d}", "--protocol", "true-and-false", "--output", "{o}"),
    "export": ("export", "{d}", "--format", "imagefolder", "--output", "{o}"),
}


def with_picture_field(dataset: Path, field: str, value: Any) -> None:
    """Changes what the table of pictures says of the first one."""
    table = pq.read_table(dataset / PICTURES)
    rows = table.to_pylist()
    if field == "path":
        rows[0]["image"]["path"] = value
    else:
        rows[0][field] = value
    pq.write_table(pa.Table.from_pylist(rows, table.schema), dataset / PICTURES)
    describe(dataset)


@pytest.mark.parametrize("kind", PICTURE_FIELDS)
@pytest.mark.parametrize("writer", WRITERS)
def test_no_picture_is_written_where_its_id_or_suffix_leads(
    good: Path, dataset: Path, capsys: pytest.CaptureFixture[str], writer: str, kind: str
) -> None:
    field, value, message = PICTURE_FIELDS[kind]
    with_picture_field(dataset, field, value)
    output = dataset.parent / "deep" / "deeper" / "o"
    line = [word.format(a=good, d=dataset, o=output) for word in WRITERS[writer]]
    line += ["--reviewers", "ada", "--overlap", "1"] if writer == "review" else []
    before = sorted(dataset.parent.rglob("*"))

    with pytest.raises(SystemExit) as left:
        cli.main(line)

    said = capsys.readouterr().err.splitlines()
    assert left.value.code == 2
    assert writer == "export" or message in said[-1]
    after = [path for path in dataset.parent.rglob("*") if path not in before and path.is_file()]
    assert [path for path in after if path.name != "eqforge-export.partial.json"] == []


def test_no_row_is_read_of_a_file_whose_bytes_are_others(
    dataset: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray((dataset / SAMPLES).read_bytes())
    data[len(data) // 2] ^= 1
    (dataset / SAMPLES).write_bytes(data)
    opened: list[str] = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)

    assert verify.main([str(dataset)]) == 1

    names = [name for name in opened if name.endswith("samples-00000-of-00001.parquet")]
    assert len(names) <= 1  # by its digest
    assert f"{SAMPLES} was not read, because its bytes do not match" in capsys.readouterr().out


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 32 32\n(x) show\nshowpage\n"


def test_no_command_starts_a_program_on_the_bytes_of_a_dataset(
    dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A picture in PostScript, for which Pillow would start `gs`, in place of all pictures."""
    programs = dataset.parent / "bin"
    programs.mkdir()
    for name in ("gs", "gswin32c", "ghostscript", "convert", "ffmpeg", "rsvg-convert"):
        (programs / name).write_text(f'#!/bin/sh\ntouch "{dataset.parent}/ran-$(basename "$0")"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    started: list[object] = []
    sys.addaudithook(
        lambda event, args: (
            started.append(args[0])
            if event in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec")
            and args[0] != sys.executable  # the sandbox that reads tables
            else None
        )
    )
    table = pq.read_table(dataset / PICTURES)
    rows = [
        row | {"image": {"bytes": EPS, "path": "a.eps"}, "num_bytes": len(EPS)}
        for row in table.to_pylist()
    ]
    pq.write_table(pa.Table.from_pylist(rows, IMAGES_TABLE.schema), dataset / PICTURES)
    describe(dataset)
    readers = [*READERS[:3], *READERS[4:]]  # lint, which loads much, looks at no picture
    for reader in readers:  # libraries look for others by a program, when they are loaded
        outcome_of_reader(reader, dataset.parent)
    started.clear()

    for reader in readers:
        outcome_of_reader(reader, dataset.parent)

    assert not started
    assert not list(dataset.parent.glob("ran-*"))
