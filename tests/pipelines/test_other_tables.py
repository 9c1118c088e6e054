"""Tables as other programs write them, with single bad records, become datasets."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from eqforge.cli import main
from tests.builds import dataset_bytes, rejected, rows
from tests.statuses import status_of

status = status_of(main)
IMPORT = ("import", "own-foils")
COUNT = 12
FOILS: list[dict[str, Any]] = [
    {"id": n, "image": f"{n}.png", "caption": f"a red cup {n}", "hard_negative": f"a blue cup {n}"}
    for n in range(COUNT)
]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    (folder / "sub").mkdir(parents=True)
    for number in range(COUNT):
        for place in (folder, folder / "sub"):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(place / f"{number}.png")
    return folder


def imported(source: Path, images: Path, *options: str, benchmark: str = "own-foils") -> Path:
    output = source.parent / "out"
    arguments = ["import", benchmark, str(source), "--images", str(images)]
    assert main([*arguments, "--output", str(output), *options]) == 0
    return output


def data_of(folder: Path) -> dict[str, bytes]:
    """The tables; the rest names the source by its digest."""
    files = dataset_bytes(folder).items()
    return {name: content for name, content in files if name.startswith("data/")}


def json_lines(records: Iterable[Mapping[Any, Any]]) -> str:
    return "\n".join(map(json.dumps, records))


WRITERS: dict[str, tuple[str, Callable[[pd.DataFrame, Path], Any]]] = {
    "JSON lines in .json": ("t.json", lambda f, p: f.to_json(p, orient="records", lines=True)),
    "pandas to_json": ("t.json", lambda f, p: f.to_json(p)),
    "semicolons": ("t.csv", lambda f, p: f.to_csv(p, sep=";", index=False)),
    "tabs in .csv": ("t.csv", lambda f, p: f.to_csv(p, sep="\t", index=False)),
    "NaN in an unused column": (
        "t.jsonl",
        lambda f, p: p.write_text(json_lines(f.assign(note=float("nan")).to_dict("records"))),
    ),
    "NaN in Parquet": ("t.parquet", lambda f, p: f.assign(note=float("nan")).to_parquet(p)),
    "Feather": ("t.feather", lambda f, p: f.to_feather(p)),
    "Arrow's file format": ("t.arrow", lambda f, p: f.to_feather(p)),
    "paths of Windows": (
        "t.csv",
        lambda f, p: f.assign(image="sub\\" + f["image"]).to_csv(p, index=False),
    ),
}


@pytest.mark.parametrize("form", WRITERS)
def test_tables_of_other_programs_are_read(form: str, images: Path, tmp_path: Path) -> None:
    name, write = WRITERS[form]
    write(pd.DataFrame(FOILS), tmp_path / name)
    out = imported(tmp_path / name, images)
    assert {row["caption"] for row in rows(out, "samples")} == {row["caption"] for row in FOILS}
    assert all(row["image_id"] for row in rows(out, "samples"))


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_single_record_of_another_script_is_read(name: str, images: Path, tmp_path: Path) -> None:
    record = {"image": "1.png", "caption": "红色的杯子", "hard_negative": "蓝色的杯子"}
    (tmp_path / name).write_text(json.dumps(record, ensure_ascii=False))
    (row,) = rows(imported(tmp_path / name, images), "samples")
    assert (row["caption"], row["hard_negative"]) == ("红色的杯子", "蓝色的杯子")


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv", "parquet"])
def test_a_null_caption_is_a_reject(ending: str, images: Path, tmp_path: Path) -> None:
    frame = pd.DataFrame(FOILS)
    frame.loc[7, "caption"] = None
    source = tmp_path / f"t.{ending}"
    if ending == "csv":
        frame.to_csv(source, index=False)
    elif ending == "parquet":
        frame.to_parquet(source)
    else:
        frame.to_json(source, orient="records", lines=ending == "jsonl")
    out = imported(source, images)
    reason = "empty_caption" if ending == "csv" else "unreadable_record"
    assert len(rejected(out, reason)) == 1
    assert len(rows(out, "samples")) == COUNT - 1


def test_a_line_that_is_not_json_and_one_that_lacks_a_field_are_rejects(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps(row) for row in FOILS]
    lines[2], lines[5] = lines[2][:-9], '{"id": 5, "image": "5.png", "caption": "a red cup 5"}'
    source = tmp_path / "t.jsonl"
    source.write_text("\n".join(lines))
    out = imported(source, images)
    details = sorted(row["detail"] for row in rows(out, "rejects"))
    starts = ("expected the fields caption, hard_negative; found caption, id", "not valid JSON:")
    assert [d.startswith(start) for d, start in zip(details, starts, strict=True)] == [True, True]
    before = data_of(out)
    source.write_text("\n".join(reversed(lines)))
    assert data_of(imported(source, images, "--overwrite")) == before
    source.write_text("\n".join(lines))
    strict = [*IMPORT, str(source), "--output", str(tmp_path / "strict")]
    assert status([*strict, "--max-error-rate", "0"]) == 2
    assert "line 3: not valid JSON" in capsys.readouterr().err


def test_too_many_bad_records_stop_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "t.jsonl"
    source.write_text(json_lines([*FOILS[:6], *({"caption": None} for _ in range(6))]))
    assert status([*IMPORT, str(source), "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "6 of 12 records cannot be read, and --max-error-rate 0.01 allows 5" in said
    assert "t.jsonl: line 7 and 5 more: expected the fields caption, hard_negative; found" in said
    assert "nearest" not in said  # own-foils is what was asked for
    assert not (tmp_path / "out" / "data").exists()


def test_the_names_of_hugging_face_s_classes_are_read(images: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    labels = datasets.ClassLabel(names=["swap", "add"])
    table = datasets.Dataset.from_list([row | {"kind": n % 2} for n, row in enumerate(FOILS)])
    table = table.cast_column("kind", labels)
    table.to_parquet(tmp_path / "t.parquet")
    table.save_to_disk(tmp_path / "saved")
    for source in (tmp_path / "t.parquet", tmp_path / "saved"):
        out = imported(source, images, "--overwrite")
        kinds = {row["sample_id"]: row["kind"] for row in rows(out, "samples")}
        assert kinds["own-foils/0"] == "swap"
        assert kinds["own-foils/1"] == "add"


def test_whole_numbers_are_answers(images: Path, tmp_path: Path) -> None:
    records = [
        {"image": f"{n}.png", "question": f"Is it {n}?", "answer": n % 2} for n in range(COUNT)
    ]
    source = tmp_path / "t.jsonl"
    source.write_text(json_lines(records))
    out = imported(source, images, benchmark="own-questions")
    assert {row["answer"] for row in rows(out, "samples")} == {"0", "1"}
