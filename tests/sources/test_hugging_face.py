"""Captions in folders that Hugging Face's `datasets` writes, or reads."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.sources.caption_sources import read_captions
from eqforge.sources.hugging_face import row_folder
from eqforge.sources.labelled_captions import read_labelled_captions
from eqforge.sources.moment_files import moment_files
from eqforge.sources.own_captions import caption_files
from eqforge.sources.text_pairs import TextPair, read_text_pairs
from eqforge.sources.video_captions import read_captioned_videos

Rows = list[dict[str, Any]]
MOMENTS: Rows = [
    {"video": "a/b.mp4", "start_s": 1.0, "end_s": 2.5, "caption": 'cut, "finely"', "take": "3"},
    {"video": "a/b.mp4", "timestamp_s": 9.25, "caption": "two\nlines", "id": "fry"},
    {"video": "ü.mp4", "timestamp_s": 0.0, "caption": "naïve 🥕", "split": "val", "licence": "CC0"},
]
CAPTIONS: Rows = [{"image": f"{n}.jpg", "caption": f"a dog {n}"} for n in range(5)]
PAIRS: Rows = [
    {"image_path": f"{n}.jpg", "true_caption": f"a {n}", "false_caption": f"b {n}"}
    for n in range(3)
]


def saved(folder: Path, rows: Rows, shards: int = 1) -> Path:
    """Writes what `Dataset.save_to_disk` writes, by itself."""
    datasets = pytest.importorskip("datasets")
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    datasets.Dataset.from_dict(columns).save_to_disk(str(folder), num_shards=shards)
    return folder


def hub(folder: Path, rows: Rows, shards: int = 1, split: str = "train") -> Path:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text("a card")
    for number in range(shards):
        name = f"{split}-{number:05}-of-{shards:05}-0a1b2c3d4e5f6789.parquet"
        columns = {
            name: [row.get(name) for row in rows[number::shards]] for row in rows for name in row
        }
        pq.write_table(pa.table(columns), folder / "data" / name)
    return folder


def image_folder(folder: Path, rows: Rows, ending: str, media: str = "image") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    named = [{"file_name" if k == media else k: v for k, v in row.items()} for row in rows]
    columns = list(dict.fromkeys(name for row in named for name in row))
    file = folder / f"metadata{ending}"
    if ending == ".jsonl":
        file.write_text("\n".join(map(json.dumps, named)))
    elif ending == ".parquet":
        pq.write_table(pa.table({c: [row.get(c) for row in named] for c in columns}), file)
    else:
        cells = [columns, *([row.get(c, "") for c in columns] for row in named)]
        quoted = [['"' + str(c).replace('"', '""') + '"' for c in row] for row in cells]
        file.write_text("\n".join(map(",".join, quoted)))
    return folder


FORMS: dict[str, Callable[[Path, Rows, str], Path]] = {
    "saved": lambda folder, rows, _: saved(folder, rows),
    "saved-shards": lambda folder, rows, _: saved(folder, rows, 2),
    "hub": lambda folder, rows, _: hub(folder, rows),
    "hub-shards": lambda folder, rows, _: hub(folder, rows, 2),
    "csv": lambda folder, rows, media: image_folder(folder, rows, ".csv", media),
    "jsonl": lambda folder, rows, media: image_folder(folder, rows, ".jsonl", media),
    "parquet": lambda folder, rows, media: image_folder(folder, rows, ".parquet", media),
}


def lines(path: Path, rows: Rows) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_moments_say_the_same_in_any_folder_and_order(tmp_path: Path, form: str) -> None:
    split = {"split": "train"} if form.startswith("hub") else {}
    expected = read_captioned_videos(lines(tmp_path / "c.jsonl", [split | m for m in MOMENTS]))
    random.Random(1).shuffle(mixed := list(MOMENTS))

    for number, moments in enumerate((MOMENTS, mixed)):
        folder = FORMS[form](tmp_path / f"own{number}", moments, "video")
        assert read_captioned_videos(folder) == expected


@pytest.mark.parametrize("form", FORMS)
def test_captions_say_the_same_in_any_folder_and_order(tmp_path: Path, form: str) -> None:
    split = {"split": "train"} if form.startswith("hub") else {}
    expected = list(read_captions(lines(tmp_path / "c.jsonl", [c | split for c in CAPTIONS])))
    random.Random(2).shuffle(mixed := list(CAPTIONS))

    for number, captions in enumerate((CAPTIONS, mixed)):
        wider = [caption | {"likes": n, "user": "x"} for n, caption in enumerate(captions)]
        folder = FORMS[form](tmp_path / f"own{number}", wider, "image")
        found = sorted(read_captions(folder), key=lambda record: record.caption_id)
        assert found == sorted(expected, key=lambda record: record.caption_id)


@pytest.mark.parametrize("form", FORMS)
def test_text_pairs_say_the_same_in_any_folder(tmp_path: Path, form: str) -> None:
    folder = FORMS[form](tmp_path / "own", PAIRS, "nothing")
    if form == "csv":  # every row of metadata names a file
        with pytest.raises(InputError, match="expected a header with the column 'file_name'"):
            list(read_text_pairs(folder))
        return

    def said(pairs: Any) -> set[Any]:
        return {(pair.image, pair.positive, pair.negative) for pair in pairs}

    expected = said(read_text_pairs(lines(tmp_path / "c.jsonl", PAIRS)))
    assert said(read_text_pairs(folder)) == expected
    assert {found.negative for found in read_labelled_captions(folder)} == {
        negative for _, _, negative in expected
    }


def test_metadata_of_a_folder_of_images_hold_pairs_and_boxes(tmp_path: Path) -> None:
    table = "file_name,caption,hard_negative,bbox_x,bbox_y,bbox_w,bbox_h\na.jpg,x,y,1,2,3,4\n"
    (tmp_path / "metadata.csv").write_text(table)
    (pair,) = read_text_pairs(tmp_path)
    assert isinstance(pair, TextPair)
    assert (pair.image, pair.positive, pair.negative) == ("a.jpg", "x", "y")
    assert pair.box is not None
    assert (pair.box.x1, pair.box.y1) == (4, 6)


def test_pictures_are_read_by_their_paths_alone(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    image = pytest.importorskip("PIL.Image").new("RGB", (4, 4))
    (tmp_path / "in").mkdir()
    image.save(tmp_path / "in" / "cat.png")
    features = datasets.Features(
        image=datasets.Image(),
        text=datasets.List(datasets.Value("string")),
        when=datasets.Value("timestamp[s]"),
        nothing=datasets.Value("null"),
        label=datasets.ClassLabel(names=["cat"]),
    )
    row = {"image": [str(tmp_path / "in" / "cat.png")], "text": [["a cat", "a pet"]], "label": [0]}
    made = datasets.Dataset.from_dict(row | {"when": [None], "nothing": [None]}, features=features)
    made.save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "hub").mkdir()
    made.to_parquet(str(tmp_path / "hub" / "train.parquet"))

    for folder, name in (("saved", "cat.png"), ("hub", str(tmp_path / "in" / "cat.png"))):
        found = [(r.image, r.caption) for r in read_captions(tmp_path / folder)]
        assert found == [(name, "a cat"), (name, "a pet")]


def test_all_splits_are_read_where_rows_have_one(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    part = datasets.Dataset.from_list(CAPTIONS[:2])
    datasets.DatasetDict(train=part, test=part).save_to_disk(str(tmp_path / "saved"))
    for split in ("train", "test"):
        hub(tmp_path / "hub", CAPTIONS[:2], 2, split)
        image_folder(tmp_path / "images" / split, CAPTIONS[:2], ".jsonl")

    for form, prefix in (("saved", ""), ("hub", ""), ("images", "{split}/")):
        found = {(r.image, r.caption, r.split) for r in read_captions(tmp_path / form)}
        assert found == {
            (prefix.format(split=split) + row["image"], row["caption"], split)
            for split in ("train", "test")
            for row in CAPTIONS[:2]
        }
    for form in ("saved", "hub"):
        named = list(read_captions(tmp_path / form / "test"))
        assert [record.split for record in named] == ["test"] * 2
        assert set(named) < set(read_captions(tmp_path / form))


def test_pairs_of_several_splits_have_to_name_one(tmp_path: Path) -> None:
    for split, part in (("train", PAIRS), ("test", PAIRS[:1])):
        hub(tmp_path, part, split=split)
    with pytest.raises(
        InputError, match=r"has the splits 'test' and 'train'; pass one of them, such as .*/test$"
    ):
        list(read_text_pairs(tmp_path))
    assert len(list(read_text_pairs(tmp_path / "test"))) == 1
    with pytest.raises(InputError, match=r"no such file or split; .* are 'test' and 'train'$"):
        list(read_text_pairs(tmp_path / "val"))


def test_all_files_that_rows_come_of_are_inputs(tmp_path: Path) -> None:
    saved(tmp_path / "saved", CAPTIONS, 2)
    hub(tmp_path / "hub", CAPTIONS, 2)
    names = [path.name for path in caption_files(tmp_path / "saved")]
    assert names == ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow", "state.json"]
    assert (
        len(moment_files(tmp_path / "hub")) == len(caption_files(tmp_path / "hub" / "train")) == 2
    )


def broken(what: str, folder: Path) -> None:
    """Makes a folder with something wrong in it."""
    match what:
        case "part of the hub":
            next(hub(folder, CAPTIONS, 3).glob("data/*-00001-of-*")).unlink()
        case "part twice":
            there = next(hub(folder, CAPTIONS, 2).glob("data/*-00001-of-*"))
            there.with_name("train-00001-of-00002.parquet").write_bytes(there.read_bytes())
        case "saved part":
            (saved(folder, CAPTIONS, 2) / "data-00001-of-00002.arrow").unlink()
        case "cut off":
            file = saved(folder, CAPTIONS) / "data-00000-of-00001.arrow"
            file.write_bytes(file.read_bytes()[:-8])
        case "rows without bytes":
            file = saved(folder, CAPTIONS) / "data-00000-of-00001.arrow"
            table = pa.table({"image": pa.nulls(10**9)})
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
        case "indices":
            state = saved(folder, CAPTIONS) / "state.json"
            said = json.loads(state.read_text()) | {
                "_indices_data_files": [{"filename": "i.arrow"}]
            }
            state.write_text(json.dumps(said))
        case "outside":
            state = saved(folder, CAPTIONS) / "state.json"
            state.write_text(json.dumps({"_data_files": [{"filename": "../x.arrow"}]}))
        case "configurations":
            for name in ("en", "fr"):
                there = hub(folder / name, CAPTIONS)
                file = next(there.glob("data/*"))
                file.rename(there / file.name)
        case "two forms":
            image_folder(hub(folder, CAPTIONS), CAPTIONS, ".csv")
        case "two tables":
            image_folder(image_folder(folder, CAPTIONS, ".csv"), CAPTIONS, ".jsonl")
        case "no caption":
            hub(folder, [{"image": "a.jpg", "title": "x"}])
        case "no name":
            image_folder(folder, [{"caption": "x"}], ".csv")
        case "nothing":
            (folder / "notes.txt").write_text("x")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("part of the hub", r"train: part 00001 of 00003 is missing"),
        ("part twice", r"train: part 00001 of 00002 appears twice"),
        ("saved part", r"state\.json lists data-00001-of-00002\.arrow, which does not exist"),
        ("cut off", r"\.arrow: cannot be read as Arrow: the file is truncated"),
        ("rows without bytes", r"1,000,000,000 rows, but the file has only \d+ bytes"),
        ("indices", r"Save it again with dataset\.flatten_indices\(\)\.save_to_disk"),
        ("outside", r"expected a file name, found '\.\./x\.arrow'"),
        (
            "configurations",
            r"the configurations 'en' and 'fr'; pass one of them, such as .*/en$",
        ),
        ("two forms", r"contains both data/train-.* and metadata\.csv; move the captions into"),
        ("two tables", r"contains metadata\.csv and metadata\.jsonl; keep one of them"),
        ("no caption", r"row 1: expected the column 'caption' or 'text'; found .*'title'"),
        ("no name", r"metadata\.csv: line 1: expected a header with the column 'file_name'"),
        (
            "nothing",
            r"this folder contains no captions. Pass a file, or a folder with state\.json or ",
        ),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_sentence(
    tmp_path: Path, what: str, message: str
) -> None:
    broken(what, tmp_path)
    with pytest.raises(InputError, match=message):
        list(read_captions(tmp_path))


def test_compressed_arrow_files_with_dictionaries_are_read(tmp_path: Path) -> None:
    file = saved(tmp_path, CAPTIONS) / "data-00000-of-00001.arrow"
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    table = pa.table({"image": pa.array(["a"]).dictionary_encode(), "caption": ["x" * 1000]})
    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table)
    (found,) = read_captions(tmp_path)
    assert (found.image, found.caption) == ("a", "x" * 1000)


def test_tables_beside_subtitles_are_refused(tmp_path: Path) -> None:
    image_folder(tmp_path, MOMENTS, ".csv", "video")
    (tmp_path / "own.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nx\n")
    with pytest.raises(
        InputError, match=r"contains both metadata\.csv and subtitles, such as own\.srt"
    ):
        moment_files(tmp_path)


def test_a_misspelt_file_is_no_split(tmp_path: Path) -> None:
    hub(tmp_path, CAPTIONS)
    assert row_folder(tmp_path / "captions.jsonl") is None
    assert row_folder(tmp_path / "data" / "train") is not None


def test_a_missing_path_is_no_fault_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,text\na.png,a\n")
    (tmp_path / "test.parquet").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    assert row_folder(Path("gone")) is None
    with pytest.raises(InputError, match="contains both"):
        row_folder(tmp_path / "gone")


def configured(folder: Path, configs: Any, *names: str) -> Path:
    """A folder of the hub whose card names configurations; each file holds its own name."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"caption": [name]}), folder / name)
    (folder / "README.md").write_text(f"---\nlicense: mit\nconfigs: {json.dumps(configs)}\n---\n#")
    return folder


def said_by(path: Path) -> list[tuple[Any, Any]]:
    found = row_folder(path)
    assert found is not None
    return [(row.value["split"], row.value["caption"]) for row in found.rows("image")]


TRAIN, TEST, DROPPED = (f"data/{n}-00000-of-00001.parquet" for n in ("train", "test", "rejects-x"))


@pytest.mark.parametrize(
    "files",
    [
        [{"split": "train", "path": "data/train-*"}, {"split": "test", "path": ["data/te*"]}],
        {"train": "data/train-*.parquet", "test": TEST},
    ],
)
def test_a_card_says_which_files_are_the_default_configuration(tmp_path: Path, files: Any) -> None:
    configs = [
        {"config_name": "rejects", "data_files": "**/rejects-*.parquet"},
        {"config_name": "own", "data_files": files, "default": True},
    ]
    folder = configured(tmp_path / "d", configs, TRAIN, TEST, DROPPED)
    assert said_by(folder) == [("test", TEST), ("train", TRAIN)]
    assert said_by(folder / "test") == [("test", TEST)]
    assert said_by(folder / "rejects") == [("train", DROPPED)]
    found = row_folder(folder)
    assert found is not None
    assert folder / "README.md" in found.files


def test_configurations_of_which_none_is_the_default_are_named(tmp_path: Path) -> None:
    configs = [{"config_name": name, "data_dir": name} for name in ("en", "fr")]
    folder = configured(tmp_path / "d", configs, "en/a.parquet", "fr/deep/a.parquet")
    with pytest.raises(
        InputError, match=r"configurations 'en' and 'fr'; pass one of them, such as .*/d/en"
    ):
        row_folder(folder)
    configs[1]["config_name"] = "french"
    configured(folder, configs)
    assert said_by(folder / "french") == [("train", "fr/deep/a.parquet")]


@pytest.mark.parametrize("path", ["../*", "/etc/*", "hf://datasets/a/*", "a/../../*"])
def test_a_card_s_paths_stay_in_the_folder(tmp_path: Path, path: str) -> None:
    folder = configured(tmp_path / "d", [{"config_name": "x", "data_files": path}], TRAIN)
    with pytest.raises(InputError, match="leads out of the folder"):
        row_folder(folder)


def test_a_part_that_a_card_s_pattern_should_match_is_missed(tmp_path: Path) -> None:
    one = "data/samples-test-00000-of-00002.parquet"
    folder = configured(tmp_path / "d", [{"config_name": "x", "data_files": "data/*"}], one)
    with pytest.raises(InputError, match=r"samples-test: part 00001 of 00002 is missing"):
        row_folder(folder)
    configured(folder, [{"config_name": "x", "data_files": one}])
    assert said_by(folder) == [("train", one)]


@pytest.mark.parametrize("head", ["", "configs: 3", "configs: [3, {}]", "a card: ["])
def test_a_card_without_configurations_says_nothing(tmp_path: Path, head: str) -> None:
    folder = configured(tmp_path / "d", [], TRAIN)
    (folder / "README.md").write_text(f"---\n{head}\n---\n")
    assert said_by(folder) == [("train", TRAIN)]


MERGED = "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "head",
    [
        "configs: [",
        "configs: &a [*a]",
        f"configs: []\na0: &a0 {{x: 1}}\n{MERGED}",
        f"configs: {'[' * 100_000}",
    ],
)
def test_a_card_whose_head_is_no_plain_yaml_is_refused(tmp_path: Path, head: str) -> None:
    folder = configured(tmp_path / "d", [], TRAIN)
    (folder / "README.md").write_text(f"---\n{head}\n---\n")
    with pytest.raises(InputError, match=r"README.md: its YAML header is not valid: "):
        row_folder(folder)
