"""SIMAT's published files go in, come out, and are read again."""

import csv
from pathlib import Path
from typing import Any

import pytest

from eqforge.pipelines import simat
from tests.builds import rows
from tests.exported import check_note, run

OLD = Path("tests/old/0.1.0/simat").resolve()
NO_ORACLE = ("--oracle-min", "None", "--oracle-max", "None")


def table(path: Path, separator: str = ",") -> list[dict[str, str]]:
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream, delimiter=separator))


def build(folder: Path, output: Path, transfos: str) -> Path:
    """Builds a dataset, without pictures, of the files of a folder."""
    named = {
        "--retrieval-db": "retrieval_db.tsv",
        "--triplets": "triplets.csv",
        "--transfos": transfos,
        "--captions": "captions.txt",
    }
    inputs = [str(each) for name, file in named.items() for each in (name, folder / file)]
    assert simat.main(["--mode", "paper", *inputs, *NO_ORACLE, "--output", str(output)]) == 0
    return output


def without_order(found: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, found))


def test_the_published_files_come_out_with_the_published_values(
    data_folder: Path, tmp_path: Path
) -> None:
    published = data_folder / "simat"
    dataset = build(published, tmp_path / "d", "transfos_dev.csv")

    output = run(dataset, "simat", tmp_path / "out")

    regions = {row["region_id"]: row for row in table(published / "retrieval_db.tsv", "\t")}
    triplets, written = table(published / "triplets.csv"), table(output / "triplets.csv")
    names = ("region_id", "subj", "rel", "obj")
    assert len(written) == 5_859
    assert without_order([{name: row[name] for name in names} for row in written]) == without_order(
        [{name: row[name] for name in names} for row in triplets]
    )
    assert [row["dataset_id"] for row in written] == [str(n) for n in range(5_859)]
    boxes = (*names, "image_id", "subj_bbox", "obj_bbox")
    for row in table(output / "retrieval_db.tsv", "\t"):
        assert [row[each] for each in boxes] == [regions[row["region_id"]][each] for each in boxes]

    said, own = (
        [line.strip() for line in (folder / "captions.txt").read_text().splitlines()]
        for folder in (published, output)
    )
    assert sorted(said) == sorted(own)
    queries, found = table(published / "transfos_dev.csv"), table(output / "transfos.csv")
    plain = ("region_id", "field", "value", "target", "norm2", "is_test")

    def told(row: dict[str, str], captions: list[str]) -> dict[str, str]:
        ids = (row["query_ids"], row["target_ids"])
        return {name: row[name] for name in plain} | {
            "captions": " / ".join(captions[int(each)] for each in ids)
        }

    assert len(found) == 8_933
    assert without_order([told(row, own) for row in found]) == without_order(
        [told(row, said) for row in queries]
    )
    check_note(output)


def test_what_was_exported_is_built_again(tmp_path: Path) -> None:
    output = run(OLD, "simat", tmp_path / "out")

    again = build(output, tmp_path / "again", "transfos.csv")

    for name, columns in (
        ("samples", ("sample_id", "region_id", "part", "source_word", "target_word", "weight")),
        ("gallery", ("region_id", "source_id", "triplet_id", "subject_box", "object_box")),
        ("captions", ("caption_id", "subject", "relation", "object", "caption")),
    ):
        one, other = (
            without_order([{each: row[each] for each in columns} for row in rows(folder, name)])
            for folder in (OLD, again)
        )
        assert one == other, name


def test_captions_of_several_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eqforge.core.errors import InputError
    from eqforge.transforms.export.simat import _line

    for caption in ("a\nb", "a\u2028b", " ", ""):
        with pytest.raises(InputError, match="is empty, or has several lines"):
            _line(caption, "x")
    assert _line("ein Kätzchen", "x") == "ein Kätzchen\n".encode()
