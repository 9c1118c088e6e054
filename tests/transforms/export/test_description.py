"""mlcroissant validates the descriptions of exports, and loads their rows with their pictures."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import rows
from tests.exported import check_note, picture, run, sample, small, write_pairs
from tests.optional import optional
from tests.samples import ORIGIN
from tests.transforms.export.test_formats import pixels

mlcroissant = optional("mlcroissant")

pytestmark = pytest.mark.filterwarnings(  # of rdflib and pandas, which it calls
    *("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::PendingDeprecationWarning")
)
OLD = Path(__file__).parents[2] / "old" / "0.1.0"


def told(source: Path, folder: Path) -> Path:
    """A dataset that its author said something of."""
    shutil.copytree(source, folder)
    about = folder.parent / "about.toml"
    about.write_text('title = "Cups"\nlicence = "CC-BY-4.0"\nlimitations = ["Cups alone."]\n')
    assert main(["card", str(folder), "--about", str(about)]) == 0
    return folder


def records(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a record set, without what each name begins with."""
    dataset = mlcroissant.Dataset(str(folder / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    return [
        {key.removeprefix(f"{name}/"): value for key, value in record.items()}
        for record in dataset.records(name)
    ]


@pytest.mark.parametrize("form", ["hf", "pairs"])
@pytest.mark.parametrize("name", ["eq-video", "simat", "hard-positives"])
def test_rows_load_with_their_pictures(form: str, name: str, tmp_path: Path) -> None:
    dataset = told(OLD / name, tmp_path / "d")
    output = run(dataset, form, tmp_path / "out")

    check_note(output)
    shown = {row["image_id"]: row["image"]["bytes"] for row in rows(dataset, "images")}
    stored = {row["sample_id"]: row for row in rows(dataset, "samples")}
    found = records(output, "samples")
    assert {row["sample_id"].decode() for row in found} == set(stored)
    for row in found:
        pictures = {key: each for key, each in row.items() if hasattr(each, "tobytes")}
        for key, each in pictures.items():
            wanted = stored[row["sample_id"].decode()][f"{key}_id"]
            assert each.convert("RGB").tobytes() == pixels(shown[wanted])
        assert len(pictures) == sum(
            bool(value)
            for key, value in stored[row["sample_id"].decode()].items()
            if key.endswith("_id") and key.startswith("image")
        )
    said = json.loads((output / "croissant.json").read_text())
    sets = {one["@id"] for one in said["recordSet"]}
    tables = {t for t in open_dataset(str(dataset)).manifest.tables if rows(dataset, t)}
    assert sets == (tables - {"images"} if form == "hf" else {"samples"})
    assert said["name"] == "Cups"
    assert "Cups alone." in said["rai:dataLimitations"]
    note = {each["path"]: each["sha256"] for each in check_note(output)["files"]}
    files = {one["contentUrl"]: one["sha256"] for one in said["distribution"] if "sha256" in one}
    assert files == {path: sha for path, sha in note.items() if path.endswith(".parquet")}


def test_of_rows_that_may_be_passed_on_the_description_says_what_is_here(tmp_path: Path) -> None:
    free = replace(ORIGIN, licence="CC0-1.0", source_path="free.mp4")
    made = [sample(f"s{n}", n, (picture(n), picture(n + 1)), "test") for n in range(3)]
    made[0] = replace(made[0], origin_0=free, origin_1=free)
    dataset = write_pairs(tmp_path / "d", made, [picture(n) for n in range(4)])
    whole = json.loads((told(dataset, tmp_path / "told") / "croissant.json").read_text())

    output = run(tmp_path / "told", "hf", tmp_path / "out", "--redistributable")

    said = json.loads((output / "croissant.json").read_text())
    assert said["name"] == "Cups"
    assert said["license"] == whole["license"]
    assert said["rai:dataLimitations"][-1].endswith("left out, by licence: not stated: 2.")
    assert said["rai:dataCollectionRawData"] == "Licences of the sources: CC0-1.0: 1 source."
    assert said["rai:dataCollectionRawData"] != whole["rai:dataCollectionRawData"]
    (row,) = records(output, "samples")
    assert row["sample_id"] == b"s0"


def test_rows_without_a_picture_load(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture(0))
    for name, more in (("shown", {"image": "a.png"}), ("text", {})):
        own = [{"caption": "a cup", "hard_negative": f"a {name}"} | more]
        (tmp_path / f"{name}.json").write_text(json.dumps(own))
        images = ["--images", str(tmp_path)] if more else []
        words = ["import", "own-foils", str(tmp_path / f"{name}.json"), *images]
        assert main([*words, "--output", str(tmp_path / name)]) == 0
    parts = [f"{name}={tmp_path / name}" for name in ("shown", "text")]
    assert main(["combine", *parts, "--output", str(tmp_path / "d")]) == 0
    found = records(run(tmp_path / "d", "hf", tmp_path / "out"), "samples")
    assert sorted(row["image"] is None for row in found) == [False, True]


def test_a_dataset_without_a_description_gets_one_with_its_export(tmp_path: Path) -> None:
    output = run(small(tmp_path / "d", 3), "hf", tmp_path / "out", "--max-side", 12)
    said = json.loads((output / "croissant.json").read_text())
    assert said["rai:dataPreprocessingProtocol"][-1].endswith("scaled down to that size.")
    assert len(records(output, "samples")) == 3
