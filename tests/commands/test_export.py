import hashlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from eqforge.generators.text.hard_positives.published import PUBLISHED_GROUPS
from eqforge.pipelines import hard_positives
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.text_pairs import read_text_pairs, with_hard_positives
from eqforge.transforms.export.note import NOTE
from eqforge.transforms.text.image_texts import FOLDERS
from tests.builds import PUBLISHED_LEXICON
from tests.exported import check_note, files, run, small

# (file of VL-CheckList, image, caption, negative), in an order in which neither ids nor captions
# sort; what the published rule makes of each is derived in test_hard_positives_published.py.
RECORDS = [
    ("Attribute/vg/state", "VG_100K/9.jpg", "old dog", "new dog"),
    ("Attribute/vg/color", "VG_100K_2/8.jpg", "covered red barn", "covered tan barn"),
    ("Attribute/vg/color", "VG_100K/7.jpg", "café with red door", "café with tan door"),
    ("Relation/vg/action", "VG_100K/6.jpg", "woman WEARING A cap", "woman eating cap"),
    ("Relation/vg/spatial", "VG_100K/5.jpg", "hole in the IN house", "hole in the off house"),
    ("Relation/vg/spatial", "VG_100K/4.jpg", "cup IN sink", "cup off sink"),
]
EXPECTED = {
    "data/vl_checklist_attributes.json": (
        '[{"image_id": "8", "true_caption": "covered red barn", '
        '"false_caption": "covered tan barn", "image_path": "data/VG_100K_2/8.jpg"}, '
        '{"image_id": "7", "true_caption": "caf\\u00e9 with red door", '
        '"false_caption": "caf\\u00e9 with tan door", "image_path": "data/VG_100K/7.jpg"}, '
        '{"image_id": "9", "true_caption": "old dog", "false_caption": "new dog", '
        '"image_path": "data/VG_100K/9.jpg"}]'
    ),
    "swapped_data/vl_checklist_relations.json": (
        '[{"image_id": "5", "true_caption": "hole within the in house", '
        '"false_caption": "hole in the off house", "image_path": "data/VG_100K/5.jpg"}, '
        '{"image_id": "4", "true_caption": "cup within sink", "false_caption": "cup off sink", '
        '"image_path": "data/VG_100K/4.jpg"}, '
        '{"image_id": "5", "true_caption": "hole within the in house", '
        '"false_caption": "hole in the off house", "image_path": "data/VG_100K/5.jpg"}, '
        '{"image_id": "6", "true_caption": "woman in a cap", "false_caption": "woman eating cap", '
        '"image_path": "data/VG_100K/6.jpg"}]'
    ),
}


def make_checklist(folder: Path) -> Path:
    """Writes the records as a VL-CheckList folder."""
    for kind, groups in PUBLISHED_GROUPS.items():
        for group in groups:
            path = folder / FOLDERS[kind] / f"{group}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            found = [r for r in RECORDS if f"{r[0]}.json" == str(path.relative_to(folder))]
            content = [[image, {"POS": [pos], "NEG": [neg]}] for _, image, pos, neg in found]
            path.write_text(json.dumps(content))
    return folder


def build(output: Path, *arguments: object) -> Path:
    assert hard_positives.main([*map(str, arguments), "--output", str(output)]) == 0
    return output


def write(dataset: Path, output: Path, *arguments: str) -> dict[str, bytes]:
    check_note(run(dataset, "vl-checklist", output, *arguments))
    return {name: data for name, data in files(output).items() if name != NOTE}


def refused(capsys: pytest.CaptureFixture[str], dataset: Path, output: Path) -> str:
    with pytest.raises(SystemExit) as left:
        write(dataset, output)
    assert left.value.code == 2
    return capsys.readouterr().err


def test_paper_mode_gives_the_published_form_in_the_published_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checklist = make_checklist(tmp_path / "vl")
    dataset = build(tmp_path / "out", "--vl-checklist", checklist, "--mode", "paper")
    capsys.readouterr()

    found = write(dataset, tmp_path / "files")

    assert sorted(found) == sorted(
        f"{folder}/vl_checklist_{kind}s.json"
        for folder in ("data", "swapped_data")
        for kind in ("attribute", "relation")
    )
    assert {name: found[name].decode() for name in EXPECTED} == EXPECTED
    relations = json.loads(found["data/vl_checklist_relations.json"])
    assert [entry["true_caption"] for entry in relations] == [
        "hole in the in house",
        "cup in sink",
        "hole in the in house",
        "woman wearing a cap",
    ]
    printed = capsys.readouterr().out
    assert f"{tmp_path}/files/data/vl_checklist_relations.json: 4 records" in printed


def test_the_real_checklist_gives_the_four_published_files(
    data_folder: Path, tmp_path: Path
) -> None:
    """SHA-256 of the authors' data/ and swapped_data/; 10,575 and 16,868 records."""
    source = data_folder / "vl_checklist" / "data"
    dataset = build(tmp_path / "out", "--vl-checklist", source, "--mode", "paper")

    found = write(dataset, tmp_path / "files")

    published = {
        "data/vl_checklist_attributes.json": (
            10_575,
            1_522_662,
            "4c7d262e77e1a1fd5a89ee0de43191fe697d4cf1c044e76c496761f07d824950",
        ),
        "data/vl_checklist_relations.json": (
            16_868,
            2_484_434,
            "f4aee47194df09f73c4bdb13e2f24c17901d71fbb15ab629b40c8667a841d535",
        ),
        "swapped_data/vl_checklist_attributes.json": (
            10_575,
            1_535_707,
            "7f6d2f2614ff8a037780ab4b6243c6e1165ceabc5e4db506ad70c63fd95f6441",
        ),
        "swapped_data/vl_checklist_relations.json": (
            16_868,
            2_499_572,
            "25174b3f0286c124cd7c2c844c1e57bb85179e37cdee0d55fc2857387dede9b5",
        ),
    }
    assert {
        name: (len(json.loads(data)), len(data), hashlib.sha256(data).hexdigest())
        for name, data in found.items()
    } == published

    errata = tmp_path / "errata.jsonl"  # as the guide to errata has them
    named = ["--errata", str(errata), "--errata-kinds", "duplicate", "negative_equals_positive"]
    assert main(["lint", str(dataset), *named]) == 1
    dropped = [json.loads(line) for line in errata.read_text().splitlines()]
    reasons = Counter(each["reason"].partition(":")[0] for each in dropped)
    assert reasons == {"duplicate": 1_589, "negative_equals_positive": 15}
    assert len({each["id"] for each in dropped}) == 27_443 - 25_839


def test_files_of_the_published_form_come_back_byte_for_byte(tmp_path: Path) -> None:
    """Boxes and fields without a column too, in an order in which neither ids nor captions sort."""
    box: dict[str, Any] = {"bbox_x": 3, "bbox_y": -4, "bbox_w": 10, "bbox_h": 9}
    for name in ("b", "A-b"):
        records = [
            {
                "a": None,
                "image_id": number,
                "source_order": "own",
                "true_caption": f"é {name} {number % 7}",
            }
            | {"false_caption": "x", "image_path": f"data/VG/{number % 3}.jpg"}
            | (box if name == "b" else dict[str, Any]())
            for number in random.Random(name).sample(range(30), 30)
        ]
        for folder, word in (("data", ""), ("swapped_data", "not ")):
            texts = [r | {"true_caption": f"{word}{r['true_caption']}"} for r in records]
            path = tmp_path / "source" / folder / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(texts))
    source = files(tmp_path / "source")
    command = ["import", "replace-swap", str(tmp_path / "source"), "--output"]
    assert main([*command, str(tmp_path / "out"), "--samples-per-file", "7"]) == 0

    assert write(tmp_path / "out", tmp_path / "files") == source


def test_corrected_mode_gives_its_rows_as_they_are(tmp_path: Path) -> None:
    checklist = make_checklist(tmp_path / "vl")
    dataset = build(tmp_path / "out", "--vl-checklist", checklist, "--lexicon", PUBLISHED_LEXICON)

    found = write(dataset, tmp_path / "files")

    attributes = json.loads(found["swapped_data/vl_checklist_attributes.json"])
    assert [(entry["image_id"], entry["true_caption"]) for entry in attributes] == [
        ("8", "covered crimson barn"),
        ("7", "café with crimson door"),
        ("9", "aged dog"),
    ]


def test_text_pairs_come_in_their_own_order_and_are_read_back(tmp_path: Path) -> None:
    pairs: list[dict[str, Any]] = [
        {
            "id": name,
            "image": f"{name}.jpg",
            "caption": f"the {name} and the dog",
            "hard_negative": f"the {name} and no dog",
            **({"bbox_x": 3, "bbox_y": -4, "bbox_w": 10, "bbox_h": 9} if name == "apple" else {}),
        }
        for name in ("zebra", "apple", "horse", *(f"thing {number}" for number in range(12)))
    ]
    source = tmp_path / "pairs.json"
    source.write_text(json.dumps(pairs))
    dataset = build(tmp_path / "out", "--pairs", source)

    write(dataset, tmp_path / "files")

    original = read_text_pairs(tmp_path / "files" / "data" / "text_pairs.json")
    swapped = read_text_pairs(tmp_path / "files" / "swapped_data" / "text_pairs.json")
    found = [
        (pair.image, pair.positive, pair.negative, pair.hard_positive)
        for pair in with_hard_positives(original, swapped)
    ]
    swapped = read_text_pairs(tmp_path / "files" / "swapped_data" / "text_pairs.json")
    apple = CornerBox(x0=3, y0=-4, x1=13, y1=5)
    assert [pair.box for pair in swapped] == [None, apple, *[None] * 13]
    assert found == [
        (p["image"], p["caption"], p["hard_negative"], f"the dog and {p['caption'][:-12]}")
        for p in pairs
    ]


def test_another_export_is_replaced_only_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checklist = make_checklist(tmp_path / "vl")
    published = ("--vl-checklist", checklist, "--mode", "paper")
    both = build(tmp_path / "both", *published)
    one = build(tmp_path / "one", *published, "--kinds", "attribute")
    before = write(both, tmp_path / "files")

    message = refused(capsys, one, tmp_path / "files")
    assert "already contains an export of hard-positives as vl-checklist, made from" in message
    assert "pass --overwrite to replace it" in message
    below = tmp_path / "files" / "data" / "vl_checklist_relations.json"
    assert f"--output {below}: cannot be written: Not a directory" in refused(capsys, one, below)
    assert write(both, tmp_path / "files") == before
    assert write(both, tmp_path / "files", "--overwrite") == before

    after = write(one, tmp_path / "files", "--overwrite")
    assert after == {name: data for name, data in before.items() if "attributes" in name}


def test_what_cannot_be_exported_is_one_message_and_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "pairs.jsonl"
    source.write_text(json.dumps({"image": "1.jpg", "caption": "a cat", "hard_negative": "dogs"}))
    empty = build(tmp_path / "empty", "--pairs", source)
    assert "the table 'samples' has no rows to export" in refused(capsys, empty, tmp_path / "files")

    other = small(tmp_path / "pairs")
    message = refused(capsys, other, tmp_path / "files")
    assert "--format vl-checklist: the table 'samples' has no column" in message
    assert f"{tmp_path}/none" in refused(capsys, tmp_path / "none", tmp_path / "files")
    assert not (tmp_path / "files").exists()
