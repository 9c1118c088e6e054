"""Find whole words of a list in a text, and the word edit between two texts.

A word is a run of letters, digits, marks and underscores of any script, with apostrophes inside it:
"don't" and "façade" are one word each, "pick-up" is two. ICU segments scripts without spaces:
"红色的狗" is three. Two words are the same if they are equal after Unicode normalisation and case
folding.
"""

import csv
import dataclasses
import functools
import re
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.source_file import read_input

VERSION = "2"
"""Increase it when the edit between the same texts would change."""

DATA = Path(__file__).with_name("data")


def read_table(name: str) -> list[dict[str, str]]:
    text = (DATA / name).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", restval="", quoting=csv.QUOTE_NONE)
    return list(rows)


@functools.cache
def _word_sets() -> Mapping[str, frozenset[str]]:
    return {row["set"]: frozenset(row["words"].split(",")) for row in read_table("word_sets.tsv")}


def word_set(name: str) -> frozenset[str]:
    return _word_sets()[name]


def reasons(name: str) -> dict[str, str]:
    """Return a closed list of `data/reasons.tsv`: each reason with its meaning in one sentence."""
    rows = read_table("reasons.tsv")
    return {row["reason"]: row["meaning"] for row in rows if row["set"] == name}


DENIALS = word_set("words.denials")
"""Words that make a caption a denial, with and without apostrophes."""

ACTION_WORDS = DATA / "action_words.txt"
"""Words, from EqBen's appendix B.2, for changes that one image cannot show."""

_ASCII_WORD = re.compile(r"\w+(?:'\w+)*", re.ASCII)
"""Equivalent to `_word_pattern` for ASCII text, and nine times as fast."""

_NOT_LETTERS = re.sub(rb"\w", b"", bytes(range(128)))

_UNSPACED = re.compile(
    "[\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Tai Le, New Tai Lue, Tai Tham, Tai Viet
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\U0001b000-\U0001b16f"  # historic kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # Han
)
"""A letter of a script that does not separate words with spaces."""

Span = tuple[int, int]
"""Start and end of a part of a text, in characters; the end is exclusive."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WordEdit:
    """The smallest word-by-word edit from text 0 to text 1; neighbouring words share one span."""

    distance: int
    spans_0: tuple[Span, ...]
    spans_1: tuple[Span, ...]


def read_word_list(path: Path) -> tuple[str, ...]:
    """Read a UTF-8 list of words or phrases, one per line; skip `#` comments and repeats."""
    try:
        lines = read_input(path).split(b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot read the word list: {error.strerror}") from error
    words: dict[tuple[str, ...], str] = {}
    for number, line in enumerate(lines, start=1):
        try:  # some editors put a byte order mark at a file's start
            decoded = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            message = f"{path}: line {number}: expected UTF-8, found {line[:40]!r}"
            raise InputError(message) from error
        entry = decoded.split("#", maxsplit=1)[0].strip()
        if not entry:
            continue
        if not (key := _fold_all(entry)):
            raise InputError(f"{path}: line {number}: expected a word, found {entry!r}")
        words.setdefault(key, entry)
    if not words:
        raise InputError(f"{path}: the list contains no words")
    return tuple(words.values())


def find_words(text: str, words: tuple[str, ...]) -> list[tuple[int, int, str]]:
    """Find the words and phrases of a list in a text, as whole words in any letter case.

    Returns:
      Start, end and the word as written in the list, in text order. At each position the longest
      phrase wins, and matches do not overlap.
    """
    index, longest = _index(words)
    spans = word_spans(text)
    folded = [_fold(text[start:end]) for start, end in spans]
    found, here = [], 0
    while here < len(spans):
        for length in range(min(longest, len(spans) - here), 0, -1):
            if word := index.get(tuple(folded[here : here + length])):
                found.append((spans[here][0], spans[here + length - 1][1], word))
                here += length - 1
                break
        here += 1
    return found


def word_edit(text_0: str, text_1: str) -> WordEdit:
    """Return the Levenshtein edit between the words of two texts.

    Ignores letter case, spacing and punctuation between words. Ties always resolve the same way.
    Memory grows with the product of the numbers of words: check the length of untrusted texts
    first.
    """
    from rapidfuzz.distance import Levenshtein

    spans_0, spans_1 = word_spans(text_0), word_spans(text_1)
    numbers: dict[str, int] = {}
    words_0, words_1 = (
        [numbers.setdefault(_fold(text[start:end]), len(numbers)) for start, end in spans]
        for text, spans in ((text_0, spans_0), (text_1, spans_1))
    )
    edits = [edit for edit in Levenshtein.opcodes(words_0, words_1) if edit.tag != "equal"]
    return WordEdit(
        distance=Levenshtein.distance(words_0, words_1),
        spans_0=_joined(spans_0, [(edit.src_start, edit.src_end) for edit in edits]),
        spans_1=_joined(spans_1, [(edit.dest_start, edit.dest_end) for edit in edits]),
    )


def has_same_words(text_0: str, text_1: str) -> bool:
    """Return True if texts differ only in case, spacing and punctuation: "man's", "man 's"."""
    if _letters(text_0) != _letters(text_1):
        return False
    words_0, words_1 = _words(text_0), _words(text_1)
    return words_0 == words_1 or sorted(words_0) != sorted(words_1)


def word_spans(text: str) -> list[Span]:
    pattern = _ASCII_WORD if text.isascii() else _word_pattern()
    runs = [match.span() for match in pattern.finditer(text)]
    if not is_unspaced(text):
        return runs
    from icu4py.breakers import WordBreaker

    words = []
    for start, end in runs:
        if not _UNSPACED.search(text, start, end):
            words.append((start, end))
            continue
        for piece in WordBreaker(text[start:end], "root"):  # its offsets count UTF-16 code units
            if _word_pattern().match(piece):
                words.append((start, start + len(piece)))
            start += len(piece)
    return words


def is_unspaced(text: str) -> bool:
    return not text.isascii() and _UNSPACED.search(text) is not None


def count_words(text: str) -> int:
    parts = text.split()
    return sum(max(1, len(word_spans(part))) if _UNSPACED.search(part) else 1 for part in parts)


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _word_pattern().findall(_folded(text))


@functools.lru_cache(maxsize=2)  # a text is compared with several others
def _letters(text: str) -> str:
    if text.isascii():  # the same, and five times as fast
        return text.lower().encode().translate(None, _NOT_LETTERS).decode()
    return "".join(_words(text)).replace("'", "")


def _joined(spans: list[Span], ranges: list[tuple[int, int]]) -> tuple[Span, ...]:
    merged: list[tuple[int, int]] = []
    for first, last in ranges:
        if first == last:
            continue
        if merged and merged[-1][1] == first:
            first = merged.pop()[0]
        merged.append((first, last))
    return tuple((spans[first][0], spans[last - 1][1]) for first, last in merged)


@functools.lru_cache(maxsize=16)
def _index(words: tuple[str, ...]) -> tuple[Mapping[tuple[str, ...], str], int]:
    index: dict[tuple[str, ...], str] = {}
    for word in words:
        index.setdefault(_fold_all(word), word)
    return index, max(map(len, index), default=0)


def _fold_all(phrase: str) -> tuple[str, ...]:
    return tuple(_fold(phrase[start:end]) for start, end in word_spans(phrase))


@functools.lru_cache(maxsize=65_536)
def _fold(word: str) -> str:
    return _folded(word)


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text).casefold()
    return unicodedata.normalize("NFC", decomposed).replace("\u2019", "'")


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    r"""Return the pattern of one word; `\w` alone would end a word at a combining accent.

    Built on first use: looking up the category of every character takes 0.1 s.
    """
    points = map(chr, range(sys.maxunicode + 1))
    marks = "".join(point for point in points if unicodedata.category(point)[0] == "M")
    part = rf"[\w{marks}]+"
    return re.compile(rf"{part}(?:['\u2019]{part})*")


_FIXED_EXPRESSIONS = DATA / "fixed_expressions.txt"


def is_in_fixed_expression(text: str, start: int, end: int) -> bool:
    """Return True if a span overlaps an expression such as "red wine" without being all of it."""
    return _is_in(_FIXED_EXPRESSIONS, text, start, end)


def is_fixed_expression(text: str) -> bool:
    return text in _expressions(_FIXED_EXPRESSIONS)[0]


def is_in_function_phrase(text: str, start: int, end: int) -> bool:
    """Return True if a span overlaps a phrase that works as one word: "next to", "on top of"."""
    return _is_in(DATA / "function_phrases.txt", text, start, end)


def _is_in(path: Path, text: str, start: int, end: int) -> bool:
    span = text[start:end].lower()
    if _expressions(path)[1].isdisjoint(span.split() if " " in span else (span,)):
        return False  # most words of a text are in no expression
    found = (each for each in _found(path, text) if each != (start, end))
    return any(first < end and start < last for first, last in found)


@functools.lru_cache(maxsize=8)  # several words of a text are asked for, one after the other
def _found(path: Path, text: str) -> tuple[tuple[int, int], ...]:
    return tuple((start, end) for start, end, _ in find_words(text, _expressions(path)[0]))


@functools.cache
def _expressions(path: Path) -> tuple[tuple[str, ...], frozenset[str]]:
    phrases = read_word_list(path)
    return phrases, frozenset(word for phrase in phrases for word in phrase.split())
