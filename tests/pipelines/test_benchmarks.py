"""Benchmarks become sound datasets, with their pictures, whoever holds these."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.cli import main
from eqforge.commands import verify
from eqforge.core.identity import sha256_hex
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from tests.builds import books, dataset_bytes, rejected, rows
from tests.published import CAPTION, COLUMNS, FOIL, ITEMS, SOURCES, hub, picture

SMALL_FILES = ["--samples-per-file", "2", "--images-per-file", "2"]


def imported(benchmark: str, source: Path, output: Path, *options: object) -> Path:
    columns = ["--columns", *COLUMNS[benchmark]] if benchmark in COLUMNS else []
    arguments = ["import", benchmark, str(source), "--output", str(output), *columns]
    assert main([*arguments, *map(str, options)]) == 0
    return output


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_each_becomes_a_sound_dataset(benchmark: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    source = SOURCES[benchmark](tmp_path / "source")
    out = imported(benchmark, source, tmp_path / "out", *SMALL_FILES)
    refused = 1 if benchmark == "valse" else 0
    assert books(out) == {"items": (ITEMS[benchmark], ITEMS[benchmark] - refused, refused)}
    assert {row["dataset"] for row in rows(out, "samples")} == {benchmark}
    assert verify.main([str(out)]) == 0


def test_a_published_file_is_imported_whole(data_folder: Path, tmp_path: Path) -> None:
    """The smallest of VL-CheckList's files of VG's attributes; the reader's test counts all."""
    source = data_folder / "vl_checklist/data/Attribute/vg/state.json"
    out = imported("vl-checklist", source, tmp_path / "out")
    assert books(out) == {"items": (941, 941, 0)}
    assert verify.main([str(out)]) == 0


def test_pictures_of_a_table_come_along(tmp_path: Path) -> None:
    out = imported("bivlc", SOURCES["bivlc"](tmp_path), tmp_path / "out")
    images = {row["image_id"]: row["image"]["bytes"] for row in rows(out, "images")}
    assert set(images.values()) == {picture(n) for n in (*range(5), *range(50, 55))}
    for row in rows(out, "samples"):
        number = int(row["image_0"].removesuffix(".png"))
        assert images[row["image_0_id"]] == picture(number)
        assert images[row["image_1_id"]] == picture(number + 50)
        assert row["caption_1"] == f"{FOIL} {number}"


def test_saved_datasets_give_the_same_rows_as_the_hub(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")

    for name in ("hub", "plain"):
        (tmp_path / name).mkdir()
    hub = SOURCES["vismin"](tmp_path / "hub")
    datasets.load_dataset(str(hub), cache_dir=str(tmp_path / "cache")).save_to_disk(
        str(tmp_path / "saved")
    )
    first = imported("vismin", hub, tmp_path / "first")
    second = imported("vismin", tmp_path / "saved", tmp_path / "second")
    for table in ("samples", "images"):
        assert rows(first, table) == rows(second, table)
        assert rows(first, table)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for number in (1, 3):
        (folder / f"{number}.jpg").write_bytes(picture(number))
    return folder


def test_images_of_a_folder(images: Path, tmp_path: Path) -> None:
    out = imported("valse", SOURCES["valse"](tmp_path), tmp_path / "out", "--images", images)
    assert rejected(out, "not_confirmed") == ["valse/existence/x_2"]
    ids = {row["sample_id"]: row["image_id"] for row in rows(out, "samples")}
    assert ids == {
        "valse/existence/x_1": sha256_hex(picture(1)),
        "valse/foil-it/1": sha256_hex(picture(3)),
    }
    # VALSE is one test set; its own `split` names that of the source dataset.
    for row in rows(out, "samples"):
        assert row["split"] == "test"
        assert json.loads(row["annotation"])["original_split"] == "train"
    whole = imported("valse", tmp_path, tmp_path / "whole", "--images", images, "--unconfirmed")
    assert rejected(whole, "image_missing") == ["valse/existence/x_2"]
    # A second time nothing is done; without the record of files, digests tell the same.
    before = dataset_bytes(out)
    (out / "_work" / "media.json").unlink()
    imported("valse", tmp_path, out, "--images", images)
    assert dataset_bytes(out) == before


def test_boxes_are_padded_with_black_as_by_the_authors(images: Path, tmp_path: Path) -> None:
    out = imported("aro-relation", SOURCES["aro-relation"](tmp_path), tmp_path / "out",
                   "--images", images)  # fmt: skip
    (row,) = rows(out, "samples")
    (image,) = rows(out, "images")
    there = np.asarray(Image.open(io.BytesIO(image["image"]["bytes"])))
    whole = np.asarray(Image.open(io.BytesIO(picture(1))))
    assert there.shape == (4, 30, 3)
    assert (there[:, :23] == whole[2:6, 1:24]).all()
    assert not there[:, 23:].any()
    assert row["source_sha256"] == sha256_hex(picture(1))
    assert rejected(out, "image_missing") != []


def test_frames_that_are_arrays(tmp_path: Path) -> None:
    source = SOURCES["eqben"](tmp_path)
    tree = tmp_path / "tree"
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    for name in ("eqbenag/v1", "eqbenkubric_cnt/v3", "eqbenyoucook2/v2"):
        (tree / name).mkdir(parents=True)
        for side in (0, 1):
            (tree / name / f"{side}.png").write_bytes(picture(side))
    np.save(tree / "eqbenyoucook2/v2/0.npy", pixels)
    np.save(tree / "eqbenyoucook2/v2/1.npy", pixels[:, ::-1])
    out = imported("eqben", source, tmp_path / "out", "--images", tree)
    found = {row["image_id"]: row["image"]["bytes"] for row in rows(out, "images")}
    (row,) = (row for row in rows(out, "samples") if row["kind"] == "eqbenyoucook2")
    shown = [np.asarray(Image.open(io.BytesIO(found[row[f"image_{n}_id"]]))) for n in (0, 1)]
    assert (shown[0] == pixels[:, :, ::-1]).all()
    assert (shown[1] == pixels[:, ::-1, ::-1]).all()
    assert verify.main([str(out)]) == 0
    bad: dict[str, Any] = {
        "shape": np.zeros((3, 4), np.uint8),
        "kind": np.zeros((3, 4, 3)),
        "empty": pixels[:0],
        "pickle": np.array([[[{}]]], dtype=object),
    }
    for number, array in enumerate(bad.values()):
        np.save(tree / "eqbenyoucook2/v2/0.npy", array, allow_pickle=True)
        out = imported("eqben", source, tmp_path / f"bad{number}", "--images", tree)
        assert len(rejected(out, "undecodable_image")) == 1
    data = (tree / "eqbenyoucook2/v2/1.npy").read_bytes()
    (tree / "eqbenyoucook2/v2/0.npy").write_bytes(data[:-1])
    out = imported("eqben", source, tmp_path / "short", "--images", tree)
    assert len(rejected(out, "undecodable_image")) == 1


def test_a_limit_splits_no_group_whatever_the_order(tmp_path: Path) -> None:
    source = SOURCES["natural-bench"](tmp_path)
    out = imported("natural-bench", source, tmp_path / "out", "--limit", 1)
    assert Counter(row["group_id"] for row in rows(out, "samples")).popitem()[1] == 4
    value = json.loads((source / "test_set.json").read_text())
    (source / "test_set.json").write_text(json.dumps(value[4:] + value[:4]))
    again = imported("natural-bench", source, tmp_path / "again", "--limit", 1)
    assert rows(again, "samples") == rows(out, "samples")


def test_texts_that_cannot_be_used_are_rejects(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    texts = {"fine": "two\nlines", "empty": " \u200b", "bell": "a\u0007b"}
    rows_of = [{"id": n, "caption": CAPTION, "hard_negative": text} for n, text in texts.items()]
    path.write_text(json.dumps(rows_of))
    out = imported("own-foils", path, tmp_path / "out")
    assert [row["hard_negative"] for row in rows(out, "samples")] == ["two\nlines"]
    assert rejected(out, "empty_caption") == ["own-foils/empty"]
    assert rejected(out, "control_characters") == ["own-foils/bell"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["winogrand", "x"], "unknown benchmark 'winogrand'; did you mean 'winoground'?"),
        (["winoground", "gone.json"], "gone.json: no such file or folder"),
        (["winoground", ".", "--columns", "a=b"], "--columns works only with own-"),
        (["winoground", ".", "--unconfirmed"], "--unconfirmed works only with valse"),
        (["winoground", "."], "expected examples.jsonl; found nothing"),
        (["winoground", ".", "--images", "gone"], "--images gone: no such folder"),
    ],
)
def test_mistakes_come_before_any_work(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    status = 0
    try:
        status = main(["import", *arguments, "--output", "out"])
    except SystemExit as left:
        status = int(str(left.code))
    assert status == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_limit_counts_records_without_groups(tmp_path: Path) -> None:
    source = SOURCES["sugar-crepe"](tmp_path)
    out = imported("sugar-crepe", source, tmp_path / "out", "--limit", 2)
    whole = imported("sugar-crepe", source, tmp_path / "whole")
    assert rows(out, "samples") == rows(whole, "samples")[:2]


def test_one_picture_in_the_table_and_one_in_a_folder(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    row = {
        "image_0": {"bytes": picture(1), "path": "a.png"},
        "image_1": "b.png",
        "caption_0": CAPTION,
        "caption_1": FOIL,
    }
    path = tmp_path / "mixed.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "b.png").write_bytes(picture(2))
    arguments = ["import", "own-pairs", str(path)]
    assert main([*arguments, "--output", str(tmp_path / "without")]) == 0
    assert len(rejected(tmp_path / "without", "image_missing")) == 1
    folder = ["--images", str(tmp_path / "images")]
    assert main([*arguments, *folder, "--output", str(tmp_path / "with")]) == 0
    (sample,) = rows(tmp_path / "with", "samples")
    assert sample["image_0_id"] == sha256_hex(picture(1))
    assert sample["image_1_id"] == sha256_hex(picture(2))


@pytest.mark.parametrize("names", [("text", "caption"), ("caption", "text")])
def test_a_named_column_wins_whatever_the_order(names: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    values = {"text": "right", "caption": "other", "hard_negative": FOIL, "id": "1"}
    header = [*names, "hard_negative", "id"]
    lines = [",".join(header), ",".join(values[name] for name in header)]
    path.write_text("\n".join(lines))
    out = tmp_path / "out"
    arguments = ["import", "own-foils", str(path), "--columns", "caption=text"]
    assert main([*arguments, "--output", str(out)]) == 0
    (row,) = rows(out, "samples")
    assert row["caption"] == "right"
    assert json.loads(row["annotation"]) == {"own caption": "other"}
    with pytest.raises(SystemExit, match="2"):
        main([*arguments[:-1], "caption=nope", "--output", str(tmp_path / "none")])


def test_a_column_that_is_not_there_is_named_with_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where a field is missing without it; one that a later record has is there."""
    path = tmp_path / "mine.jsonl"
    records = [{"text": CAPTION, "foil": FOIL}, {"text": CAPTION, "foil": FOIL, "sort": "a"}]
    path.write_text("\n".join(map(json.dumps, records)))
    arguments = ["import", "own-foils", str(path), "--columns", "hard_negative=foil"]

    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "caption=txt", "--output", str(tmp_path / "none")])

    said = "has no column 'txt'; its columns are 'foil', 'sort' and 'text'; did you mean 'text'?"
    assert f"--columns caption=txt: {path} {said}" in capsys.readouterr().err
    path.write_text('["a.jpg", "b.jpg"]')
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "--output", str(tmp_path / "none")])
    said = "has no column 'foil'; its records have no keys"
    assert f"--columns hard_negative=foil: {path} {said}" in capsys.readouterr().err
    path.write_text("\n".join(map(json.dumps, records)))
    more = ["caption=text", "kind=sort", "--output", str(tmp_path / "out")]
    assert main([*arguments, *more]) == 0
    assert [row["kind"] for row in rows(tmp_path / "out", "samples")] == ["", "a"]


def test_results_are_no_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.csv"
    path.write_text(
        "image,caption,negative_caption,negative_image,text_score_i0\na.jpg,b,c,d.jpg,True\n"
    )
    with pytest.raises(SystemExit, match="2"):
        main(["import", "bivlc", str(path), "--output", str(tmp_path / "out")])
    assert "to evaluate results, use `eqforge metrics`" in capsys.readouterr().err


def test_a_structure_of_a_path_alone_names_its_picture(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    row = {"caption": CAPTION, "hard_negative": FOIL, "image": {"path": "a.png"}}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "mine.parquet")
    out = imported("own-foils", tmp_path / "mine.parquet", tmp_path / "out")
    assert [sample["image"] for sample in rows(out, "samples")] == ["a.png"]


@pytest.mark.parametrize(
    ("benchmark", "state"),
    [
        ("valse", "noted"),
        ("sugar-crepe-plus", "ok"),
        ("vismin", "not linted"),
        ("mmvp", "not linted"),
    ],
)
def test_verify_lints_what_can_be_linted(
    benchmark: str, state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "source").mkdir()
    source = SOURCES[benchmark](tmp_path / "source")
    if benchmark == "valse":
        path = source / "foil-it.json"
        records = json.loads(path.read_text())
        records["1"]["foil"] = records["1"]["caption"]
        path.write_text(json.dumps(records))
    out = imported(benchmark, source, tmp_path / "out")
    capsys.readouterr()
    assert verify.main([str(out)]) == 0
    said = capsys.readouterr().out
    assert f"{state:<11} lints of error level" in said
    assert ("negative_equals_positive" in said) == (benchmark == "valse")
    assert out.name + ": sound" in said


NATURAL_BENCH_OF_THE_HUB = hub(
    [
        {f"Image_{n}": n for n in (0, 1)}
        | {f"Question_{n}": f"Is it {n}?" for n in (0, 1)}
        | {f"Image_{n}_Question_{m}": "Yes" for n in (0, 1) for m in (0, 1)}
    ],
    ("Image_0", "Image_1"),
)


@pytest.mark.parametrize("benchmark", ["natural-bench", "vismin", "bivlc"])
def test_a_test_set_that_the_hub_calls_train_is_a_test_set(benchmark: str, tmp_path: Path) -> None:
    """NaturalBench's own loader takes `train`, its only split, to test on."""
    source = {"natural-bench": NATURAL_BENCH_OF_THE_HUB}.get(benchmark, SOURCES[benchmark])(
        tmp_path
    )
    before = rows(imported(benchmark, source, tmp_path / "before"), "samples")
    (table,) = source.glob("data/test-*.parquet")
    table.rename(table.with_name(table.name.replace("test-", "train-")))
    after = rows(imported(benchmark, source, tmp_path / "after"), "samples")
    assert {row["split"] for row in after} == {"test"}
    assert after == before
