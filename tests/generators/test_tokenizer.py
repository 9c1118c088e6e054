import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.analysis import find_tokens
from tests.cases import cases_of

cases = cases_of(__file__)


@pytest.mark.parametrize(("text", "expected"), cases("words_numbers_and_clitics_are_told_apart"))
def test_words_numbers_and_clitics_are_told_apart(text: str, expected: str) -> None:
    assert [match[0] for match in find_tokens(text)] == expected.split()


@given(st.text())
def test_tokens_hold_every_character_but_white_space_once_and_in_order(text: str) -> None:
    spans = [match.span() for match in find_tokens(text)]
    assert all(start < end for start, end in spans)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert "".join(text[a:b] for a, b in spans) == "".join(text.split())
