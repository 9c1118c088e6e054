"""Hugging Face's `datasets` loads a folder as its card says: samples first, true splits."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eqforge.pipelines import retrieval_perturbations
from tests.builds import rows
from tests.handmade import write
from tests.optional import optional

datasets = optional("datasets")

SPLITS = ["test", "train", "test", "no", "val 1", "train"]


def built(folder: Path, splits: list[str], missing: bool) -> Path:
    """A dataset of captions with pictures; where asked for, one image is missing."""
    images = folder / "images"
    images.mkdir()
    lines = []
    for number, split in enumerate(splits):
        Image.new("RGB", (4, 3), (40 * number, 0, 0)).save(images / f"{number}.png")
        caption = f"Two dogs and {number} red cups."
        lines.append({"image": f"{number}.png", "caption": caption, "split": split})
    if missing:
        lines.append({"image": "none.png", "caption": "Nothing is there.", "split": "test"})
    captions = folder / "captions.jsonl"
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    argv = ["--captions", str(captions), "--images", str(images), "--output", str(folder / "out")]
    assert retrieval_perturbations.main(argv) == 0
    return folder / "out"


def loaded(folder: Path, name: str | None = None) -> dict[str, Any]:
    found = datasets.load_dataset(str(folder), name, cache_dir=str(folder.parent / "cache"))
    return dict(found)


def everything(folder: Path) -> dict[str, dict[str, int]]:
    names = datasets.get_dataset_config_names(str(folder))
    return {name: {k: len(v) for k, v in loaded(folder, name).items()} for name in names}


def test_rows_load_under_their_own_splits(tmp_path: Path) -> None:
    folder = built(tmp_path, SPLITS, missing=True)

    (first,) = loaded(folder).values()
    assert sorted(first["sample_id"]) == sorted(row["sample_id"] for row in rows(folder, "samples"))
    (shown,) = loaded(folder, "images").values()
    assert sorted(row["image"].getpixel((0, 0))[0] for row in shown) == [0, 40, 80, 120, 160, 200]
    assert everything(folder) == {
        "images": {"full": 6},
        "samples": {"full": 78},
        "samples-no": {"no": 13},
        "samples-test": {"test": 26},
        "samples-train": {"train": 26},
        "samples-val_1": {"val_1": 13},
        "captions": {"full": 6},
        "captions-no": {"no": 1},
        "captions-test": {"test": 2},
        "captions-train": {"train": 2},
        "captions-val_1": {"val_1": 1},
        "rejects": {"full": 1},
    }
    for table in ("samples", "captions"):
        for split in set(SPLITS):
            (part,) = loaded(folder, f"{table}-{split.replace(' ', '_')}").values()
            assert part["split"] == [split] * len(part)
            key = "sample_id" if table == "samples" else "caption_id"
            own = [row[key] for row in rows(folder, table) if row["split"] == split]
            assert sorted(part[key]) == sorted(own)


def test_a_test_set_loads_as_test_and_nothing_that_is_declared_fails(tmp_path: Path) -> None:
    folder = built(tmp_path, ["test"] * 2, missing=False)

    assert everything(folder) == {
        "images": {"full": 2},
        "samples": {"test": 26},
        "captions": {"test": 2},
    }
    with pytest.raises(ValueError, match="BuilderConfig 'rejects' not found"):
        loaded(folder, "rejects")
    assert "cannot load them: `rejects`" in (folder / "README.md").read_text()


def test_pairs_show_their_pictures_and_the_code_of_the_card_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    write(folder)
    shutil.rmtree(folder / "_work")
    stored = {row["image_id"]: row["image"]["bytes"] for row in rows(folder, "images")}
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    names: dict[str, Any] = {}
    exec(code.replace("path/to/eq-sd", str(folder)), names)

    (first,) = (row for row in rows(folder, "samples")[:1])
    with Image.open(io.BytesIO(stored[first["image_0_id"]])) as image:
        assert names["pictures"][0].tobytes() == image.tobytes()
    assert len(names["samples"]) == len(rows(folder, "samples")) > 0
    for row in names["images"]:
        with Image.open(io.BytesIO(stored[row["image_id"]])) as image:
            assert row["image"].tobytes() == image.tobytes()
