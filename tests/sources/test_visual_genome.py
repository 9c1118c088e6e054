import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.visual_genome import (
    ImageData,
    Relation,
    read_aliases,
    read_image_data,
    read_relationships,
    read_scene_graphs,
)


def thing(number: int, name: str, **changes: Any) -> dict[str, Any]:
    return {"object_id": number, "name": name, "x": 1, "y": 2, "w": 30, "h": 40} | changes


BETWEEN = {
    "relationship_id": 7,
    "predicate": "sitting on",
    "subject": thing(1, "man"),
    "object": {"object_id": 2, "names": ["bench", "seat"], "x": 5, "y": 6, "w": 7, "h": 8},
}
RELATION = Relation(
    image_id=3,
    relationship_id=7,
    subject="man",
    predicate="sitting on",
    object="bench",
    subject_box=CornerBox(x0=1, y0=2, x1=31, y1=42),
    object_box=CornerBox(x0=5, y0=6, x1=12, y1=14),
)


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_both_files_give_the_same_relations(tmp_path: Path) -> None:
    relationships = [
        {"image_id": 3, "relationships": [BETWEEN]},
        {"image_id": 4} | {"relationships": []},
    ]
    graph = {
        "image_id": 3,
        "objects": [BETWEEN["subject"], BETWEEN["object"]],
        "relationships": [
            {"relationship_id": 7, "predicate": "sitting on", "subject_id": 1, "object_id": 2}
        ],
    }
    one = read_relationships(write(tmp_path / "relationships.json", relationships))
    other = read_scene_graphs(write(tmp_path / "scene_graphs.json", [graph]))
    assert list(one) == list(other) == [RELATION]


def test_the_union_of_two_boxes_holds_both_and_no_more() -> None:
    union = RELATION.subject_box.union(CornerBox(x0=20, y0=-4, x1=50, y1=10))
    assert union == CornerBox(x0=1, y0=-4, x1=50, y1=42)
    assert (union.width, union.height) == (49, 46)


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        (read_relationships, "{}", "file.json: expected a list"),
        (read_relationships, "[1, 2", "file.json: not valid JSON"),
        (read_relationships, [{"image_id": 1}], "file.json: [0]: the field "),
        (
            read_relationships,
            [{"image_id": 1, "relationships": [BETWEEN | {"subject": thing(1, "a", w=1e30)}]}],
            "relationships[0].subject.w",
        ),
        (
            read_scene_graphs,
            [
                {
                    "image_id": 1,
                    "objects": [thing(5, "man")],
                    "relationships": [
                        {"relationship_id": 9, "predicate": "x", "subject_id": 5, "object_id": 6}
                    ],
                }
            ],
            "[0]: the relation 9 refers to the object 6",
        ),
    ],
)
def test_what_is_not_visual_genome_is_one_error_that_says_where(
    tmp_path: Path, reader: Callable[[Path], Iterator[Relation]], content: Any, message: str
) -> None:
    path = write(tmp_path / "file.json", content)
    with pytest.raises(InputError, match=re.escape(message)):
        list(reader(path))


def test_image_data_has_the_path_in_the_archives(tmp_path: Path) -> None:
    url = "https://cs.stanford.edu/people/rak248/VG_100K_2/1.jpg"
    images = [
        {"image_id": 1, "width": 800, "height": 600, "url": url, "coco_id": None},
        {"image_id": 2, "width": 10, "height": 20},
    ]
    assert read_image_data(write(tmp_path / "image_data.json", images)) == {
        "1": ImageData(width_px=800, height_px=600, path="VG_100K_2/1.jpg"),
        "2": ImageData(width_px=10, height_px=20, path="2.jpg"),
    }
    with pytest.raises(InputError, match="the image 1 appears twice"):
        read_image_data(write(tmp_path / "image_data.json", [images[0], images[0]]))


def test_the_first_name_of_a_line_stands_for_the_others(tmp_path: Path) -> None:
    path = write(tmp_path / "alias.txt", "sofa,couch,a sofa\n\nseat,couch\n")
    aliases = read_aliases(path, lambda name: name.strip().removeprefix("a "))
    assert aliases == {"sofa": "sofa", "couch": "sofa", "seat": "seat"}


def test_the_excerpt_of_the_real_file_reads(data_folder: Path, tmp_path: Path) -> None:
    """Both ways in which version 1.4 names a box: `name` and `names`."""
    sample = data_folder / "visual_genome" / "samples" / "vg_image1_excerpt.json"
    content = json.loads(sample.read_text())["relationships_json"]
    found = list(read_relationships(write(tmp_path / "relationships.json", content)))
    assert [(r.subject, r.predicate, r.object) for r in found] == [
        ("shade", "ON", "sidewalk"),
        ("bikes", "near", "tree"),
    ]
    assert found[0].object_box == CornerBox(x0=78, y0=308, x1=800, y1=598)
