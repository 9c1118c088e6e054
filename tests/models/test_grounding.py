"""Detectors and segmenters of random weights: the boxes are those of transformers' own code."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.models.grounding import Detection, Grounder, weights_of
from tests.optional import optional
from tests.tiny_grounding import save_grounding_dino, save_owlv2, save_sam, save_sam2

transformers = optional("transformers")
torch = optional("torch")

PIXELS = np.random.default_rng(1).integers(0, 256, (48, 72, 3), dtype=np.uint8)


@pytest.mark.parametrize("save", [save_owlv2, save_grounding_dino])
def test_boxes_are_those_of_the_pipeline_of_transformers(
    save: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder, least = save(tmp_path / "detector"), 0.001
    found = Grounder(weights_of(str(folder), "cpu"), None, least).detect(PIXELS, ["red car", "dog"])
    pipeline = transformers.pipeline("zero-shot-object-detection", model=str(folder), device="cpu")
    assert {each.phrase for each in found} == {"red car", "dog"}
    for phrase in ("red car", "dog"):
        expected = pipeline(
            Image.fromarray(PIXELS), candidate_labels=[f"{phrase}."], threshold=least
        )
        edges = np.array([[b["xmin"], b["ymin"], b["xmax"], b["ymax"]] for b in
                          (each["box"] for each in expected)])  # fmt: skip
        clipped = np.clip(edges, 0, [72, 48, 72, 48])
        mine = [each for each in found if each.phrase == phrase]
        scores = [each.score for each in mine]
        assert scores == sorted(scores, reverse=True)
        for each in mine:
            x0, y0, x1, y1 = each.box
            assert 0 <= x0 < x1 <= 72
            assert 0 <= y0 < y1 <= 48
            nearest = np.abs(clipped - each.box).max(axis=1).argmin()
            assert np.abs(clipped[nearest] - each.box).max() <= 1  # whole pixels there
            assert expected[nearest]["score"] == pytest.approx(each.score, abs=1e-4)


@pytest.mark.parametrize("save", [save_sam, save_sam2])
def test_an_outline_is_what_the_segmenter_sees_in_the_boxes(
    save: Callable[[Path], Path], tmp_path: Path
) -> None:
    detector, segmenter = save_owlv2(tmp_path / "detector"), save(tmp_path / "segmenter")
    grounder = Grounder(weights_of(str(detector), "cpu"), weights_of(str(segmenter), "cpu"), 0.0)
    boxes = [
        Detection(phrase="dog", score=0.5, box=(4.0, 6.0, 40.0, 30.0)),
        Detection(phrase="dog", score=0.4, box=(50.0, 10.0, 70.0, 40.0)),
    ]
    both = grounder.outline(PIXELS, boxes)
    each = [grounder.outline(PIXELS, [box]) for box in boxes]
    assert both.shape == (48, 72)
    assert 0 < both.sum() < both.size
    assert (both == (each[0] | each[1])).mean() > 0.999
    identity = grounder.identity["segmenter"]
    assert identity is not None
    assert identity[0] == "segmenter"


def test_without_a_segmenter_the_boxes_are_the_outline(tmp_path: Path) -> None:
    grounder = Grounder(weights_of(str(save_owlv2(tmp_path / "d")), "cpu"), None, 0.0)
    box = Detection(phrase="dog", score=0.5, box=(4.2, 6.7, 10.4, 8.2))
    found = np.argwhere(grounder.outline(PIXELS, [box]))
    assert found.min(axis=0).tolist() == [6, 4]
    assert found.max(axis=0).tolist() == [7, 9]
    assert not grounder.outline(PIXELS, []).any()


def test_a_model_of_the_hub_needs_its_commit() -> None:
    with pytest.raises(InputError, match="ID@COMMIT"):
        weights_of("google/owlv2-base-patch16", "cpu")
    assert weights_of(f"google/owlv2@{'0' * 40}", "cpu").revision == "0" * 40


def test_a_folder_of_something_else_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="the model cannot be loaded"):
        Grounder(weights_of(str(tmp_path), "cpu"), None, 0.3)
