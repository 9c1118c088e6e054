"""Captioned moments in every form that people have them in say the same."""

import codecs
import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.sources.captioned_videos import CaptionedVideo
from eqforge.sources.moments import FORMS
from eqforge.sources.video_captions import read_captioned_videos

MOMENTS: list[dict[str, Any]] = [
    {"video": "a/b.mp4", "start_s": 1.0, "end_s": 2.5, "caption": 'cut, "finely"', "take": "3"},
    {"video": "a/b.mp4", "timestamp_s": 9.25, "caption": "two\nlines", "id": "fry"},
    {"video": "ü.mp4", "timestamp_s": 0.0, "caption": "naïve 🥕", "split": "val", "licence": "CC0"},
]
COLUMNS = ["video", "start_s", "end_s", "timestamp_s", "caption", "id", "split", "licence", "take"]


def read(path: Path, content: str | bytes, share: float = 0.0) -> list[CaptionedVideo]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_captioned_videos(path, share)


def table(moments: list[dict[str, Any]], columns: list[str], dialect: str = "excel") -> str:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, columns, dialect=dialect)
    writer.writeheader()
    writer.writerows(moments)
    return stream.getvalue()


def lines(moments: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, moments))


def test_every_form_says_the_same(tmp_path: Path) -> None:
    expected = read(tmp_path / "c.jsonl", lines(MOMENTS))

    assert [segment.annotation for segment in expected[0].segments] == [{"take": "3"}, {}]
    for ending, content in {
        ".JSONL": lines(MOMENTS),
        ".ndjson": lines(MOMENTS),
        ".json": json.dumps(MOMENTS, indent=1),
        "lines.json": lines(MOMENTS),
        ".csv": table(MOMENTS, COLUMNS),
        "other.csv": table(MOMENTS, COLUMNS[::-1]),
        ".tsv": table(MOMENTS, COLUMNS, "excel-tab"),
    }.items():
        assert read(tmp_path / f"moments{ending}", content) == expected


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    ],
)
def test_text_with_a_byte_order_mark_is_read(tmp_path: Path, encode: Any) -> None:
    expected = read(tmp_path / "c.jsonl", lines(MOMENTS))
    for ending, content in {
        ".jsonl": lines(MOMENTS),
        ".json": json.dumps(MOMENTS, ensure_ascii=False),
        ".csv": table(MOMENTS, COLUMNS),
    }.items():
        assert read(tmp_path / f"moments{ending}", encode(content)) == expected


@pytest.mark.parametrize("ending", [".csv", ".json", ".tsv", ".srt", ".vtt"])
def test_text_in_another_encoding_is_one_sentence(tmp_path: Path, ending: str) -> None:
    dialect = "excel-tab" if ending == ".tsv" else "excel"
    rows = table([MOMENTS[0], MOMENTS[0] | {"caption": "café"}], COLUMNS, dialect)
    with pytest.raises(InputError, match=r"not UTF-8 text: line \d: invalid byte 0xe9$"):
        read(tmp_path / f"c{ending}", rows.encode("latin-1"))
    with pytest.raises(InputError, match=r"c\.\w+: not UTF-16 text: "):
        read(tmp_path / f"c{ending}", rows.encode("utf-16")[:-1])


def test_bad_rows_and_entries_are_rejects_named_by_their_content(tmp_path: Path) -> None:
    good = [MOMENTS[1] | {"id": str(n)} for n in range(8)]
    bad = [{"video": "a/b.mp4", "timestamp_s": "soon", "caption": "x"}, {"caption": "of nothing"}]
    random.Random(2).shuffle(mixed := good + bad)
    for ending, write in {
        "csv": lambda moments: table(moments, COLUMNS),
        "json": lambda moments: json.dumps(moments),
    }.items():
        first = read(tmp_path / f"c.{ending}", write(mixed), share=0.2)
        assert read(tmp_path / f"c.{ending}", write(mixed[::-1]), share=0.2) == first
        details = [record.detail for video in first for record in video.refused]
        assert details == [
            "the field 'video' is missing; found only 'caption'",
            f"timestamp_s: expected {FORMS}; found 'soon'",
        ]


def test_a_row_with_too_few_or_too_many_cells_is_a_reject(tmp_path: Path) -> None:
    rows = "video,timestamp_s,caption\na.mp4,1,x\na.mp4,2\n\n,,\na.mp4,3,x, y\n"
    nameless, video = read(tmp_path / "c.csv", rows, share=1.0)
    assert [segment.start_s for segment in video.segments] == [1.0]
    assert {record.detail for record in nameless.refused} == {
        "expected 3 cells, as in the header, found 2",
        "expected 3 cells, as in the header, found 4",
    }
    with pytest.raises(InputError, match=r"2 of 3 records .*: lines 3, 6: expected 3"):
        read(tmp_path / "c.csv", rows)


@pytest.mark.parametrize("mark", [";", "\t", "|", ","])
def test_cells_may_be_separated_by_other_marks_than_the_ending_says(
    mark: str, tmp_path: Path
) -> None:
    rows = mark.join(("video", '"caption"', "timestamp_s")) + "\n" + mark.join(("a", "b", "1.5"))
    for name in ("c.csv", "c.tsv"):
        (video,) = read(tmp_path / name, rows + "\n")
        (segment,) = video.segments
        assert (segment.caption, segment.start_s) == ("b", 1.5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.csv", "", "line 1: expected a header with the column 'video'; found no column"),
        (
            "c.csv",
            "video,text\n",
            "expected a header with the column 'caption'; found only 'video' and 'text'",
        ),
        ("c.csv", ",video,caption\n0,a,b\n", "line 1: column 1 has no name; name the column"),
        ("c.tsv", "video\tcaption\tvideo\n", "the column 'video' appears twice"),
        ("c.csv", 'video,caption\na,"b\n', "line 2: not valid CSV: unexpected end of data"),
        ("c.csv", "video,caption\n", "contains no captioned frames"),
        ("c.json", "[]", "contains no captioned frames"),
        ("c.json", "[1]", "entry 1: expected an object, found 1"),
        ("c.json", "[{]", "c.json: not valid JSON"),
        ("c.srt", "", "contains no captioned frames: line 1: the file contains no cues"),
        ("c.xlsx", "PK", "that ends in .jsonl, .ndjson, .json, .csv, .tsv, .srt, .vtt or .txt"),
        ("captions", "{}", "expected a file name that ends in"),
    ],
)
def test_a_file_that_is_not_what_its_ending_says_is_refused(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(InputError, match=rf"(?s){name}.*") as refused:
        read(tmp_path / name, content)
    assert message in str(refused.value)


SRT = """1
00:00:01,000 --> 00:00:02,500 X1:10 X2:20
<i>cut</i> the
{\\an8}onion

2
00:01:09,250 --> 01:00:10,5
fry & serve

3
00:00:05.000 -> 00:00:06.000
no arrow
"""


def test_subtitles_of_a_folder_are_named_like_their_videos(tmp_path: Path) -> None:
    webvtt = "WEBVTT\n\nNOTE of mine\n\n00:01.000 --> 00:02.000 align:start\n<v Al>R&amp;B\n"
    (tmp_path / "subs" / "trips").mkdir(parents=True)
    (tmp_path / "subs" / "own.mp4").write_bytes(b"a video")
    (tmp_path / "subs" / "trips" / "lake.VTT").write_text(webvtt)
    alone = read(tmp_path / "subs" / "own.v2.srt", SRT.replace("\n", "\r\n"), share=0.5)

    own, lake = read_captioned_videos(tmp_path / "subs", 0.5)

    assert [own] == alone
    assert (own.video, lake.video) == ("own.v2", "trips/lake")
    assert [(s.start_s, s.end_s, s.caption) for s in own.segments] == [
        (1.0, 2.5, "cut the onion"),
        (69.25, 3610.5, "fry & serve"),
    ]
    assert [(s.start_s, s.end_s, s.caption) for s in lake.segments] == [(1.0, 2.0, "R&B")]
    assert [record.detail for record in own.refused] == ["no line has times with -->"]
    with pytest.raises(InputError, match=r"1 of 4 records .*: own\.v2\.srt: line 10: no line has"):
        read_captioned_videos(tmp_path / "subs", 0.0)


def test_a_folder_without_subtitles_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"a video")
    with pytest.raises(InputError, match=r"no captions\. Pass a file, or a folder with subtitles"):
        read_captioned_videos(tmp_path)
