"""`eqforge diff` against datasets whose differences were made by hand."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eqforge.cli import main
from eqforge.commands import diff
from tests.builds import rows
from tests.made_datasets import describe

OLD = Path(__file__).parents[1] / "old" / "0.1.0"


def rewritten(folder: Path, table: str, changed: list[dict[str, Any]], files: int = 1) -> None:
    """Writes other rows in the place of a table's, dealt out to some files."""
    old, *more = sorted((folder / "data").glob(f"{table}-*"))
    schema = pq.read_schema(old)
    for path in (old, *more):
        path.unlink()
    for number in range(files):
        part = schema.empty_table().from_pylist(changed[number::files], schema)
        path = folder / f"data/{table}-{number:05d}-of-{files:05d}.parquet"
        pq.write_table(part, path, row_group_size=2)
    describe(folder)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A copy of a dataset of pairs, to be changed."""
    return Path(shutil.copytree(OLD / "eq-youcook2", tmp_path / "other"))


def found(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = diff.main([*map(str, arguments), "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_neither_order_nor_files_count(other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, (table, files) in enumerate({"samples": 3, "images": 4, "rejects": 2}.items()):
        shuffled = rows(other, table)
        random.Random(seed).shuffle(shuffled)
        rewritten(other, table, shuffled, files)

    status, said = found(capsys, OLD / "eq-youcook2", other)

    assert status == 0
    assert said["is_equal"] is True
    assert said["manifest"] == {}
    counts = {name: table["equal"] for name, table in said["tables"].items()}
    assert counts == {name: len(rows(other, name)) for name in ("samples", "images", "rejects")}


def test_what_changed_is_told_by_record_and_column(
    other: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *rest = rows(other, "samples")
    new = second | {"sample_id": "Яблоко/\x1b[31m", "caption_0": "苹果"}
    changed = first | {"caption_0": "другое", "ssim": float("nan")}
    rewritten(other, "samples", [*rest, new, changed])
    picture, *others = rows(other, "images")
    turned = picture | {"image": picture["image"] | {"bytes": b"others"}}
    rewritten(other, "images", [turned, *others])

    status, said = found(capsys, OLD / "eq-youcook2", other)

    assert status == 1
    assert said["tables"]["samples"] == {
        **{"added": 1, "removed": 1, "changed": 1, "equal": len(rest)},
        "columns": {"caption_0": 1, "ssim": 1},
        **{"only_in_a": [], "only_in_b": [], "types": {}},
        "added_examples": ["Яблоко/\x1b[31m"],
        "removed_examples": [second["sample_id"]],
        "changed_examples": [
            {
                "key": first["sample_id"],
                "columns": {
                    "caption_0": [first["caption_0"], "другое"],
                    "ssim": [first["ssim"], None],
                },
            }
        ],
    }
    # Pictures are compared by id; that their bytes fit it is what verify tells.
    assert said["tables"]["images"]["equal"] == len(others) + 1
    assert diff.main([str(OLD / "eq-youcook2"), str(other)]) == 1
    text = capsys.readouterr().out
    assert "samples: 1 added, 1 removed, 1 changed" in text
    assert r"+ Яблоко/\x1b[31m" in text
    assert "\x1b" not in text


def test_datasets_of_different_kinds_have_common_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, said = found(capsys, OLD / "eq-kubric", OLD / "eq-sd")

    assert status == 1
    samples = said["tables"]["samples"]
    assert (samples["only_in_a"], samples["only_in_b"], samples["types"]) == ([], [], {})
    assert (samples["added"], samples["removed"]) == (
        len(rows(OLD / "eq-sd", "samples")),
        len(rows(OLD / "eq-kubric", "samples")),
    )
    assert said["manifest"]["dataset"] == ["eq-kubric", "eq-sd"]
    assert "config.scenes.pairs" in said["manifest"]

    samples = found(capsys, OLD / "eq-gebc", OLD / "eq-kubric")[1]["tables"]["samples"]
    assert {"origin_0", "origin_1"} <= {*samples["only_in_a"]}
    assert {"kind", "spec_0"} <= {*samples["only_in_b"]}


def test_what_was_made_otherwise_alone_is_no_difference(
    other: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    describe(other, versions={"eqforge": "9"}, warnings=["Beware."])

    status, said = found(capsys, OLD / "eq-youcook2", other)

    assert (status, said["is_equal"]) == (0, True)
    assert said["manifest"]["versions.eqforge"] == ["0.1.0", "9"]
    assert said["manifest"]["warnings"] == [[], ["Beware."]]
    assert diff.main([str(OLD / "eq-youcook2"), str(other)]) == 0
    assert "are equal in all records; their manifests differ" in capsys.readouterr().out


def test_wrong_input_is_one_sentence(other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: object) -> str:
        with pytest.raises(SystemExit) as left:
            diff.main([*map(str, arguments)])
        assert left.value.code == 2
        return capsys.readouterr().err

    assert "no such folder" in refused(OLD / "eq-youcook2", OLD / "none")
    assert "did you mean 'samples'" in refused(other, other, "--table", "sample")
    assert "did you mean 'caption_0'" in refused(other, other, "--only", "caption_00")
    assert "--examples -1: expected 0 or more" in refused(other, other, "--examples", "-1")
    samples = rows(other, "samples")
    rewritten(other, "samples", [*samples, samples[0]])
    assert "two rows of samples have the same sample_id" in refused(OLD / "eq-youcook2", other)
    (path,) = (other / "data").glob("samples-*")
    path.unlink()
    assert "data/samples-00000-of-00001.parquet" in refused(other, OLD / "eq-youcook2")
    assert "data/samples-00000-of-00001.parquet" in refused(other, other)


def test_the_terminal_shows_some_of_many_records_and_json_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = Path(shutil.copytree(OLD / "eq-gebc", tmp_path / "part"))
    first = rows(part, "samples")[0]
    names = [f"eq-gebc/{number:04}" for number in range(200)]
    random.Random(1).shuffle(names)
    rewritten(part, "samples", [first | {"sample_id": name} for name in names], files=20)
    capsys.readouterr()
    command = ["diff", str(OLD / "eq-gebc"), str(part), "--table", "samples"]
    assert main([*command, "--examples", "100000", "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["tables"]["samples"]["added_examples"] == sorted(names)
    shown = [line for line in said.err.splitlines() if line.startswith("  + ")]
    assert shown == [f"  + {name}" for name in sorted(names)[:50]]


def test_an_export_is_told_from_a_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "export"
    assert main(["export", str(OLD / "eq-gebc"), "--format", "jsonl", "--output", str(out)]) == 0
    with pytest.raises(SystemExit) as left:
        main(["diff", str(out), str(out)])
    assert left.value.code == 2
    assert (
        "is an export for other programs, not a dataset. Pass the dataset"
        in capsys.readouterr().err
    )
