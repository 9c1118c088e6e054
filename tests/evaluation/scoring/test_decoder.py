"""Pictures that look the same build the same way and have the same scores, however encoded."""

import io
import json
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
from PIL import Image

from eqforge.commands import verify
from eqforge.core.files import pictures
from eqforge.core.files.pictures import read_pixels
from eqforge.evaluation.training.feeds import Pictures, copy_pictures
from eqforge.pipelines import retrieval_perturbations
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import rows
from tests.core.files.test_pictures import CASES, encoded
from tests.evaluation.scoring.test_tasks import rows_of, score
from tests.made_datasets import pair_tables, write_pairs


def written(folder: Path) -> Path:
    """Builds a dataset of every unusual picture and a plain twin, each with one caption."""
    images = folder / "images"
    images.mkdir()
    twins = {name: make() for name, make in CASES.items()}
    del twins["TIFF of 12 bits"]  # two pixels, too few for the model
    ink, _ = twins.pop("inks")
    with Image.open(io.BytesIO(ink)) as image:
        # A decoder of JPEG of its own is not at hand: the twin is what Pillow makes of the inks.
        data = encoded(image, "JPEG", quality=95)
    twins["inked JPEG"] = data, np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    lines = []
    for number, (name, (data, pixels)) in enumerate(twins.items()):
        plain = encoded(Image.fromarray(pixels), "BMP")
        for suffix, content in (("odd", data), ("twin.bmp", plain)):
            (images / f"{number}-{suffix}").write_bytes(content)
            lines.append({"image": f"{number}-{suffix}", "caption": f"a red cup, {name}"})
    captions = folder / "captions.jsonl"
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    argv = ["--captions", str(captions), "--images", str(images), "--output", str(folder / "out")]
    assert retrieval_perturbations.main(argv) == 0
    return folder / "out"


def test_equal_pictures_have_equal_scores(clip_folder: Path, tmp_path: Path) -> None:
    dataset = written(tmp_path)
    assert not rows(dataset, "rejects")
    assert verify.main([str(dataset)]) == 0
    ids = {row["image"]: row["image_id"] for row in rows(dataset, "captions")}
    twins = [(ids[name], ids[f"{name.split('-')[0]}-twin.bmp"]) for name in ids if "odd" in name]
    assert len(twins) == len(CASES) - 1

    manifest = score(dataset, f"clip:{clip_folder}", tmp_path / "s")

    assert manifest.settings["decoder"] == pictures.VERSION
    vectors = {row["image_id"]: row["vector"] for row in rows_of(tmp_path / "s", "image_vectors")}
    assert all(vectors[odd] == vectors[twin] for odd, twin in twins)
    assert len({tuple(vector) for vector in vectors.values()}) > 3  # the model sees something

    stored = {row["image_id"]: row["image"]["bytes"] for row in rows(dataset, "images")}
    copy_pictures(open_dataset(str(dataset)), stored, tmp_path / "copied")
    training = Pictures(tmp_path / "copied")
    for odd, twin in twins:
        assert stored[odd] != stored[twin]
        seen = [training.pixels(odd), read_pixels(stored[odd]), read_pixels(stored[twin])]
        assert all(np.array_equal(each, seen[0]) for each in seen)


def test_a_picture_of_another_kind_fails_alone(clip_folder: Path, tmp_path: Path) -> None:
    """PostScript in a table of images is refused, and no interpreter of it is started."""
    tables = pair_tables(2)
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    tables["images"][0]["image"]["bytes"] = script
    score(write_pairs(tmp_path / "d", tables), f"clip:{clip_folder}", tmp_path / "s")

    failures = defaultdict(list)
    for row in rows_of(tmp_path / "s", "failures"):
        failures[row["table"]].append(row)
    (failed,) = failures["images"]
    assert failed["reason"] == "undecodable_image"
    assert "formats: BMP, GIF, JPEG, PNG, TIFF, WEBP" in failed["detail"]


def test_a_dataset_that_took_another_s_place_is_read_anew(tmp_path: Path) -> None:
    """The row group that was read last is kept, and was looked up by its path alone."""
    from eqforge.evaluation.scoring.pictures import _Groups

    old, groups, found = Path(__file__).parents[2] / "old" / "0.1.0", _Groups(), []
    for name in ("eq-gebc", "eq-ag"):
        folder = shutil.copytree(old / name, tmp_path / "d")
        dataset = open_dataset(str(folder))
        (file,) = dataset.files("images")
        found.append(groups.read(dataset, file.path, 0, ["image_id"]))
        shutil.rmtree(folder)

    assert found[0] != found[1]
