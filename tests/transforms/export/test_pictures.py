"""Pictures are found where they lie, however the files were written."""

import hashlib
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.transforms.export import pictures as module
from eqforge.transforms.export.pictures import Pictures
from tests.builds import patch_manifest
from tests.exported import files, picture, run, small

HOW: list[dict[str, Any]] = [
    {"compression": "zstd"},
    {"compression": "none", "data_page_version": "2.0", "use_dictionary": False},
    {"compression": "none", "use_dictionary": True},
    {"compression": "none", "use_dictionary": False, "row_group_size": 2, "data_page_size": 1},
]


def read_all(dataset: Dataset) -> None:
    """Reads every picture, in an order that is not theirs."""
    with Pictures(dataset) as found:
        ids = sorted((row["image_id"] for row in dataset.rows("images")), key=lambda each: each[9:])
        data = found.read(pa.array(ids)).data
        assert [hashlib.sha256(each).hexdigest() for each in data.to_pylist()] == ids


def rewritten(dataset: Path, how: dict[str, Any]) -> None:
    """Writes the files of pictures anew, as another program might."""
    for path in (dataset / "data").glob("images-*"):
        table = pq.read_table(path)
        pq.write_table(table, path, **how)
        data = path.read_bytes()
        new = {"num_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

        def change(manifest: dict[str, Any], name: str = path.name, new: Any = new) -> None:
            for file in manifest["tables"]["images"]:
                file |= new if file["path"].endswith(name) else {}

        patch_manifest(dataset, change)


def test_pictures_are_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = open_dataset(str(small(tmp_path / "d", 40)))
    monkeypatch.setattr(Pictures, "_unpack", None)  # which would fail
    read_all(dataset)
    monkeypatch.setattr(module, "_OPEN_FILES", 1)
    read_all(dataset)


@pytest.mark.parametrize("how", HOW, ids=str)
def test_files_of_another_writer_give_the_same_pictures(
    how: dict[str, Any], tmp_path: Path
) -> None:
    dataset = small(tmp_path / "d", 20)
    before = files(run(dataset, "pairs", tmp_path / "before"))
    rewritten(dataset, how)

    read_all(open_dataset(str(dataset)))
    after = files(run(dataset, "pairs", tmp_path / "after"))
    assert {n: d for n, d in after.items() if n.startswith("data")} == {
        n: d for n, d in before.items() if n.startswith("data")
    }


def test_a_dataset_in_a_store_is_exported_into_a_store(tmp_path: Path) -> None:
    dataset = small(tmp_path / "d")
    memory = fsspec.filesystem("memory")
    memory.put(str(dataset), "/exported/d", recursive=True)
    local = files(run(dataset, "webdataset", tmp_path / "out"))

    from eqforge.commands import export

    command = ["memory://exported/d", "--format", "webdataset", "--output", "memory://exported/out"]
    assert export.main(command) == 0
    assert export.main(command) == 0  # which finds it complete
    there = {path: memory.cat(f"/exported/out/{path}") for path in local}
    memory.rm("/exported", recursive=True)
    assert there == local


def test_what_is_no_picture_of_the_dataset_is_said(tmp_path: Path) -> None:
    with Pictures(open_dataset(str(small(tmp_path / "d")))) as found:
        nothing = pa.array([None, None], pa.string())
        assert found.read(nothing).data.to_pylist() == [b"", b""]
        for name in (hashlib.sha256(picture(99)).hexdigest(), "f" * 64, "0" * 64):
            with pytest.raises(InputError, match=f"the image {name[:10]}"):
                found.read(pa.array([name]))
        for name in ("x" * 64, "00", "é" * 32):
            with pytest.raises(InputError, match="is not a SHA-256"):
                found.read(pa.array([name]))
