"""Finished datasets become one: every row, picture, reject and book of the parts, read back."""

import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from eqforge.commands import verify
from eqforge.schemas.dataset.manifest import load_manifest
from eqforge.schemas.records.scores import Score
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.dataset.combine import merge_images
from tests.builds import books, dataset_bytes, rows
from tests.commands.test_diff import rewritten
from tests.published import COLUMNS, SOURCES

OLD = Path(__file__).parents[1] / "old" / "0.1.0"
KUBRIC = OLD / "eq-kubric"
EQBEN = [OLD / name for name in ("eq-youcook2", "eq-gebc", "eq-ag", "eq-kubric", "eq-sd")]
TEXTS = {"caption_0": "苹果", "caption_1": "груша"}
SAME = ("sample_id", "dataset", "split", "source_id", "image_0_id", "image_1_id")
SMALL_FILES = ("--samples-per-file", "3", "--images-per-file", "5")


def combine(output: Path, *arguments: object) -> Path:
    assert main(["combine", *map(str, arguments), "--output", str(output)]) == 0
    return output


def refused(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 2) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(["combine", *map(str, arguments)])
    assert left.value.code == status
    return capsys.readouterr().err


def imported(benchmark: str, folder: Path) -> Path:
    source = folder / benchmark
    source.mkdir()
    columns = ["--columns", *COLUMNS[benchmark]] if benchmark in COLUMNS else []
    command = ["import", benchmark, str(SOURCES[benchmark](source)), *columns]
    assert main([*command, "--output", str(folder / f"{benchmark}-out")]) == 0
    return folder / f"{benchmark}-out"


@pytest.fixture(scope="module")
def eqben(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return combine(tmp_path_factory.mktemp("combined") / "eqben", *EQBEN, *SMALL_FILES)


def test_every_row_of_the_parts_is_there(eqben: Path) -> None:
    combined = {row["sample_id"]: row for row in rows(eqben, "samples")}
    of_parts = {row["sample_id"]: row for part in EQBEN for row in rows(part, "samples")}

    assert combined.keys() == of_parts.keys()
    for key, row in combined.items():
        old = of_parts[key]
        assert {name: row[name] for name in SAME} == {name: old[name] for name in SAME}
        assert [row["caption_0"], row["caption_1"]] == [old["caption_0"], old["caption_1"]]
        kind = old.get("kind")
        assert row["kind"] == (f"{old['dataset']}/{kind}" if kind else old["dataset"])
        files = [old.get(f"origin_{n}", {}).get("source_path") for n in (0, 1)]
        assert [row["image_0"], row["image_1"]] == files
        rest = {name: value for name, value in old.items() if name not in {*row, "annotation"}}
        if "annotation" in old:
            rest["annotation"] = json.loads(old["annotation"])
        assert json.loads(row["annotation"]) == rest


def test_pictures_rejects_and_books_come_along(eqben: Path) -> None:
    images = rows(eqben, "images")
    of_parts = {row["image_id"]: row for part in EQBEN for row in rows(part, "images")}
    assert {row["image_id"]: row for row in images} == of_parts
    assert len(images) == len(of_parts)

    rejects = [
        row | {"stage": f"{part.name}: {row['stage']}"}
        for part in EQBEN
        for row in rows(part, "rejects")
    ]
    order = ("candidate_id", "stage")
    found = sorted(rows(eqben, "rejects"), key=lambda row: [row[name] for name in order])
    assert found == sorted(rejects, key=lambda row: [row[name] for name in order])

    number = len(rows(eqben, "samples"))
    of_stages = {f"{p.name}: {stage}": kept for p in EQBEN for stage, kept in books(p).items()}
    assert books(eqben) == of_stages | {"combine": (number, number, 0)}
    manifest = load_manifest(str(eqben))
    assert (manifest.dataset, manifest.mode) == ("combined-pairs", "corrected")
    assert [file.name for file in manifest.inputs] == sorted(part.name for part in EQBEN)
    assert "parts" not in manifest.config
    assert verify.main([str(eqben)]) == 0
    parts = " ".join(f"path/to/{part}" for part in sorted(path.name for path in EQBEN))
    assert f"eqforge combine {parts} " in (eqben / "README.md").read_text()


def test_the_order_of_parts_and_the_number_of_workers_do_not_matter(
    eqben: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = Path(shutil.copytree(EQBEN[1], tmp_path / "elsewhere"))
    parts = [f"file://{moved}", *EQBEN[2:], EQBEN[0]]
    again = combine(tmp_path / "again", *parts, *SMALL_FILES, "--workers", 2)

    assert dataset_bytes(again) == dataset_bytes(eqben)
    capsys.readouterr()
    combine(eqben, *reversed(EQBEN), *SMALL_FILES)
    assert "is already finished and was not changed" in capsys.readouterr().out


def test_equal_samples_count_once_and_are_said(tmp_path: Path) -> None:
    first, *others = rows(OLD / "eq-youcook2", "samples")
    part = Path(shutil.copytree(OLD / "eq-youcook2", tmp_path / "part"))
    new = first | {"sample_id": "eq-youcook2/новый/1", "caption_0": "苹果"}
    shuffled = [*others, new]
    random.Random(1).shuffle(shuffled)
    rewritten(part, "samples", shuffled, files=2)

    out = combine(tmp_path / "out", part, OLD / "eq-youcook2")

    ids = {row["sample_id"]: row["caption_0"] for row in rows(out, "samples")}
    assert ids == {row["sample_id"]: row["caption_0"] for row in (first, *others, new)}
    doubles = [row for row in rows(out, "rejects") if row["stage"] == "combine"]
    assert {row["reason"] for row in doubles} == {"duplicate"}
    assert {row["source_id"] for row in doubles} == {row["sample_id"] for row in others}
    number = len(ids)
    assert books(out)["combine"] == (number + len(others), number, len(others))
    stages = {stage.partition(":")[0] for stage in books(out)} - {"combine"}
    assert len(stages) == 2
    assert all(stage.startswith("eq-youcook2@") for stage in stages)
    assert verify.main([str(out)]) == 0


def other_build(folder: Path, beginning: str = "eq-gebc/val") -> Path:
    """Another build of eq-gebc: its pairs, of which all but one have other ids."""
    part = Path(shutil.copytree(OLD / "eq-gebc", folder))
    first, *rest = rows(part, "samples")
    rest = [row | {"sample_id": f"{beginning}/{n}"} for n, row in enumerate(rest)]
    rewritten(part, "samples", [first, *rest])
    return part


def test_builds_of_one_dataset_are_told_apart_by_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, val = OLD / "eq-gebc", other_build(tmp_path / "val")
    named = [f"train={train}", f"eq-gebc-val={val}"]
    out = combine(tmp_path / "out", *named, KUBRIC, "--limit", 50)
    again = combine(tmp_path / "again", KUBRIC, *reversed(named), "--limit", 50)

    assert dataset_bytes(again) == dataset_bytes(out)
    assert verify.main([str(out)]) == 0
    by_part = {"train": rows(train, "samples"), "eq-gebc-val": rows(val, "samples")}
    ids = {name: {_id(row) for row in some} for name, some in by_part.items()}
    (both,) = set.intersection(*ids.values())
    expected = {_id(row): f"eq-kubric/{row['kind']}" for row in rows(KUBRIC, "samples")}
    expected |= {each: name for name, some in ids.items() for each in some - {both}}
    kinds = {_id(row): row["kind"] for row in rows(out, "samples")}
    assert kinds.pop(both) in by_part  # it stands once, under the part that is first
    assert kinds == expected
    assert {row["dataset"] for row in rows(out, "samples")} == {"eq-gebc", "eq-kubric"}

    manifest = load_manifest(str(out))
    assert {stage.partition(":")[0] for stage in books(out)} == {*by_part, "eq-kubric", "combine"}
    assert {part.name for part in manifest.parts} == {*by_part, "eq-kubric"}
    (double,) = [row for row in rows(out, "rejects") if row["stage"] == "combine"]
    assert double["candidate_id"].partition(":")[0] in by_part
    assert not [text for text in manifest.warnings if "builds of" in text]
    card = (out / "README.md").read_text()
    assert "train=path/to/eq-gebc@" in card
    assert "eq-gebc-val=path/to/eq-gebc@" in card

    unnamed = combine(tmp_path / "unnamed", train, val)
    (warning,) = load_manifest(str(unnamed)).warnings
    assert warning.startswith("2 parts are builds of eq-gebc, so their samples get the same kind")
    assert {row["kind"] for row in rows(unnamed, "samples")} == {"eq-gebc"}
    nested = combine(tmp_path / "nested", f"all={out}", f"drawn={OLD / 'eq-sd'}")
    whole = {_id(row): row["kind"] for row in rows(nested, "samples")}
    assert {whole[key] for key in kinds} == {f"all/{kind}" for kind in kinds.values()}
    assert {whole[_id(row)].partition("/")[0] for row in rows(OLD / "eq-sd", "samples")} == {
        "drawn"
    }


def test_texts_of_one_dataset_bring_no_warning_of_kind_and_no_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (Path(shutil.copytree(OLD / "hard-positives", tmp_path / n)) for n in "ab")
    texts = rows(one, "samples")
    rewritten(other, "samples", [row | {"sample_id": f"b/{_id(row)}"} for row in texts])
    plain = combine(tmp_path / "plain", one, f"b={other}")
    assert load_manifest(str(plain)).warnings == []

    certificate = {"version": 2, "rows": 2, "folds": 5, "probes": [], "best": None, "unasked": []}
    manifest = json.loads((other / "dataset.json").read_text())
    (other / "dataset.json").write_text(json.dumps(manifest | {"certificate": certificate}))
    capsys.readouterr()
    out = combine(tmp_path / "out", one, f"b={other}")

    warning = (
        "b: its certificate of balanced texts does not cover the combined dataset; "
        "run eqforge audit on the combined dataset"
    )
    assert load_manifest(str(out)).warnings == [warning]
    assert f"WARNING: {warning}\n" in capsys.readouterr().err
    assert b'"certificate"' not in (out / "dataset.json").read_bytes()
    unnamed = combine(tmp_path / "unnamed", one, other)
    (said,) = load_manifest(str(unnamed)).warnings
    assert said.partition(": ")[2] == warning.partition(": ")[2]


def test_names_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gebc, other = OLD / "eq-gebc", other_build(tmp_path / "x=1")
    to = ["--output", tmp_path / "out"]
    said = refused(capsys, f"a={gebc}", f"a={other}", *to)
    assert "another dataset has the name 'a'" in said
    assert "choose a different NAME" in refused(capsys, f"eq-ag={gebc}", OLD / "eq-ag", *to)
    for wrong in (f"={gebc}", f"-a b={gebc}"[1:], "a=", f"{'a' * 65}={gebc}", f"ä={gebc}"):
        assert "expected NAME=FOLDER. NAME begins" in refused(capsys, wrong, OLD / "eq-ag", *to)
    assert "omit one of them" in refused(capsys, f"a={gebc}", f"b={gebc}", *to)
    with_equals = combine(tmp_path / "out", other, gebc)
    assert len(rows(with_equals, "samples")) == 2 * len(rows(gebc, "samples")) - 1


def test_a_subset_can_be_limited_sampled_and_named(tmp_path: Path, eqben: Path) -> None:
    limited = combine(tmp_path / "limited", *EQBEN, "--limit", 1)
    kinds = Counter(row["kind"] for row in rows(limited, "samples"))
    assert kinds == dict.fromkeys({row["kind"] for row in rows(eqben, "samples")}, 1)
    shown = {row[f"image_{n}_id"] for row in rows(limited, "samples") for n in (0, 1)}
    assert {row["image_id"] for row in rows(limited, "images")} == shown
    assert len(shown) < len(rows(eqben, "images"))
    assert verify.main([str(limited)]) == 0

    half = combine(tmp_path / "half", *EQBEN, "--sample", "50%", "--limit", 2)
    more = combine(tmp_path / "more", *EQBEN, "--sample", "80%", "--limit", 3)
    names = [{row["sample_id"] for row in rows(out, "samples")} for out in (half, more)]
    assert names[0]
    assert names[0] < names[1]

    wanted = sorted(names[1])[:2]
    only = combine(tmp_path / "only", *EQBEN, "--only", *wanted)
    assert [row["sample_id"] for row in rows(only, "samples")] == wanted


def test_parts_do_not_share_the_limit_of_a_kind(tmp_path: Path) -> None:
    parts = []
    for name in ("a", "b"):
        record = {"image_0": "0", "image_1": "1", "kind": "colour"}
        some = [record | {"id": f"{name}{n}", **TEXTS} for n in range(3)]
        (tmp_path / f"{name}.json").write_text(json.dumps(some))
        command = ["import", "own-pairs", str(tmp_path / f"{name}.json")]
        assert main([*command, "--output", str(tmp_path / name)]) == 0
        parts.append(tmp_path / name)
    out = combine(tmp_path / "out", *parts, "--limit", 2)
    found = Counter(_id(row).removeprefix("own-pairs/")[-2] for row in rows(out, "samples"))
    assert found == {"a": 2, "b": 2}


def test_the_limit_of_foils_is_of_parts(tmp_path: Path) -> None:
    parts = [imported(name, tmp_path) for name in ("valse", "own-foils")]
    assert len({row["kind"] for row in rows(parts[0], "samples")}) > 1
    out = combine(tmp_path / "out", *parts, "--limit", 1)
    assert Counter(row["dataset"] for row in rows(out, "samples")) == {"valse": 1, "own-foils": 1}


def test_benchmarks_and_combined_datasets_are_parts_too(eqben: Path, tmp_path: Path) -> None:
    bivlc = imported("bivlc", tmp_path)
    out = combine(tmp_path / "out", eqben, bivlc, OLD / "eq-video")

    found = {row["sample_id"]: row for row in rows(out, "samples")}
    assert {key: found[key] for key in (row["sample_id"] for row in rows(eqben, "samples"))} == {
        row["sample_id"]: row for row in rows(eqben, "samples")
    }
    for row in rows(bivlc, "samples"):
        kind = f"bivlc/{row['kind']}" if row["kind"] else "bivlc"
        assert found[row["sample_id"]] == row | {"kind": kind}
    assert load_manifest(str(out)).mode == "paper"
    assert "combined-pairs: eq-gebc: frames" in books(out)
    assert verify.main([str(out)]) == 0


def test_foils_become_foils(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [imported(name, tmp_path) for name in ("valse", "own-foils")]
    out = combine(tmp_path / "out", *parts)

    whole = sorted((row for part in parts for row in rows(part, "samples")), key=_id)
    assert sorted(rows(out, "samples"), key=_id) == whole
    assert load_manifest(str(out)).dataset == "combined-foils"
    assert verify.main([str(out)]) == 0

    said = refused(capsys, parts[0], OLD / "eq-gebc", "--output", tmp_path / "x")
    assert "the datasets have different columns" in said
    assert "hard_negative" in said
    assert "origin_0" in said


def _id(row: dict[str, Any]) -> str:
    return str(row["sample_id"])


def test_what_cannot_be_combined_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = ["--output", tmp_path / "out"]
    gebc = OLD / "eq-gebc"
    assert "pass two or more datasets" in refused(capsys, gebc, *to)
    assert "are the same dataset" in refused(capsys, gebc, gebc, *to)
    assert "no such folder" in refused(capsys, gebc, tmp_path / "none", *to)
    simat = [OLD / "simat", Path(shutil.copytree(OLD / "simat", tmp_path / "simat"))]
    rewritten(simat[1], "samples", rows(simat[1], "samples")[:1])
    assert "eqforge cannot combine simat datasets; it combines" in refused(capsys, *simat, *to)
    assert "--sample 3: expected a percentage" in refused(
        capsys, gebc, OLD / "eq-ag", "--sample", 3, *to
    )
    assert "no sample with this id" in refused(capsys, gebc, OLD / "eq-ag", "--only", "zebra", *to)

    other = Path(shutil.copytree(gebc, tmp_path / "other"))
    first, *rest = rows(gebc, "samples")
    rewritten(other, "samples", [*rest, first | {"caption_1": "another"}])
    said = refused(capsys, gebc, other, *to)
    assert f"1 sample with the same id but different contents; the first is {_id(first)}." in said
    assert "eqforge diff" in said
    rewritten(other, "samples", [row | {"sample_id": f"x/{_id(row)}"} for row in (first, *rest)])
    rewritten(other, "images", rows(gebc, "images")[1:])
    assert "lacks 1 of the 6 images that its samples use" in refused(capsys, gebc, other, *to)
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_a_picture_with_other_bytes_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(shutil.copytree(OLD / "eq-gebc", tmp_path / "other"))
    (path,) = (other / "data").glob("images-*")
    data, picture = path.read_bytes(), rows(other, "images")[0]["image"]["bytes"]
    assert data.count(picture) == 1
    path.write_bytes(data.replace(picture, picture[:-9] + b"\0" * 9))

    said = refused(capsys, other, OLD / "eq-ag", "--output", tmp_path / "out", status=1)

    assert "have changed; run eqforge verify to" in said
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_a_picture_of_several_parts_has_the_scores_of_all() -> None:
    scores = [Score(name=n, value=1.0, scorer="s", version="1", settings="{}") for n in "ab"]
    row = ImageRow(
        image_id="x", suffix=".png", width_px=1, height_px=1, num_bytes=1, phash="", scores=()
    )
    several = [replace(row, scores=(score,)) for score in scores]

    assert merge_images("x", [row, row]) == row
    assert merge_images("x", several) == replace(row, scores=tuple(scores))
    assert merge_images("x", [*several[::-1], row]) == replace(row, scores=tuple(scores))
