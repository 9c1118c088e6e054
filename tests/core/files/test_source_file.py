"""The readers of the four annotation formats."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.sources.action_genome import read_action_genome
from eqforge.sources.captioned_videos import read_gebplus, read_youcook2


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def youcook2(**changes: Any) -> dict[str, Any]:
    video = {
        "duration": 20.5,
        "subset": "training",
        "recipe_type": "113",
        "annotations": [{"id": 0, "segment": [1, 4], "sentence": "cut"}],
    }
    return {"database": {"v1": video | changes}}


def test_youcook2_real_file_has_the_published_counts(data_folder: Path) -> None:
    """1,790 videos, 13,829 segments and 89 recipe types, as the paper and its site say."""
    videos = read_youcook2(data_folder / "youcook2" / "youcookii_annotations_trainval.json")

    assert len(videos) == 1_790
    assert sum(len(video.segments) for video in videos) == 13_829
    assert len({video.annotation["recipe_type"] for video in videos}) == 89
    assert sum(video.split == "training" for video in videos) == 1_333


def test_youcook2_segments_keep_their_published_ids(tmp_path: Path) -> None:
    (video,) = read_youcook2(write(tmp_path / "y.json", youcook2()))

    assert (video.video_id, video.split) == ("v1", "training")
    assert [(s.segment_id, s.start_s, s.end_s, s.caption) for s in video.segments] == [
        ("000", 1.0, 4.0, "cut")
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subset": "train"}, "database.v1.subset: expected one of training, validation"),
        ({"annotations": {}}, "database.v1.annotations: expected an array"),
        ({"duration": True}, "database.v1.duration: expected a number"),
        (
            {"annotations": [{"id": 0, "segment": [1], "sentence": "a"}]},
            r"database.v1.annotations\[0\].segment: expected \[start, end\] in seconds",
        ),
        (
            {"annotations": [{"id": 0, "segment": [1, 2]}]},
            r"database.v1.annotations\[0\]: the field 'sentence' is missing",
        ),
        (
            {"annotations": [{"id": 0, "segment": [1, 2], "sentence": "a"}] * 2},
            "the segment id '000' appears twice",
        ),
    ],
)
def test_youcook2_defects_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"y.json: {message}|{message}"):
        read_youcook2(write(tmp_path / "y.json", youcook2(**changes)))


def test_gebplus_real_file_has_the_published_counts(data_folder: Path) -> None:
    videos = read_gebplus(data_folder / "gebplus" / "val.json")

    assert len(videos) == 2_082
    assert sum(len(video.boundaries) for video in videos) == 7_279
    anchors = {(v.video_id, b.number) for v in videos for b in v.boundaries}
    assert len(anchors) == 6_751


def test_gebplus_boundaries_are_ordered_and_carry_number_and_annotator(tmp_path: Path) -> None:
    record = {
        "timestamp": 2.0,
        "prev_timestamp": 0,
        "next_timestamp": 3.5,
        "label": "Change of Action",
        "subject": "man",
        "status_before": "sits",
        "status_after": "stands",
    }
    names = ["v_x_1A", "v_x_0B", "v_x_0A"]
    file = write(tmp_path / "g.json", {"v_x": [record | {"boundary_id": name} for name in names]})

    (video,) = read_gebplus(file)

    assert [(b.number, b.annotator) for b in video.boundaries] == [(0, "A"), (0, "B"), (1, "A")]


def test_gebplus_boundary_of_another_video_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "g.json", {"v": [{"boundary_id": "w_0A"}]})

    with pytest.raises(InputError, match=r"g\.json: v\[0\]\.boundary_id: expected v_<number>"):
        read_gebplus(file)


def ag_object(**changes: Any) -> dict[str, Any]:
    return {
        "class": "closet/cabinet",
        "bbox": (1.0, 2.0, 3.0, 4.0),
        "attention_relationship": ["looking_at"],
        "spatial_relationship": ["in_front_of"],
        "contacting_relationship": ["touching"],
        "metadata": {"tag": "t", "set": "train"},
        "visible": True,
    } | changes


def pickled(path: Path, value: Any) -> Path:
    path.write_bytes(pickle.dumps(value, protocol=4))
    return path


def test_action_genome_boxes_keep_their_conventions_and_frames_their_order(tmp_path: Path) -> None:
    objects = {"V.mp4/000009.png": [ag_object()], "V.mp4/000002.png": [ag_object()]}
    persons = {
        "V.mp4/000002.png": {
            "bbox": np.array([[5, 6, 70, 80]], dtype=np.float32),
            "bbox_mode": "xyxy",
        }
    }

    (video,) = read_action_genome(
        pickled(tmp_path / "o.pkl", objects), pickled(tmp_path / "p.pkl", persons)
    )

    assert [frame.number for frame in video.frames] == [2, 9]
    assert video.frames[0].person_boxes_xyxy == ((5.0, 6.0, 70.0, 80.0),)
    assert video.frames[1].person_boxes_xyxy == ()
    assert video.frames[0].objects[0].box_xywh == (1.0, 2.0, 3.0, 4.0)


def test_action_genome_invisible_objects_have_no_relations(tmp_path: Path) -> None:
    nothing = dict.fromkeys(
        ("bbox", "attention_relationship", "spatial_relationship", "contacting_relationship")
    )
    objects = {"V.mp4/000001.png": [ag_object(visible=False, **nothing)]}

    (video,) = read_action_genome(pickled(tmp_path / "o.pkl", objects))

    (found,) = video.frames[0].objects
    assert (found.visible, found.box_xywh, found.attention) == (False, None, ())


def test_action_genome_frame_list_chooses_frames(tmp_path: Path) -> None:
    objects = {f"V.mp4/{number:06d}.png": [ag_object()] for number in (1, 2, 3)}
    listed = tmp_path / "frame_list.txt"
    listed.write_text("V.mp4/000002.png\n\n", encoding="utf-8")

    (video,) = read_action_genome(pickled(tmp_path / "o.pkl", objects), frame_list=listed)

    assert [frame.number for frame in video.frames] == [2]


@pytest.mark.parametrize(
    ("key", "found", "message"),
    [
        ("V.mp4", ag_object(), "V.mp4: expected a key such as"),
        ("../V.mp4/000001.png", ag_object(), "expected a key such as"),
        ("V.mp4/000001.png", ag_object(visible=1), "visible: expected true or false"),
        ("V.mp4/000001.png", ag_object(bbox=None), "the object is visible, but has no bbox"),
        ("V.mp4/000001.png", ag_object(bbox=(1, 2)), "bbox: expected four numbers"),
        ("V.mp4/000001.png", ag_object(spatial_relationship="in"), "expected an array"),
    ],
)
def test_action_genome_defects_are_named(
    tmp_path: Path, key: str, found: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_action_genome(pickled(tmp_path / "o.pkl", {key: [found]}))


def test_action_genome_real_samples_are_read(data_folder: Path) -> None:
    samples = data_folder / "action_genome" / "samples"

    videos = read_action_genome(
        samples / "object_bbox_and_relationship.sample.pkl", samples / "person_bbox.sample.pkl"
    )

    assert [video.video for video in videos] == ["0KER3.mp4", "50N4E.mp4", "E546V.mp4", "Q8XEE.mp4"]
    book, *_ = videos[0].frames[0].objects
    assert (book.name, book.attention, book.contacting) == (
        "book",
        ("looking_at",),
        ("not_contacting",),
    )
