"""The commands as Python functions do what the command line does."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eqforge
from eqforge.cli import main
from eqforge.core.identity import sha256_hex
from eqforge.generators.demo.workspace import Workspace
from eqforge.interface.dataset import OpenDataset
from tests.builds import dataset_bytes
from tests.evaluation.review.reviews import decided
from tests.made_datasets import pair_tables, write_pairs, write_squares
from tests.reports import digests
from tests.small_builds import captions, simat, vlue

OLD = Path(__file__).parents[1] / "old" / "0.1.0"


@pytest.fixture(scope="module")
def settings(demo_workspace: Workspace) -> dict[str, Any]:
    return {"captions": demo_workspace.captions, "videos": str(demo_workspace.videos)}


@pytest.fixture(scope="module")
def clips(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> OpenDataset:
    output = tmp_path_factory.mktemp("clips") / "pairs"
    return eqforge.build("eq-video", **settings, output=output, max_side=64)


def test_a_build_has_the_bytes_of_the_command(
    demo_workspace: Workspace, clips: OpenDataset, tmp_path: Path
) -> None:
    inputs = ["--captions", str(demo_workspace.captions), "--videos", str(demo_workspace.videos)]
    command = ["build", "eq-video", *inputs, "--output", str(tmp_path / "d"), "--max-side", "64"]
    assert main(command) == 0
    assert dataset_bytes(Path(clips.folder)) == dataset_bytes(tmp_path / "d")


UNGUARDED = """
import sys
import eqforge

print("the script runs", flush=True)
model, scores = f"clip:{sys.argv[2]}", f"{sys.argv[3]}/scores"
eqforge.score(sys.argv[1], model=model, output=scores, workers=1, processes=2)
"""


def test_a_script_needs_no_guard_for_worker_processes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.tiny_models import save_clip

    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    places = (write_pairs(tmp_path / "d", pair_tables(2)), save_clip(tmp_path / "clip"), tmp_path)
    command = [sys.executable, str(script), *map(str, places)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("the script runs") == 1
    assert (tmp_path / "scores" / "scores.json").exists()


def test_samples_come_with_their_pictures(clips: OpenDataset) -> None:
    samples = list(clips.samples())
    assert len(samples) == len(clips) == clips.table("samples").num_rows > 0
    for sample in samples:
        first, second = sample.images["image_0"], sample.images["image_1"]
        assert max(first.size) == 64
        assert np.any(np.asarray(first) != np.asarray(second))
        same = np.asarray(clips.image(sample.record.image_0_id))
        assert np.array_equal(np.asarray(first), same)


def test_tables_are_arrow_and_rows_are_records(clips: OpenDataset) -> None:
    assert clips.tables == ("samples", "images", "rejects")
    some = clips.table("samples", ["sample_id", "ssim"])
    assert isinstance(some, pa.Table)
    records = list(clips.records())
    assert some.to_pylist() == [{"sample_id": r.sample_id, "ssim": r.ssim} for r in records]
    assert {image.image_id for image in clips.records("images")} == {
        key for r in records for key in (r.image_0_id, r.image_1_id)
    }
    assert repr(clips).startswith("<eq-video (corrected) in ")
    with pytest.raises(eqforge.InputError, match="no table 'masks'; the tables are samples"):
        clips.table("masks")
    with pytest.raises(eqforge.InputError, match="no image ab"):
        clips.image("ab")


def test_rows_of_other_tables_are_joined(demo_workspace: Workspace, tmp_path: Path) -> None:
    for name, make in (("simat", simat), ("vlue", vlue)):
        folder = tmp_path / name
        folder.mkdir()
        assert main(["build", *make(demo_workspace, folder), "--output", str(folder / "d")]) == 0
    for sample in eqforge.open(tmp_path / "simat" / "d").samples():
        region, source = sample.rows["region"], sample.rows["source_triplet"]
        assert region.triplet_id == source.caption_id == sample.record.source_triplet_id
        assert sample.record.source_word in source.caption
        assert sample.images["image"].size == (90, 90)
    tasks = set()
    for sample in eqforge.open(tmp_path / "vlue" / "d").samples():
        (item,) = sample.details[sample.record.task]
        assert item.sample_id == sample.record.sample_id
        tasks.add(sample.record.task)
    assert tasks == {"retrieval", "nlvr2", "vqa", "captioning", "grounding"}


def test_a_plan_counts_and_writes_nothing(settings: dict[str, Any], tmp_path: Path) -> None:
    report = eqforge.plan("eq-video", **settings, output=tmp_path / "none", pilot=1)
    assert report.counts["candidate pairs"] > 0
    assert report.lines[0] == "eq-video: what a build would try"
    assert report.forecast[0].startswith("pilot: 1 video")
    assert list(tmp_path.iterdir()) == []
    assert eqforge.plan("eq-video", **settings).forecast == ()


def test_a_sound_dataset_and_a_damaged_one(clips: OpenDataset, tmp_path: Path) -> None:
    assert eqforge.verify(clips.folder).is_sound
    shutil.copytree(clips.folder, tmp_path / "d")
    (tmp_path / "d" / "data" / "more.parquet").touch()
    found = eqforge.verify(tmp_path / "d")
    assert not found.is_sound
    assert found.checks["files and digests"].lines == [
        "data/more.parquet is not listed in the manifest"
    ]


def test_lint_gives_the_findings_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pair = {"image": "a.jpg", "caption": "A  dog runs.", "hard_negative": "A a dog runs."}
    pairs.write_text(json.dumps(pair) + "\n")
    found = eqforge.lint(pairs)
    main(["lint", str(pairs), "--json"])
    (report,) = json.loads(capsys.readouterr().out)
    assert [asdict(finding) for finding in found] == report["findings"] != []


def test_datasets_are_combined_compared_exported_and_described(tmp_path: Path) -> None:
    parts = [OLD / name for name in ("eq-gebc", "eq-ag")]
    both = eqforge.combine(*parts, output=tmp_path / "both", samples_per_file=3)
    argv = ["--output", str(tmp_path / "again"), "--samples-per-file", "3"]
    assert main(["combine", *map(str, parts), *argv]) == 0
    assert dataset_bytes(Path(both.folder)) == dataset_bytes(tmp_path / "again")

    assert eqforge.diff(both.folder, tmp_path / "again").is_equal
    found = eqforge.diff(parts[0], both.folder, table=["samples"], only=["caption_0"], examples=1)
    assert not found.is_equal
    assert list(found.tables) == ["samples"]
    assert (found.tables["samples"].added, len(found.tables["samples"].added_examples)) == (2, 1)

    note = eqforge.export(both.folder, format="pairs", output=tmp_path / "flat", max_side=8)
    assert sum(file.rows for file in note.files) == len(both)
    argv = ["--format", "pairs", "--output", str(tmp_path / "flat2"), "--max-side", "8"]
    assert main(["export", both.folder, *argv]) == 0
    assert [(file.path, file.sha256) for file in note.files] == [
        (path.relative_to(tmp_path / "flat2").as_posix(), sha256_hex(path.read_bytes()))
        for path in sorted((tmp_path / "flat2").rglob("*"))
        if path.is_file() and path.name != "eqforge-export.json"
    ]

    urls = eqforge.card(both.folder, output=tmp_path / "described")
    assert [Path(url).name for url in urls] == ["README.md", "croissant.json"]
    for url in urls:
        assert Path(url).read_bytes() == (Path(both.folder) / Path(url).name).read_bytes()


def test_people_are_asked_and_heard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = write_squares(tmp_path / "d", seeds=1)
    asked: dict[str, Any] = {"protocol": "eq-sd-filter", "reviewers": ["ada", "ben"]}

    plan = eqforge.review_plan(dataset, **asked, output=tmp_path / "plan", sample=3)

    assert Path(plan.page).is_file()
    assert (plan.items, plan.tasks) == (3, {"ada": 3, "ben": 3})
    files = [
        decided(tmp_path / "plan", name, tmp_path / f"{name}.json", set()) for name in plan.tasks
    ]
    decisions = tmp_path / "decisions.jsonl"
    found = eqforge.review_import(dataset, files, output=decisions, rule="unanimous")
    assert found.decisions == {"keep": 3, "drop": 0, "unsure": 0}
    argv = [str(dataset), *map(str, files), "--rule", "unanimous"]
    assert main(["review", "import", *argv, "--output", str(tmp_path / "again"), "--json"]) == 0
    assert (tmp_path / "again").read_bytes() == decisions.read_bytes()
    told = json.loads(capsys.readouterr().out)
    assert told["decisions"] == found.decisions

    with pytest.raises(eqforge.InputError, match=r"output .* already exists; add overwrite=True"):
        eqforge.review_import(dataset, files[0], output=decisions)
    with pytest.raises(eqforge.InputError, match="overlap 3: expected at least 1"):
        eqforge.review_plan(dataset, **asked, output=tmp_path / "x", overlap=3)
    assert not (tmp_path / "x").exists()


def test_a_comparison_is_shown(tmp_path: Path) -> None:
    a, b = (write_squares(tmp_path / str(seeds), seeds=seeds) for seeds in (1, 2))
    found = eqforge.diff(a, b, report=tmp_path / "r")
    argv = ["diff", str(a), str(b), "--report", str(tmp_path / "again")]
    assert main(argv) == 1
    assert not found.is_equal
    assert digests(tmp_path / "r") == digests(tmp_path / "again")
    with pytest.raises(eqforge.InputError, match="overwrite=True works only with report"):
        eqforge.diff(a, b, overwrite=True)


def test_wrong_words_of_these_calls_are_one_sentence(tmp_path: Path) -> None:
    part = OLD / "eq-gebc"
    with pytest.raises(eqforge.InputError, match="pass two or more datasets"):
        eqforge.combine(part, output=tmp_path / "x")
    with pytest.raises(eqforge.InputError, match="unknown setting 'smaple'; did you mean 'sample'"):
        eqforge.combine(part, OLD / "eq-ag", output=tmp_path / "x", smaple="1%")
    with pytest.raises(eqforge.InputError, match="examples -1: expected 0 or more"):
        eqforge.diff(part, part, examples=-1)
    with pytest.raises(eqforge.InputError, match="format hff: unknown format; did you mean 'hf'"):
        eqforge.export(part, format="hff", output=tmp_path / "x")
    with pytest.raises(eqforge.InputError, match="no such folder"):
        eqforge.card(tmp_path / "none")
    assert not (tmp_path / "x").exists()


def test_scores_become_a_table(clips: OpenDataset, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `models` is not installed")
    from tests.tiny_models import save_clip

    save_clip(tmp_path / "clip")
    scores = tmp_path / "scores"
    manifest = eqforge.score(
        clips.folder, model=f"clip:{tmp_path / 'clip'}", output=scores, workers=0
    )
    assert manifest.counts["images"].failed == 0
    report = eqforge.metrics(clips.folder, scores, resamples=10)
    (group,) = [m for m in report.measures if (m.subset, m.metric) == ("all", "group")]
    assert group.expected == group.scored == len(clips)
    assert eqforge.metrics(clips.folder, [scores], resamples=10) == report
    assert str(report).startswith(report.title)
    assert "group" in str(report)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"captoins": "x"}, "unknown setting 'captoins'; did you mean 'captions'?"),
        ({"captions": 3}, "captions=3: Expected a path, got `int`"),
        ({"captions": "x", "videos": "y"}, "missing 1 required argument: 'output'"),
        ({"captions": "x", "videos": "y", "output": "z", "only": "a"}, "Expected a list"),
        (
            {"captions": "x", "videos": "y", "output": "z", "mode": "some"},
            "mode='some': expected one of 'paper', 'corrected'",
        ),
        ({"captions": "x", "videos": "y", "output": "z", "workers": 0}, "workers 0: expected"),
        (
            {"captions": "x", "videos": "y", "output": "z", "min_luminance": float("nan")},
            "min_luminance nan: expected a finite number",
        ),
    ],
)
def test_wrong_settings_are_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(eqforge.InputError) as caught:
        eqforge.build("eq-video", **given)
    assert said in str(caught.value)


def test_an_unknown_dataset_names_those_there_are() -> None:
    with pytest.raises(
        eqforge.InputError, match="unknown dataset 'eq'; the datasets are eq-youcook2, "
    ):
        eqforge.plan("eq")


def test_groups_of_settings_have_no_names_of_their_own(tmp_path: Path) -> None:
    report = eqforge.plan("retrieval-perturbations", captions=captions(tmp_path), mode="paper")
    assert report.counts["captions"] > 500
    with pytest.raises(eqforge.InputError, match="unknown setting 'run'"):
        eqforge.plan("retrieval-perturbations", captions=captions(tmp_path), run=None)


def test_importing_eqforge_loads_nothing() -> None:
    code = "import sys, eqforge; print([n for n in sys.modules if n.startswith('eqforge.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        eqforge.nothing  # noqa: B018


def test_a_setting_of_several_files_may_be_one(demo_workspace: Workspace) -> None:
    videos, file = demo_workspace.videos, demo_workspace.youcook2
    plans = [
        eqforge.plan("eq-youcook2", annotations=given, videos=videos)
        for given in (file, str(file), [file])
    ]
    assert plans[0] == plans[1] == plans[2]
    with pytest.raises(eqforge.InputError, match="was passed twice"):
        eqforge.plan("eq-youcook2", annotations=[file, file], videos=videos)
