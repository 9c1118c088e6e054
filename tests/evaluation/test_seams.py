"""From sources to a table, for every kind of dataset: build, score, measure.

Without the packages of models nothing is scored; the pictures are compared all the same.

Among the pictures are one that its EXIF data turns and one of 16 bits. What the model saw of each
is compared with the source file, opened here by Pillow and NumPy alone.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

import eqforge
from eqforge.cli import main
from eqforge.interface.dataset import OpenDataset
from tests.builds import rows
from tests.evaluation.scoring.own_models import leftness
from tests.made_datasets import DEEP, TURNED, built


def seen(path: Path) -> float:
    with Image.open(path) as image:
        if image.mode.startswith("I"):
            return leftness(np.asarray(image).astype(float) / 257)
        return leftness(np.asarray(ImageOps.exif_transpose(image).convert("RGB")).astype(float))


def score_and_measure(output: Path, folder: Path, model: str) -> None:
    """Verifies, scores and measures a dataset; every sample has its score."""
    dataset, scores, table = map(str, (output, folder / "s", folder / "t"))
    assert main(["verify", dataset]) == 0
    pytest.importorskip("transformers")
    named = f"python:tests.evaluation.scoring.own_models:{model}"
    assert main(["score", dataset, "--model", named, "--output", scores, "--workers", "0"]) == 0
    assert main(["metrics", dataset, scores, "--output", table, "--resamples", "20"]) == 0
    measures = json.loads((folder / "t" / "metrics.json").read_text())["measures"]
    assert measures
    assert all(each["scored"] == each["expected"] != 0 for each in measures)
    assert all(each["missing"] == 0 for each in measures)


def left_of(dataset: OpenDataset, image_id: str) -> float:
    return leftness(np.asarray(dataset.image(image_id)))


@pytest.mark.parametrize("kind", ["hard-positives", "retrieval-perturbations", "vlue", "simat"])
def test_every_kind_of_images_of_a_user_becomes_a_table(kind: str, tmp_path: Path) -> None:
    folder = built(kind)
    dataset = eqforge.open(folder)
    if kind != "simat":  # whose pictures are crops
        named = {
            row["image"]: row["image_id"]
            for table in {"samples", "captions", "retrieval"} & set(dataset.tables)
            for row in rows(folder, table)
        }
        assert {TURNED, DEEP} < named.keys()
        for name, image_id in named.items():
            assert left_of(dataset, image_id) == pytest.approx(
                seen(folder.parent / "images" / name), abs=0.02
            ), name

    score_and_measure(folder, tmp_path, "make_left_vectors" if kind == "simat" else "make_left")

    samples = {record.sample_id: record for record in dataset.records()}
    scores = tmp_path / "s"
    for row in rows(scores, "scores"):
        sample, (column,) = samples[row["sample_id"]], row["images"]
        lengths = [len(getattr(sample, name)) for name in row["captions"]]
        left = left_of(dataset, getattr(sample, column))
        assert row["values"] == pytest.approx([left * length for length in lengths], rel=1e-5)
    for row in rows(scores, "grid"):
        left = left_of(dataset, row["image_id"])
        assert row["values"] == pytest.approx([left * len(c) for c in row["captions"]], rel=1e-5)
    for row in rows(scores, "vectors-images"):
        left = left_of(dataset, row["image_id"])
        assert row["vector"] == pytest.approx([np.cos(left), np.sin(left)], abs=1e-6)


@pytest.mark.parametrize("name", ["eq-video", "eq-kubric", "eq-sd"])
def test_every_kind_of_pairs_becomes_a_table(
    name: str, demo_dataset: Callable[[str], Path], tmp_path: Path
) -> None:
    """The scores of a pair are of its own two pictures, each with both captions."""
    folder = demo_dataset(name)

    score_and_measure(folder, tmp_path, "make_left")

    dataset = eqforge.open(folder)
    samples = {record.sample_id: record for record in dataset.records()}
    found = rows(tmp_path / "s", "scores")
    assert {row["sample_id"] for row in found} == samples.keys()
    for row in found:
        sample = samples[row["sample_id"]]
        lefts = [left_of(dataset, getattr(sample, column)) for column in row["images"]]
        lengths = [len(getattr(sample, column)) for column in row["captions"]]
        assert row["values"] == pytest.approx(np.outer(lefts, lengths).ravel(), rel=1e-4)
