"""Real, tiny models are timed, and put on a front with the scores they have."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.cli import main as command
from eqforge.evaluation.efficiency.contest import check_alike
from eqforge.evaluation.efficiency.machine import seconds_of
from eqforge.evaluation.efficiency.measure import choose_items, sweep
from eqforge.evaluation.efficiency.result import (
    EfficiencySettings,
    draw_medians,
    read_efficiency,
    spread,
)
from eqforge.evaluation.scoring.index import task_of
from eqforge.schemas.dataset.reader import open_dataset
from tests.made_datasets import pair_tables, write_dataset, write_pairs
from tests.statuses import status_of
from tests.tiny_families import save_yolos
from tests.tiny_models import save_clip

main = status_of(command)

SMALL = ("--items", "6", "--warm-up", "1", "--repeats", "3", "--batches", "1", "2", "8")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("efficiency") / "pairs", pair_tables(3))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    return save_clip(tmp_path_factory.mktemp("efficiency") / "clip")


@pytest.fixture(scope="module")
def measured(dataset: Path, clip: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("efficiency") / "clip.json"
    assert measure(dataset, f"clip:{clip}", path) == 0
    return path


def measure(dataset: Path, model: str, output: Path, *options: str) -> int:
    arguments = [str(dataset), "--model", model, "--output", str(output)]
    return main(["efficiency", *arguments, *SMALL, *options])


def test_a_model_is_timed_stage_by_stage_and_in_batches(
    dataset: Path, clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(dataset, f"clip:{clip}", tmp_path / "clip.json") == 0
    said = capsys.readouterr().out
    found = json.loads((tmp_path / "clip.json").read_text())
    assert len(found["seconds"]) == 6
    assert found["stages"]["total"]["median"] == np.median(found["seconds"])
    assert found["stages"]["total"]["mean"] == pytest.approx(np.mean(found["seconds"]))
    means = {name: stage["mean"] for name, stage in found["stages"].items()}
    assert means["total"] == pytest.approx(means["decode"] + means["prepare"] + means["model"])
    assert all(
        stage["low"] <= stage["median"] <= stage["high"] for stage in found["stages"].values()
    )
    assert [speed["batch"] for speed in found["sweep"]] == [1, 2, 8]
    for speed in found["sweep"]:
        assert speed["per_second"] == pytest.approx(speed["batch"] / speed["seconds"]["median"])
        assert speed["seconds"]["runs"] == 3
    best = max(found["sweep"], key=lambda speed: speed["per_second"])
    assert found["best_batch"] == best["batch"]
    assert "(best)" in said
    machine = found["machine"]
    assert machine["cpu"]
    assert machine["libraries"].keys() >= {"torch", "transformers"}
    assert found["clocks"].keys() == {"before", "after"}
    assert found["model"]["kind"] == "clip"
    assert any("6 timed items are too few" in warning for warning in found["warnings"])


def test_two_measured_models_are_put_on_a_front_with_their_scores(
    dataset: Path, clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [f"clip:{clip}", f"clip:{clip},precision=bfloat16"]
    for number, model in enumerate(models):
        assert measure(dataset, model, tmp_path / f"{number}.json") == 0
    scores = tmp_path / "scores"
    arguments = ["--model", models[0], "--output", str(scores), "--workers", "0"]
    assert main(["score", str(dataset), *arguments]) == 0
    front = ["pareto", str(tmp_path / "0.json"), "--dataset", str(dataset), "--scores", str(scores)]
    output = tmp_path / "front.json"
    assert main([*front, "--metric", "text", "--resamples", "50", "--output", str(output)]) == 0
    (one,) = json.loads(output.read_text())["models"]
    assert (one["on_front"], one["probability"]) == (True, 1.0)
    seconds = json.loads((tmp_path / "0.json").read_text())["seconds"]
    assert one["seconds"] == np.median(seconds)
    capsys.readouterr()
    assert main(["metrics", str(dataset), str(scores), "--show", "json"]) == 0
    measures = json.loads(capsys.readouterr().out)["measures"]
    text = next(m for m in measures if (m["subset"], m["metric"]) == ("all", "text"))
    assert one["score"] == pytest.approx(text["value"])
    assert main([*front, "--metric", "beauty"]) == 2
    assert "expected one of text, image, group" in capsys.readouterr().err
    assert main([*front, str(tmp_path / "1.json")]) == 2
    capsys.readouterr()


def changed(path: Path, section: str, name: str, value: Any) -> Path:
    """Writes a measurement in which one thing is another; a section is a path of keys."""
    found = json.loads(path.read_text())
    place = found
    for key in filter(None, section.split("/")):
        place[key] = place.get(key) or {}
        place = place[key]
    place[name] = value
    path.with_name("changed.json").write_text(json.dumps(found))
    return path.with_name("changed.json")


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("machine", "cpu", "Z80"),
        ("machine", "tf32", True),
        ("machine", "torch_threads", 99),
        ("machine/libraries", "torch", "0.4.1"),
        ("clocks/before/nvidia_smi", "power.limit", "350.00 W"),
        ("", "dataset_sha256", "0" * 64),
        ("settings", "seed", 1),
    ],
)
def test_times_that_were_not_measured_alike_are_not_compared(
    measured: Path,
    dataset: Path,
    capsys: pytest.CaptureFixture[str],
    section: str,
    name: str,
    value: Any,
) -> None:
    other = changed(measured, section, name, value)
    scores = ["--scores", str(measured), str(other)]
    assert main(["pareto", str(measured), str(other), "--dataset", str(dataset), *scores]) == 2
    said = capsys.readouterr().err
    assert f" in {measured}, so the times cannot be compared" in said
    assert str(value) in said


def test_another_load_or_device_number_can_be_compared(measured: Path) -> None:
    found = read_efficiency(measured)
    for section, name, value in (
        ("clocks/before", "load_average", [9.0, 9.0, 9.0]),
        ("clocks/before/nvidia_smi", "clocks.sm", "345 MHz"),
        ("machine", "device", "cuda:1"),
        ("settings", "resamples", 9),
    ):
        other = changed(measured, section, name, value)
        check_alike([measured, other], [found, read_efficiency(other)])


def test_a_model_of_precomputed_regions_needs_a_detector_or_its_time(
    dataset: Path, clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = tmp_path / "matrix.npy"
    opened = open_dataset(str(dataset))
    items, _ = choose_items(opened, task_of(opened), 100, 0)
    images = sorted({item.image_id for item in items})
    captions = sorted({item.caption for item in items})
    np.save(matrix, np.ones((len(images), len(captions)), np.float32))
    (tmp_path / "rows.txt").write_text("\n".join(images) + "\n")
    (tmp_path / "columns.txt").write_text("\n".join(captions) + "\n")
    files = f"rows={tmp_path / 'rows.txt'},columns={tmp_path / 'columns.txt'}"
    model = f"matrix:{matrix},{files}"
    assert measure(dataset, model, tmp_path / "m.json") == 2
    assert "--detector-s" in capsys.readouterr().err
    assert measure(dataset, model, tmp_path / "m.json", "--detector-s", "0.12189") == 0
    found = json.loads((tmp_path / "m.json").read_text())
    assert found["detector_s"] == found["stages"]["detector"]["median"] == 0.12189
    assert min(found["seconds"]) > 0.12189
    assert found["detector"] is None
    measured = ["--detector", str(save_yolos(tmp_path / "yolos"))]
    assert measure(dataset, model, tmp_path / "y.json", *measured) == 0
    found = json.loads((tmp_path / "y.json").read_text())
    assert list(found["stages"]) == ["decode", "prepare", "model", "detector", "total"]
    assert found["stages"]["total"]["median"] > found["stages"]["detector"]["median"] > 0
    assert found["detector"].startswith("yolos@sha256:")
    assert measure(dataset, f"clip:{clip}", tmp_path / "c.json", "--detector-s", "1") == 2
    assert "reads pixels" in capsys.readouterr().err


def test_images_that_cannot_be_used_are_counted_and_left_out(clip: Path, tmp_path: Path) -> None:
    tables = pair_tables(1)
    tables["images"][0]["image"]["bytes"] = b"no image"
    del tables["images"][1]
    damaged = write_pairs(tmp_path / "damaged", tables)
    assert measure(damaged, f"clip:{clip}", tmp_path / "x.json", "--items", "99") == 0
    found = json.loads((tmp_path / "x.json").read_text())
    used, left_out = len(found["seconds"]), sum(found["failures"].values())
    assert found["settings"]["items"] == used + left_out
    assert left_out == 2
    assert list(found["failures"]) == ["BadImage", "missing image"]


def test_items_depend_on_the_seed_and_not_on_their_number(dataset: Path) -> None:
    opened = open_dataset(str(dataset))
    task = task_of(opened)
    few, more = (choose_items(opened, task, count, 0)[0] for count in (3, 5))
    assert more[:3] == few
    assert choose_items(opened, task, 5, 1)[0] != more
    assert len({item.image for item in choose_items(opened, task, 100, 0)[0]}) > 5


def test_where_everything_is_compared_with_everything_each_image_gets_some_caption(
    tmp_path: Path,
) -> None:
    images = [{"image_id": f"i{n}", "image": {"bytes": b"x", "path": "p"}} for n in range(5)]
    tables: dict[str, list[dict[str, Any]]] = {
        "gallery": [{"image_id": f"i{n}"} for n in range(5)],
        "captions": [
            {name: f"{name} {n}" for name in ("caption", "subject", "relation", "object")}
            for n in range(2)
        ],
        "samples": [{"sample_id": "s", "source_word": "a", "target_word": "b"}],
        "images": images,
    }
    opened = open_dataset(str(write_dataset(tmp_path / "simat", "simat", tables)))
    items, _ = choose_items(opened, task_of(opened), 100, 0)
    assert sorted(item.image_id for item in items) == [f"i{n}" for n in range(5)]
    assert {item.caption for item in items} == {"caption 0", "caption 1"}


def test_a_time_ends_when_the_device_has_finished_and_holds_nothing_from_before() -> None:
    """A wait lasts 1 s here, and the action 10 s."""
    passed_s = [0.0]
    act, wait = ((lambda s=s: passed_s.append(s)) for s in (10.0, 1.0))
    assert seconds_of(act, wait, lambda: sum(passed_s)) == 11.0
    assert passed_s == [0.0, 1.0, 10.0, 1.0]


def test_the_interval_of_a_median_holds_it_and_narrows() -> None:
    rng = np.random.default_rng(0)
    few, many = rng.exponential(1.0, 20), rng.exponential(1.0, 2_000)
    narrow, wide = spread(list(many), 500, 0), spread(list(few), 500, 0)
    assert narrow.low < np.log(2) < narrow.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 3
    shuffled = draw_medians(rng.permutation(few), 100, 0)
    assert (shuffled == draw_medians(few, 100, 0)).all()


def test_a_full_gpu_ends_the_sweep_and_keeps_what_was_measured() -> None:
    torch = pytest.importorskip("torch")

    class Small:
        def encode_images(self, prepared: Any) -> Any:
            if len(prepared) > 4:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return prepared

        def match(self, images: Any, captions: Any, pairs: Any) -> None:
            assert len(images) == len(captions) == len(pairs)

    settings = EfficiencySettings(
        dataset="d", model="m", output=Path("o"), warm_up=0, repeats=2, batches=(1, 4, 8)
    )
    model: Any = Small()
    found, stopped = sweep(model, [(0, "a"), (1, "b")], settings, "cpu")
    assert [speed.batch for speed in found] == [1, 4]
    assert stopped == "batches of 8 or more were not timed, because memory ran out"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--batches", "4", "2"], "ascending"),
        (["--items", "0"], "--items"),
        (["--seed", "-1"], "--seed"),
        (["--detector-s", "-1"], "--detector-s"),
        (["--task", "poetry"], "--task poetry"),
    ],
)
def test_wrong_settings_are_one_clear_error(
    dataset: Path,
    clip: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    said: str,
) -> None:
    assert measure(dataset, f"clip:{clip}", tmp_path / "x.json", *options) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x.json").exists()
