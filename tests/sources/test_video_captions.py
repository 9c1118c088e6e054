"""A user's own captioned videos: what a line says, whatever its place, or what is wrong."""

import json
import random
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.sources.captioned_videos import CaptionedVideo
from eqforge.sources.moments import FORMS
from eqforge.sources.video_captions import MAX_CARRIED_CHARS, read_captioned_videos

README = Path(__file__).parents[2] / "README.md"
MOMENT = {"video": "a.mp4", "timestamp_s": 1, "caption": "x"}


def jsonl(path: Path, *lines: dict[str, Any] | str) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def read(folder: Path, *lines: dict[str, Any] | str, share: float = 1.0) -> list[CaptionedVideo]:
    return read_captioned_videos(jsonl(folder / "c.jsonl", *lines), share)


def test_moments_are_named_by_their_own_id_or_by_times_and_caption(tmp_path: Path) -> None:
    """The first eight digits of SHA-256: `printf one | sha256sum`."""
    first, second = read(
        tmp_path,
        {"video": "a/b.mp4", "start_s": 1, "end_s": 2.5, "caption": "one"},
        {"video": "a/b.mp4", "timestamp_s": 9.25, "caption": "two", "id": "fry"},
        {"video": "c.mp4", "timestamp_s": 0, "caption": "three", "split": "val", "licence": "CC0"},
    )

    assert [s.segment_id for s in first.segments] == ["00001000-00002500-7692c3ad", "fry"]
    assert (first.segments[1].start_s, first.segments[1].end_s) == (9.25, 9.25)
    assert (first.split, second.split, second.licence) == ("all", "val", "CC0")


def test_the_readme_s_two_lines_stand_in_one_file(tmp_path: Path) -> None:
    lines = re.findall(r'^\{"video": .*\}$', README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 2

    (video,) = read(tmp_path, *lines, share=0.0)

    assert (video.video, video.split, video.licence) == ("own/desk.mp4", "all", None)
    assert [(s.start_s, s.end_s, s.caption) for s in video.segments] == [
        (2.0, 2.0, "a photo of a cat left of a photo of a cup"),
        (5.0, 5.0, "a photo of a cat below a photo of a cup"),
    ]


def test_one_line_states_split_and_licence_for_its_video(tmp_path: Path) -> None:
    said = {"video": "a.mp4", "timestamp_s": 1, "caption": "cut", "split": "val", "licence": "CC0"}
    unsaid = {"video": "a.mp4", "timestamp_s": 2, "caption": "fry"}

    bare = {"video": "a", "timestamp_s": 3, "caption": "eat"}  # the same file

    (video,) = read(tmp_path, json.dumps(bare), json.dumps(unsaid), json.dumps(said), share=0.0)

    assert (video.video, video.split, video.licence) == ("a.mp4", "val", "CC0")
    assert [segment.caption for segment in video.segments] == ["cut", "fry", "eat"]
    (first, *_, third) = read(tmp_path, said, bare, said | {"video": "a.MKV"})  # either file
    assert (first.video, third.video) == ("a", "a.mp4")
    both = read(tmp_path, said, said | {"video": "a.mp4.webm"})  # as yt-dlp names a file
    assert [video.video for video in both] == ["a.mp4", "a.mp4.webm"]


MIXED = [
    {"video": "b.mp4", "start_s": 4, "end_s": 5, "caption": "pour"},
    *[{"video": "b.mp4", "start_s": 4, "end_s": 5, "caption": "stir"}] * 3,
    {"video": "b.mp4", "start_s": 5, "end_s": 4, "caption": "backwards"},
    {"video": "a.mp4", "timestamp_s": 1, "caption": "cut", "id": "1", "licence": "CC0"},
    {"video": "a.mp4", "timestamp_s": 2, "caption": "fry", "id": "1", "licence": "CC0"},
    {"video": "a.mp4", "timestamp_s": 3, "caption": "eat", "licence": "CC-BY"},
    {"timestamp_s": 3, "caption": "of nothing"},
]


def test_the_order_of_the_lines_changes_nothing(tmp_path: Path) -> None:
    rng = random.Random(9)
    first = read(tmp_path, *MIXED)
    for order in [MIXED[::-1], *(rng.sample(MIXED, len(MIXED)) for _ in range(50))]:
        assert read(tmp_path, *order) == first

    nameless, a, b = first
    assert [(r.reason, r.detail) for r in nameless.refused] == [
        ("bad_segment", "the field 'video' is missing; found only 'caption' and 'timestamp_s'")
    ]
    assert [s.caption for s in a.segments] == ["cut"]  # of two moments with one id the earlier
    assert [(r.reason, r.detail) for r in a.refused] == [
        ("bad_segment", "licence: expected 'CC0', as in the video's other lines, found 'CC-BY'"),
        ("duplicate_moment", "1"),
    ]
    assert [s.caption for s in b.segments] == ["pour", "stir"]  # at one time, but not the same
    assert [r.reason for r in b.refused] == ["bad_segment", *["duplicate_moment"] * 2]
    names = [r.record_id for video in first for r in video.refused]
    assert len(set(names)) == len(names) == 6


def test_other_fields_are_carried_along_as_text(tmp_path: Path) -> None:
    extra = {"speaker": "Zoë", "take": 3, "tags": ["a", {"b": None}], "clean": True, "note": None}

    (video,) = read(tmp_path, MOMENT | extra)

    assert video.segments[0].annotation == {
        "speaker": "Zoë",
        "take": "3",
        "tags": '["a",{"b":null}]',
        "clean": "true",
        "note": "null",
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"start": 1, "end": 2}, "did you mean start_s instead of start and end_s instead of end?"),
        ({"note": "x"}, "end_s, or frame; found only 'caption', 'note' and 'video'$"),
        ({"timestamp_s": "٢:20"}, r"timestamp_s: expected seconds .*; found '٢:20'$"),
    ],
)  # fmt: skip
def test_a_time_in_other_words_is_told_the_right_ones(
    tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, {"video": "a.mp4", "caption": "cut"} | fields)


def test_unclear_times_are_one_mistake_however_many(tmp_path: Path) -> None:
    unclear = [{"video": "a.mp4", "caption": "x", "timestamp_s": f"{n},5"} for n in range(10, 50)]

    with pytest.raises(InputError, match=r"lines 1, 2, 3 and 37 more: .*; found '10,5'$"):
        read(tmp_path, *unclear)


def test_bad_lines_are_refused_as_long_as_they_are_few(tmp_path: Path) -> None:
    good = [MOMENT | {"timestamp_s": n} for n in range(99)]
    bad = MOMENT | {"timestamp_s": "soon"}

    (video,) = read(tmp_path, *good, bad, share=0.01)

    assert len(video.segments) == 99
    assert [(r.reason, r.detail) for r in video.refused] == [
        ("bad_segment", f"timestamp_s: expected {FORMS}; found 'soon'")
    ]
    with pytest.raises(
        InputError, match=r"6 of 105 records cannot be used .* allows 5\. The errors:"
    ):
        read(tmp_path, *good, *[bad] * 6, share=0.01)
    # Five may be bad, however short the file; with 0 none.
    (video,) = read(tmp_path, *good[:3], *[bad] * 5, share=0.01)
    assert len(video.segments) == 3
    with pytest.raises(InputError, match=r"allows none\. The errors:"):
        read(tmp_path, *good, bad, share=0)


def test_too_many_bad_lines_are_one_error_that_counts_each_mistake(tmp_path: Path) -> None:
    lines = [MOMENT | {"timestamp_s": n} if n % 2 else f"{n} no JSON" for n in range(1, 41)]
    lines[7] = {"video": "a", "timestamp_s": 1, "capton": "x"}

    with pytest.raises(InputError) as refused:
        read(tmp_path, *lines, share=0.4)

    assert (
        "c.jsonl: 20 of 40 records cannot be used as captioned frames, but --max-error-rate 0.4 "
        "allows 16. The errors: "
        "lines 2, 4, 6 and 16 more: not valid JSON: "
    ) in str(refused.value)
    assert "; line 8: the field 'caption' is missing" in str(refused.value)


def test_a_file_that_is_not_utf8_is_refused_with_its_lines(tmp_path: Path) -> None:
    good = json.dumps(MOMENT).encode()
    bad = good.replace(b"x", "café".encode("latin-1"))
    (tmp_path / "c.jsonl").write_bytes(b"\n".join([good, bad, good, *[bad] * 11]))

    with pytest.raises(InputError) as refused:
        read_captioned_videos(tmp_path / "c.jsonl", 1.0)

    said = "c.jsonl: not UTF-8 text: lines 2, 4, 5 and 9 more: invalid byte 0xe9"
    assert str(refused.value).endswith(said)


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"video": "a", "caption": "x"}, "line 1: expected timestamp_s, or start_s and end_s"),
        ({"video": "a", "start_s": 3, "end_s": 1, "caption": "x"}, "a time not before start_s = 3"),
        (
            {"video": "a", "timestamp_s": -1, "caption": "x"},
            "a time or range between 0 and 10,000,000 s",
        ),
        ({"video": "a", "timestamp_s": 1, "end_s": 1, "caption": "x"}, "not both"),
        ({"video": "a", "timestamp_s": 1, "capton": "x"}, "the field 'caption' is missing"),
        ({"video": "a\n", "timestamp_s": 1, "caption": "x"}, "video: expected a printable"),
        (MOMENT | {"segment": "1"}, "segment: expected a different field name"),
        (MOMENT | {"notes": "x" * (MAX_CARRIED_CHARS + 1)}, "at most 10,000 characters"),
        (MOMENT | {"note": "\ud800"}, "note: expected valid Unicode text"),
        (json.dumps([MOMENT, MOMENT]), "line 1: expected an object, found the array"),
        (json.dumps({"moments": [MOMENT]}, indent=1), "lines 1, 2, 3 and 6 more: not valid"),
        ("{", "line 1: not valid JSON"),
        ("", "contains no captioned frames"),
    ],
)
def test_a_file_without_any_moment_is_refused_whatever_the_share(
    tmp_path: Path, line: dict[str, Any] | str, message: str, share: float
) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, line, share=share)


def test_of_conflicting_splits_the_commonest_counts_and_then_the_alphabet(tmp_path: Path) -> None:
    lines = [MOMENT | {"timestamp_s": n, "split": s} for n, s in enumerate(["b", "a", "b", "c"])]
    (commonest,) = read(tmp_path, *lines)
    assert (commonest.split, len(commonest.segments)) == ("b", 2)
    for order in permutations(lines[:2]):
        (tied,) = read(tmp_path, *order)
        assert (tied.split, len(tied.segments)) == ("a", 1)
