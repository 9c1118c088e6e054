"""Times as people write them are read, or refused where they could mean two things."""

from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.sources.captioned_videos import CaptionedVideo
from eqforge.sources.moments import Moment, parse_moment, split_line
from eqforge.sources.video_captions import read_captioned_videos
from eqforge.transforms.video.segments import propose_segment_pairs
from tests.sources.test_video_captions import read


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("0:01", 1, 1),
        ("00:00:01.5", 1.5, 1.5),
        ("1:02:03,5", 3723.5, 3723.5),
        ("90:30", 5430, 5430),
        (" 61.5 ", 61.5, 61.5),
        ("1.5 s", 1.5, 1.5),
        ("3 seconds", 3, 3),
        ("0:01-0:03", 1, 3),
        ("0:01 to 0:03.25", 1, 3.25),
        ("00:01 --> 00:03", 1, 3),
        ("0:01, 0:03", 1, 3),
        ("[1.0, 3.0]", 1, 3),
        ("(0:01 \u2013 0:03)", 1, 3),
        ("1-3 s", 1, 3),
        ("1.0\t3.0", 1, 3),
    ],
)
def test_seconds_clock_times_and_ranges(text: str, start: float, end: float) -> None:
    assert parse_moment(text) == Moment(start=start, end=end)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("frame 240", 240, 240), ("Frame #7", 7, 7), ("frames 240-300", 240, 300)],
)
def test_frames(text: str, first: int, last: int) -> None:
    assert parse_moment(text) == Moment(start=first, end=last, in_frames=True)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "1,5", "0:05-10", "1:75", "1:5", "00:00:01:12", "[0:01", "0:01)", "1-frame 3",
     "1500 ms", "-1", "1e3", "nan", "٢:20", "0:01-0:02-0:03"],
)  # fmt: skip
def test_what_could_mean_two_things_is_no_time(text: str) -> None:
    assert parse_moment(text) is None


@pytest.mark.parametrize(
    ("line", "moment", "caption"),
    [
        ("0:00 Intro", "0:00", "Intro"),
        ("[0:01] a dog", "[0:01]", "a dog"),
        ("0:01 - 0:03: two dogs: run", "0:01 - 0:03", "two dogs: run"),
        ("0:01 \u2013 a dog", "0:01", "a dog"),
        ("1.0\t3.0\ta label of Audacity", "1.0\t3.0", "a label of Audacity"),
        ("frame 240: a dog", "frame 240", "a dog"),
        ("1-3: a dog", "1-3", "a dog"),
        ("[3.5] a dog", "[3.5]", "a dog"),
        ("3 s a dog", "3 s", "a dog"),
    ],
)
def test_a_line_begins_with_its_time(line: str, moment: str, caption: str) -> None:
    assert split_line(line) == (moment, caption)
    assert parse_moment(moment) is not None


@pytest.mark.parametrize(
    "line",
    ["2 dogs run", "2: dogs", "2. dogs", "2-3 dogs", "[2] dogs", "0:01 - 2 dogs", "0:05-10 a dog",
     "frame 2 - 3 dogs", "0:01 0:03 a dog", "0:01", "a dog at 0:01", "3 small dogs",
     "00:00:01,000 --> 00:00:02,000"],
)  # fmt: skip
def test_a_line_whose_time_is_not_clear_is_not_split(line: str) -> None:
    assert split_line(line) is None


def test_times_and_frames_stand_in_fields(tmp_path: Path) -> None:
    fields: list[dict[str, object]] = [
        {"timestamp_s": "0:01"},
        {"timestamp_s": [2, "0:04"]},
        {"timestamp_s": "0:05-0:07"},
        {"start_s": "0:08", "end_s": 9.5},
    ]
    (video,) = read(tmp_path, *({"video": "a", "caption": str(f), **f} for f in fields), share=0.0)
    assert [(s.start_s, s.end_s) for s in video.segments] == [(1, 1), (2, 4), (5, 7), (8, 9.5)]


@pytest.mark.parametrize(
    ("field", "index"),
    [
        ({"frame": 240}, 240),
        ({"frame": "240"}, 240),
        ({"frame": 240.0}, 240),
        ({"frame": [240, 301]}, 270),
        ({"frame": "frame 240-300"}, 270),
        ({"timestamp_s": "frame 240"}, 240),
        ({"start_s": "frame 240", "end_s": "frame 300"}, 270),
    ],
)
def test_a_caption_may_name_its_frame(tmp_path: Path, field: dict[str, object], index: int) -> None:
    lines: list[dict[str, object]] = [
        {"video": "a", "caption": "late", **field},
        {"video": "a", "caption": "b", "frame": 9},
    ]
    (video,) = read(tmp_path, *lines, share=0.0)
    assert sorted(s.frame_index or 0 for s in video.segments) == [9, index]
    assert all(s.annotation == {} for s in video.segments)

    clip = propose_segment_pairs("d", video, CaptionSettings())

    assert [(f.frame_index, f.timestamp_s) for f in clip.frames] == [(9, None), (index, None)]
    (pair,) = clip.pairs
    assert (pair.caption_0, pair.caption_1) == ("b", "late")


def test_a_frame_beside_a_time_stays_an_annotation(tmp_path: Path) -> None:
    (video,) = read(tmp_path, {"video": "a", "caption": "x", "timestamp_s": 1, "frame": "wide"})
    assert video.segments[0].annotation == {"frame": "wide"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"timestamp_s": "1,5"}, r"timestamp_s: expected seconds \(61\.5\), a clock time .*'1,5'"),
        ({"timestamp_s": "0:03-0:01"}, "a time or range between 0 and"),
        ({"timestamp_s": [1, 2, 3]}, "expected an array with the start and end time"),
        ({"start_s": "0:01", "end_s": "frame 9"}, "one time in the same unit as start_s = '0:01'"),
        ({"start_s": "0:01-0:02", "end_s": 3}, "one time in the same unit as start_s"),
        ({"frame": 2.5}, "frame: expected a frame number, counted from 0, or a range"),
        ({"frame": "0:01"}, "frame: expected a frame number"),
        ({"frame": -1}, "frame: expected a frame number"),
        ({"frame": True}, "frame: expected a frame number"),
    ],
)  # fmt: skip
def test_other_values_are_rejected_with_the_forms(
    tmp_path: Path, fields: dict[str, object], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, {"video": "a", "caption": "x", **fields}, share=0.0)


def test_frames_among_seconds_are_rejected(tmp_path: Path) -> None:
    lines = [{"video": "a", "caption": str(n), "timestamp_s": n} for n in range(3)]
    (video,) = read(tmp_path, *lines, {"video": "a", "caption": "x", "frame": 9})
    assert len(video.segments) == 3
    assert [record.detail for record in video.refused] == [
        "times: expected 'seconds', as in the video's other lines, found 'frames'"
    ]


TEXT = "0:01 a dog\n0:03-0:05: two dogs\n\n2 dogs run\nframes are lost\n"


def said(videos: list[CaptionedVideo]) -> dict[str, list[tuple[float, float, str]]]:
    return {v.video: [(s.start_s, s.end_s, s.caption) for s in v.segments] for v in videos}


def test_a_text_beside_a_video_holds_its_captions(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/clip.mp4", "a/bare.mov", "talk.mp4"):
        (tmp_path / name).write_bytes(b"a video")
    (tmp_path / "a" / "clip.txt").write_text(TEXT)
    (tmp_path / "a" / "bare.txt").write_text("without\nany time\n")
    (tmp_path / "apart.txt").write_text("0:02 a video elsewhere\n")
    (tmp_path / "README.txt").write_text("2 videos of mine\n")
    (tmp_path / "LICENSE.txt").write_bytes("café".encode("latin-1"))
    (tmp_path / "talk.txt").write_text("0:09 loses to the subtitles\n")
    (tmp_path / "talk.en.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nhello\n")

    videos = read_captioned_videos(tmp_path, 0.01)

    clip = [(1, 1, "a dog"), (3, 5, "two dogs")]
    assert said(videos) == {
        "a/bare": [],
        "a/clip": clip,
        "apart": [(2, 2, "a video elsewhere")],
        "talk": [(1, 2, "hello")],
    }
    problem = "expected a time before the caption, such as 0:03, 3 s, 0:03-0:05 or frame 72"
    assert [(v.video, r.detail) for v in videos for r in v.refused] == [
        ("a/bare", problem), *[("a/clip", problem)] * 2,
    ]  # fmt: skip
    assert said(read_captioned_videos(tmp_path / "a" / "clip.txt", 0.01)) == {"clip": clip}
    with pytest.raises(
        InputError,
        match=r"2 of 4 records .* none\. The errors: lines 4, 5: expected a time before the cap",
    ):
        read_captioned_videos(tmp_path / "a" / "clip.txt", 0.0)


def test_a_text_in_another_encoding_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("0:01 café\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.txt: not UTF-8 text: line 1: invalid byte 0xe9$"):
        read_captioned_videos(tmp_path)
