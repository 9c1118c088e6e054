import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.analysis import find_tokens


def tokens(text: str) -> list[str]:
    return [match[0] for match in find_tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man's dog isn't here.", ["A", "man", "'s", "dog", "is", "n't", "here", "."]),
        ("They can't; it's 5 o'clock", ["They", "ca", "n't", ";", "it", "'s", "5", "o'clock"]),
        ("the masters' feet", ["the", "masters", "'", "feet"]),
        ("a close-up, at 10:30 a.m.", ["a", "close-up", ",", "at", "10:30", "a.m."]),
        ("1,000 or 3.5 on 42nd St...", ["1,000", "or", "3.5", "on", "42nd", "St", "..."]),
        ("don\u2019t", ["do", "n\u2019t"]),
        ("cafe\u0301 (red/blue)", ["cafe\u0301", "(", "red", "/", "blue", ")"]),
        ("  \n", []),
    ],
)
def test_words_numbers_and_clitics_are_told_apart(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@given(st.text())
def test_tokens_hold_every_character_but_white_space_once_and_in_order(text: str) -> None:
    spans = [match.span() for match in find_tokens(text)]
    assert all(start < end for start, end in spans)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert "".join(text[a:b] for a, b in spans) == "".join(text.split())
