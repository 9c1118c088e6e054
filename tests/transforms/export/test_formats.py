"""Exports are read by the other side's own readers: the same rows, the same pixels."""

import gc
import io
import json
import random
import shutil
from dataclasses import replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from eqforge.cli import main
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.tables.datasets import DATASETS
from eqforge.sources.caption_sources import read_captions
from tests.builds import rows
from tests.exported import IDS, SIZE, check_note, files, picture, run, small, write_pairs
from tests.exported import pairs as made_pairs
from tests.optional import optional
from tests.samples import ORIGIN

datasets = optional("datasets")

OLD = Path("tests/old/0.1.0").resolve()
KINDS = sorted(path.name for path in OLD.iterdir() if path.name in DATASETS)
OTHERS = ("imagefolder", "jsonl", "pairs", "webdataset")
SPLITS = ("test", "val", "train 1")
NAMES = {"test": "test", "val": "val", "train 1": "train_1"}


def loaded(folder: Path, name: str | None = None) -> dict[str, Any]:
    cache = folder.parent / "cache"
    datasets.disable_progress_bars()
    return dict(datasets.load_dataset(str(folder), name, cache_dir=str(cache)))


def pixels(data: bytes) -> bytes:
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB").tobytes()


def valued(found: list[Any]) -> list[Any]:
    """Values without the fields that are null in all of them, at any depth."""
    there = [each for each in found if each is not None]
    if not there or not isinstance(there[0], dict):
        return found
    columns = {name: valued([each[name] for each in there]) for name in there[0]}
    kept = {name: column for name, column in columns.items() if column.count(None) < len(column)}
    whole = iter(zip(*kept.values(), strict=True))
    return [None if e is None else dict(zip(kept, next(whole), strict=True)) for e in found]


def expected(dataset: Path, table: str = "samples") -> dict[str, list[dict[str, Any]]]:
    """The rows by split and in the order of their ids, with the pixels of their pictures."""
    shown = {row["image_id"]: pixels(row["image"]["bytes"]) for row in rows(dataset, "images")}
    found: dict[str, list[dict[str, Any]]] = {}
    for row in valued(rows(dataset, table)):
        seen = {f"{n} pixels": shown[row[n]] for n in ("image_0_id", "image_1_id") if row.get(n)}
        found.setdefault(NAMES[row["split"]], []).append(row | seen)
    return {name: sorted(some, key=lambda row: row["sample_id"]) for name, some in found.items()}


def with_pixels(row: dict[str, Any], suffix: str = "") -> dict[str, Any]:
    """A row that was loaded, as `expected` has it."""
    pictures = {name: row.pop(f"{name}{suffix}") for name in ("image_0", "image_1")}
    return row | {f"{n}_id pixels": each.convert("RGB").tobytes() for n, each in pictures.items()}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return small(tmp_path / "d", 11, SPLITS, 3)


def test_pairs_load_with_all_splits_texts_and_pixels(dataset: Path, tmp_path: Path) -> None:
    output = run(dataset, "pairs", tmp_path / "out", "--rows-per-file", 2)

    found = {name: list(map(with_pixels, some)) for name, some in loaded(output).items()}
    assert found == expected(dataset)
    assert sorted(path.name for path in (output / "data").iterdir())[:2] == [
        "test-00000-of-00002.parquet",
        "test-00001-of-00002.parquet",
    ]
    check_note(output)


def test_the_hub_s_folder_loads_pictures_first_and_every_configuration(
    dataset: Path, tmp_path: Path
) -> None:
    output = run(dataset, "hf", tmp_path / "out")

    found = {name: list(map(with_pixels, some)) for name, some in loaded(output).items()}
    assert found == expected(dataset)
    assert datasets.get_dataset_config_names(str(output)) == ["samples"]
    check_note(output)


@pytest.mark.parametrize("form", ["hf", "webdataset"])
def test_what_the_author_says_stands_on_every_card(
    form: str, dataset: Path, tmp_path: Path
) -> None:
    said = tmp_path / "about.toml"
    said.write_text('title = "Cups 两只"\nlicence = "CC-BY-4.0"\ntags = ["cups"]\n')
    told = tmp_path / "told"
    shutil.copytree(dataset, told)
    assert main(["card", str(told), "--about", str(said)]) == 0

    output = run(told, form, tmp_path / "out")

    card = (output / "README.md").read_text()
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["pretty_name"] == "Cups 两只"
    assert front["license"] == "cc-by-4.0"
    assert "cups" in front["tags"]
    assert front["configs"][0]["config_name"] in ("default", "samples")
    assert card.count("## Loading") == 1
    tables = open_dataset(str(told)).manifest.tables if form == "hf" else ("samples",)
    counts = {name: len(rows(told, name)) for name in tables if name != "images"}
    table = "".join(f"| {name} | {count:,} |\n" for name, count in counts.items() if count)
    assert f"\n| table | rows |\n|---|---:|\n{table}\n" in card
    assert loaded(output)


def test_tar_shards_are_read_by_datasets(dataset: Path, tmp_path: Path) -> None:
    output = run(dataset, "webdataset", tmp_path / "out", "--rows-per-file", 2)

    found: dict[str, list[dict[str, Any]]] = {}
    for name, some in loaded(output).items():
        for row in some:
            pictures = {key: row[key] for key in ("image_0.png", "image_1.png")}
            found.setdefault(name, []).append(with_pixels(row["json"] | pictures, ".png"))
            assert "." not in row["__key__"]
    assert found == expected(dataset)
    check_note(output)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # it leaves its files to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tar_shards_are_read_by_webdataset(dataset: Path, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    output = run(dataset, "webdataset", tmp_path / "out", "--rows-per-file", 2)
    urls = [str(path) for path in sorted((output / "data").glob("test-*.tar"))]

    samples = list(webdataset.WebDataset(urls, shardshuffle=False).decode("pil"))
    found = []
    for each in samples:
        images = {name: each[f"{name}.png"] for name in ("image_0", "image_1")}
        found.append(with_pixels(each["json"] | images))
    assert found == expected(dataset)["test"]

    del samples
    gc.collect()


def test_an_image_folder_loads_with_all_splits_texts_and_pixels(
    dataset: Path, tmp_path: Path
) -> None:
    output = run(dataset, "imagefolder", tmp_path / "out")

    nested = ("captions_0", "captions_1", "origin_0", "origin_1", "scores")
    texts = (*nested, "edited_spans_0", "edited_spans_1", "background_ssim")
    for name, some in loaded(output).items():
        found = [with_pixels(row) for row in some]
        for row in found:
            row |= {each: json.loads(row[each]) for each in texts}
        assert found == expected(dataset)[name]
    folder = output / "data" / "test"
    metadata = list(map(json.loads, (folder / "metadata.jsonl").read_text().splitlines()))
    assert all((folder / row["image_0_file_name"]).exists() for row in metadata)
    check_note(output)


def test_json_lines_have_the_rows_and_where_their_pictures_are(
    dataset: Path, tmp_path: Path
) -> None:
    output = run(dataset, "jsonl", tmp_path / "out", "--image-files")

    found: dict[str, list[dict[str, Any]]] = {}
    for name in NAMES.values():
        for line in (output / f"{name}.jsonl").read_text().splitlines():
            row = json.loads(line)
            for each in ("image_0", "image_1"):
                row[f"{each}_id pixels"] = pixels((output / row.pop(each)).read_bytes())
            found.setdefault(name, []).append(row)
    assert found == expected(dataset)
    plain = run(dataset, "jsonl", tmp_path / "plain")
    assert sorted(path.name for path in plain.glob("*.jsonl")) == sorted(
        f"{name}.jsonl" for name in NAMES.values()
    )
    assert not (plain / "images").exists()


def test_captions_in_karpathy_s_form_are_read_back(dataset: Path, tmp_path: Path) -> None:
    output = run(dataset, "karpathy", tmp_path / "out", "--image-files")

    found = {
        (each.split, Path(each.image).stem, each.caption)
        for each in read_captions(output / "dataset_eq-video.json", "karpathy")
    }
    assert found == {
        (row["split"], row[f"image_{side}_id"], row[f"caption_{side}"])
        for row in rows(dataset, "samples")
        for side in (0, 1)
    }
    assert all((output / "images").rglob(f"{name}.png") for _, name, _ in found)


@pytest.mark.parametrize("form", ["hf", "imagefolder", "jsonl", "pairs", "webdataset"])
def test_torch_collates_every_export_and_all_name_a_split_alike(form: str, tmp_path: Path) -> None:
    data = pytest.importorskip("torch.utils.data")
    samples = [replace(e, split="training", origin_1=ORIGIN) for e in made_pairs(3)["test"]]
    dataset = write_pairs(tmp_path / "d", samples, [picture(n) for n in range(4)], 1)
    output = run(dataset, form, tmp_path / "out")
    (found,) = loaded(output).items()
    assert found[0] == "training"
    plain = [row["json"] if form == "webdataset" else row for row in found[1].with_format("torch")]
    assert not any("licence" in str(row["origin_0"]) for row in plain)
    batches = list(data.DataLoader(plain, batch_size=1))
    assert [batch["sample_id"] for batch in batches] == [[row["sample_id"]] for row in plain]
    assert "left out: `background_ssim`." in (output / "README.md").read_text()


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        *((kind, "hf") for kind in KINDS),
        *product(("eq-video", "hard-positives", "simat"), OTHERS),
    ],
)
def test_every_kind_of_dataset_can_be_exported(
    kind: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    has_images = bool(rows(OLD / kind, "images"))
    if form == "imagefolder" and not has_images:
        with pytest.raises(SystemExit):
            run(OLD / kind, form, tmp_path / "out")
        assert "expected rows with images" in capsys.readouterr().err
        return
    output = run(OLD / kind, form, tmp_path / "out")

    note, samples = check_note(output), rows(OLD / kind, "samples")
    if form == "jsonl":
        lines = [line for path in output.glob("*.jsonl") for line in path.read_text().split("\n")]
        assert sorted(json.loads(line)["sample_id"] for line in lines if line) == sorted(
            row["sample_id"] for row in samples
        )
    elif form == "hf":
        for name in datasets.get_dataset_config_names(str(output)):
            found = [row for some in loaded(output, name).values() for row in some]
            assert len(found) == len(rows(OLD / kind, name)) > 0
    else:
        assert sum(each["rows"] for each in note["files"]) == len(samples)


def test_the_bytes_are_the_same_however_many_files_the_dataset_has(tmp_path: Path) -> None:
    samples = [each for some in made_pairs(23, SPLITS).values() for each in some]
    pictures = [picture(n) for n in range(24)]
    datasets_made = []
    for number, shards in enumerate((1, 5)):
        random.Random(number).shuffle(samples)
        random.Random(number).shuffle(pictures)
        datasets_made.append(write_pairs(tmp_path / f"d{shards}", samples, pictures, shards))

    for form in ("pairs", "hf", "webdataset", "imagefolder", "jsonl", "karpathy"):
        found = []
        for made in datasets_made:
            options = ("--rows-per-file", 5, "--image-format", "jpeg", "--max-side", 12)
            there = files(run(made, form, tmp_path / form / made.name, *options))
            note = json.loads(there.pop("eqforge-export.json"))
            found.append((there, note["files"]))
        assert found[0] == found[1], form


def test_one_row_is_enough(tmp_path: Path) -> None:
    dataset = small(tmp_path / "d", 1)
    for form in ("pairs", "hf", "webdataset", "imagefolder"):
        found = loaded(run(dataset, form, tmp_path / form))
        assert {name: len(some) for name, some in found.items()} == {"test": 1}


def test_hostile_ids_stay_in_the_folder_and_apart(dataset: Path, tmp_path: Path) -> None:
    output = run(dataset, "webdataset", tmp_path / "out" / "deep")
    keys = [row["__key__"] for some in loaded(output).values() for row in some]
    assert len({key.lower() for key in keys}) == 11
    assert all(len(key) < 80 and key.isascii() and "/" not in key for key in keys)
    found = {row["json"]["sample_id"] for some in loaded(output).values() for row in some}
    assert set(IDS) <= found
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name != "cache"] == ["deep"]


def test_hostile_splits_get_names_of_their_own(tmp_path: Path) -> None:
    names = ("../x", "test", "TEST", "all", "", "тест", "a-b", "null", "123")
    dataset = small(tmp_path / "d", 9, names)
    for form in ("pairs", "webdataset"):
        found = loaded(run(dataset, form, tmp_path / "e" / form))
        assert len(found) == len(names)
        rows_of = [row if form == "pairs" else row["json"] for s in found.values() for row in s]
        assert sorted(row["split"] for row in rows_of) == sorted(names)


def test_pictures_are_scaled_and_encoded_anew_where_that_is_asked_for(tmp_path: Path) -> None:
    shown = [picture(1, "PNG"), picture(2, "JPEG", (64, 32))]
    (row,) = made_pairs(1)["test"]
    one, other = (sha256(data).hexdigest() for data in shown)
    dataset = write_pairs(tmp_path / "d", [replace(row, image_0_id=one, image_1_id=other)], shown)

    def forms(*options: object) -> list[tuple[str | None, tuple[int, int]]]:
        output = run(dataset, "pairs", tmp_path / "-".join(map(str, ("out", *options))), *options)
        (found,) = loaded(output)["test"]
        return [(found[each].format, found[each].size) for each in ("image_0", "image_1")]

    assert forms() == [("PNG", SIZE), ("JPEG", (64, 32))]
    assert forms("--image-format", "png") == [("PNG", SIZE), ("PNG", (64, 32))]
    assert forms("--image-format", "jpeg") == [("JPEG", SIZE), ("JPEG", (64, 32))]
    assert forms("--max-side", 32) == [("PNG", SIZE), ("JPEG", (32, 16))]
    assert forms("--max-side", 12) == [("PNG", (12, 8)), ("JPEG", (12, 6))]
