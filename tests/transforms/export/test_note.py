"""An export that was stopped goes on; nothing is deleted but what a note lists."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.schemas.dataset.manifest import DataFile
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.transforms.export.formats import ExportSettings
from eqforge.transforms.export.note import NOTE, PARTIAL, ExportNote, Ledger
from eqforge.transforms.export.run import export_dataset
from eqforge.transforms.export.target import Export
from tests.builds import patch_manifest
from tests.exported import check_note, files, refused, run, small

FORMS = ("pairs", "hf", "webdataset", "imagefolder", "jsonl", "karpathy")


class Killed(BaseException):
    """What a signal raises."""


def stop_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Lets the file behind the first `count` ones fail, halfway."""
    written: list[str] = []
    add = Ledger.add

    def failing(self: Ledger, file: DataFile) -> None:
        if len(written) == count:
            raise Killed
        written.append(file.path)
        add(self, file)

    monkeypatch.setattr(Ledger, "add", failing)


@pytest.mark.parametrize("form", FORMS)
def test_a_stopped_export_goes_on_and_gives_the_same_bytes(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = small(tmp_path / "d", 7, ("test", "val"))
    with_files = form in ("jsonl", "karpathy")
    settings = ExportSettings(format=form, rows_per_file=2, image_files=with_files)
    export_dataset(open_dataset(str(dataset)), settings, str(tmp_path / "whole"))
    whole = files(tmp_path / "whole")

    for count in {0, len(whole) // 3, len(whole) // 2, len(whole) - 2}:
        output = tmp_path / f"out{count}"
        with monkeypatch.context() as patch:
            stop_after(patch, count)
            with pytest.raises(Killed):
                export_dataset(open_dataset(str(dataset)), settings, str(output))
        assert not (output / NOTE).exists()
        done = [each["path"] for each in json.loads((output / PARTIAL).read_text())["files"]]
        assert len(done) == count
        times = {path: (output / path).stat().st_mtime_ns for path in done}
        export_dataset(open_dataset(str(dataset)), settings, str(output))
        assert files(output) == whole
        redone = {path for path in done if (output / path).stat().st_mtime_ns != times[path]}
        assert all(path.endswith(".jsonl") for path in redone)
    check_note(tmp_path / "whole")


def test_a_finished_export_is_checked_and_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = small(tmp_path / "d")
    output = run(dataset, "pairs", tmp_path / "out")
    before = {path: (output / path).stat().st_mtime_ns for path in files(output)}
    run(dataset, "pairs", output)
    (table,) = (output / "data").iterdir()
    assert {path: (output / path).stat().st_mtime_ns for path in files(output)} == before

    good = files(output)
    table.unlink()
    run(dataset, "pairs", output)
    assert files(output) == good
    table.write_bytes(b"mine")
    assert "was changed after the export" in refused(capsys, dataset, "pairs", output)
    assert table.read_bytes() == b"mine"
    assert table.name in refused(capsys, dataset, "pairs", output, "--overwrite")
    assert table.read_bytes() == b"mine"
    table.unlink()
    run(dataset, "pairs", output, "--overwrite")
    assert files(output) == good


def test_overwriting_deletes_what_the_note_lists_and_stops_at_anything_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = small(tmp_path / "d")
    output = run(dataset, "imagefolder", tmp_path / "out")
    (output / "data" / "test" / "mine.txt").write_text("mine")
    (output / "mine.txt").write_text("mine")
    assert "made from different data, settings or" in refused(capsys, dataset, "jsonl", output)

    before = files(output)
    said = refused(capsys, dataset, "jsonl", output, "--overwrite")
    assert "contains 2 unknown or changed files: data/test/mine.txt, mine.txt. Move every" in said
    assert files(output) == before
    (output / "data" / "test" / "mine.txt").unlink()
    (output / "mine.txt").rename(output / ".mine")
    run(dataset, "jsonl", output, "--overwrite")

    assert sorted(files(output)) == [".mine", "README.md", NOTE, "test.jsonl"]


def test_overwriting_that_was_stopped_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = small(tmp_path / "d")
    output = run(dataset, "imagefolder", tmp_path / "out")
    delete, deleted = storage.delete, list[str]()

    def failing(url: str) -> None:
        if len(deleted) == 3:
            raise Killed
        deleted.append(url)
        delete(url)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "delete", failing)
        with pytest.raises(Killed):
            run(dataset, "jsonl", output, "--overwrite")
    assert (output / NOTE).exists()
    run(dataset, "jsonl", output, "--overwrite")
    assert sorted(files(output)) == ["README.md", NOTE, "test.jsonl"]


def test_a_folder_with_files_of_others_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = small(tmp_path / "d")
    before = files(dataset)
    for output in (dataset, tmp_path):
        message = refused(capsys, dataset, "pairs", output, "--overwrite")
        assert "is not part of an export" in message
    assert files(dataset) == before


def test_a_hostile_note_deletes_nothing_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = small(tmp_path / "d")
    output = run(dataset, "jsonl", tmp_path / "out")
    outside = tmp_path / "precious" / "mine.txt"
    outside.parent.mkdir()
    outside.write_text("mine")
    (output / "link").symlink_to(outside.parent)

    def patch(path: str) -> None:
        note = json.loads((output / NOTE).read_text())
        note["files"].append({"path": path, "rows": 0, "num_bytes": 4, "sha256": "0" * 64})
        (output / NOTE).write_text(json.dumps(note))

    kept = (output / NOTE).read_bytes()
    for path, said in (
        ("link/mine.txt", "contains 1 unknown or changed file: link"),
        ("../precious/mine.txt", "not an export note"),
        (str(outside), "not an export note"),
    ):
        (output / NOTE).write_bytes(kept)
        patch(path)
        assert said in refused(capsys, dataset, "pairs", output, "--overwrite")
        assert outside.read_text() == "mine"
    (output / NOTE).write_text("[" * 100_000)
    assert "not an export note" in refused(capsys, dataset, "pairs", output)


def test_another_dataset_or_other_settings_are_another_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = small(tmp_path / "d")
    output = run(dataset, "pairs", tmp_path / "out")
    for options in (("--max-side", 8), ("--image-format", "jpeg"), ("--rows-per-file", 1)):
        assert "pass --overwrite to replace it" in refused(
            capsys, dataset, "pairs", output, *options
        )
    patch_manifest(dataset, lambda manifest: manifest.update(mode="paper"))
    assert "pass --overwrite to replace it" in refused(capsys, dataset, "pairs", output)


@pytest.mark.parametrize("table", ["samples", "images"])
def test_a_damaged_dataset_is_one_sentence(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = small(tmp_path / "d")
    path = max((dataset / "data").glob(f"{table}-*"), key=lambda each: each.stat().st_size)
    data = bytearray(path.read_bytes())
    place = data.find(b"\x89PNG") + 60 if table == "images" else 40
    data[place] ^= 1
    path.write_bytes(data)
    message = refused(capsys, dataset, "pairs", tmp_path / "out")
    assert "eqforge verify" in message
    assert not (tmp_path / "out" / NOTE).exists()
    os.unlink(path)
    assert "eqforge" in refused(capsys, dataset, "pairs", tmp_path / "out")


def test_what_is_left_out_or_unknown_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, output = small(tmp_path / "d"), tmp_path / "out"
    assert "did you mean 'pairs'?" in refused(capsys, dataset, "pears", output)
    assert "the table 'captions' has no rows" in refused(
        capsys, dataset, "pairs", output, "--table", "captions"
    )
    assert "1 or more" in refused(capsys, dataset, "pairs", output, "--max-side", 0)
    assert "1 or more" in refused(capsys, dataset, "pairs", output, "--rows-per-file", 0)
    assert "simat dataset" in refused(capsys, dataset, "simat", output)
    assert "works only with --format jsonl or karpathy; the pairs format has no" in refused(
        capsys, dataset, "pairs", output, "--image-files"
    )
    assert not output.exists()
    with pytest.raises(InputError):
        ExportSettings(format="pairs", max_side=-1)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("eqforge-export.json", "reserved for the export note"),
        ("EQFORGE-export.partial.json", "reserved for the export note"),
        ("a/" * 150 + "b", "more than 300 characters"),
        ("A.json", "two exported files"),
    ],
)
def test_names_that_no_file_can_have_are_refused(tmp_path: Path, path: str, said: str) -> None:
    dataset = open_dataset(str(small(tmp_path / "d")))
    note = ExportNote(dataset="eq-video", dataset_sha256=dataset.sha256, settings={}, versions={})
    ledger = Ledger(str(tmp_path / "out"), note)
    with contextlib.closing(Export(dataset, ExportSettings(format="aro"), ledger)) as export:
        with export.file("a.json"):
            pass
        with pytest.raises(InputError, match=said), export.file(path):
            pass
    assert list(ledger.done) == ["a.json"]
