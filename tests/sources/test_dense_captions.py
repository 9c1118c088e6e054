"""Published forms of dense captions are read as they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.sources.captioned_videos import CaptionedVideo, read_youcook2
from eqforge.sources.video_captions import read_captioned_videos

STEPS = [(90.0, 102.0, "spread it."), (114.5, 127.0, "flip it.")]
PROMPT = {"from": "human", "value": "<video>\nDescribe the steps from 0:00 to 2:00."}


def conversation(answer: str, **fields: Any) -> list[dict[str, Any]]:
    turns = [PROMPT, {"from": "gpt", "value": answer}]
    return [{"video": "v", "conversations": turns} | fields]


FORMS: dict[str, Any] = {
    "ActivityNet Captions": {
        "v": {
            "duration": 241.62,
            "timestamps": [[90, 102], [114.5, 127]],
            "sentences": ["spread it.", " flip it. "],
        }
    },
    "YouCook2": {
        "database": {
            "v": {
                "duration": 241.62,
                "subset": "training",
                "annotations": [
                    {"segment": [90, 102], "id": 0, "sentence": "spread it."},
                    {"segment": [114.5, 127], "id": 1, "sentence": "flip it."},
                ],
            }
        }
    },
    "an array": [
        {"video_id": "v", "timestamps": [s[:2] for s in STEPS], "sentences": [s[2] for s in STEPS]}
    ],
    "TimeIT": conversation("90.0 - 102.0 seconds, spread it. 114.5 - 127.0 seconds, flip it."),
    "LLaVA-Video": conversation("From 1:30 to 1:42, spread it.\nFrom 1:54.5 to 2:07, flip it."),
    "VTimeLLM": conversation(
        "From <s0> to <e0>, spread it. From <s1> to <e1>, flip it.",
        meta={"duration": 241, "token": {"<s0>": 90, "<e0>": 102, "<s1>": 114.5, "<e1>": 127.0}},
    ),
}


def read(path: Path, content: Any, share: float = 0.0) -> list[CaptionedVideo]:
    path.write_text(json.dumps(content), encoding="utf-8")
    return read_captioned_videos(path, share)


@pytest.mark.parametrize("form", FORMS)
def test_a_published_form_is_read_as_it_is(tmp_path: Path, form: str) -> None:
    (video,) = read(tmp_path / "c.json", FORMS[form])
    assert (video.video, video.refused) == ("v", ())
    assert sorted((s.start_s, s.end_s, s.caption) for s in video.segments) == STEPS


def test_other_facts_of_the_video_are_kept(tmp_path: Path) -> None:
    (video,) = read(tmp_path / "c.json", FORMS["YouCook2"])
    assert video.split == "training"
    assert [(s.segment_id, s.annotation) for s in video.segments] == [
        ("0", {"duration": "241.62"}),
        ("1", {"duration": "241.62"}),
    ]


def test_both_files_of_ego4d_are_read(tmp_path: Path) -> None:
    """Field names as in its narration.json and all_narrations_redacted.json."""
    first = {"timestamp_sec": 1.5, "timestamp_frame": 45, "narration_text": "#C C lifts a cup"}
    second = {"timestamp_sec": 3.0, "timestamp_frame": 90, "narration_text": "#C C puts it down"}
    summaries = [{"start_sec": 0.0, "end_sec": 300.0, "summary_text": "#Summary C drinks"}]
    passes = {
        "narration_pass_1": {"narrations": [first], "summaries": summaries},
        "narration_pass_2": {"narrations": [second], "summaries": summaries},
    }
    times = [
        {"time": each["timestamp_sec"], "text": each["narration_text"]} for each in (first, second)
    ]
    redacted = {"videos": {"u": {"narrations": times, "summaries": [], "status": "complete"}}}
    for content in ({"u": passes}, redacted):
        (video,) = read(tmp_path / "c.json", content)
        assert [(s.start_s, s.caption) for s in video.segments] == [
            (1.5, "#C C lifts a cup"),
            (3.0, "#C C puts it down"),
        ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"v": {"timestamps": [[0, 1]], "sentences": []}}, "video 1: sentences: expected as many "
         r"sentences as timestamps \(1\), found 0"),
        ({"v": {"timestamps": [[0, 1]]}}, "video 1: the field 'sentences' is missing"),
        ({"database": {"v": {"annotations": [{"segment": [0, 1], "label": "x"}]}}},
         r"video 1: annotations\[0\]: the field 'sentence' is missing; found only 'label' and 's"),
        ({"v": {"captions": []}}, "expected timestamps and sentences, annotations, narrations, or"),
        ({"videos": [{"video_uid": "u"}]}, "videos: expected an object, found the array"),
        (conversation("A man walks through a park."), r"entry 1: conversations\[1\]\.value: "
         "expected a time before the caption"),
        (conversation("From 0 to 2, a man. 2 dogs run."), "expected a time before the caption"),
        (conversation("From 0 to 2, a man.", meta={"split": [9, 20]}), "meta.split: expected no "
         "split, because its times may count"),
    ],
)  # fmt: skip
def test_another_form_is_an_error_that_says_what_is_expected(
    tmp_path: Path, content: Any, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path / "c.json", content)


def test_a_bad_video_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = {"w": {"timestamps": [[0, 1]], "sentences": []}}
    backwards = {"x": {"timestamps": [[0, 2], [5, 4]], "sentences": ["a", "b"]}}
    videos = read(tmp_path / "c.json", FORMS["ActivityNet Captions"] | bad | backwards, share=0.01)
    assert [(v.video, len(v.segments), len(v.refused)) for v in videos] == [
        ("v", 2, 0), ("w", 0, 1), ("x", 1, 1),
    ]  # fmt: skip


def test_a_caption_with_a_conversation_stays_one_caption(tmp_path: Path) -> None:
    line = conversation("0:01 a dog")[0] | {"timestamp_s": 1, "caption": "a dog"}
    (video,) = read(tmp_path / "c.json", [line])
    assert [s.caption for s in video.segments] == ["a dog"]


def test_youcook2_is_read_whole(data_folder: Path) -> None:
    """The counts, times and captions of eq-youcook2's own reader, in both published forms."""
    folder = data_folder / "youcook2"
    expected = {
        video.video: sorted((s.start_s, s.end_s, s.caption.strip()) for s in video.segments)
        for video in read_youcook2(folder / "youcookii_annotations_trainval.json")
    }
    found = read_captioned_videos(folder / "youcookii_annotations_trainval.json")
    assert {
        video.video: sorted((s.start_s, s.end_s, s.caption) for s in video.segments)
        for video in found
    } == expected
    dense = read_captioned_videos(folder / "captioning_val.json")
    assert (len(dense), sum(len(video.segments) for video in dense)) == (457, 3492)
