"""The minimality gate on inputs that nobody tuned it to."""

import json
import random
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_video
from eqforge.schemas.records.scores import value_of
from eqforge.transforms.filters import minimality, registration
from eqforge.transforms.filters.cuts import cut_view, score_cut
from eqforge.transforms.filters.minimality_score import MINIMALITY, score_minimality
from tests.builds import ids, rows
from tests.recoloured import OBJECTS, painted


def score(first: np.ndarray, second: np.ndarray) -> float:
    """Return the minimality of two frames, measured as a build does."""
    cuts = cut_view(first), cut_view(second)
    views = registration.view(first), registration.view(second)
    measures = minimality.measure_pair(minimality.view(first), minimality.view(second))
    scores = [*score_cut(*cuts), *registration.score_registered(*views, *cuts)]
    value = value_of([score_minimality(measures, scores)], MINIMALITY)
    assert value is not None
    return value


def resized(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.LANCZOS))


def test_order_and_number_of_clips_change_no_decision(
    demo_workspace: Workspace, tmp_path: Path
) -> None:
    lines = demo_workspace.captions.read_text().splitlines()
    shuffled = random.Random(1).sample(lines, len(lines))
    alone = [line for line in lines if json.loads(line)["video"] == "own/desk.mp4"]
    (tmp_path / "videos" / "own").mkdir(parents=True)
    shutil.copy(demo_workspace.videos / "own" / "desk.mp4", tmp_path / "videos" / "own")
    found = {}
    for name, some, videos in (
        ("all", lines, demo_workspace.videos),
        ("shuffled", shuffled, demo_workspace.videos),
        ("alone", alone, tmp_path / "videos"),
    ):
        captions, output = tmp_path / f"{name}.jsonl", tmp_path / name
        captions.write_text("".join(line + "\n" for line in some))
        inputs = ["--captions", str(captions), "--videos", str(videos), "--face-policy", "off"]
        assert eq_video.main([*inputs, "--output", str(output)]) == 0
        found[name] = {row["sample_id"]: row["scores"] for row in rows(output, "samples")}
        assert sorted(found[name]) == sorted(ids(output))
    assert len(found["all"]) == 6
    assert found["shuffled"] == found["alone"] == found["all"]


@pytest.mark.parametrize("colours", [("red", "blue"), ("purple", "brown"), ("red", "brown")])
def test_a_colour_of_equal_brightness_is_kept_and_another_scene_is_not(
    colours: tuple[str, str],
) -> None:
    """All but the cat's eye, which is the smallest of these and has no solid change."""
    first, second = colours
    recoloured = {
        name: score(painted(name, first), painted(name, second))
        for name in OBJECTS
        if name != "eye"
    }
    scenes = ("suit", "coffee", "tank", "eye", "rocket")
    others = [score(painted(a, "red"), painted(b, "red")) for a, b in combinations(scenes, 2)]
    assert min(recoloured.values()) > 0.3 > 0.18 > max(others), (recoloured, others)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_second_frame_that_is_turned_is_not_minimal(name: str, quarters: int) -> None:
    pixels = painted(name, "red")
    assert score(pixels, np.rot90(pixels, quarters).copy()) < 0.18


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_turned_clips_are_decided_as_upright_ones(quarters: int) -> None:
    first, second = painted("suit", "red"), painted("suit", "blue")
    upright = score(first, second)
    turned = score(np.rot90(first, quarters).copy(), np.rot90(second, quarters).copy())
    assert turned == pytest.approx(upright, abs=0.05)


def test_pixels_that_are_not_square_change_no_decision() -> None:
    first, second = painted("suit", "red"), painted("suit", "blue")
    height, width = first.shape[:2]
    square = score(first, second)
    narrow = score(*(resized(each, width * 3 // 4, height) for each in (first, second)))
    assert narrow == pytest.approx(square, abs=0.05)
