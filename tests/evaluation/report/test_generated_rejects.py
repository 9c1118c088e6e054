"""Drawn and rendered pairs that were refused are shown with the pictures the build has kept."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eqforge.commands import inspection
from eqforge.pipelines import eq_kubric, eq_sd
from tests.builds import rows
from tests.reports import chunks, write_report
from tests.small_builds import drawings, scenes

MAKERS: dict[str, tuple[Callable[[], list[str]], Callable[[list[str]], int], list[str]]] = {
    "drawn": (drawings, eq_sd.main, ["--min-contrast", "41.2", "--min-background-ssim", "0.99"]),
    "rendered": (
        lambda: [*scenes(), "--stage", "plain"],
        eq_kubric.main,
        ["--min-visible-area", "0.008", "--min-contrast", "20"],
    ),
}


@pytest.fixture(scope="module", params=list(MAKERS))
def builds(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A build that refuses some pairs, and the same with limits that refuse none."""
    command, main, limits = MAKERS[request.param]
    arguments = [*command()[1:], "--max-draws-per-pair", "1"]
    strict = tmp_path_factory.mktemp("generated") / "strict"
    assert main([*arguments, *limits, "--output", str(strict)]) == 0
    lax = strict.with_name("lax")
    shutil.copytree(strict / "_work", lax / "_work")
    (lax / "_work" / "identity.json").unlink()
    off = [word if word.startswith("--") else "0" for word in limits]
    assert main([*arguments, *off, "--output", str(lax)]) == 0
    return strict, lax


def shown(dataset: Path, output: Path) -> dict[str, Any]:
    written = write_report(dataset, output)
    return {item["id"]: item for item in chunks(written, "rejects", "items")}


def test_each_has_the_pictures_that_it_was_refused_for(
    builds: tuple[Path, Path], tmp_path: Path
) -> None:
    """They are those of the sample where nothing is refused."""
    strict, lax = builds
    samples = {row["sample_id"]: row for row in rows(lax, "samples")}
    refused = rows(strict, "rejects")

    items = shown(strict, tmp_path / "r")

    pairs = [row for row in refused if row["candidate_id"] in samples]
    assert len(pairs) + len(rows(strict, "samples")) == len(samples)
    assert any(row["value"] is not None for row in pairs)
    for row in pairs:
        item, sample = items[row["candidate_id"]], samples[row["candidate_id"]]
        assert [Path(pane["file"]).stem for pane in item["panes"]] == [
            sample["image_0_id"],
            sample["image_1_id"],
        ]
        said = [
            "".join("".join(part) for part in pane["texts"][0]["parts"]) for pane in item["panes"]
        ]
        assert said == [sample["caption_0"], sample["caption_1"]]
        assert [len(pane["boxes"]) for pane in item["panes"]] == [
            sum(each["box"] is not None for each in sample[f"objects_{side}"]) for side in (0, 1)
        ]
        assert (item["why"]["value"], item["why"]["threshold"]) == (row["value"], row["threshold"])
        assert item["comparable"]
        assert all((tmp_path / "r" / pane["file"]).is_file() for pane in item["panes"])
    for row in refused:
        pair, _, side = row["candidate_id"].rpartition("/")
        if row["stage"] == "images":
            (pane,) = items[row["candidate_id"]]["panes"]
            assert Path(pane["file"]).stem == samples[pair][f"image_{side}_id"]


def test_a_pair_refused_for_an_image_says_why_the_image_was(
    builds: tuple[Path, Path], tmp_path: Path
) -> None:
    strict, _ = builds
    of_images = {
        row["candidate_id"]: row for row in rows(strict, "rejects") if row["stage"] == "images"
    }

    items = shown(strict, tmp_path / "r")

    assert of_images
    for name, row in of_images.items():
        (text,) = items[name.rpartition("/")[0]]["texts"]
        assert f"{row['detail']} {row['value']:g}, limit {row['threshold']:g}" in str(text)


def test_they_are_drawn_on_a_sheet(
    builds: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rows(builds[0], "rejects")
    reason = next(row["reason"] for row in found if row["stage"] != "images")
    count = sum(row["reason"] == reason for row in found)
    asked = ["--rejects", reason, "--rows", "1", "--sheet", str(tmp_path / "a.png"), "--boxes"]

    assert inspection.main([str(builds[0]), *asked]) == 0

    assert f"{tmp_path}/a.png: 1 of {count} rejects" in capsys.readouterr().out


def test_without_the_work_folder_there_are_none(builds: tuple[Path, Path], tmp_path: Path) -> None:
    ignore = shutil.ignore_patterns("_work")
    published = Path(shutil.copytree(builds[0], tmp_path / "d", ignore=ignore))

    assert all(item["panes"] == [] for item in shown(published, tmp_path / "r").values())


def test_pictures_that_may_be_another_builds_are_not_shown(
    builds: tuple[Path, Path], tmp_path: Path
) -> None:
    """Of each pair there are two records of one seed: nothing tells which one was refused."""
    dataset = Path(shutil.copytree(builds[0], tmp_path / "d"))
    for step in ("draw", "render"):
        for path in list((dataset / "_work" / "done" / step).rglob("*.json")):
            made = json.loads(path.read_text())
            made["images"].reverse()
            path.with_name(f"other{path.name}").write_text(json.dumps(made))

    assert all(item["panes"] == [] for item in shown(dataset, tmp_path / "r").values())


def test_pictures_are_those_of_the_datasets_own_plan(
    builds: tuple[Path, Path], tmp_path: Path
) -> None:
    """Another seed gives the same ids, and its plan lies beside it."""
    dataset = Path(shutil.copytree(builds[0], tmp_path / "d"))
    before = shown(dataset, tmp_path / "before")
    (plan,) = (dataset / "_work" / "plan").iterdir()
    for number in range(2):
        other = shutil.copytree(plan, plan.with_name(f"{number:x}" * 16))
        for file in other.iterdir():
            file.write_text(re.sub(r'"captions":\[".', r"\g<0>Not ", file.read_text()))

    assert shown(dataset, tmp_path / "after") == before
