"""From sources to a table, for every kind of dataset: build, score, measure.

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
from tests.small_builds import PICTURES

TURNED, DEEP = "1.jpg", "2.jpg"


def pictures(folder: Path) -> Path:
    """Slopes from left to right, each of its own steepness, and one from top to bottom, turned."""
    images = folder / "images"
    images.mkdir()
    for number in range(PICTURES):
        slope = np.linspace(200, 20 * number, 128)[None, :, None]
        pixels = np.broadcast_to(slope, (96, 128, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(images / f"{number}.jpg", quality=100)
    exif = Image.Exif()
    exif[0x0112] = 8  # to be turned a quarter to the left
    down = np.broadcast_to(np.linspace(240, 0, 128)[:, None, None], (128, 96, 3)).astype(np.uint8)
    Image.fromarray(down).save(images / TURNED, quality=100, exif=exif)
    deep = np.broadcast_to(np.linspace(0, 65_535, 128)[None, :], (96, 128)).astype(np.uint16)
    Image.fromarray(deep).save(images / DEEP, format="PNG")
    return images


def seen(path: Path) -> float:
    """Returns what the model should see of a source file."""
    with Image.open(path) as image:
        if image.mode.startswith("I"):
            return leftness(np.asarray(image).astype(float) / 257)
        return leftness(np.asarray(ImageOps.exif_transpose(image).convert("RGB")).astype(float))


def captions(folder: Path) -> Path:
    texts = [f"A {size} dog and a red ball on a sofa." for size in ("big", "small", "long", "wet")]
    lines = [{"image": f"{n}.jpg", "caption": texts[n % 4]} for n in range(PICTURES)]
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def of_captions(name: str, folder: Path) -> list[str]:
    return [name, "--captions", str(captions(folder)), "--images", str(pictures(folder))]


def vlue(folder: Path) -> list[str]:
    items = [{"image": f"{n}.jpg", "caption": [f"A {'red ' * n}dog."]} for n in range(PICTURES)]
    (folder / "retrieval.json").write_text(json.dumps(items))
    task = ["--retrieval", str(folder / "retrieval.json")]
    return ["vlue", "--images", str(pictures(folder)), *task]


def simat(folder: Path) -> list[str]:
    shown = [(who, how) for who in ("man", "dog") for how in ("touching", "biting") for _ in "ab"]
    box = "0,0,90,90"
    header = "region_id\timage_id\tsubj\trel\tobj\tsubj_bbox\tobj_bbox\tbbox\n"
    lines = (f"{n}\t{n}\t{who}\t{how}\tball" for n, (who, how) in enumerate(shown))
    path = folder / "retrieval_db.tsv"
    path.write_text(header + "".join(f"{line}\t{box}\t{box}\t{box}\n" for line in lines))
    return ["simat", "--retrieval-db", str(path), "--images", str(pictures(folder))]


KINDS: dict[str, Callable[[Path], list[str]]] = {
    "hard-positives": lambda folder: of_captions("hard-positives", folder),
    "retrieval-perturbations": lambda folder: of_captions("retrieval-perturbations", folder),
    "vlue": vlue,
    "simat": simat,
}


def score_and_measure(folder: Path, model: str) -> None:
    """Verifies, scores and measures the dataset `d` of a folder; every sample has its score."""
    dataset, scores, table = (str(folder / name) for name in ("d", "s", "t"))
    assert main(["verify", dataset]) == 0
    named = f"python:tests.evaluation.scoring.own_models:{model}"
    assert main(["score", dataset, "--model", named, "--output", scores, "--workers", "0"]) == 0
    assert main(["metrics", dataset, scores, "--output", table, "--resamples", "20"]) == 0
    measures = json.loads((folder / "t" / "metrics.json").read_text())["measures"]
    assert measures
    assert all(each["scored"] == each["expected"] != 0 for each in measures)
    assert all(each["missing"] == 0 for each in measures)


def left_of(dataset: OpenDataset, image_id: str) -> float:
    return leftness(np.asarray(dataset.image(image_id)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_images_of_a_user_becomes_a_table(kind: str, tmp_path: Path) -> None:
    assert main(["build", *KINDS[kind](tmp_path), "--output", str(tmp_path / "d")]) == 0

    score_and_measure(tmp_path, "make_left_vectors" if kind == "simat" else "make_left")

    dataset = eqforge.open(tmp_path / "d")
    if kind != "simat":  # whose pictures are crops
        named = {
            row["image"]: row["image_id"]
            for table in {"samples", "captions", "retrieval"} & set(dataset.tables)
            for row in rows(tmp_path / "d", table)
        }
        assert {TURNED, DEEP} < named.keys()
        for name, image_id in named.items():
            assert left_of(dataset, image_id) == pytest.approx(
                seen(tmp_path / "images" / name), abs=0.02
            ), name
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
def test_every_kind_of_pairs_becomes_a_table(name: str, demo_output: Path, tmp_path: Path) -> None:
    """The scores of a pair are of its own two pictures, each with both captions."""
    if not (demo_output / name).exists():
        pytest.skip(f"the extra of {name} is not installed")
    (tmp_path / "d").symlink_to(demo_output / name)
    dataset = eqforge.open(demo_output / name)

    score_and_measure(tmp_path, "make_left")

    samples = {record.sample_id: record for record in dataset.records()}
    found = rows(tmp_path / "s", "scores")
    assert {row["sample_id"] for row in found} == samples.keys()
    for row in found:
        sample = samples[row["sample_id"]]
        lefts = [left_of(dataset, getattr(sample, column)) for column in row["images"]]
        lengths = [len(getattr(sample, column)) for column in row["captions"]]
        assert row["values"] == pytest.approx(np.outer(lefts, lengths).ravel(), rel=1e-4)
