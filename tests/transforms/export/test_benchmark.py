"""What is imported and exported comes back as the same rows, with the same pictures."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eqforge.cli import main
from eqforge.evaluation.tasks.eqben import unshuffle
from eqforge.transforms.export.names import is_safe, key_of
from eqforge.transforms.export.published import MOST_KINDS
from tests.builds import rows
from tests.published import CAPTION, FOIL, SOURCES, picture

FORMATS = {
    "winoground": "winoground",
    "eqben": "eqben",
    "sugar-crepe": "sugar-crepe",
    "sugar-crepe-plus": "sugar-crepe-plus",
    "aro-relation": "aro",
    "aro-attribution": "aro",
    "vl-checklist": "vl-checklist-tree",
}


def run(*arguments: object) -> None:
    assert main([*map(str, arguments)]) == 0


def exported(dataset: Path, form: str, output: Path) -> dict[str, bytes]:
    run("export", dataset, "--format", form, "--output", output)
    return {
        path.relative_to(output).as_posix(): path.read_bytes()
        for path in sorted(output.rglob("*"))
        if path.is_file() and path.name != "eqforge-export.json"
    }


@pytest.mark.parametrize("benchmark", FORMATS)
def test_texts_come_back(benchmark: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    source = SOURCES[benchmark](tmp_path / "source")
    run("import", benchmark, source, "--output", tmp_path / "first")
    written = exported(tmp_path / "first", FORMATS[benchmark], tmp_path / "out")
    name = "eqben.json" if benchmark == "eqben" else f"{benchmark}.json"
    again = tmp_path / "out" / name if name in written else tmp_path / "out"
    run("import", benchmark, again, "--output", tmp_path / "second")
    first, second = (rows(tmp_path / name, "samples") for name in ("first", "second"))
    assert exported(tmp_path / "second", FORMATS[benchmark], tmp_path / "third") == written
    assert first == second


def test_videos_and_all_captions_of_nested_files_come_back(tmp_path: Path) -> None:
    """Equal pairs of two videos, too, and a field that is called as one of eqforge's is."""

    def pair(number: int, **others: Any) -> dict[str, Any]:
        images = {f"image{n}": f"eqbenag/f/{number}_{n}.png" for n in (0, 1)}
        return images | {"caption0": ["a cat", "a feline"], "caption1": "a dog"} | others

    videos = {
        "z.mp4": {"cat": [pair(7), pair(1)], "dog": [pair(3, caption1=["a dog"])]},
        "a.mp4": {"cat": [pair(1), pair(0, source_order=[4], source_id=5, tag="x")]},
    }
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "ag.json").write_text(json.dumps(videos))
    run("import", "eqben", tmp_path / "source", "--output", tmp_path / "first")
    written = exported(tmp_path / "first", "eqben", tmp_path / "out")
    flat = json.loads(written["eqben.json"])
    of_videos = [
        record | {"nested_under": f"{video}/{thing}"}
        for video, things in videos.items()
        for thing, records in things.items()
        for record in records
    ]
    assert flat == of_videos
    assert {each["caption"] for each in json.loads(written["eqben_random.json"])} == {
        "a cat",
        "a dog",
    }
    run("import", "eqben", tmp_path / "out" / "eqben.json", "--output", tmp_path / "second")
    first, second = (rows(tmp_path / name, "samples") for name in ("first", "second"))
    assert first == second
    assert sorted(row["source_id"] for row in first) == ["a.mp4"] * 2 + ["z.mp4"] * 3


@pytest.mark.parametrize("source", [None, "v", "folder/of/v.mp4"])
def test_clusters_of_other_pairs_come_back(source: str | None, tmp_path: Path) -> None:
    record = {"image_0": "a/b/0.png", "image_1": "a/b/1.png", "caption_0": "a", "caption_1": "b"}
    (tmp_path / "pairs.json").write_text(json.dumps([record | {"source_id": source}]))
    run("import", "own-pairs", tmp_path / "pairs.json", "--output", tmp_path / "first")
    exported(tmp_path / "first", "eqben", tmp_path / "out")
    run("import", "eqben", tmp_path / "out" / "eqben.json", "--output", tmp_path / "second")
    assert [row["source_id"] for row in rows(tmp_path / "first", "samples")] == [source]
    assert [row["source_id"] for row in rows(tmp_path / "second", "samples")] == [source]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Three pairs of pictures; the names of some are another's, not safe, or of another form."""
    names = ["a.png", "../a.png", "A.png", "b.jpg", "深/é.png", "c.png"]
    records = [
        {
            "id": number,
            "image_0": names[2 * number],
            "image_1": names[2 * number + 1],
            "caption_0": f"{CAPTION} {number}",
            "caption_1": f"{FOIL} {number}",
        }
        for number in range(3)
    ]
    folder = tmp_path / "images" / "sub"
    (folder / "深").mkdir(parents=True)
    for number, name in enumerate(names):
        (folder / name).write_bytes(picture(number))
    (folder / "a.png").write_bytes(picture(0))
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(records))
    run("import", "own-pairs", path, "--images", tmp_path / "images" / "sub", "--output",
        tmp_path / "pairs")  # fmt: skip
    return tmp_path / "pairs"


@pytest.mark.parametrize("form", ["winoground", "eqben"])
def test_pictures_come_back(form: str, pairs: Path, tmp_path: Path) -> None:
    written = exported(pairs, form, tmp_path / "out")
    known = {row["image_id"]: row["image"]["bytes"] for row in rows(pairs, "images")}
    samples = rows(pairs, "samples")
    there = {data for name, data in written.items() if name.startswith("images/")}
    wanted = {known[row[f"image_{n}_id"]] for row in samples for n in (0, 1)}
    assert there == wanted
    file = "examples.jsonl" if form == "winoground" else "eqben.json"
    run("import", form, tmp_path / "out" / file, "--images", tmp_path / "out" / "images",
        "--output", tmp_path / "again")  # fmt: skip
    columns = ("caption_0", "caption_1", "image_0_id", "image_1_id")
    both = [
        sorted(tuple(row[name] for name in columns) for row in rows(folder, "samples"))
        for folder in (pairs, tmp_path / "again")
    ]
    assert both[0] == both[1]


def test_the_order_of_the_server(pairs: Path, tmp_path: Path) -> None:
    written = exported(pairs, "eqben", tmp_path / "out")
    single = json.loads(written["eqben_random.json"])
    in_order: list[Any] = unshuffle(_as_array(single)).tolist()
    expected = [
        {"image": pair[f"image{image}"], "caption": pair[f"caption{caption}"]}
        for pair in json.loads(written["eqben.json"])
        for image in (0, 1)
        for caption in (0, 1)
    ]
    assert in_order == expected


def _as_array(values: list[Any]) -> Any:
    import numpy as np

    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def test_crops_stand_for_themselves(tmp_path: Path) -> None:
    source = SOURCES["aro-relation"](tmp_path)
    (tmp_path / "images").mkdir()
    for number in (1, 2):
        (tmp_path / "images" / f"{number}.jpg").write_bytes(picture(number))
    run("import", "aro-relation", source, "--images", tmp_path / "images", "--output",
        tmp_path / "first")  # fmt: skip
    written = exported(tmp_path / "first", "aro", tmp_path / "out")
    records = json.loads(written["aro-relation.json"])
    assert all("bbox_x" not in record for record in records)
    first = {row["image_id"]: row["image"]["bytes"] for row in rows(tmp_path / "first", "images")}
    assert {written[f"images/{record['image_path']}"] for record in records} == set(first.values())


def test_the_order_of_the_source_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    path = SOURCES["sugar-crepe"](tmp_path / "source") / "swap_obj.json"
    results = []
    for turn in range(2):
        value = json.loads(path.read_text())
        items = list(value.items())
        random.Random(turn).shuffle(items)
        path.write_text(json.dumps(dict(items)))
        run("import", "sugar-crepe", path.parent, "--output", tmp_path / f"in{turn}")
        results.append(exported(tmp_path / f"in{turn}", "sugar-crepe", tmp_path / f"out{turn}"))
    assert results[0] == results[1]


@pytest.mark.parametrize("form", ["winoground", "sugar-crepe-plus", "eqben"])
def test_other_rows_are_refused(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("import", "sugar-crepe", SOURCES["sugar-crepe"](tmp_path), "--output", tmp_path / "in")
    with pytest.raises(SystemExit, match="2"):
        run("export", tmp_path / "in", "--format", form, "--output", tmp_path / "out")
    said = capsys.readouterr().err
    assert ", which this format needs" in said
    assert "hard_negative" not in said
    assert "dataset, too" not in said
    assert not (tmp_path / "out").exists()


def foils(tmp_path: Path, records: list[dict[str, str]], *options: object) -> Path:
    path = tmp_path / "foils.json"
    path.write_text(json.dumps([{"caption": CAPTION, "hard_negative": FOIL} | r for r in records]))
    run("import", "own-foils", path, "--output", tmp_path / "in", *options)
    return tmp_path / "in"


def test_names_that_are_another_row_s_give_way(tmp_path: Path) -> None:
    taken = key_of("own-foils/b")
    pictures = {"x.png": 1, "X.png": 2, f"{taken}.png": 3}
    (tmp_path / "images").mkdir()
    for name, number in pictures.items():
        (tmp_path / "images" / name).write_bytes(picture(number))
    records = [
        {"id": "a", "image": f"{taken}.png"},
        {"id": "aa", "image": "x.png"},
        {"id": "b", "image": "X.png"},
    ]
    dataset = foils(tmp_path, records, "--images", tmp_path / "images")
    written = exported(dataset, "aro", tmp_path / "out")
    shown = {row["image_id"]: row["image"]["bytes"] for row in rows(dataset, "images")}
    samples = sorted(rows(dataset, "samples"), key=lambda row: str(row["sample_id"]))
    assert f"images/{taken}-image.png" in written
    for row, record in zip(samples, json.loads(written["own-foils.json"]), strict=True):
        assert written[f"images/{record['image_path']}"] == shown[row["image_id"]]


KINDS = [
    "",
    "own-foils",
    "eqforge-export",
    "EqForge-Export.partial",
    "Attribute/vg/color",
    "attribute/VG/color",
    "x",
    "x.json/y",
    "../up",
    "images/z",
    "n" * 130,
    "/".join(["long"] * 60),
    "цвет",
]


@pytest.mark.parametrize("form", ["vl-checklist-tree", "sugar-crepe"])
def test_every_kind_has_a_file_of_its_own(form: str, tmp_path: Path) -> None:
    records = [{"id": str(n), "kind": kind, "image": f"{n}.jpg"} for n, kind in enumerate(KINDS)]
    written = exported(foils(tmp_path, records), form, tmp_path / "out")
    assert len({name.casefold() for name in written}) == len(KINDS)
    assert all(data.count(b".jpg") == 1 for data in written.values())
    note = json.loads((tmp_path / "out" / "eqforge-export.json").read_text())
    assert sorted(each["path"] for each in note["files"]) == sorted(written)
    assert all(map(is_safe, written))
    run("export", tmp_path / "in", "--format", form, "--output", tmp_path / "out")


@pytest.mark.parametrize("form", ["vl-checklist-tree", "sugar-crepe"])
def test_more_kinds_than_files_can_be_open_are_refused(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = foils(tmp_path, [{"id": str(n), "kind": str(n)} for n in range(MOST_KINDS + 1)])
    with pytest.raises(SystemExit, match="2"):
        run("export", dataset, "--format", form, "--output", tmp_path / "out")
    assert "has 201 kinds of rows" in capsys.readouterr().err
    assert not list((tmp_path / "out").rglob("[!e]*.json"))


def test_pictures_that_winoground_s_loader_does_not_open_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new("RGB", (24, 16), "red").save(tmp_path / "0.jpg", exif=turned)
    (tmp_path / "1.png").write_bytes(picture(1))
    pair = {"image_0": "0.jpg", "image_1": "1.png", "caption_0": "猫", "caption_1": "犬"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair))
    run("import", "own-pairs", tmp_path / "pairs.jsonl", "--images", tmp_path, "--output",
        tmp_path / "in")  # fmt: skip

    exported(tmp_path / "in", "winoground", tmp_path / "kept")
    said = capsys.readouterr().err
    assert "examples.jsonl: the file names of 1 image keep their suffix" in said

    run("export", tmp_path / "in", "--format", "winoground", "--image-format", "png", "--output",
        tmp_path / "png")  # fmt: skip
    assert "own loader" not in capsys.readouterr().err
    line = json.loads((tmp_path / "png" / "examples.jsonl").read_text())
    sizes = []
    for n in (0, 1):
        with Image.open(tmp_path / "png" / "images" / f"{line[f'image_{n}']}.png") as image:
            sizes.append(image.size)
    assert sizes == [(16, 24), (24, 16)]  # the first stands upright
