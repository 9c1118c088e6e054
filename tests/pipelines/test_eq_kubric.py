"""Eq-Kubric end to end with Blender: six small pairs, two of each kind."""

import contextlib
import io
import json
import os
import shutil
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge.commands import verify
from eqforge.commands.row_checks import check_scene_captions, check_scores, check_specs
from eqforge.generators.scenes import kubric_import
from eqforge.generators.scenes.assets import BUILTIN_MANIFEST
from eqforge.pipelines import eq_kubric
from eqforge.pipelines.base.command import plan_command
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from tests.builds import (
    books,
    dataset_bytes,
    finished_work,
    ids,
    processes,
    rewrite,
    rows,
    start,
    wait_for,
)

pytestmark = pytest.mark.skipif(
    any(find_spec(package) is None for package in kubric_import.PACKAGES),
    reason="the extra `render` is not installed",
)

PAIRS = 6
SETTINGS = [
    *("--pairs", str(PAIRS), "--resolution", "64", "--samples", "2"),
    *("--samples-per-file", "2", "--images-per-file", "4"),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset, made in one go in this process."""
    output = tmp_path_factory.mktemp("kubric") / "out"
    assert eq_kubric.main([*SETTINGS, "--output", str(output)]) == 0
    return output


def test_every_kind_is_there_with_balanced_books(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = rows(dataset, "samples")
    entries = books(dataset)

    assert {sample["kind"] for sample in samples} == {"attribute", "counting", "location"}
    assert entries["scenes"][0] >= PAIRS == len(samples)
    assert entries["renders"][0] == entries["scenes"][1]
    assert entries["images"][0] == 2 * entries["renders"][1]
    assert entries["pairs"][1] == len(samples)
    assert verify.main([str(dataset)]) == 0, capsys.readouterr().out


def test_a_sample_refers_to_its_images_masks_objects_and_specs(dataset: Path) -> None:
    images = {row["image_id"]: row for row in rows(dataset, "images")}
    masks = {row["mask_id"]: row for row in rows(dataset, "masks")}

    for sample in rows(dataset, "samples"):
        for side in (0, 1):
            assert images[sample[f"image_{side}_id"]]["width_px"] == 64
            assert masks[sample[f"mask_{side}_id"]]["height_px"] == 64
            shown = [shown["name"] for shown in sample[f"objects_{side}"]]
            assert [f'"name":"{name}"' in sample[f"spec_{side}"] for name in shown]
        assert sample["generation"]["generator"] == "kubric"
        assert '"samples":2' in sample["generation"]["parameters"]


def test_verify_finds_scenes_that_differ_in_more_than_they_say(
    dataset: Path, tmp_path: Path
) -> None:
    """The camera of one second scene is moved after the fact."""
    copy = Path(shutil.copytree(dataset, tmp_path / "out"))
    file = next(file for file in sorted((copy / "data").glob("samples-*")) if pq.read_table(file))
    (first, *others) = pq.read_table(file).to_pylist()
    spec = json.loads(first["spec_1"])
    spec["camera"]["position"][0] += 0.5
    moved = first | {"spec_1": json.dumps(spec)}
    rewrite(copy, f"data/{file.name}", lambda _: [moved, *others])

    (line,) = check_specs(open_dataset(str(copy)))

    assert line.startswith(f"sample {first['sample_id']}: expected scenes that differ only in ")


def test_verify_finds_captions_that_are_not_those_of_their_scenes(
    dataset: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(dataset, tmp_path / "out"))
    file = next(file for file in sorted((copy / "data").glob("samples-*")) if pq.read_table(file))
    (first, *others) = pq.read_table(file).to_pylist()
    swapped = first | {"caption_0": first["caption_1"], "caption_1": first["caption_0"]}
    rewrite(copy, f"data/{file.name}", lambda _: [swapped, *others])

    (line,) = check_scene_captions(open_dataset(str(copy)))

    assert line == f"sample {first['sample_id']}: its captions do not match its scenes"


Rows = list[dict[str, Any]]


def exchange_pictures(samples: Rows) -> str:
    row = next(row for row in samples if row["kind"] == "location")
    row["image_0_id"], row["image_1_id"] = row["image_1_id"], row["image_0_id"]
    row["mask_0_id"], row["mask_1_id"] = row["mask_1_id"], row["mask_0_id"]
    row["objects_0"], row["objects_1"] = row["objects_1"], row["objects_0"]
    return f"sample {row['sample_id']}: side_margin_0 is "


def raise_a_score(samples: Rows) -> str:
    score = next(each for each in samples[0]["scores"] if each["name"] == "change")
    score["value"] += 0.01
    return f"sample {samples[0]['sample_id']}: change is "


def leave_out_a_score(samples: Rows) -> str:
    scores = samples[0]["scores"]
    samples[0]["scores"] = [score for score in scores if score["name"] != "change"]
    return f"sample {samples[0]['sample_id']}: its score change is missing"


@pytest.mark.parametrize("tamper", [exchange_pictures, raise_a_score, leave_out_a_score])
def test_verify_finds_pictures_and_scores_that_do_not_agree(
    dataset: Path, tmp_path: Path, tamper: Callable[[Rows], str]
) -> None:
    copy = Path(shutil.copytree(dataset, tmp_path / "out"))
    files = sorted((copy / "data").glob("samples-*"))
    samples = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert not [*check_scores(open_dataset(str(copy)))]
    expected = tamper(samples)
    for file in files:
        names = set(pq.read_table(file).column("sample_id").to_pylist())
        some = [row for row in samples if row["sample_id"] in names]
        rewrite(copy, f"data/{file.name}", lambda _, some=some: some)  # type: ignore[misc]

    found = [*check_scores(open_dataset(str(copy)))]

    assert any(line.startswith(expected) for line in found), found
    name = expected.partition(":")[0]
    assert all(line.startswith(name) for line in found)


def change_rows(copy: Path, table: str, change: Callable[[dict[str, Any]], None]) -> None:
    def changed(some: Rows) -> Rows:
        for row in some:
            change(row)
        return some

    for file in sorted((copy / "data").glob(f"{table}-*")):
        rewrite(copy, f"data/{file.name}", changed)


def test_an_id_that_is_a_path_is_no_place_to_write_to(dataset: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(dataset, tmp_path / "out"))
    image, target = rows(copy, "samples")[0]["image_0_id"], tmp_path / "written"

    def rename(row: dict[str, Any]) -> None:
        row |= {key: str(target) for key, value in row.items() if value == image}

    change_rows(copy, "images", rename)
    change_rows(copy, "samples", rename)

    assert not [*check_scores(open_dataset(str(copy)))]
    assert not target.exists()


def test_pictures_measured_by_another_version_are_not_proved(dataset: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(dataset, tmp_path / "out"))

    def age(row: dict[str, Any]) -> None:
        row["scores"] = [{**score, "version": "1"} for score in row["scores"]]

    change_rows(copy, "samples", age)

    outcome = verify.verify_dataset(str(copy)).checks["stored scores"]
    assert outcome.state == "unmeasured"
    (line,) = outcome.lines
    assert "version 1, not " in line


def test_verify_finds_a_picture_whose_colours_were_turned(dataset: Path, tmp_path: Path) -> None:
    """Red and blue change places in one picture, under a new id that all tables know."""
    copy = Path(shutil.copytree(dataset, tmp_path / "out"))
    sample = next(row for row in rows(copy, "samples") if row["change"] == "colour")
    for file in sorted((copy / "data").glob("images-*")):
        some = pq.read_table(file).to_pylist()
        for row in some:
            if row["image_id"] == sample["image_1_id"]:
                pixels = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
                stream = io.BytesIO()
                Image.fromarray(pixels[:, :, ::-1]).save(stream, "PNG")
                row["image"]["bytes"] = stream.getvalue()
        rewrite(copy, f"data/{file.name}", lambda _, some=some: some)  # type: ignore[misc]

    found = [*check_scores(open_dataset(str(copy)))]

    name = f"sample {sample['sample_id']}: "
    assert any(line.startswith(f"{name}unchanged_difference is ") for line in found)
    assert all(line.startswith(name) for line in found)


def test_killed_twice_and_run_by_two_workers_it_has_the_same_bytes(
    dataset: Path, tmp_path: Path
) -> None:
    """First the whole run is killed, and when it goes on, one of its renderers."""
    output = tmp_path / "out"
    first = start("build", "eq-kubric", *SETTINGS, "--output", output, PYTHONHASHSEED="1")
    wait_for(lambda: len(finished_work(output, "render")) >= 2)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    done = finished_work(output, "render")
    assert 2 <= len(done) < PAIRS

    second = start("build", "eq-kubric", *SETTINGS, "--output", output, "--workers", "2")
    wait_for(lambda: second.poll() is not None or renderers(second.pid) != [])
    wait_for(lambda: second.poll() is not None or finished_work(output, "render") != done)
    killed = renderers(second.pid)[:1]
    for process in killed:
        os.kill(process, signal.SIGKILL)
    out, err = second.communicate()

    assert second.returncode == 0, out + err
    assert killed
    assert dataset_bytes(output) == dataset_bytes(dataset)
    again = finished_work(output, "render")
    assert {name: again[name] for name in done} == done


def renderers(session: int) -> list[int]:
    return [process for process, command in processes(session) if "render_child" in command]


def test_one_sample_built_alone_has_the_same_row(dataset: Path, tmp_path: Path) -> None:
    name = ids(dataset)[-1]
    arguments = [*SETTINGS, "--only", name, "--output", str(tmp_path / "out")]

    assert eq_kubric.main(arguments) == 0

    (row,) = rows(tmp_path / "out", "samples")
    assert row == next(row for row in rows(dataset, "samples") if row["sample_id"] == name)


def test_with_other_gates_nothing_is_rendered_again(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores stay with the rendering, and a limit only compares them."""
    shutil.copytree(dataset / "_work", tmp_path / "out" / "_work")
    (tmp_path / "out" / "_work" / "identity.json").unlink()
    monkeypatch.setattr(SceneRenderer, "render", None)

    gates = ["--min-visible-area", "1", "--max-draws-per-pair", "1"]
    assert eq_kubric.main([*SETTINGS, *gates, "--output", str(tmp_path / "out")]) == 0

    assert books(tmp_path / "out")["renders"][1] == 0
    assert {row["reason"] for row in rows(tmp_path / "out", "rejects")} <= {
        "too_few_pixels",
        "no_arrangement",
    }


def test_assets_that_are_not_the_pinned_ones_are_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(Path(BUILTIN_MANIFEST).parent, tmp_path, dirs_exist_ok=True)
    manifest = json.loads((tmp_path / "assets.json").read_text())
    for number, asset in enumerate(manifest["assets"].values()):
        asset["sha256"] = f"{number:064}"
    (tmp_path / "assets.json").write_text(json.dumps(manifest))
    monkeypatch.setenv("EQFORGE_CACHE", str(tmp_path / "cache"))

    named = ["--assets", str(tmp_path / "assets.json"), "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as left:
        eq_kubric.main([*SETTINGS, *named])

    assert left.value.code == 2
    assert "is not the pinned archive" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_graphics_card_that_is_not_there_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where Cycles finds a card there is nothing to refuse."""
    with contextlib.suppress(SystemExit):
        eq_kubric.main([*SETTINGS, "--device", "gpu", "--output", str(tmp_path / "out")])

    is_refused = "Cycles needs an OPTIX" in capsys.readouterr().err
    assert is_refused != (tmp_path / "out").exists()


def test_a_plan_estimates_time_and_storage_from_two_pairs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan_command(eq_kubric.EqKubric, ["--pairs", "9", *SETTINGS[2:]]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["pairs", "9"] in lines
    (pilot,) = [words for words in lines if words[:1] == ["pilot:"]]
    assert pilot[1:3] == ["2", "pairs"]
    (forecast,) = [" ".join(words) for words in lines if words[:2] == ["estimate", "for"]]
    assert forecast.endswith("MB of images")
