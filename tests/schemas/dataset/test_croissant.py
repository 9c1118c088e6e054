"""mlcroissant validates the description of every dataset, and loads its rows and pictures."""

import functools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from eqforge.schemas.dataset.about import About, Author
from eqforge.schemas.dataset.croissant import croissant
from eqforge.schemas.dataset.documents import in_folder
from eqforge.schemas.dataset.profile import Facts, Profile, read_facts
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.tables.datasets import DATASETS
from tests.builds import rows
from tests.optional import optional

mlcroissant = optional("mlcroissant")

pytestmark = pytest.mark.filterwarnings(  # of rdflib and pandas, which it calls
    *("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::PendingDeprecationWarning")
)
OLD = Path(__file__).parents[2] / "old" / "0.1.0"


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every dataset, described by the command."""
    place = tmp_path_factory.mktemp("described")
    for name in DATASETS:
        if (OLD / name).exists():
            shutil.copytree(OLD / name, place / name)
            assert main(["card", str(place / name)]) == 0
    return place


@functools.cache
def opened(folder: Path) -> Any:
    return mlcroissant.Dataset(str(folder / "croissant.json"))


def loaded(folder: Path, name: str) -> list[dict[str, Any]]:
    """The records of a record set, read by a dataset of its own: each keeps what it has read."""
    dataset = mlcroissant.Dataset.from_metadata(opened(folder).metadata)
    return [
        {key.removeprefix(f"{name}/"): _plain(value, name) for key, value in record.items()}
        for record in dataset.records(name)
    ]


def _plain(value: Any, name: str) -> Any:
    """Texts, which mlcroissant gives as bytes, and parts by the end of their ids."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [_plain(each, name) for each in value]
    if isinstance(value, dict):
        parts = {key.split("/", 2)[2]: _plain(each, name) for key, each in value.items()}
        return None if set(parts.values()) == {None} else parts
    return value


def _expected(value: Any) -> Any:
    """A value of a row with parts of parts by their paths, as the fields name them."""
    if isinstance(value, dict):
        return dict(_paths(value, ""))
    return [_expected(each) for each in value] if isinstance(value, list) else value


def _paths(value: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, below in value.items():
        if isinstance(below, dict):
            yield from _paths(below, f"{path}{name}/")
        else:
            yield f"{path}{name}", below


@pytest.mark.parametrize("name", [name for name in DATASETS if (OLD / name).exists()])
def test_every_dataset_is_valid_and_has_a_record_set_for_each_table(
    described: Path, name: str
) -> None:
    metadata = opened(described / name).metadata
    assert not metadata.ctx.issues.errors
    manifest = open_dataset(str(described / name)).manifest
    tables = {table for table in manifest.tables if manifest.num_rows(table)}
    sets = {one.uuid for one in metadata.record_sets}
    assert {one for one in sets if "_joined" not in one} == tables
    assert ("samples_joined" in sets) == bool(manifest.num_rows("images"))


@pytest.mark.parametrize("name", ["eq-video", "eq-kubric", "hard-positives"])
def test_all_rows_of_all_tables_are_loaded_as_they_are(described: Path, name: str) -> None:
    folder = described / name
    manifest = open_dataset(str(folder)).manifest
    for table in filter(manifest.num_rows, manifest.tables):
        stored = rows(folder, table)
        found = loaded(folder, table)
        for record, row in zip(found, stored, strict=True):
            picture = record.pop("image") if isinstance(row.get("image"), dict) else None
            if picture is not None:
                assert picture.tobytes()
                row.pop("image")
            expected = {key: _expected(value) for key, value in row.items()}
            assert record == pytest.approx(expected) if _is_flat(expected) else record == expected


def _is_flat(row: dict[str, Any]) -> bool:
    return not any(isinstance(value, list | dict) for value in row.values())


@pytest.mark.parametrize("name", ["eq-video", "simat"])
def test_rows_are_joined_with_their_pictures_by_reference(described: Path, name: str) -> None:
    folder = described / name
    joined = [o.uuid for o in opened(folder).metadata.record_sets if o.uuid.endswith("_joined")]
    assert joined
    pixels = {key: picture.tobytes() for key, picture in _pictures(folder)}
    for one in joined:
        table = one.removesuffix("_joined")
        stored = {tuple(_key(row)): row for row in rows(folder, table)}
        found = loaded(folder, one)
        assert len(found) == len(stored)
        for record in found:
            row = stored[tuple(_key(record))]
            shown = {k: v for k, v in record.items() if hasattr(v, "tobytes")}
            assert shown
            for column, picture in shown.items():
                wanted = row[f"{column.removesuffix('_picture')}_id"]
                assert picture.tobytes() == pixels[wanted]


def _key(row: dict[str, Any]) -> Iterator[str]:
    yield from (str(row[name]) for name in ("sample_id", "region_id") if name in row)


def _pictures(folder: Path) -> Iterator[tuple[str, Any]]:
    for table, key in (("images", "image_id"), ("masks", "mask_id")):
        if any(one.uuid == table for one in opened(folder).metadata.record_sets):
            yield from ((record[key], record["image"]) for record in loaded(folder, table))


def test_fields_are_described_where_records_are(described: Path) -> None:
    said = json.loads((described / "eq-youcook2" / "croissant.json").read_text())
    (samples,) = [one for one in said["recordSet"] if one["@id"] == "samples"]
    by_id = {field["@id"]: field for field in samples["field"]}
    assert by_id["samples/image_0_id"]["description"] == "keys into `images`"
    parts = {field["@id"]: field for field in by_id["samples/origin_0"]["subField"]}
    assert parts["samples/origin_0/licence"]["description"].startswith("licence of the source")
    for one in said["recordSet"]:
        for field in one["field"]:
            assert field.get("description"), field["@id"]


def test_what_the_author_says_leaves_no_warning(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    shutil.copytree(OLD / "eq-youcook2", folder)
    about = tmp_path / "about.toml"
    about.write_text(
        'title = "Kitchens"\nversion = "1.2.0"\npublished = 2026-11-23\nlicence = "cc by 4.0"\n'
        'languages = ["en"]\nbiases = ["Coffee alone."]\nmaintenance = "By mail."\n'
        'social_impact = "None is known."\n[[authors]]\nname = "Ada"\n'
        '[[authors]]\nname = "Example"\nis_organisation = true\n'
    )
    assert main(["card", str(folder), "--about", str(about)]) == 0

    metadata = opened(folder).metadata
    assert not metadata.ctx.issues.errors
    assert not metadata.ctx.issues.warnings
    assert metadata.ctx.conforms_to.value == "http://mlcommons.org/croissant/1.1"
    assert metadata.name == {"en": "Kitchens"} or metadata.name == "Kitchens"
    assert metadata.license == ["https://spdx.org/licenses/CC-BY-4.0.html"]
    assert len(metadata.creators) == 2
    assert metadata.data_biases[0] == "Coffee alone."
    assert metadata.data_social_impact == "None is known."
    assert metadata.data_release_maintenance_plan == "By mail."
    assert metadata.data_collection.startswith("Derived from existing data")
    assert "face" in metadata.personal_sensitive_information[0]
    assert main(["verify", str(folder)]) in (0, 3)


def test_every_property_of_responsible_ai_that_the_author_fills_is_there() -> None:
    values: dict[str, Any] = {
        "authors": (Author(name="A"),),
        **{name: "said" for name in ("collection", "annotation", "social_impact", "maintenance")},
        **{name: ("said",) for name in ("biases", "limitations", "uses")},
        "personal_information": "said",
    }
    manifest = open_dataset(str(OLD / "eq-sd")).manifest
    found = json.loads(croissant(Profile(manifest=manifest, about=About(**values))))
    for name in (
        *("dataCollection", "dataAnnotationProtocol", "dataSocialImpact", "dataBiases"),
        *("dataReleaseMaintenancePlan", "dataLimitations", "dataUseCases"),
        "personalSensitiveInformation",
    ):
        value = found[f"rai:{name}"]
        assert "said" in (value if isinstance(value, list) else [value]), name


def test_the_same_dataset_has_the_same_description_wherever_it_lies(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        folder = tmp_path / name
        shutil.copytree(OLD / "simat", folder)
        assert main(["card", str(folder)]) == 0
        texts.append([(folder / file).read_bytes() for file in ("README.md", "croissant.json")])
        assert not any(str(tmp_path).encode() in text for text in texts[-1])
    assert texts[0] == texts[1]


def test_files_that_are_moved_are_described_where_they_are() -> None:
    manifest = open_dataset(str(OLD / "vlue")).manifest
    text = croissant(Profile(manifest=manifest))
    moved = json.loads(in_folder(text, "_next"))
    for before, after in zip(json.loads(text)["distribution"], moved["distribution"], strict=True):
        name = "contentUrl" if "contentUrl" in before else "includes"
        assert after[name] == f"_next/{before[name]}"


@pytest.mark.parametrize("damage", ["digest", "missing", "no JSON", "no list", "another"])
def test_verify_finds_a_description_of_other_files(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "d"
    shutil.copytree(OLD / "hard-positives", folder)
    assert main(["card", str(folder)]) == 0
    path = folder / "croissant.json"
    said = json.loads(path.read_text())
    if damage == "digest":
        said["distribution"][0]["sha256"] = "0" * 64
    elif damage == "missing":
        said["distribution"] = said["distribution"][1:]
    elif damage == "another":
        said["distribution"][0]["contentUrl"] = "../../etc/passwd\x1b"
    elif damage == "no list":
        said = {"distribution": 3}
    path.write_text("{" if damage == "no JSON" else json.dumps(said))

    assert main(["verify", str(folder)]) == 1
    said_ = capsys.readouterr().out
    assert "FAILED      description" in said_
    assert "croissant.json: " in said_
    assert "\x1b" not in said_


def test_facts_are_those_of_the_rows() -> None:
    facts = read_facts(open_dataset(str(OLD / "eq-video")))
    assert facts == Facts(splits={"samples": {"train": 2}}, licences={"CC0-1.0": 2}, sources=2)
