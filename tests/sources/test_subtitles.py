"""Cues of subtitles: times, text, and what is wrong with a cue."""

import pytest

from eqforge.sources.moment_files import read_cues

TIMES = "00:00:01,000 --> 00:00:02,000"


@pytest.mark.parametrize(
    ("line", "start_s", "end_s"),
    [
        ("00:00:01,000 --> 00:00:02,500", 1.0, 2.5),
        ("01:02.003 --> 100:00:00.000", 62.003, 360_000.0),
        (" 0:0:1.05-->0:0:2 line:0 position:20%", 1.05, 2.0),
    ],
)
def test_times_of_either_form_are_read(line: str, start_s: float, end_s: float) -> None:
    (cue,) = read_cues(f"{line}\nx", is_webvtt=True)
    assert (cue.start_s, cue.end_s, cue.problem) == (start_s, end_s, "")


@pytest.mark.parametrize(
    ("text", "is_webvtt", "shown"),
    [
        ("<b>a</b> <c.loud>b</c> <00:00:01.500>c\n{\\pos(1,2)}d", True, "a b c d"),
        ("1 < 2 and 3 > 2", False, "1 < 2 and 3 > 2"),
        ("R&amp;B &lt;3", True, "R&B <3"),
        ("R&amp;B", False, "R&amp;B"),
        ('<font color="red">  a\u00a0 b </font>', False, "a b"),
        ("", False, ""),
    ],
)
def test_text_is_one_line_without_tags(text: str, is_webvtt: bool, shown: str) -> None:
    (cue,) = read_cues(f"7\n{TIMES}\n{text}", is_webvtt)
    assert (cue.text, cue.problem) == (shown, "")


def test_what_is_no_cue_is_told_with_its_line() -> None:
    content = f"1\n{TIMES}\na\n2\n{TIMES}\nb\n\nadrift\n\n \n3\n00:00:61,0 --> soon\nc\n"
    assert [(cue.line, cue.problem) for cue in read_cues(content, is_webvtt=False)] == [
        (1, "a blank line between two cues is missing"),
        (8, "no line has times with -->"),
        (11, "times: expected 00:00:01.000 --> 00:00:02.500, found '00:00:61,0 --> soon'"),
    ]


def test_webvtt_s_other_blocks_are_left_out() -> None:
    blocks = ["WEBVTT - mine\nkey: value", "STYLE\n::cue {}", "REGION\nid:1", "NOTE\nx", "NOTES"]
    (cue,) = read_cues("\n\n".join(blocks), is_webvtt=True)
    assert (cue.source, cue.problem) == ("NOTES", "no line has times with -->")
