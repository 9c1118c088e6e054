"""mlcroissant validates the descriptions of exports, and loads their rows with their pictures."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from tests.exported import picture, run, sample, small, write_pairs
from tests.optional import optional
from tests.samples import ORIGIN

mlcroissant = optional("mlcroissant")

pytestmark = pytest.mark.filterwarnings(  # of rdflib and pandas, which it calls
    *("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::PendingDeprecationWarning")
)


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


def test_a_dataset_without_a_description_gets_one_with_its_export(tmp_path: Path) -> None:
    output = run(small(tmp_path / "d", 3), "hf", tmp_path / "out", "--max-side", 12)
    said = json.loads((output / "croissant.json").read_text())
    assert said["rai:dataPreprocessingProtocol"][-1].endswith("scaled down to that size.")
    assert len(records(output, "samples")) == 3
