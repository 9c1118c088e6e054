"""Make untrusted text safe to show in a terminal, a page, LaTeX or a spreadsheet.

Names, captions and messages from data may hold escape sequences, characters that reverse the
direction of the text around them, line breaks that end a comment, or markup. Data files keep their
true text; displayed text passes through one of these functions:

* `visible`, `in_lines`: a terminal, and any other plain text;
* `json_text`: JSON, which stays the same data;
* `in_latex`, `in_csv`, `in_markdown`, `code_span`: a cell, a field, words of a page;
* `quoted`: a string of YAML or Python.

Letters of all scripts stay unchanged, and so do the two joiners inside a word or an emoji, and
visible format characters, such as the Arabic number sign.
"""

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

# Controls, surrogates, line separators, direction marks, zero-width characters, noncharacters.
_OBEYED = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
# The flags of England, Scotland and Wales are spelt in characters that are invisible elsewhere.
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
_HIDDEN = re.compile(f"{_FLAG}|[{_OBEYED}]")
_JOINERS = "\u200c\u200d"

_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)
_FORMULA = re.compile(r"[=+\-@\uff0b\uff0d\uff1d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
# A word in backticks, as in our own warnings, stays; so does an underscore inside a word.
_MARKDOWN = re.compile(r"(`[\w.-]+`)|[\\`*\[\]<>#|~$]|(?<![^\W_])_|_(?![^\W_])|&(?=\w|#)")


def visible(text: str) -> str:
    """Write out hidden characters of a text, such as ESC, line feed or U+202E; idempotent."""
    return text if text.isprintable() else _HIDDEN.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    return match[0] if _is_seen(match) else ascii(match[0])[1:-1]


def _is_seen(match: re.Match[str]) -> bool:
    found = match[0]
    return len(found) > 1 or (found in _JOINERS and _joins(match.string, match.start()))


def _joins(text: str, place: int) -> bool:
    around = text[max(0, place - 1) : place], text[place + 1 : place + 2]
    return all(c > "\x7f" and unicodedata.category(c)[0] in "LMS" for c in around)


def in_lines(lines: Iterable[str]) -> str:
    return "\n".join(map(visible, lines))


def shortened(text: str, most: int) -> str:
    """Return a visible text of up to `most` characters; dots mark a cut."""
    beginning = visible(text[: most + 1])
    return beginning if len(beginning) <= most else beginning[: most - 3] + "..."


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON whose hidden characters are escaped: the same data, safe on a terminal."""
    return escaped_json(json.dumps(value, indent=indent, ensure_ascii=False))


def escaped_json(text: str) -> str:
    return _HIDDEN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    is_layout = match[0] == "\n"  # inside a string it is escaped already
    return match[0] if is_layout or _is_seen(match) else json.dumps(match[0])[1:-1]


def in_latex(text: str) -> str:
    """Escape a text for LaTeX, in a paragraph or a cell."""
    return visible(text).translate(_LATEX)


def in_csv(value: Any) -> Any:
    """Return a CSV field that no spreadsheet takes for a formula; numbers stay as they are."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    is_formula = _FORMULA.match(text.lstrip()) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def in_markdown(text: str) -> str:
    """Escape a text for Markdown, in a paragraph, an item or a cell: no HTML, no link."""
    return _MARKDOWN.sub(lambda match: match[1] or f"\\{match[0]}", visible(text))


def code_span(text: str) -> str:
    """Return a text as a Markdown code span, in more backticks than it has in a row."""
    plain = visible(text)
    ticks = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{pad}{plain}{pad}{ticks}"


def quoted(text: str) -> str:
    """Return a string in double quotes that YAML and Python read back unchanged."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_HIDDEN.sub(_written_out, escaped)}"'


def counted(number: int, things: str) -> str:
    """Return a number of things, such as `1 video`, `1 box` or `1,000 queries`."""
    if number != 1:
        return f"{number:,} {things}"
    if things.endswith("ies"):
        return f"1 {things.removesuffix('ies')}y"
    return f"1 {things.removesuffix('es' if things.endswith(('xes', 'ches')) else 's')}"


def series(names: Iterable[str], word: str = "and") -> str:
    """Return names as words, such as `red`, `red and blue` or `red, green and blue`."""
    *most, last = [*names] or [""]
    return f"{', '.join(most)} {word} {last}" if most else last


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` with the nearest known name, or "" if none is near."""
    near = near_name(name, known)
    return "" if near is None else f"; did you mean {visible(near)!r}?"


def near_name(name: str, known: Iterable[str]) -> str | None:
    from rapidfuzz import fuzz, process  # only where something is wrong

    found = process.extractOne(name, list(known), scorer=fuzz.ratio, score_cutoff=60)
    return found[0] if found else None
