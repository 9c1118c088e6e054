"""Tables as other programs write them, with single bad records, become datasets.

`SITUATIONS` has what bug reports of other projects tell of tables, each with its report. Reports of
exports, answers and scores stand with their tests: batches with None (pytorch/pytorch#74337) and
names of splits in transforms/export/test_formats.py, several configurations (huggingface/datasets
#203) in test_hugging_face.py, answers that name no option (mashijie1028/GenHancer#4) in
evaluation/tables/test_questions.py, forms of scores in evaluation/tables/test_own_scores.py.
"""

import gzip
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
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


@dataclass(frozen=True, slots=True)
class Situation:
    """What a bug report of another project tells of, and what `eqforge import` makes of it.

    Attributes:
      source: the report on GitHub, or the program that writes such files.
      write: writes the rows of `FOILS` to the file of this name.
      rejects: how the detail of each reject begins, by reason.
      lost: number of records that are no samples.
      values: of columns of the samples.
    """

    source: str
    name: str
    write: Callable[[pd.DataFrame, Path], Any]
    benchmark: str = "own-foils"
    options: tuple[str, ...] = ()
    rejects: Mapping[str, str] = field(default_factory=dict)
    lost: int = 0
    values: Mapping[str, set[Any]] = field(default_factory=dict)


def lines(frame: pd.DataFrame, path: Path) -> None:
    path.write_text(json_lines(frame.to_dict("records")))


def cells(frame: pd.DataFrame, **columns: Mapping[int, Any]) -> pd.DataFrame:
    """Return a table in which some cells have other values."""
    frame = frame.astype(object)
    for column, values in columns.items():
        for row, value in values.items():
            frame.at[row, column] = value
    return frame


def with_pointer(frame: pd.DataFrame, path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 57569\n"
    (path.parent / "images/3.png").write_bytes(pointer)
    lines(frame, path)


def with_classes(frame: pd.DataFrame, path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_pandas(frame.assign(kind=[0, 1] * (COUNT // 2)))
    labels = datasets.ClassLabel(names=["swap", "add"])
    table = table.cast_column("kind", labels)
    table.save_to_disk(path) if path.suffix == "" else table.to_parquet(path)


def shard(frame: pd.DataFrame, path: Path, ending: str = "png") -> None:
    files = {}
    for row in frame.to_dict("records"):
        key = f"a.d/{row['id']:05d}"
        files[f"{key}.{ending}"] = (path.parent / "images" / row["image"]).read_bytes()
        files[f"{key}.json"] = json.dumps({k: row[k] for k in row if k != "image"}).encode()
    write_tar(path, files)


SITUATIONS: dict[str, Situation] = {
    "JSON lines in .json": Situation("huggingface/datasets#1784", "t.json", lines),
    "two records in one line": Situation(
        "huggingface/datasets#4107",
        "t.jsonl",
        lambda f, p: p.write_text(json_lines(f.to_dict("records")).replace("\n", " ", 1)),
        rejects={"unreadable_record": "not valid JSON"},
        lost=2,
    ),
    "no line feed at the end": Situation(
        "pandas-dev/pandas#36888",
        "t.jsonl",
        lambda f, p: p.write_text(f.to_json(orient="records", lines=True).rstrip()),
    ),
    "indented JSON": Situation(
        "apache/arrow#40912", "t.json", lambda f, p: f.to_json(p, orient="records", indent=4)
    ),
    "columns of rows": Situation("pandas: to_json", "t.json", lambda f, p: f.to_json(p)),
    "semicolons": Situation(
        "asreview/asreview#302", "t.csv", lambda f, p: f.to_csv(p, sep=";", index=False)
    ),
    "tabs in .csv": Situation(
        "huggingface/datasets#1773", "t.csv", lambda f, p: f.to_csv(p, sep="\t", index=False)
    ),
    "Feather": Situation("pola-rs/polars#623", "t.feather", lambda f, p: f.to_feather(p)),
    "gzip": Situation(
        "pandas: to_json",
        "t.jsonl.gz",
        lambda f, p: f.to_json(p, orient="records", lines=True, compression="gzip"),
    ),
    "zip": Situation(
        "pandas: to_json",
        "any.json.zip",
        lambda f, p: f.to_json(p, compression={"method": "zip", "archive_name": "t.json"}),
    ),
    "NaN in a column of no use": Situation(
        "EducationalTestingService/rsmtool#271",
        "t.jsonl",
        lambda f, p: lines(f.assign(note=float("nan")), p),
    ),
    "NaN in Parquet": Situation(
        "pandas-dev/pandas#28335",
        "t.parquet",
        lambda f, p: f.assign(note=float("nan")).to_parquet(p),
    ),
    "whole numbers as answers": Situation(
        "Orolol/familyBench#2",
        "t.jsonl",
        lambda f, p: lines(f.assign(question="Is it?", answer=f["id"] % 2), p),
        benchmark="own-questions",
        values={"answer": {"0", "1"}},
    ),
    "paths of Windows": Situation(
        "roboflow/supervision#2581",
        "t.csv",
        lambda f, p: f.assign(image="sub\\" + f["image"]).to_csv(p, index=False),
    ),
    "a null caption": Situation(
        "iflytek/VLE#4",
        "t.json",
        lambda f, p: cells(f, caption={7: None}).to_json(p, orient="records"),
        rejects={"unreadable_record": "caption: expected a string, found null"},
    ),
    "an empty caption in CSV": Situation(
        "iflytek/VLE#4",
        "t.csv",
        lambda f, p: cells(f, caption={7: None}).to_csv(p, index=False),
        rejects={"empty_caption": ""},
    ),
    "a null caption in Parquet": Situation(
        "iflytek/VLE#4",
        "t.parquet",
        lambda f, p: cells(f, caption={7: None}).to_parquet(p),
        rejects={"unreadable_record": "expected the fields 'caption' and 'hard_negative'; found"},
    ),
    "a pointer of Git LFS among the pictures": Situation(
        "git-lfs/git-lfs#4240", "t.jsonl", with_pointer, rejects={"undecodable_image": ""}
    ),
    "classes as numbers": Situation(
        "huggingface/datasets#2207", "t.parquet", with_classes, values={"kind": {"swap", "add"}}
    ),
    "classes as numbers, saved": Situation(
        "ExpressAI/DataLab#153", "saved", with_classes, values={"kind": {"swap", "add"}}
    ),
    "several images of a record": Situation(
        "huggingface/datasets#5760",
        "t.jsonl",
        lambda f, p: lines(cells(f, image={3: ["3.png", "4.png"]}), p),
        rejects={"unreadable_record": "image: expected one image (choose it with "},
    ),
    "a shard with dots in its folders": Situation(
        "huggingface/datasets#7150", "train-000000.tar", shard, values={"split": {"train"}}
    ),
    "a shard with dots in its file names": Situation(
        "webdataset/webdataset#237",
        "t.tar",
        partial(shard, ending="0.png"),
        options=("--columns", "image=0"),
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_other_projects_report_is_read_or_told(
    situation: str, images: Path, tmp_path: Path
) -> None:
    each, source = SITUATIONS[situation], tmp_path / SITUATIONS[situation].name
    each.write(pd.DataFrame(FOILS), source)
    options = each.options if source.suffix == ".tar" else ("--images", str(images), *each.options)
    out = tmp_path / "out"
    assert main(["import", each.benchmark, str(source), "--output", str(out), *options]) == 0
    found = rows(out, "samples")
    details = {row["reason"]: row["detail"] for row in rows(out, "rejects")}
    assert details.keys() == each.rejects.keys()
    assert all(details[reason].startswith(each.rejects[reason]) for reason in details), details
    assert COUNT - len(found) == (each.lost or len(rows(out, "rejects")))
    assert all(row["image_id"] for row in found)
    assert {column: {row[column] for row in found} for column in each.values} == each.values


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_single_record_of_another_script_is_read(name: str, images: Path, tmp_path: Path) -> None:
    record = {"image": "1.png", "caption": "红色的杯子", "hard_negative": "蓝色的杯子"}
    (tmp_path / name).write_text(json.dumps(record, ensure_ascii=False))
    (row,) = rows(imported(tmp_path / name, images), "samples")
    assert (row["caption"], row["hard_negative"]) == ("红色的杯子", "蓝色的杯子")


def test_a_line_that_is_not_json_and_one_that_lacks_a_field_are_rejects(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps(row) for row in FOILS]
    lines[2], lines[5] = lines[2][:-9], '{"id": 5, "image": "5.png", "caption": "a red cup 5"}'
    source = tmp_path / "t.jsonl"
    source.write_text("\n".join(lines))
    out = imported(source, images)
    details = sorted(row["detail"] for row in rows(out, "rejects"))
    starts = ("expected the fields 'caption' and 'hard_negative'; found only ", "not valid JSON:")
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
    assert "6 of 12 records cannot be read, but --max-error-rate 0.01 allows 5" in said
    assert "t.jsonl: line 7 and 5 more: expected the fields 'caption' and 'hard_negative'" in said
    assert "nearest" not in said  # own-foils is what was asked for
    assert not (tmp_path / "out" / "data").exists()


def _with_pictures(rows_of: list[dict[str, Any]], source: Path, folder: Path) -> tuple[str, ...]:
    """Write records in the form of a file's ending; return the options that find their pictures."""
    frame = pd.DataFrame(rows_of)
    if source.suffix == ".parquet":
        cells: Any = [
            None if name is None else {"bytes": (folder / name).read_bytes(), "path": name}
            for name in (row["image"] for row in rows_of)
        ]
        frame.assign(image=cells).to_parquet(source)
        return ()
    if source.suffix == ".csv":
        frame.to_csv(source, index=False)
    else:
        frame.to_json(source, orient="records", lines=source.suffix == ".jsonl")
    return "--images", str(folder)


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv", "parquet"])
def test_a_null_and_an_unreadable_picture_are_rejects(
    ending: str, images: Path, tmp_path: Path
) -> None:
    records = [dict(row) for row in FOILS]
    records[7]["image"] = None
    (images / "3.png").write_bytes(b"no picture")
    source = tmp_path / f"t.{ending}"
    options = _with_pictures(records, source, images)
    out = tmp_path / "out"
    assert main([*IMPORT, str(source), "--output", str(out), *options]) == 0
    assert len(rejected(out, "no_image")) == 1
    assert len(rejected(out, "undecodable_image")) == 1
    assert len(rows(out, "samples")) == COUNT - 2
    assert all(row["image_id"] for row in rows(out, "samples"))


def test_a_picture_that_is_only_named_in_a_table_of_pictures_is_a_reject(
    images: Path, tmp_path: Path
) -> None:
    cells: Any = [{"bytes": (images / r["image"]).read_bytes(), "path": r["image"]} for r in FOILS]
    cells[4]["bytes"] = None
    source, out = tmp_path / "t.parquet", tmp_path / "out"
    pd.DataFrame(FOILS).assign(image=cells).to_parquet(source)
    assert main([*IMPORT, str(source), "--output", str(out)]) == 0
    (row,) = rows(out, "rejects")
    assert "only the name '4.png' of its image" in row["detail"]
    assert len(rows(out, "samples")) == COUNT - 1


def test_texts_that_are_all_about_no_image_are_samples(tmp_path: Path) -> None:
    source, out = tmp_path / "t.jsonl", tmp_path / "out"
    source.write_text(json_lines(row | {"image": None} for row in FOILS))
    assert main([*IMPORT, str(source), "--output", str(out)]) == 0
    assert len(rows(out, "samples")) == COUNT


def write_tar(path: Path, files: Mapping[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize("count", [1, 2])
def test_web_datasets_are_read(count: int, images: Path, tmp_path: Path) -> None:
    for shard in range(count):
        files = {}
        for row in FOILS[shard::count]:
            fields = {"hard_negative": row["hard_negative"], "image": "their name"}
            files[f"{row['id']:05d}.png"] = (images / row["image"]).read_bytes()
            files[f"{row['id']:05d}.json"] = json.dumps(fields).encode()
            files[f"{row['id']:05d}.txt"] = row["caption"].encode()
        tar = write_tar(tmp_path / f"shards/train-{shard:06d}.tar", files)
    source, out = (tar if count == 1 else tar.parent), tmp_path / "out"
    options = ["--columns", "caption=txt", "--output", str(out)]
    assert main([*IMPORT, str(source), *options]) == 0
    found = rows(out, "samples")
    assert {row["caption"] for row in found} == {row["caption"] for row in FOILS}
    assert all(row["image_id"] and row["split"] == "train" for row in found)
    assert {json.loads(row["annotation"])["image_name"] for row in found} == {"their name"}
    assert len(rows(out, "images")) == COUNT


def test_a_row_of_a_shard_that_is_not_json_is_a_reject(tmp_path: Path) -> None:
    fields = {n: json.dumps(row | {"image": None}).encode() for n, row in enumerate(FOILS)}
    fields[3] = fields[3][:-9]
    tar = write_tar(tmp_path / "a.tar", {f"{n}.json": text for n, text in fields.items()})
    out = tmp_path / "out"
    assert main([*IMPORT, str(tar), "--output", str(out)]) == 0
    (row,) = rows(out, "rejects")
    assert row["detail"].startswith("3.json: not valid JSON")
    assert len(rows(out, "samples")) == COUNT - 1


def _packed(path: Path, members: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


LINE = json.dumps(FOILS[0]).encode()
BOMB = (b" " * (1 << 20) + b"\n") * 200
UNREAD: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "a bomb": (
        "t.jsonl.gz",
        lambda p: p.write_bytes(gzip.compress(BOMB, 6)),
        "unpacks to more than",
    ),
    "a bomb in a zip": (
        "t.zip",
        lambda p: _packed(p, {"t.jsonl": BOMB}),
        "unpacks to more than",
    ),
    "a cut file": (
        "t.jsonl.gz",
        lambda p: p.write_bytes(gzip.compress(LINE)[:-12]),
        "cannot be unpacked: Compressed file ended",
    ),
    "no zip": ("t.zip", lambda p: p.write_bytes(LINE), "cannot be unpacked: File is not a zip"),
    "several files": (
        "t.zip",
        lambda p: _packed(p, {"a.jsonl": LINE, "b.jsonl": LINE}),
        "t.zip contains 2 files; expected one table; unpack it",
    ),
    "Parquet in gzip": (
        "t.parquet.gz",
        lambda p: p.write_bytes(gzip.compress(b"PAR1")),
        "contains a compressed .parquet file; unpack it",
    ),
    "packed shards": (
        "t.tar.gz",
        lambda p: p.write_bytes(gzip.compress(b"")),
        "is compressed; unpack it to a plain .tar",
    ),
    "a damaged tar": (
        "t.tar",
        lambda p: p.write_bytes(b"x" * 1024),
        "is not an uncompressed tar file, or it is damaged",
    ),
}


@pytest.mark.parametrize("form", UNREAD)
def test_what_cannot_be_unpacked_is_said(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, write, message = UNREAD[form]
    write(tmp_path / name)
    assert status([*IMPORT, str(tmp_path / name), "--output", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("form", ["parquet", "saved", "jsonl"])
def test_lists_of_images_are_read(form: str, images: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    paths = [
        [str(images / f"{n}.png"), str(images / f"{(n + 1) % COUNT}.png")] for n in range(COUNT)
    ]
    texts = [{"id": n, "caption_0": f"cup {n}", "caption_1": f"no cup {n}"} for n in range(COUNT)]
    features = datasets.Features(
        {"id": datasets.Value("int64")}
        | dict.fromkeys(("caption_0", "caption_1"), datasets.Value("string"))
        | {"images": datasets.List(datasets.Image())}
    )
    records: list[dict[str, Any]]
    records = [row | {"images": names} for row, names in zip(texts, paths, strict=True)]
    records[5]["images"] = paths[5][:1]
    records[4]["images"] = [paths[4][0], str(images / "copy.png")]  # the same bytes
    shutil.copy(paths[4][0], images / "copy.png")
    held = [
        row
        | {"images": [{"bytes": Path(p).read_bytes(), "path": Path(p).name} for p in row["images"]]}
        for row in records
    ]
    table = datasets.Dataset.from_list(held, features)
    source, out = tmp_path / f"t.{form}", tmp_path / "out"
    options = ["--columns", "image_0=images[0]", "image_1=images[1]"]
    if form == "parquet":
        table.to_parquet(source)
    elif form == "saved":
        table.save_to_disk(source := tmp_path / "saved")
    else:
        relative = [r | {"images": [Path(name).name for name in r["images"]]} for r in records]
        source.write_text(json_lines(relative))
        options = ["--images", str(images), *options]
    assert main(["import", "own-pairs", str(source), *options, "--output", str(out)]) == 0
    assert [len(rejected(out, why)) for why in ("unreadable_record", "same_image")] == [1, 1]
    stored = {row["image_id"]: row["image"]["bytes"] for row in rows(out, "images")}
    found = rows(out, "samples")
    assert len(found) == COUNT - 2
    for row in found:
        number = int(row["caption_0"].removeprefix("cup "))
        for side in (0, 1):
            expected = (images / f"{(number + side) % COUNT}.png").read_bytes()
            assert stored[row[f"image_{side}_id"]] == expected


def test_a_list_of_one_image_is_that_image_and_of_several_one_is_named(
    images: Path, tmp_path: Path
) -> None:
    source, out = tmp_path / "t.jsonl", tmp_path / "out"
    records = [row | {"image": [row["image"]]} for row in FOILS]
    records[3]["image"] *= 2
    source.write_text(json_lines(records))
    command = [*IMPORT, str(source), "--images", str(images), "--output", str(out), "--overwrite"]
    assert main(command) == 0
    (row,) = rows(out, "rejects")
    assert "expected one image (choose it with --columns image=image[0])" in row["detail"]
    assert main([*command, "--columns", "image=image[0]"]) == 0
    assert len(rows(out, "samples")) == COUNT
