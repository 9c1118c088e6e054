import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.text_pairs import TextPair, read_text_pairs, with_hard_positives


def _write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def _named(image: str, record: object) -> str:
    """The id of a record without one: its image and 12 digits of the SHA-256 of its JSON."""
    data = json.dumps(record, sort_keys=True).encode()
    return f"{image}#{hashlib.sha256(data).hexdigest()[:12]}"


def test_vl_checklist_pairs_are_taken_caption_by_caption(tmp_path: Path) -> None:
    content = [
        ["VG_100K/1.jpg", {"POS": ["big dog"], "NEG": ["small dog"]}],
        ["milking_22.jpg", {"POS": ["a", "b"], "NEG": ["c", "d"]}],
    ]
    first, second = _named("VG_100K/1.jpg", content[0]), _named("milking_22.jpg", content[1])
    assert list(read_text_pairs(_write(tmp_path, "size.json", content))) == [
        TextPair(pair_id=first, image="VG_100K/1.jpg", positive="big dog", negative="small dog"),
        TextPair(pair_id=f"{second}/0", image="milking_22.jpg", positive="a", negative="c"),
        TextPair(pair_id=f"{second}/1", image="milking_22.jpg", positive="b", negative="d"),
    ]


def test_aro_pairs_keep_the_relation_as_their_kind(tmp_path: Path) -> None:
    content = [
        {
            "image_id": 2339079,
            "image_path": "2339079.jpg",
            "relation_name": "on",
            "bbox_x": 3,
            "bbox_y": -4,
            "bbox_w": 10.4,
            "bbox_h": 20,
            "true_caption": "the cup is on the table",
            "false_caption": "the table is on the cup",
        }
    ]
    assert list(read_text_pairs(_write(tmp_path, "visual_genome_relation.json", content))) == [
        TextPair(
            pair_id=_named("2339079.jpg", content[0]),
            image="2339079.jpg",
            positive="the cup is on the table",
            negative="the table is on the cup",
            kind="on",
            box=CornerBox(x0=3, y0=-4, x1=13, y1=16),
        )
    ]


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ({"bbox_x": 3, "bbox_y": 4, "bbox_w": 5}, "the field 'bbox_h' is missing"),
        ({"bbox_x": 3, "bbox_y": 4, "bbox_w": 1e300, "bbox_h": 6}, "expected a box within"),
    ],
)
def test_half_a_box_is_one_clear_error(
    tmp_path: Path, box: dict[str, object], message: str
) -> None:
    record = {"image_path": "1.jpg", "true_caption": "a dog", "false_caption": "a cat"}
    with pytest.raises(InputError, match=re.escape(message)):
        list(read_text_pairs(_write(tmp_path, "pairs.json", [record | box])))


def test_sugar_crepe_and_its_successor(tmp_path: Path) -> None:
    record = {"filename": "1.jpg", "caption": "a dog", "negative_caption": "a cat"}
    expected = TextPair(pair_id="7", image="1.jpg", positive="a dog", negative="a cat")
    assert list(read_text_pairs(_write(tmp_path, "a.json", {"7": record}))) == [expected]
    second = _write(tmp_path, "b.json", [record | {"caption2": "one dog"}])
    assert [pair.hard_positive for pair in read_text_pairs(second)] == ["one dog"]


def test_valse_pairs_are_named_by_their_key(tmp_path: Path) -> None:
    record = {
        "image_file": "v7w_1.jpg",
        "linguistic_phenomena": "existence",
        "caption": "There are no people.",
        "foil": "There are people.",
        "mturk": {"foil": 0, "caption": 3, "other": 0},
    }
    (found,) = read_text_pairs(_write(tmp_path, "existence.json", {"existence_1": record}))
    assert found == TextPair(
        pair_id="existence_1",
        image="v7w_1.jpg",
        positive="There are no people.",
        negative="There are people.",
        kind="existence",
    )
    broken = _write(tmp_path, "broken.json", {"existence_1": record | {"foil": None}})
    with pytest.raises(InputError, match=r"existence_1\.foil: expected a string"):
        list(read_text_pairs(broken))


def test_winoground_samples_become_one_pair_per_image(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text(
        '{"id": 4, "image_0": "ex_4_img_0", "image_1": "ex_4_img_1", "caption_0": "x", '
        '"caption_1": "y", "tag": "Object"}\n'
    )
    common: dict[str, Any] = {"kind": "Object", "design": "two_by_two"}
    assert list(read_text_pairs(path)) == [
        TextPair(pair_id="4/0", image="ex_4_img_0", positive="x", negative="y", **common),
        TextPair(pair_id="4/1", image="ex_4_img_1", positive="y", negative="x", **common),
    ]


_TWO = {"caption_0", "caption0"}
EQBEN = {"image0": "v/0.png", "image1": "v/1.png", "caption0": "a cat", "caption1": "a dog"}


@pytest.mark.parametrize(
    "content",
    [
        [EQBEN | {"private_info": {"dataset": "eqbensd"}}],
        {"v": [EQBEN], "none": []},
        {"v": {"person/door": [EQBEN | {"caption0": ["a cat", "x"], "caption1": ["a dog"]}]}},
    ],
    ids=["kubric", "gebc", "ag"],
)
def test_eqben_is_read_in_each_form_of_its_loaders(tmp_path: Path, content: object) -> None:
    first, second = read_text_pairs(_write(tmp_path, "ann.json", content))
    name = first.pair_id.removesuffix("/0")
    assert name.startswith("v/0.png#")
    common: dict[str, Any] = {"design": "two_by_two"}
    assert (first, second) == (
        TextPair(
            pair_id=f"{name}/0", image="v/0.png", positive="a cat", negative="a dog", **common
        ),
        TextPair(
            pair_id=f"{name}/1", image="v/1.png", positive="a dog", negative="a cat", **common
        ),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"v": {"s": [EQBEN | {"caption0": []}]}}, "v.s[0].caption0: expected a caption"),
        ({"v": [EQBEN, {"image0": "x"}]}, "v[1]: found only 'image0'; expected the fields "),
        ({"v": {}}, "v: found no fields; expected the fields "),
    ],
)
def test_what_is_no_annotation_of_eqben_is_one_error(
    tmp_path: Path, content: object, message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        list(read_text_pairs(_write(tmp_path, "ann.json", content)))


def test_a_dataset_folder_is_read_from_its_parquet_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for part, sample_id in enumerate(("a", "b")):
        row = {
            "sample_id": [sample_id],
            "image_id": ["ff"],
            "caption": ["a dog"],
            "hard_positive": [None if part else "one dog"],
            "hard_negative": ["a cat"],
            "image": [None],
            "scores": [[1.0]],
        }
        table = pa.table(row, schema=None)
        pq.write_table(table, tmp_path / "data" / f"samples-0000{part}-of-00002.parquet")
    common: dict[str, Any] = {"image": "ff", "positive": "a dog", "negative": "a cat"}
    assert list(read_text_pairs(tmp_path)) == [
        TextPair(pair_id="a", hard_positive="one dog", **common),
        TextPair(pair_id="b", **common),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [{"image": "a", "text": "b"}],
            "f.json: [0]: found only 'image' and 'text'; expected the fields ",
        ),
        ([{"filename": 3, "caption": "x", "negative_caption": "y"}], "[0].filename: expected a st"),
        ([["a.jpg", {"POS": ["x"], "NEG": []}]], "[0][1]: expected equal numbers of POS and NEG"),
        ([["a.jpg"]], "[0]: expected an array with an image and its captions"),
        (3, "expected an array"),
    ],
)
def test_bad_records_are_one_error_that_names_record_and_field(
    tmp_path: Path, content: object, message: str
) -> None:
    path = _write(tmp_path, "f.json", content)
    with pytest.raises(InputError, match=re.escape(message)):
        list(read_text_pairs(path))


def test_an_id_that_stands_twice_and_half_a_surrogate_pair_are_one_error(tmp_path: Path) -> None:
    pair = {"id": "x", "image": "a.jpg", "caption": "a cat", "hard_negative": "a dog"}
    with pytest.raises(InputError, match=r"f\.json: the id 'x' appears twice"):
        list(read_text_pairs(_write(tmp_path, "f.json", [pair, pair])))
    with pytest.raises(InputError, match=r"g\.json: \[0\]\.caption: expected valid Unicode"):
        list(read_text_pairs(_write(tmp_path, "g.json", [pair | {"caption": "a \ud800 cat"}])))


def test_rows_of_a_dataset_that_say_the_same_are_told_apart_over_its_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for part in range(2):
        table = pa.table({"caption": ["a dog"], "hard_negative": ["a cat"], "image": ["a.jpg"]})
        pq.write_table(table, tmp_path / "data" / f"samples-0000{part}-of-00002.parquet")
    name = _named("a.jpg", {"caption": "a dog", "hard_negative": "a cat", "image": "a.jpg"})
    assert [pair.pair_id for pair in read_text_pairs(tmp_path)] == [name, f"{name}-2"]


@pytest.mark.parametrize("suffix", ["json", "jsonl", "lines.json"])
@pytest.mark.parametrize(
    "record",
    [
        lambda i: [f"{i}.jpg", {"POS": [f"big dog {i}"], "NEG": ["small dog"]}],
        lambda i: {"image_path": f"{i}.jpg", "true_caption": "a b", "false_caption": f"b {i}"},
        lambda i: {"filename": f"{i}.jpg", "caption": "a", "negative_caption": f"b {i}"},
        lambda i: {"image_file": f"{i}.jpg", "caption": "a", "foil": f"b {i}"},
        lambda i: {"caption_0": f"a {i}", "caption_1": "b"},
        lambda i: EQBEN | {"caption0": f"a {i}"},
        lambda i: {"image": "a.jpg", "caption": f"a {i}", "hard_negative": "b"},
    ],
    ids=["vl-checklist", "aro", "sugar-crepe", "valse", "winoground", "eqben", "own"],
)
def test_no_id_depends_on_where_a_record_stands(
    record: Callable[[int], Any], suffix: str, tmp_path: Path
) -> None:
    """Half of the records appear twice."""
    records = [record(i // 2) for i in range(8)] + [record(i) for i in range(10, 15)]
    found = []
    for order in (records, records[::-1], sorted(records, key=str, reverse=True)):
        path = tmp_path / f"pairs.{suffix}"
        lines = "".join(json.dumps(each) + "\n" for each in order)
        path.write_text(json.dumps(order) if suffix == "json" else lines)
        pairs = read_text_pairs(path)
        found.append(sorted((p.pair_id, p.image, p.positive, p.negative) for p in pairs))
    assert found[0] == found[1] == found[2]
    assert (
        len(set(found[0]))
        == len(found[0])
        == len(records) * (2 if isinstance(records[0], dict) and _TWO & records[0].keys() else 1)
    )


def test_hard_positives_of_a_second_file_are_joined_by_position_and_image() -> None:
    def pair(image: str, positive: str) -> TextPair:
        return TextPair(pair_id="0", image=image, positive=positive, negative="n")

    joined = with_hard_positives([pair("i", "big dog")], [pair("i", "large dog")])
    assert [found.hard_positive for found in joined] == ["large dog"]
    with pytest.raises(InputError, match="has the image 'j', but the pairs file has 'i'"):
        list(with_hard_positives([pair("i", "x")], [pair("j", "y")]))
    with pytest.raises(InputError, match="the file ends before record '0' of the pairs file"):
        list(with_hard_positives([pair("i", "x")], []))
    with pytest.raises(InputError, match="the pairs file has no such record"):
        list(with_hard_positives([], [pair("i", "x")]))


@pytest.mark.parametrize("mark", [",", "\t"])
def test_tables_are_read_by_their_columns(mark: str, tmp_path: Path) -> None:
    path = tmp_path / ("x.csv" if mark == "," else "x.tsv")
    path.write_text(
        "\n".join(["id,image,caption,hard_negative", "7,a.png,一只狗,人"]).replace(",", mark)
    )
    (pair,) = read_text_pairs(path)
    assert (pair.pair_id, pair.image, pair.positive, pair.negative) == (
        "7",
        "a.png",
        "一只狗",
        "人",
    )
    path.write_text("left,right\na,b\n".replace(",", mark))
    with pytest.raises(InputError, match="line 2: found only 'left' and 'right'; "):
        list(read_text_pairs(path))
