"""Whole words of a list, word lists, and the edit from one text to another."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.core.errors import InputError
from eqforge.generators.text import words as words_module
from eqforge.generators.text.words import (
    ACTION_WORDS,
    count_words,
    find_words,
    has_same_words,
    read_word_list,
    word_edit,
    word_spans,
)
from tests.cases import cases_of

cases = cases_of(__file__)

UP_AND_DOWN = ("up", "down", "upward", "downward", "towards")
TEXTS = st.text(alphabet=st.characters(exclude_categories=[]), max_size=40)
PIECES = st.sampled_from(["a", "the", "red", "blue", "dog", "cat", "runs", ",", ".", "up"])
SENTENCES = st.lists(PIECES, max_size=12).map(" ".join)


def folded(text: str, spans: tuple[tuple[int, int], ...] = ()) -> list[str]:
    """Returns the words of a text outside some spans, as a naive reader compares them."""
    return [
        unicodedata.normalize("NFC", unicodedata.normalize("NFD", text[start:end]).casefold())
        for start, end in word_spans(text)
        if not any(first <= start and end <= last for first, last in spans)
    ]


def distance(first: list[str], second: list[str]) -> int:
    """Returns the Levenshtein distance, by the textbook's table."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        above, row[0] = row[0], i
        for j, b in enumerate(second, start=1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]


def test_the_shipped_list_is_the_papers() -> None:
    assert read_word_list(ACTION_WORDS) == UP_AND_DOWN


@pytest.mark.parametrize(("text", "expected"), cases("only_whole_words_are_found"))
def test_only_whole_words_are_found(text: str, expected: str) -> None:
    assert [word for _, _, word in find_words(text, UP_AND_DOWN)] == expected.split()


def test_accents_and_case_are_compared_and_not_their_encoding() -> None:
    assert find_words("un CAFE\u0301", ("caf\u00e9",)) == [(3, 8, "caf\u00e9")]
    assert find_words("die STRASSE", ("Stra\u00dfe",)) == [(4, 11, "Stra\u00dfe")]
    assert find_words("don\u2019t", ("don't",)) == [(0, 5, "don't")]
    assert find_words("don't", ("don", "t")) == []


def test_the_longest_phrase_of_a_place_is_found() -> None:
    words = ("in", "in front of", "front")
    assert find_words("he is in  front of it, in front", words) == [
        (6, 18, "in front of"),
        (23, 25, "in"),
        (26, 31, "front"),
    ]


@given(TEXTS)
def test_words_found_in_any_text_are_the_texts_own(text: str) -> None:
    pieces = [text[start:end] for start, end in word_spans(text)]
    found = find_words(text, tuple(pieces[::2]))
    assert all(text[start:end] in pieces for start, end, _ in found)
    if not words_module._UNSPACED.search(text):  # there a word alone may be cut in other places
        assert len(found) >= len(pieces[::2])


@given(st.text(alphabet="uUpP downtards'-_,.2", max_size=30))
def test_ascii_words_are_what_a_plain_pattern_finds(text: str) -> None:
    pattern = r"(?<![\w])(?<!\w')(?:up|down|towards)(?!\w)(?!'\w)"
    expected = [match.span() for match in re.finditer(pattern, text, re.IGNORECASE | re.ASCII)]
    assert [(start, end) for start, end, _ in find_words(text, UP_AND_DOWN)] == expected


@pytest.mark.parametrize(
    ("text", "expected"), cases("words_of_scripts_without_spaces_are_told_by_a_dictionary")
)
def test_words_of_scripts_without_spaces_are_told_by_a_dictionary(text: str, expected: str) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == expected.split()


@pytest.mark.parametrize(
    ("text_0", "text_1", "expected"), cases("distances_of_other_languages_count_words")
)
def test_distances_of_other_languages_count_words(text_0: str, text_1: str, expected: str) -> None:
    assert word_edit(text_0, text_1).distance == int(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A pick-up, two men's bikes .", 6),
        ("两只红色的狗。 在沙滩上 奔跑", 9),
        ("", 0),
        ("  。 ", 1),
    ],
)
def test_words_are_counted_by_spaces_where_there_are_spaces(text: str, expected: int) -> None:
    assert count_words(text) == expected


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_fast_pattern_for_ascii_splits_as_the_full_one(text: str) -> None:
    full = [match.span() for match in words_module._word_pattern().finditer(text)]
    assert word_spans(text) == full


def test_a_word_list_may_hold_comments_blank_lines_phrases_and_repetitions(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    lines = ("\ufeff# our list", "Up # a comment", "", "  in front of", "up", "caf\u00e9")
    file.write_bytes("\r\n".join(lines).encode())
    assert read_word_list(file) == ("Up", "in front of", "caf\u00e9")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"up\n!!!\n", r"words\.txt: line 2: expected a word, found '!!!'"),
        (b"up\ndown\n\xff\xfe\n", r"words\.txt: line 3: expected UTF-8"),
        (b"", r"words\.txt: the list contains no words"),
        (b"# up\n\n", r"words\.txt: the list contains no words"),
    ],
)
def test_a_wrong_word_list_is_refused_with_file_and_line(
    content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_word_list(file)


def test_a_word_list_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.txt: cannot read the word list: No such file"):
        read_word_list(tmp_path / "none.txt")
    with pytest.raises(InputError, match="Is a directory"):
        read_word_list(tmp_path)


def test_an_edit_tells_how_many_words_differ_and_where_they_are() -> None:
    first, second = "A man sits on the red sofa.", "a man is standing on the sofa"
    edit = word_edit(first, second)
    assert edit.distance == 3
    assert [first[start:end] for start, end in edit.spans_0] == ["sits", "red"]
    assert [second[start:end] for start, end in edit.spans_1] == ["is standing"]


def test_neighbouring_edited_words_share_a_span() -> None:
    edit = word_edit("the red car stops", "the blue bus stops")
    assert (edit.distance, edit.spans_0, edit.spans_1) == (2, ((4, 11),), ((4, 12),))


def test_case_spacing_and_punctuation_are_no_edit() -> None:
    edit = word_edit("The cat,  sleeping.", "the CAT sleeping")
    assert (edit.distance, edit.spans_0, edit.spans_1) == (0, (), ())


@pytest.mark.parametrize(
    ("text_0", "text_1", "same"), cases("words_are_the_same_however_they_are_spaced")
)
def test_words_are_the_same_however_they_are_spaced(text_0: str, text_1: str, same: str) -> None:
    assert has_same_words(text_0, text_1) is (same == "yes")
    assert has_same_words(text_1, text_0) is (same == "yes")


@given(TEXTS, st.text(" \t.,-!\u3000", min_size=1, max_size=3))
def test_punctuation_and_space_at_the_ends_change_no_word(text: str, around: str) -> None:
    assert has_same_words(text, f"{around}{text}{around}")


@given(SENTENCES, SENTENCES)
def test_the_distance_is_the_textbooks_and_unedited_words_agree(first: str, second: str) -> None:
    edit = word_edit(first, second)
    assert edit.distance == distance(folded(first), folded(second))
    assert folded(first, edit.spans_0) == folded(second, edit.spans_1)


@given(TEXTS, TEXTS)
def test_edits_of_any_texts_lie_within_them(first: str, second: str) -> None:
    edit = word_edit(first, second)
    for text, spans in ((first, edit.spans_0), (second, edit.spans_1)):
        flat = [position for span in spans for position in span]
        assert flat == sorted(set(flat))
        assert all(0 <= position <= len(text) for position in flat)
    assert (edit.distance == 0) == (not edit.spans_0 and not edit.spans_1)
    assert edit.distance == word_edit(second, first).distance
