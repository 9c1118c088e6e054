"""SIMAT built of a made annotation: eight pictures of noise, their relations, and an oracle's file.

1, 2  man sitting on a bench      5, 6  dog sitting on a bench
3, 4  man touching a bench        7     woman near a tree, which no list names
                                  8     man licking ice, once
"""

import io
import json
import math
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge.commands import checks, inspection, verify
from eqforge.pipelines import simat
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import (
    books,
    dataset_bytes,
    finished_work,
    ids,
    reasons,
    rejected,
    rewrite,
    rows,
)

SHOWN = {
    1: ("man", "sitting on", "bench"),
    2: ("Man", "sits on", "the bench"),
    3: ("man", "touching", "bench"),
    4: ("man", "touches", "a bench"),
    5: ("dog", "sitting on", "bench"),
    6: ("dog", "sitting on a", "bench"),
    7: ("woman", "near", "tree"),
    8: ("man", "licking", "ice"),
}
SIT, TOUCH, DOG = "man/sitting on a/bench", "man/touching/bench", "dog/sitting on a/bench"
CAPTIONS = {
    SIT: "A man sitting on a bench.",
    TOUCH: "A man touching a bench.",
    DOG: "A dog sitting on a bench.",
}
SIZE = (160, 120)


def thing(number: int, name: str, box: Sequence[int]) -> dict[str, Any]:
    x, y, w, h = box
    return {"object_id": number, "names": [name], "x": x, "y": y, "w": w, "h": h}


@dataclass(frozen=True)
class Made:
    folder: Path

    def build(self, output: Path, *arguments: object, source: str = "--relationships") -> Path:
        named = {"--relationships": "relationships.json", "--scene-graphs": "scene_graphs.json"}
        inputs = [source, self.folder / named[source], "--images", self.folder / "images"]
        data = ["--image-data", self.folder / "image_data.json"]
        everything = [*inputs, *data, "--output", output, *arguments]
        assert simat.main([str(part) for part in everything]) == 0
        return output

    def pixels(self, image: int) -> np.ndarray:
        with Image.open(self.folder / "images" / "VG_100K_2" / f"{image}.png") as picture:
            return np.asarray(picture)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("genome")
    (folder / "images" / "VG_100K_2").mkdir(parents=True)
    relationships, graphs, data = [], [], []
    for image, (subject, predicate, target) in SHOWN.items():
        pixels = np.random.default_rng(image).integers(0, 255, (SIZE[1], SIZE[0], 3), np.uint8)
        path = f"VG_100K_2/{image}.png"
        Image.fromarray(pixels).save(folder / "images" / path)
        who, what = thing(1, subject, (20, 10 + image, 30, 40)), thing(2, target, (60, 50, 40, 30))
        edge = {"relationship_id": 100 + image, "predicate": predicate}
        relationships.append(
            {"image_id": image, "relationships": [edge | {"subject": who, "object": what}]}
        )
        ends = {"subject_id": 1, "object_id": 2}
        graphs.append({"image_id": image, "objects": [who, what], "relationships": [edge | ends]})
        data.append(
            {"image_id": image, "width": SIZE[0], "height": SIZE[1], "url": f"http://v/{path}"}
        )
    for name, content in (
        ("relationships", relationships), ("scene_graphs", graphs), ("image_data", data),
    ):  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(content))
    return Made(folder)


@pytest.fixture(scope="module")
def whole(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset without an oracle."""
    return made.build(tmp_path_factory.mktemp("whole") / "out")


def test_a_gallery_of_crops_and_every_change_of_one_word(made: Made, whole: Path) -> None:
    gallery = {row["region_id"]: row for row in rows(whole, "gallery")}
    assert {name: row["triplet_id"] for name, row in gallery.items()} == {
        "1-101": SIT, "2-102": SIT, "3-103": TOUCH, "4-104": TOUCH, "5-105": DOG, "6-106": DOG,
    }  # fmt: skip
    images = {row["image_id"]: row for row in rows(whole, "images")}
    for row in gallery.values():
        number, box = int(row["source_id"]), row["box"]
        # The union of 20..50 x (10 + n)..(50 + n) and 60..100 x 50..80, made square: 80 wide.
        assert (box["x0"], box["x1"]) == (20, 100)
        top, bottom = 10 + number, max(80, 50 + number)
        assert box["y1"] - box["y0"] == 80
        assert box["y0"] <= top
        assert box["y1"] >= bottom
        picture = images[row["image_id"]]
        path = made.folder / "crop.png"
        path.write_bytes(picture["image"]["bytes"])
        cut = made.pixels(number)[box["y0"] : box["y1"], box["x0"] : box["x1"]]
        with Image.open(path) as crop:
            assert np.array_equal(np.asarray(crop), cut)
        assert row["source_path"] == f"VG_100K_2/{number}.png"

    assert ids(whole) == sorted(
        [
            *(f"simat/{n}-10{n}/relation/touching" for n in (1, 2)),
            *(f"simat/{n}-10{n}/subject/dog" for n in (1, 2)),
            *(f"simat/{n}-10{n}/relation/sitting on a" for n in (3, 4)),
            *(f"simat/{n}-10{n}/subject/man" for n in (5, 6)),
        ]
    )
    assert {row["caption_id"]: row["caption"] for row in rows(whole, "captions")} == CAPTIONS
    assert {row["regions"] for row in rows(whole, "captions")} == {2}
    assert books(whole) == {"relations": (7, 6, 1), "queries": (8, 8, 0)}
    assert rejected(whole, "too_few_regions") == ["simat/8-108"]


def test_rows_refer_to_each_other_and_weights_are_counted(whole: Path) -> None:
    samples = rows(whole, "samples")
    gallery = {row["region_id"]: row for row in rows(whole, "gallery")}
    counts = Counter((row["split"], row["part"], row["source_word"]) for row in samples)
    splits: dict[str, set[str]] = {}
    for row in samples:
        region = gallery[row["region_id"]]
        assert (row["source_id"], row["image_id"]) == (region["source_id"], region["image_id"])
        assert row["source_triplet_id"] == region["triplet_id"]
        before, after = (row[f"{which}_triplet_id"].split("/") for which in ("source", "target"))
        place = ("subject", "relation", "object").index(row["part"])
        assert (before[place], after[place]) == (row["source_word"], row["target_word"])
        assert before[:place] + before[place + 1 :] == after[:place] + after[place + 1 :]
        assert row["frequency"] == counts[row["split"], row["part"], row["source_word"]]
        assert row["weight"] == 1 / math.sqrt(row["frequency"])
        splits.setdefault(row["source_id"], set()).add(row["split"])
    assert all(len(found) == 1 for found in splits.values()), "an image is in one split"
    assert {split for found in splits.values() for split in found} == {"dev", "test"}


def test_it_verifies_and_can_be_looked_at(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main([str(whole)]) == 0
    assert inspection.main([str(whole)]) == 0
    assert "gallery" in capsys.readouterr().out
    card = (whole / "README.md").read_text()
    assert "`source_word`" in card
    assert "no oracle judged the queries" in card


def test_verify_finds_a_query_of_a_crop_that_is_not_there(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "out")
    (path,) = (tmp_path / "out" / "data").glob("gallery-*.parquet")
    rewrite(tmp_path / "out", f"data/{path.name}", lambda rows: rows[1:])
    found = list(checks.check_ids(open_dataset(str(tmp_path / "out"))))
    assert any("refers to row 1-101 of gallery" in line for line in found)


def test_scene_graphs_give_the_same_files_as_relationships(
    made: Made, whole: Path, tmp_path: Path
) -> None:
    other = made.build(tmp_path / "out", source="--scene-graphs")
    expected, found = dataset_bytes(whole), dataset_bytes(other)
    for name in ("dataset.json", "README.md", "croissant.json", "SHA256SUMS"):
        expected.pop(name), found.pop(name)
    assert found == expected


def test_paper_mode_counts_a_word_over_both_splits_and_cuts_no_square(
    made: Made, tmp_path: Path
) -> None:
    output = made.build(tmp_path / "out", "--mode", "paper")
    words = {row["source_word"]: row["frequency"] for row in rows(output, "samples")}
    assert words == {"man": 2, "dog": 2, "sitting on a": 2, "touching": 2}
    assert {row["box"]["y0"] for row in rows(output, "gallery")} == {11, 12, 13, 14, 15, 16}


# --- oracles


def oracle(folder: Path, changes: dict[tuple[str, str], float | None]) -> str:
    """A file of scores: 0.95 for a crop's own caption, 0.05 for others, but for some changes."""
    own = {"1-101": SIT, "2-102": SIT, "3-103": TOUCH, "4-104": TOUCH, "5-105": DOG, "6-106": DOG}
    cells = [
        (region, CAPTIONS[name], changes.get((region, name), 0.95 if own[region] == name else 0.05))
        for region in own
        for name in CAPTIONS
    ]
    names = ("image", "caption", "probability")
    table = {
        name: [cell[n] for cell in cells if cell[2] is not None] for n, name in enumerate(names)
    }
    pq.write_table(pa.table(table), folder / "scores.parquet")
    return f"matrix:{folder / 'scores.parquet'},family=oscar"


def test_the_oracle_keeps_queries_that_ask_for_something_new(made: Made, tmp_path: Path) -> None:
    changes: dict[tuple[str, str], float | None] = {
        ("1-101", SIT): 0.9,  # not above the limit
        ("3-103", SIT): 0.1,  # not below the limit
        ("5-105", SIT): None,  # no score of the target
        ("6-106", DOG): 0.93,
    }
    output = made.build(tmp_path / "out", "--oracle", oracle(tmp_path, changes))

    expected = {
        "simat/1-101/relation/touching": "own_caption_mismatch",
        "simat/1-101/subject/dog": "own_caption_mismatch",
        "simat/3-103/relation/sitting on a": "target_caption_match",
        "simat/5-105/subject/man": "not_scored",
    }
    refused = {r["candidate_id"]: r for r in rows(output, "rejects") if r["stage"] == "queries"}
    assert {name: row["reason"] for name, row in refused.items()} == expected
    assert refused["simat/1-101/subject/dog"]["value"] == 0.9
    assert books(output)["queries"] == (8, 4, 4)
    assert "relations" in books(output)
    kept = {row["sample_id"]: row for row in rows(output, "samples")}
    scores = {s["name"]: s["value"] for s in kept["simat/6-106/subject/man"]["scores"]}
    assert scores == {"oracle_1_source": 0.93, "oracle_1_target": 0.05}
    own = {row["region_id"]: [s["value"] for s in row["scores"]] for row in rows(output, "gallery")}
    assert own["1-101"] == [0.9]
    counts = Counter((r["split"], r["part"], r["source_word"]) for r in kept.values())
    for row in kept.values():
        assert row["frequency"] == counts[row["split"], row["part"], row["source_word"]]
    assert verify.main([str(output)]) == 0


def test_two_oracles_that_differ_are_a_reason(made: Made, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = oracle(tmp_path / "a", {}), oracle(tmp_path / "b", {("6-106", DOG): 0.2})
    output = made.build(tmp_path / "out", "--oracle", f"{one}+{other}")
    assert rejected(output, "oracle_disagreement") == ["simat/6-106/subject/man"]
    assert [len(row["scores"]) for row in rows(output, "gallery")] == [2] * 6


def test_a_model_that_reads_pixels_scores_the_stored_crops(made: Made, tmp_path: Path) -> None:
    """Each score is that of the crop in `images` and one caption, given to the model alone."""
    pytest.importorskip("transformers")
    from eqforge.models.scorer import Picture
    from eqforge.models.spec import load_scorer, parse_specs
    from tests.scored import score_pictures
    from tests.tiny_models import save_clip

    judge = f"clip:{save_clip(tmp_path / 'clip')}"
    limits = ["--oracle-min", "None", "--oracle-max", "None"]
    output = made.build(tmp_path / "out", "--oracle", judge, *limits)

    scorer = load_scorer(parse_specs(judge)[0])
    images = {row["image_id"]: row["image"]["bytes"] for row in rows(output, "images")}
    samples = rows(output, "samples")
    assert len(samples) == 8
    for row in samples:
        with Image.open(io.BytesIO(images[row["image_id"]])) as crop:
            picture = Picture(key="", pixels=np.asarray(crop))
        found = {score["name"]: score["value"] for score in row["scores"]}
        for which in ("source", "target"):
            texts = [CAPTIONS[row[f"{which}_triplet_id"]]]
            alone = score_pictures(scorer, [picture], texts, np.array([(0, 0)]))
            assert found[f"oracle_1_{which}"] == pytest.approx(alone.probabilities[0], abs=2e-6)


# --- promises


def test_one_query_alone_is_the_same_as_in_the_whole(
    made: Made, whole: Path, tmp_path: Path
) -> None:
    name = "simat/2-102/subject/dog"
    output = made.build(tmp_path / "out", "--only", name)

    assert rows(output, "samples") == [r for r in rows(whole, "samples") if r["sample_id"] == name]
    assert rows(output, "gallery") == [
        r for r in rows(whole, "gallery") if r["region_id"] == "2-102"
    ]
    assert [row["caption_id"] for row in rows(output, "captions")] == sorted([SIT, DOG])
    assert books(output) == {"relations": (1, 1, 0), "queries": (1, 1, 0)}
    assert verify.main([str(output)]) == 0


def test_finished_crops_are_not_cut_again(made: Made, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "data")
    (tmp_path / "out" / "dataset.json").unlink()

    assert dataset_bytes(made.build(tmp_path / "out")) == dataset_bytes(whole)
    assert finished_work(tmp_path / "out", "crop") == finished_work(whole, "crop") != {}


def test_a_limit_takes_whole_images_and_what_asks_for_others_is_a_reject(
    made: Made, tmp_path: Path
) -> None:
    output = made.build(tmp_path / "out", "--limit", "3")
    assert [row["region_id"] for row in rows(output, "gallery")] == ["1-101", "2-102", "3-103"]
    assert reasons(output, "queries") == {"target_without_crop": 2}
    assert verify.main([str(output)]) == 0


# --- input that is not right


def test_poison_images_cost_their_own_regions_alone(made: Made, tmp_path: Path) -> None:
    shutil.copytree(made.folder, tmp_path / "genome")
    pictures = tmp_path / "genome" / "images" / "VG_100K_2"
    (pictures / "1.png").unlink()
    (pictures / "3.png").write_bytes((pictures / "3.png").read_bytes()[:500])
    Image.new("RGB", (50, 40)).save(pictures / "5.png")
    (pictures / "6.png").unlink()
    (pictures / "6.png").symlink_to("/etc/hostname")

    output = Made(tmp_path / "genome").build(tmp_path / "out")

    found = {r["candidate_id"]: r["reason"] for r in rows(output, "rejects")}
    assert {name: reason for name, reason in found.items() if "/" not in name[6:]} == {
        "simat/1-101": "image_missing",
        "simat/3-103": "undecodable_image",
        "simat/5-105": "other_size",
        "simat/6-106": "outside_root",
        "simat/8-108": "too_few_regions",
    }
    assert ids(output) == ["simat/2-102/relation/touching", "simat/4-104/relation/sitting on a"]
    assert found["simat/2-102/subject/dog"] == "target_without_crop"
    assert found["simat/1-101/subject/dog"] == "region_refused"
    assert books(output)["queries"] == (8, 2, 6)
    assert verify.main([str(output)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass one source"),
        (["--relationships", "R", "--retrieval-db", "D"], "pass one source"),
        (["--relationships", "none.json"], "none.json: no such file"),
        (["--relationships", "R", "--images", "I"], "--images"),
        (
            ["--relationships", "R", "--oracle", "blip-itm:I"],
            "blip-itm: this oracle needs images; pass --images",
        ),
        (
            ["--relationships", "R", "--captions", "R"],
            "relationships.json contains captions without triplets",
        ),
        (
            ["--relationships", "R", "--only", "simat/9"],
            "the plan has no region or query 'simat/9'",
        ),
        (["--relationships", "R", "--triplets", "T"], "region 9: expected 'a/b/c' in the source"),
        (["--relationships", "R", "--transfos", "Q"], "a query changes the object 'a'"),
        (["--relationships", "R", "--min-crop-px", "0"], "--min-crop-px 0: expected 1 or more"),
    ],
)
def test_wrong_input_is_one_message_and_status_2(
    made: Made,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    (tmp_path / "t.csv").write_text("region_id,subj,rel,obj\n9,a,b,c\n")
    (tmp_path / "q.csv").write_text(
        "region_id,field,value,target,norm2,is_test\n9,obj,a,b,1,True\n"
    )
    (tmp_path / "empty").mkdir()
    files = {
        "R": made.folder / "relationships.json",
        "D": made.folder / "relationships.json",
        "T": tmp_path / "t.csv",
        "Q": tmp_path / "q.csv",
        "I": tmp_path / "empty",
    }
    if "captions" in message:
        (tmp_path / "relationships.json").write_text("one caption\n")
        arguments = [*arguments[:-1], str(tmp_path / "relationships.json")]
    named = [str(files.get(argument, argument)) for argument in arguments]
    with pytest.raises(SystemExit) as left:
        simat.main([*named, "--output", str(tmp_path / "out")])

    assert left.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# --- the published files


def published(data_folder: Path) -> list[str]:
    folder = data_folder / "simat"
    return [
        *("--retrieval-db", str(folder / "retrieval_db.tsv")),
        *("--triplets", str(folder / "triplets.csv")),
        *("--captions", str(folder / "captions.txt")),
    ]


def test_a_part_of_the_published_queries_is_built_with_its_published_weights(
    data_folder: Path, tmp_path: Path
) -> None:
    transfos = data_folder / "simat" / "transfos_dev.csv"
    arguments = ["--mode", "paper", *published(data_folder), "--transfos", str(transfos)]
    output = tmp_path / "out"
    assert simat.main([*arguments, "--limit", "400", "--output", str(output)]) == 0

    with open(transfos) as stream:
        header, *lines = (line.rstrip().split(",") for line in stream)
    norm2 = {
        (row["region_id"], row["value"], row["target"]): int(row["norm2"])
        for row in (dict(zip(header, line, strict=True)) for line in lines)
    }
    samples = rows(output, "samples")
    assert len(samples) > 50
    for row in samples:
        key = (row["region_id"], row["source_word"], row["target_word"])
        assert row["frequency"] == norm2[key]
        assert row["weight"] == 1 / math.sqrt(norm2[key])
        assert row["split"] == "dev"
    assert {row["origin"] for row in rows(output, "captions")} == {"file"}
    assert set(books(output)) == {"relations", "queries"}
    assert verify.main([str(output)]) == 0
