import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge import cli
from eqforge.commands import overlap
from eqforge.core.errors import InputError
from eqforge.pipelines import vlue
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.sources.training_ids import keys_of_name, read_training_ids, training_list
from eqforge.transforms.filters.near_duplicates import hash_folder, nearest, to_numbers
from tests import handmade
from tests.made_datasets import write_dataset

NAMES = (
    "COCO_val2014_000000000042.jpg", "VG_100K/7.jpg", "VG_100K_2/8.jpg", "1000092795.jpg",
    "own/a.jpg",
)  # fmt: skip
IMAGE_DATA = [
    {"image_id": 7, "coco_id": 5, "flickr_id": None, "url": "x"},
    {"image_id": 8, "coco_id": None, "flickr_id": 99},
]
SENTENCES = [{"raw": "x", "sentid": 1}]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A dataset of five captions whose images are of COCO, Visual Genome, Flickr and a user."""
    path = tmp_path / "captions.json"
    path.write_text(json.dumps([{"image": name, "caption": ["a dog"]} for name in NAMES]))
    assert vlue.main(["--retrieval", str(path), "--output", str(tmp_path / "set")]) == 0
    return tmp_path / "set"


def write(folder: Path, content: Any, name: str = "ids.json") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def run(dataset: Path, *arguments: object) -> list[dict[str, Any]]:
    output = dataset.parent / "overlap.parquet"
    command = [str(dataset), "--output", str(output), *map(str, arguments)]
    assert overlap.main(command) == 0
    return pq.read_table(output).to_pylist()


def seen(rows: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    return {row["image"]: (row["why"], row["matched"]) for row in rows if row["seen"]}


def keys(path: str, *splits: str) -> list[tuple[str, ...]]:
    return list(read_training_ids(training_list(path), splits or ("train", "restval")))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("COCO_val2014_000000391895.jpg", "coco:391895"),
        ("val2014/COCO_train2014_000000000009.jpg", "coco:9"),
        ("train2017/000000391895.jpg", "coco:391895"),
        ("VG_100K/2361911.jpg", "vg:2361911"),
        ("data/VG_100K_2/1.jpg", "vg:1"),
        ("1000092795.jpg", "name:1000092795.jpg"),
        ("ta/73-\u0b95/73-13.jpg", "name:ta/73-\u0b95/73-13.jpg"),
    ],
)
def test_an_image_is_known_by_its_name(name: str, key: str) -> None:
    assert keys_of_name(name) == (key,)
    assert keys_of_name("1000092795.jpg", "flickr") == ("flickr:1000092795",)
    assert keys_of_name("VG_100K/7.jpg", "flickr") == ("vg:7",)


def test_every_format_of_lists_is_read(tmp_path: Path) -> None:
    coco = {"file_name": "000000000042.jpg", "id": 42}
    url = {"flickr_url": "http://farm1.staticflickr.com/1/2496_a.jpg"}
    karpathy = [
        {"filename": "a.jpg", "cocoid": number, "split": split, "sentences": SENTENCES}
        for number, split in enumerate(("train", "restval", "val", "test"))
    ]
    flickr = {"filename": "1000092795.jpg", "split": "train", "sentences": SENTENCES}

    assert keys(write(tmp_path, {"images": [coco | url]})) == [("coco:42", "flickr:2496")]
    assert keys(write(tmp_path, {"images": karpathy})) == [("coco:0",), ("coco:1",)]
    assert len(keys(write(tmp_path, {"images": karpathy}), "all")) == 4
    found = keys(write(tmp_path, {"images": [flickr], "dataset": "flickr30k"}))
    assert found == [("flickr:1000092795",)]
    assert keys(write(tmp_path, IMAGE_DATA)) == [("vg:7", "coco:5"), ("vg:8", "flickr:99")]
    assert keys(f"vg={write(tmp_path, [7, '8'])}") == [("vg:7",), ("vg:8",)]
    assert keys(f"vg={write(tmp_path, {'train': [7], 'test': [9]})}") == [("vg:7",)]
    lines = "val2014/COCO_val2014_000000000042.jpg 42\n\nown/a b.jpg\n"
    assert keys(write(tmp_path, lines, "ids.txt")) == [("coco:42",), ("name:own/a b.jpg",)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [7],
            r"\[0\]: a number alone does not identify a photograph; name its collection, as in ",
        ),
        ([{"image_id": 7}], "a number alone does not identify a photograph"),
        ([{"height": 7}], "expected a field 'file_name', 'filename', 'cocoid' or 'image_id'"),
        ({"images": []}, r"contains no training images \(splits: train, restval\)"),
        ({"test": [7]}, r"contains no training images \(splits: train, restval\)"),
        ("{", "not valid JSON"),
    ],
)
def test_a_wrong_list_is_one_error(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        keys(write(tmp_path, content))
    with pytest.raises(InputError, match="line 1: expected an id or a file name"):
        keys(write(tmp_path, '{"image_id": 7}\n', "ids.jsonl"))


def test_images_are_seen_by_their_own_and_by_linked_ids(dataset: Path, tmp_path: Path) -> None:
    links = write(tmp_path, IMAGE_DATA, "image_data.json")
    training = write(tmp_path, "COCO_train2014_000000000005.jpg\nown/a.jpg\n", "ids.txt")

    assert seen(run(dataset, "--training-ids", training)) == {"own/a.jpg": ("id", "name:own/a.jpg")}
    assert seen(run(dataset, "--training-ids", training, "--links", links)) == {
        "own/a.jpg": ("id", "name:own/a.jpg"),
        "VG_100K/7.jpg": ("linked_id", "coco:5"),
    }
    assert set(seen(run(dataset, "--training-ids", links))) == {"VG_100K/7.jpg", "VG_100K_2/8.jpg"}
    flickr = write(tmp_path, "1000092795\n", "flickr.txt")
    assert seen(run(dataset, "--training-ids", f"flickr={flickr}", "--names-are", "flickr")) == {
        "1000092795.jpg": ("id", "flickr:1000092795")
    }


def test_the_split_has_every_sample_and_the_table_counts_it(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = run(dataset, "--training-ids", write(tmp_path, ["own/a.jpg"]))

    assert len(rows) == len(NAMES)
    assert [row["sample_seen"] for row in rows] == [row["seen"] for row in rows]
    assert {row["found_in"] for row in rows} == {None, "ids.json"}
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert lines["seen"][1:3] == ["1", "1"]
    assert lines["unseen"][1:3] == ["4", "4"]


def test_a_sample_of_two_images_is_seen_when_one_of_them_is(tmp_path: Path) -> None:
    rows = [{"sentence": "x", "images": ["a.jpg", "b.jpg"], "label": True}]
    path = write(tmp_path, rows, "nlvr2.json")
    assert vlue.main(["--nlvr2", path, "--output", str(tmp_path / "set")]) == 0

    found = run(tmp_path / "set", "--training-ids", write(tmp_path, ["b.jpg"]))

    assert [(row["image"], row["seen"], row["sample_seen"]) for row in found] == [
        ("a.jpg", False, True),
        ("b.jpg", True, True),
    ]


def test_the_nearest_hash_is_that_of_a_loop_over_all() -> None:
    rng = np.random.default_rng(0)
    hashes, others = (rng.integers(0, 2**64, (n, 3), dtype=np.uint64) for n in (70, 300))

    places, distances = nearest(hashes, others)

    bits = [
        [
            sum((int(a) ^ int(b)).bit_count() for a, b in zip(one, other, strict=True))
            for other in others
        ]
        for one in hashes
    ]
    assert distances.tolist() == [min(row) for row in bits]
    assert places.tolist() == [row.index(min(row)) for row in bits]
    assert to_numbers(["f" * 16 + f"{1:016x}{2:016x}"]).tolist() == [[2**64 - 1, 1, 2]]


def test_hashes_of_an_older_version_are_one_error() -> None:
    with pytest.raises(InputError, match="hashes have 64 bits, but this version"):
        to_numbers(["f" * 16])


def photograph(seed: int) -> Image.Image:
    """A picture of large coloured areas, so that smaller copies of it look the same."""
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((320, 240), Image.Resampling.BICUBIC)


def test_images_that_look_the_same_are_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "training").mkdir()
    for number in (0, 1):
        photograph(number).save(tmp_path / "images" / f"{number}.png")
    photograph(0).resize((160, 120)).save(tmp_path / "training" / "copy.jpg", quality=40)
    photograph(2).save(tmp_path / "training" / "other.png")
    (tmp_path / "training" / "broken.jpg").write_bytes(b"no image")
    captions = [{"image": f"{number}.png", "caption": "x"} for number in (0, 1)]
    inputs = ["--retrieval", write(tmp_path, captions), "--images", str(tmp_path / "images")]
    assert vlue.main([*inputs, "--output", str(tmp_path / "set")]) == 0

    one, two = (
        run(tmp_path / "set", "--images", tmp_path / "training", "--workers", workers)
        for workers in (1, 2)
    )

    assert one == two
    assert seen(one) == {"0.png": ("near_duplicate", "copy.jpg")}
    assert {row["found_in"] for row in one if row["seen"]} == {"training"}
    assert "1 training image could not be read" in capsys.readouterr().out


def test_the_two_images_of_a_pair_are_compared_by_look(tmp_path: Path) -> None:
    """Pairs name no images, so lists of ids say nothing of them."""
    handmade.write(tmp_path / "set")
    dataset = open_dataset(str(tmp_path / "set"))
    images = list(dataset.rows("images"))
    (tmp_path / "training").mkdir()
    first = images[0]
    (tmp_path / "training" / "copy.png").write_bytes(first["image"]["bytes"])

    rows = run(tmp_path / "set", "--images", tmp_path / "training", "--max-distance", 0)

    samples = dataset.rows("samples")
    shown = [row[key] for row in samples for key in ("image_0_id", "image_1_id")]
    assert [row["image_id"] for row in rows] == shown
    same = {row["image_id"] for row in images if row["phash"] == first["phash"]}
    assert {row["image_id"] for row in rows if row["seen"]} == same
    with pytest.raises(SystemExit):
        run(tmp_path / "set", "--training-ids", write(tmp_path, ["a.jpg"]))


def test_simats_queries_are_known_by_visual_genomes_ids(tmp_path: Path) -> None:
    rows = [{"sample_id": f"simat/{n}", "source_id": str(n), "image_id": None} for n in (7, 8)]
    folder = write_dataset(tmp_path / "d", "simat", {"samples": rows})

    found = run(folder, "--training-ids", f"vg={write(tmp_path, [8, 9])}")

    assert seen(found) == {"8": ("id", "vg:8")}


def test_another_datasets_images_are_known_by_the_ids_of_collections(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "swap_obj.json"
    shown = ("000000000042.jpg", "a.jpg")
    pairs = [{"filename": name, "caption": "a", "negative_caption": "b"} for name in shown]
    source.write_text(json.dumps(pairs))
    other = tmp_path / "other"
    words = ["import", "sugar-crepe", str(source), "--output", str(other), "--quiet"]
    assert cli.main(words) == 0
    rows = run(dataset, "--datasets", other)
    assert seen(rows) == {NAMES[0]: ("id", "coco:42")}
    assert {row["found_in"] for row in rows if row["seen"]} == {"other"}
    # Names that are no ids mean nothing between two benchmarks, and are said to be open.
    assert "4 images have names that are not ids" in capsys.readouterr().out
    assert {row["image"] for row in run(dataset, "--datasets", dataset) if row["seen"]} == {*NAMES}
    assert "count as unseen" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no training images to compare; pass"),
        (["--images", "."], "contains no images; build it with --images FOLDER"),
        (["--images", ".", "--max-distance", "193"], "--max-distance 193: expected 0 to 192"),
        (["--images", ".", "--workers", "0"], "--workers 0: expected 1 or more"),
        (["--training-ids", "nowhere.txt"], "nowhere.txt: cannot be read"),
    ],
)
def test_wrong_arguments_are_one_error(
    dataset: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        overlap.main([str(dataset), "--output", str(dataset.parent / "o.parquet"), *arguments])

    assert left.value.code == 2
    assert message in capsys.readouterr().err
    assert not (dataset.parent / "o.parquet").exists()


def test_photographs_are_told_apart_and_their_copies_are_not(
    data_folder: Path, tmp_path: Path
) -> None:
    """The default limit of 24 bits: copies of half the size differ in less, photographs in more."""
    folder = data_folder / "photos" / "coco_mini" / "train2017"
    hashed = hash_folder(str(folder))
    for name in hashed.names:
        with Image.open(folder / name) as image:
            half = image.convert("RGB").resize((image.width // 2, image.height // 2))
            half.save(tmp_path / name, quality=50)
    copies = hash_folder(str(tmp_path))

    places, distances = nearest(hashed.hashes, copies.hashes)

    assert len(hashed.names) == 80
    assert places.tolist() == list(range(80))
    assert distances.max() <= 12
    apart = [
        nearest(hashed.hashes[i : i + 1], np.delete(hashed.hashes, i, axis=0))[1][0]
        for i in range(80)
    ]
    assert min(apart) > 48


def test_karpathys_lists_are_found_in_cocos_captions(data_folder: Path) -> None:
    lists = [data_folder / "coco" / f"karpathy_{name}_images.txt" for name in ("val", "test")]

    found = [{key for (key,) in keys(str(path))} for path in lists]

    assert [len(names) for names in found] == [5_000, 5_000]
    assert not found[0] & found[1]
    numbers = {int(line.split()[1]) for line in lists[0].read_text().splitlines()}
    assert found[0] == {f"coco:{number}" for number in numbers}


def test_visual_genomes_splits_are_read(data_folder: Path) -> None:
    path = f"vg={data_folder / 'visual_genome' / 'sg2im_vg_splits.json'}"
    assert (len(keys(path)), len(keys(path, "all"))) == (86_463, 86_463 + 10_807 + 10_807)
