"""Recipes: exported, built again of the same sources and of changed ones, and hostile ones."""

import contextlib
import dataclasses
import hashlib
import json
import random
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import eqforge
from eqforge import cli
from eqforge.commands import diff
from eqforge.core.errors import InputError
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import pipeline_of
from eqforge.pipelines.base.recipe import command_of, commands_of, settings_of_recipe
from eqforge.schemas.dataset.manifest import Manifest, load_manifest
from eqforge.schemas.tables.datasets import DATASETS, TYPES
from tests.builds import dataset_bytes, rows
from tests.exported import check_note, files, run
from tests.statuses import status_of

main = status_of(cli.main)
OLD = Path(__file__).parents[1] / "old" / "0.1.0"
VIDEOS = ("own/tour.mkv", "demoCoffee1.mp4", "own/desk.mp4")


def of_videos(captions: Path, videos: Path, output: Path) -> list[str]:
    return ["--captions", str(captions), "--videos", str(videos), "--output", str(output)]


@pytest.fixture(scope="module")
def built(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of small frames, which tests must not change."""
    folder = tmp_path_factory.mktemp("built") / "eq-video"
    own = of_videos(demo_workspace.captions, demo_workspace.videos, folder)
    settings = ["--mode", "paper", "--face-policy", "off", "--max-side", "96", "--seed", "7"]
    assert main(["build", "eq-video", *settings, *own]) == 0
    return folder


@pytest.fixture(scope="module")
def recipe(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(built, "recipe", tmp_path_factory.mktemp("recipe") / "recipe")


@pytest.fixture
def sources(demo_workspace: Workspace, tmp_path: Path) -> Path:
    """A user's own copies of the videos."""
    for name in VIDEOS:
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if (there := demo_workspace.videos / name).exists():
            shutil.copy(there, path)
    return tmp_path / "mine"


def said(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, dict[str, Any]]:
    """What a command prints as JSON."""
    capsys.readouterr()
    status = main([*map(str, argv), "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_recipe_has_no_pictures_and_no_texts(built: Path, recipe: Path) -> None:
    check_note(recipe)
    data = b"".join(files(recipe).values())
    samples = rows(built, "samples")
    (path,) = recipe.glob("records/*")
    found = pq.read_table(path).to_pylist()

    assert [row["sample_id"] for row in found] == sorted(row["sample_id"] for row in samples)
    by_id = {row["sample_id"]: row for row in samples}
    plain = {
        *("sample_id", "dataset", "split", "source_id", "image_0_id", "image_1_id"),
        *("origin_0", "origin_1", "changed_area_fraction", "ssim", "background_ssim"),
        *("luminance_shift", "phash_distance", "word_edit_distance"),
        *("edited_spans_0", "edited_spans_1"),
    }
    digests = {*("caption_0", "caption_1", "captions_0", "captions_1", "annotation", "scores")}
    for row in found:
        own = by_id[row["sample_id"]]
        assert set(row) == plain | {f"{name}_sha256" for name in digests}
        assert {name: row[name] for name in plain} == {name: own[name] for name in plain}
        for side in (0, 1):
            expected = hashlib.sha256(own[f"caption_{side}"].encode()).hexdigest()
            assert row[f"caption_{side}_sha256"] == expected
            known = json.dumps(own[f"captions_{side}"], ensure_ascii=False, separators=(",", ":"))
            assert row[f"captions_{side}_sha256"] == hashlib.sha256(known.encode()).hexdigest()
    images = rows(built, "images")
    assert images
    assert not any(row["image"]["bytes"] in data for row in images)
    assert str(built.parent).encode() not in data
    known_texts = {row[f"caption_{side}"] for row in samples for side in (0, 1)}
    text = json.dumps([found, json.loads((recipe / "recipe.json").read_text())])
    assert not any(caption in text for caption in known_texts)


def test_the_same_dataset_gives_the_same_recipe(
    built: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = run(built, "recipe", tmp_path / "again")
    small = run(built, "recipe", tmp_path / "small", "--rows-per-file", 5)

    assert files(again) == files(recipe)
    assert len(list(small.glob("records/*"))) == -(-len(rows(built, "samples")) // 5)
    assert diff.main([str(small), str(recipe)]) == 0
    assert diff.main([str(built), str(small)]) == 0
    assert diff.main([str(OLD / "eq-youcook2"), str(recipe)]) == 1


def test_the_same_sources_in_another_order_make_the_same_dataset(
    demo_workspace: Workspace,
    built: Path,
    recipe: Path,
    sources: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = demo_workspace.captions.read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    captions = tmp_path / "other.jsonl"
    captions.write_text("".join(lines))
    whole = of_videos(demo_workspace.captions, demo_workspace.videos, tmp_path / "whole")
    other = of_videos(captions, sources, tmp_path / "other")

    assert main(["build", "--recipe", str(recipe), *whole]) == 0
    capsys.readouterr()
    status, document = said(capsys, "build", f"--recipe={recipe}", *other)

    assert dataset_bytes(tmp_path / "whole") == dataset_bytes(built)
    assert status == 0
    assert document["inputs"] == [demo_workspace.captions.name]
    assert document["changed_sources"] == document["missing_sources"] == []
    assert document["build"]["state"] == "built"
    (table,) = document["difference"]["tables"].values()
    assert (table["equal"], table["changed"]) == (len(rows(built, "samples")), 0)
    assert rows(tmp_path / "other", "samples") == rows(built, "samples")


def test_what_no_longer_matches_is_named(
    demo_workspace: Workspace,
    built: Path,
    recipe: Path,
    sources: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One video is gone, one has another container, one caption another wording, one is new."""
    (sources / "own/tour.mkv").unlink()
    shutil.copy(sources / "own/desk.mp4", sources / "demoCoffee1.mp4")
    moments = [json.loads(line) for line in demo_workspace.captions.read_text().splitlines()]
    mended = next(each for each in moments if each["video"] == "own/desk.mp4")
    mended["caption"] = "ein Hund, 猫"
    new = {"id": "new", "video": "own/desk.mp4", "timestamp_s": 0.2, "caption": "नया"}
    moments.append(new | {"split": mended["split"], "licence": mended["licence"]})
    captions = tmp_path / "captions.jsonl"
    captions.write_text("".join(json.dumps(each) + "\n" for each in moments))

    status, document = said(
        capsys, "build", "--recipe", recipe, *of_videos(captions, sources, tmp_path / "out")
    )

    before = {row["sample_id"]: row for row in rows(built, "samples")}
    after = {row["sample_id"]: row for row in rows(tmp_path / "out", "samples")}
    table = document["difference"]["tables"]["samples"]
    changed = {each["key"]: each["columns"] for each in table["changed_examples"]}
    assert status == 1
    assert document["difference"]["is_equal"] is False
    assert document["missing_sources"] == ["own/tour.mkv"]
    assert document["changed_sources"] == ["demoCoffee1.mp4"]
    assert document["inputs"] == ["captions.jsonl"]
    assert sorted(table["removed_examples"]) == sorted(before.keys() - after.keys())
    assert sorted(table["added_examples"]) == sorted(after.keys() - before.keys())
    assert {key for key in before.keys() & after.keys() if before[key] != after[key]} == set(
        changed
    )
    assert all("new" in key for key in table["added_examples"])
    assert any("tour.mkv" in key for key in table["removed_examples"])
    for key, columns in changed.items():
        of_pictures = {name for name in columns if name.startswith(("image", "origin"))}
        if "demoCoffee1" in key:
            assert {"image_0_id", "image_1_id", "origin_0", "origin_1"} == of_pictures
        else:
            assert mended["id"] in key
            assert not of_pictures
            assert {"caption_0_sha256", "caption_1_sha256"} & set(columns)

    capsys.readouterr()
    again = of_videos(captions, sources, tmp_path / "out")
    assert main(["build", "--recipe", str(recipe), *again]) == 1
    text = capsys.readouterr().out
    assert "see the table rejects: no records from 1 source: own" in text
    assert "the recipe was made from different versions of 1 source: demoCoffee1.mp4" in text
    assert "the recipe was made from different versions of 1 input: captions.jsonl" in text
    assert text.splitlines()[-1] == f"{recipe} and {tmp_path / 'out'} differ"


def test_a_plan_names_the_inputs_that_changed(
    demo_workspace: Workspace, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    videos = demo_workspace.videos
    same = ["--captions", str(demo_workspace.captions), "--videos", str(videos)]
    file = tmp_path / "captions.jsonl"
    file.write_text("".join(demo_workspace.captions.read_text().splitlines(keepends=True)[1:]))
    other = ["--captions", str(file), "--videos", str(videos)]

    status, document = said(capsys, "plan", "eq-video", "--recipe", recipe / "recipe.json", *same)
    assert (status, document["changed_inputs"], document["mode"]) == (0, [], "paper")
    plain = ["--mode", "paper", "--face-policy", "off", "--max-side", "96", "--seed", "7"]
    _, without = said(capsys, "plan", "eq-video", *plain, *same)
    assert document["counts"] == without["counts"]
    assert without["changed_inputs"] == []

    status, document = said(capsys, "plan", f"--recipe={recipe}", *other)
    assert (status, document["changed_inputs"]) == (0, ["captions.jsonl"])
    told = "the recipe was made from different versions of 1 input: captions.jsonl"
    assert document["lines"][-1] == told
    assert main(["plan", "--recipe", str(recipe), *other, "--pilot", "0"]) == 0
    assert told in capsys.readouterr().out.splitlines()

    assert main(["plan", "eq-ag", "--recipe", str(recipe), *same]) == 2
    assert "is for eq-video, not for eq-ag" in capsys.readouterr().err
    assert main(["plan", "--recipe", str(recipe), *same, "--seed", "3"]) == 2
    assert "--seed (command line): the recipe" in capsys.readouterr().err
    assert main(["plan", "--recipe", str(recipe)]) == 2
    assert "--captions" in capsys.readouterr().err
    assert main(["plan", "--recipe"]) == 2
    assert "usage: eqforge plan [DATASET] --recipe RECIPE" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["captions.jsonl"]


def test_recipes_in_python(
    demo_workspace: Workspace, built: Path, recipe: Path, tmp_path: Path
) -> None:
    mine: dict[str, Any] = {"captions": demo_workspace.captions, "videos": demo_workspace.videos}
    report = eqforge.plan("eq-video", recipe=recipe / "recipe.json", **mine)
    assert (report.mode, report.changed_inputs) == ("paper", ())
    changed = tmp_path / "captions.jsonl"
    changed.write_text(demo_workspace.captions.read_text() + "\n")
    report = eqforge.plan("eq-video", recipe=recipe, **mine | {"captions": changed})
    assert report.changed_inputs == (demo_workspace.captions.name,)
    made = eqforge.build("eq-video", recipe=recipe, **mine, output=tmp_path / "out")
    assert dataset_bytes(Path(made.folder)) == dataset_bytes(built)
    found = eqforge.diff(recipe, made.folder)
    assert found.is_equal
    assert found == eqforge.diff(recipe / "recipe.json", made.folder)

    with pytest.raises(eqforge.InputError, match=r"seed=3: the recipe .* sets this option to 7"):
        eqforge.build("eq-video", recipe=recipe, **mine, output=tmp_path / "x", seed=3)
    with pytest.raises(eqforge.InputError, match="missing 1 required argument: 'captions'"):
        eqforge.build("eq-video", recipe=recipe, videos=mine["videos"], output=tmp_path / "x")
    with pytest.raises(eqforge.InputError, match="is for eq-video, not eq-ag"):
        eqforge.plan("eq-ag", recipe=recipe)
    wrong = altered(recipe, tmp_path / "wrong", _run(limit="x"))
    with pytest.raises(eqforge.InputError, match=r"recipe\.json: --limit 'x'"):
        eqforge.build("eq-video", recipe=wrong, **mine, output=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def pictures(folder: Path) -> tuple[Path, Path]:
    """A table of pairs and its pictures."""
    folder.mkdir()
    lines = []
    for number in range(4):
        pixels = np.full((20, 30, 3), 50 * number, np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        lines.append(
            {
                "id": f"pair {number}",
                "caption_0": f"кошка {number}",
                "caption_1": f"杯 {number}",
                "image_0": f"{number}.png",
                "image_1": f"{(number + 1) % 4}.png",
            }
        )
    table = folder / "pairs.jsonl"
    table.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return table, folder


def test_an_import_has_a_recipe_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, images = pictures(tmp_path / "mine")
    given = [str(table), "--images", str(images)]
    assert main(["import", "own-pairs", *given, "--output", str(tmp_path / "out")]) == 0
    recipe = run(tmp_path / "out", "recipe", tmp_path / "recipe")

    again = ["import", "--recipe", str(recipe), *given, "--output", str(tmp_path / "again")]
    assert main(again) == 0
    assert dataset_bytes(tmp_path / "again") == dataset_bytes(tmp_path / "out")

    Image.fromarray(np.full((20, 30, 3), 255, np.uint8)).save(images / "2.png")
    status, document = said(capsys, *again[:-1], tmp_path / "changed")
    found = document["difference"]["tables"]["samples"]["changed_examples"]
    assert status == 1
    assert [sorted(each["columns"]) for each in found] == [["image_1_id"], ["image_0_id"]] or [
        sorted(each["columns"]) for each in found
    ] == [["image_0_id"], ["image_1_id"]]

    capsys.readouterr()
    assert main(["build", "--recipe", str(recipe), "--output", str(tmp_path / "x")]) == 2
    assert "build cannot rebuild own-pairs; run eqforge import --recipe" in capsys.readouterr().err
    assert main(["import", "--recipe", str(recipe), str(table), "--output", "x"]) == 2
    assert "--images" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            ["--max-side", "50"],
            "--max-side (command line): the recipe {url} sets this option to 96",
        ),
        (["--seed=1"], "--seed (command line): the recipe {url} sets this option to 7"),
        (
            ["--errata", "x.jsonl"],
            "--errata (command line): the recipe {url} does not use this option",
        ),
        (
            ["--oracle", "clip:x"],
            "--oracle (command line): the recipe {url} does not use this option",
        ),
        (["--recipe", "x"], "--recipe: pass one recipe at a time"),
    ],
)
def test_what_a_recipe_sets_cannot_be_set_beside_it(
    recipe: Path,
    tmp_path: Path,
    option: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = of_videos(tmp_path / "c.jsonl", tmp_path, tmp_path / "out")
    assert main(["build", "--recipe", str(recipe), *own, *option]) == 2
    assert message.format(url=recipe / "recipe.json") in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_variables_do_not_change_what_a_recipe_sets(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EQFORGE_SEED", "3")
    own = of_videos(Path("c.jsonl"), Path("videos"), Path("out"))
    assert main(["build", "--recipe", str(recipe), *own]) == 2
    assert "--seed (EQFORGE_SEED): the recipe" in capsys.readouterr().err


Change = Callable[[dict[str, Any]], Any]


def altered(recipe: Path, folder: Path, change: Change) -> Path:
    """A copy of a recipe with another `recipe.json`."""
    shutil.copytree(recipe, folder)
    content = json.loads((folder / "recipe.json").read_text())
    change(content)
    (folder / "recipe.json").write_text(json.dumps(content))
    return folder


def _config(**values: Any) -> Change:
    return lambda recipe: recipe["config"].update(values)


def _run(**values: Any) -> Change:
    return lambda recipe: recipe["config"]["run"].update(values)


def _path(path: str) -> Change:
    return lambda recipe: recipe["tables"]["samples"][0].update(path=path)


HOSTILE: list[tuple[Change, str]] = [
    (lambda recipe: recipe.update(dataset="eq-vidoe"), "which eqforge does not know; did you mean"),
    (lambda recipe: recipe.update(dataset="../../x"), "which eqforge does not know"),
    (lambda recipe: recipe.update(dataset="x\x1b[2J"), "expected a printable name"),
    (lambda recipe: recipe.update(format="eqforge dataset"), "the format 'eqforge recipe 1'"),
    (lambda recipe: recipe.update(format_version=2), "expected the format 'eqforge recipe 1'"),
    (lambda recipe: recipe.update(mode="evil"), "expected 'paper' or 'corrected'"),
    (lambda recipe: recipe.update(config=[]), "not a recipe"),
    (lambda recipe: recipe["tables"].update(evil=[]), "has no table 'evil'"),
    (lambda recipe: recipe["tables"].update(rejects=[]), "has no table 'rejects'"),
    (_config(mode="corrected"), "'mode' is 'paper', but 'mode' in 'config' is 'corrected'"),
    (_config(shell="rm"), "eqforge has no setting 'shell'"),
    (_config(videos={"x": 1}, settings=3), "--settings 3"),
    (_config(frames_fps="--output=/x"), "--frames-fps '--output=/x'"),
    (_config(frames_fps=-1.0), "--frames-fps -1.0: expected more than 0"),
    (_run(output="/elsewhere", sample=5), "--sample 5"),
    (_run(limit=-1), "--limit -1: expected 0 or more"),
    (
        lambda recipe: recipe["config"]["settings"]["oracle"].update(oracle=[{"model": "e/v"}]),
        "pass --oracle yourself",
    ),
    (_path("../../etc/passwd"), "not a recipe"),
    (_path("/etc/passwd"), "not a recipe"),
    (_path("records/none.parquet"), "records/none.parquet"),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE)
def test_a_hostile_recipe_is_refused_in_one_sentence_before_any_work(
    recipe: Path, tmp_path: Path, change: Change, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_refused(altered(recipe, tmp_path / "evil", change), tmp_path, message, capsys)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "contains no recipe.json"),
        (b"{", "not a recipe"),
        (b"[" * 100_000, "not a recipe"),
        (b"\xff\xfe", "not a recipe"),
        (b" " * (17 << 20), "it has more than 16,777,216 bytes"),
    ],
)
def test_what_is_no_recipe_is_refused(
    tmp_path: Path, data: bytes | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    if data is not None:
        (evil / "recipe.json").write_bytes(data)
    check_refused(evil, tmp_path, message, capsys)


def _damage(record: Path) -> None:
    data = bytearray(record.read_bytes())
    data[100] ^= 1
    record.write_bytes(data)


def _link(record: Path) -> None:
    outside = record.parents[2] / "outside.parquet"
    record.rename(outside)
    record.symlink_to(outside)


@pytest.mark.parametrize(("change", "message"), [(_damage, "its SHA-256 is"), (_link, "records/")])
def test_other_files_of_records_are_refused(
    recipe: Path,
    tmp_path: Path,
    change: Callable[[Path], None],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil = Path(shutil.copytree(recipe, tmp_path / "evil"))
    (record,) = evil.glob("records/*")
    change(record)
    check_refused(evil, tmp_path, message, capsys)


def check_refused(
    evil: Path, folder: Path, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    (folder / "videos").mkdir()
    own = of_videos(folder / "captions.jsonl", folder / "videos", folder / "out")
    assert main(["build", "--recipe", str(evil), *own]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("eqforge: ")
    assert len(error.splitlines()) == 1
    assert "\x1b" not in error
    assert not (folder / "out").exists()


def _texts(settings: Any) -> Iterator[list[str]]:
    """The path of each setting that may hold a text, in nested settings too."""
    hints = get_type_hints(type(settings), include_extras=True)
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            yield from ([field.name, *path] for path in _texts(value))
        elif re.search(r"\bstr\b|\bPath\b", str(hints[field.name])):
            yield [field.name]


def test_no_recipe_names_a_model_a_server_a_place_or_a_device() -> None:
    """Of every dataset; what a new setting of texts may hold is decided in its recipe."""
    server = "m@http://127.0.0.1:9/v1"
    taken = set()
    for name in TYPES:
        pipeline = pipeline_of(name)
        for path in _texts(pipeline.usual("corrected", "out")):
            for value in (server, [server]):
                config: Any = value
                for each in reversed(path):
                    config = {each: config}
                recipe = Manifest(
                    dataset=name, mode="corrected", config=config,
                    inputs=[], versions={}, stages={}, tables={},
                )  # fmt: skip
                with contextlib.suppress(InputError):
                    found = settings_of_recipe(pipeline, recipe, "r.json", "out").config
                    for each in path:
                        found = getattr(found, each)
                    taken.update(path[-1:] if server in str(found) else [])
    texts = {"columns", "evaluated_families", "hdri", "kinds", "only"}
    assert taken <= texts | {"sample", "subtitle_language"}


def test_a_command_names_the_precision_of_a_judge() -> None:
    identity = {"kind": "clip", "model": "vit", "revision": "sha256:0", "precision": "bfloat16"}
    manifest = Manifest(
        dataset="eq-video", mode="corrected",
        config={"settings": {"oracle": {"oracle": [identity]}}},
        inputs=[], versions={}, stages={}, tables={},
    )  # fmt: skip
    assert "--oracle clip:path/to/vit,precision=bfloat16" in command_of(manifest)


@pytest.mark.parametrize(
    ("dataset", "config", "name", "sources"),
    [
        ("eq-sd", {"diffusion": {"revision": "refs/pr/7"}}, "revision", []),
        (
            "training-captions",
            {"captions": "mine.csv", "model_revision": "refs/pr/7"},
            "model_revision",
            ["--captions", "mine.csv"],
        ),
    ],
)
def test_a_revision_of_weights_is_named_by_the_user(
    recipe: Path,
    tmp_path: Path,
    dataset: str,
    config: dict[str, Any],
    name: str,
    sources: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = {"dataset": dataset, "tables": {}, "config": config}
    evil = altered(recipe, tmp_path / "evil", lambda content: content.update(other))
    given = ["build", "--recipe", str(evil), "--output", str(tmp_path / "out"), *sources]
    assert main(given) == 2

    message = capsys.readouterr().err
    assert f"pass --{name.replace('_', '-')} yourself" in message
    assert not (tmp_path / "out").exists()


def test_other_forms_than_the_samples_have_recipes(tmp_path: Path) -> None:
    """Every kind of dataset; the tables are those with rows, but pictures and rejects."""
    for folder in sorted(path for path in OLD.iterdir() if path.name in DATASETS):
        if not rows(folder, "samples"):
            continue
        made = run(folder, "recipe", tmp_path / folder.name)
        tables = json.loads((folder / "dataset.json").read_text())["tables"]
        there = json.loads((made / "recipe.json").read_text())["tables"]
        kept = {n for n, some in tables.items() if sum(each["rows"] for each in some)}
        assert set(there) == kept - {"images", "masks", "rejects"}
        assert diff.main([str(made), str(folder)]) == 0


def test_a_rebuild_allows_the_errors_that_the_build_allowed(
    demo_workspace: Workspace, tmp_path: Path
) -> None:
    lines = demo_workspace.captions.read_text().splitlines(keepends=True)
    captions = tmp_path / "half.jsonl"
    captions.write_text("".join(lines) + '{"video": "own/desk.mp4"}\n' * len(lines))
    built, usual = tmp_path / "built", ["--mode", "paper", "--face-policy", "off"]
    own = of_videos(captions, demo_workspace.videos, built)
    assert main(["build", "eq-video", *usual, *own]) == 2
    assert main(["build", "eq-video", *usual, *own, "--max-error-rate", "0.7"]) == 0
    recipe = run(built, "recipe", tmp_path / "recipe")

    *_, command = commands_of(load_manifest(str(built)))
    places = {"path/to/half.jsonl": captions, "path/to/videos": demo_workspace.videos}
    for place, path in (places | {"path/to/eq-video": tmp_path / "again"}).items():
        command = command.replace(place, str(path))
    assert main(shlex.split(command)[1:]) == 0
    again = of_videos(captions, demo_workspace.videos, tmp_path / "from recipe")
    assert main(["build", "--recipe", str(recipe), *again]) == 0

    known = dataset_bytes(built)
    assert dataset_bytes(tmp_path / "again") == dataset_bytes(tmp_path / "from recipe") == known
    assert main(["build", "eq-video", *usual, *own, "--max-error-rate", "0.9"]) == 0  # kept
    assert dataset_bytes(built) == known
