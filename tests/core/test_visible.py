"""What is shown of hostile text, against Unicode's own data, LaTeX's rules and parsers."""

import csv
import io
import json
import sys
import unicodedata

import pytest
import yaml
from markdown_it import MarkdownIt

from eqforge.core.visible import (
    code_span,
    in_csv,
    in_latex,
    in_markdown,
    json_text,
    quoted,
    series,
    shortened,
    visible,
)

HOSTILE = (
    "\x1b[2J\x9b31m\u202e\u2066\u200f\r\n\t\x00\x7f\u2028\ud800[bold]x[/bold] `a` ``b`` $y$ "
    '\\input{x}\n## Licence: CC0\n<script>alert("1")</script> [a](javascript:b) ![c](http://d) '
    "| e | *f* __g__ ~h~ &lt; # i \n---\n"
)
# Marks of format that are seen, and stay: of numbers and verses in Arabic, Syriac and Kaithi, and
# those that group Egyptian signs.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
SEEN |= set(range(0x13430, 0x13440))


def test_whatever_unicode_calls_a_control_a_format_or_a_break_is_written_out() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        is_hidden = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        shown = visible(f"a{char}b")
        if is_hidden and code not in SEEN:
            assert shown == f"a{ascii(char)[1:-1]}b"
        elif shown != f"a{char}b":
            assert unicodedata.category(char) == "Cn"


@pytest.mark.parametrize(
    "text",
    [
        "العربية والأرقام ٣",
        "עברית",
        "漢字　かな",
        "می‌خواهم",  # with a joiner inside
        "क्‍ष",
        "👩‍👩‍👧 ❤️‍🔥 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "é à l\u2019aube",
        "e\u0301",
        "x = a \\ b",
    ],
)
def test_text_of_every_script_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert json_text({"a": text}) == json.dumps({"a": text}, ensure_ascii=False)


def test_a_joiner_that_joins_nothing_is_written_out() -> None:
    assert visible("a\u200db") == "a\\u200db"
    assert visible("می\u200c\u200cخ") == "می\\u200c\\u200cخ"


def test_twice_does_no_more_than_once_and_long_text_is_cut() -> None:
    assert visible(visible(HOSTILE)) == visible(HOSTILE)
    assert visible(HOSTILE).isprintable()
    assert shortened("\x1b" * 100_000, 50) == ("\\x1b" * 13)[:47] + "..."
    assert shortened("a" * 50, 50) == "a" * 50


@pytest.mark.parametrize("indent", [None, 2])
def test_json_is_the_same_data_and_printable(indent: int | None) -> None:
    value = {HOSTILE: [HOSTILE, 1.5, None, "\U0001f3f4\U000e0001"]}
    text = json_text(value, indent)
    assert json.loads(text) == value
    assert text.replace("\n", "").isprintable()


def test_yaml_and_python_read_a_quoted_string_back() -> None:
    text = HOSTILE.replace("\ud800", "\U000e0041😀")
    assert quoted(text).isprintable()
    assert yaml.safe_load(quoted(text)) == eval(quoted(text)) == text


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", " =1", "\uff1d1"]
)
def test_a_formula_is_text_in_a_spreadsheet(text: str) -> None:
    assert in_csv(text) == f"'{text}"


@pytest.mark.parametrize("value", [-1.5, 0, True, "-1.5", "+2e-3", "a-b", "", "blip@abc", None])
def test_numbers_and_names_stay_as_they_are(value: object) -> None:
    assert in_csv(value) is value


def test_a_row_of_csv_is_one_line() -> None:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow([in_csv("\ta\r\nb"), in_csv('"c","d"')])
    assert stream.getvalue().count("\n") == 1
    assert next(csv.reader(io.StringIO(stream.getvalue()))) == ["\\ta\\r\\nb", '"c","d"']


def test_latex_gets_no_command_and_no_end_of_a_line() -> None:
    text = in_latex("a\n\\input{x} 5 % & $y$ #_^~ \x1b")
    assert "\n" not in text
    assert text == (
        r"a\textbackslash{}n\textbackslash{}input\{x\} 5 \% \& \$y\$ \#\_\textasciicircum{}"
        r"\textasciitilde{} \textbackslash{}x1b"
    )


@pytest.mark.parametrize("form", ["{}", "- {}", "| a |\n|---|\n| {} |", "# {}"])
def test_markdown_shows_the_text_and_nothing_else(form: str) -> None:
    parser = MarkdownIt("commonmark").enable("table").enable("strikethrough")
    tokens = parser.parse(form.format(in_markdown(HOSTILE)))
    (found,) = (token for token in tokens if token.type == "inline" and token.content != "a")
    kinds = {child.type for child in found.children or ()}
    assert kinds <= {"text", "text_special", "code_inline"}
    shown = "".join(child.content for child in found.children or ())
    assert shown == visible(HOSTILE).strip().replace("`a`", "a").replace("``b``", "`b`")


@pytest.mark.parametrize("text", ["a.json", "`", "a``b`", "## x\n<b>", HOSTILE])
def test_a_code_span_shows_the_text_and_nothing_else(text: str) -> None:
    (_, found, _) = MarkdownIt("commonmark").parse(code_span(text))
    assert found.children is not None
    (span,) = found.children
    assert (span.type, span.content) == ("code_inline", visible(text))


def test_names_end_in_a_word_however_many_there_are() -> None:
    names = ["red", "green", "blue"]
    wanted = ["", "red", "red or green", "red, green or blue"]
    assert [series(names[:count], "or") for count in range(4)] == wanted
