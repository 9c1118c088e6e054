import random
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.caption_words import ANY_NOUN, caption_synonyms
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.perturbations.synonyms import match_case, replace_by_synonyms
from eqforge.generators.text.taggers import load_tagger
from eqforge.generators.text.words import is_in_fixed_expression, is_in_function_phrase
from tests.cases import cases_of

cases = cases_of(__file__)

WORDS = (
    *("A", "a", "old", "man's", "man", "women's", "next", "to", "top", "of", "TV", "many,"),
    *("dogs", "red", "big", "couch.", "\u00e9t\u00e9", "8"),
)


def replaced(text: str, pos: Any, max_words: int = 1) -> set[str]:
    """All texts that seeds 0 to 39 give; empty where the caption is refused."""
    (analysis,) = load_tagger().analyse([text])
    found = set()
    for seed in range(40):
        edits = replace_by_synonyms(analysis, random.Random(seed), pos, max_words)
        if not isinstance(edits, Reason):
            found.add(apply_edits(text, edits).text)
    return found


@pytest.mark.parametrize(
    ("text", "pos", "expected"), cases("synonyms_take_the_form_of_the_word_and_the_article_agrees")
)
def test_synonyms_take_the_form_of_the_word_and_the_article_agrees(
    text: str, pos: Any, expected: set[str]
) -> None:
    assert replaced(text, pos) == expected


@pytest.mark.parametrize(("text", "pos"), cases("words_without_a_sure_synonym_are_refused"))
def test_words_without_a_sure_synonym_are_refused(text: str, pos: Any) -> None:
    (analysis,) = load_tagger().analyse([text])
    assert replace_by_synonyms(analysis, random.Random(0), pos) is Reason.NO_SYNONYM


def test_up_to_k_words_are_replaced() -> None:
    text = "a couch, a rug and a stone"
    assert replaced(text, "n", max_words=1) == {
        "a sofa, a rug and a stone",
        "a couch, a carpet and a stone",
        "a couch, a rug and a rock",
    }
    assert replaced(text, "n", max_words=3) == {"a sofa, a carpet and a rock"}
    assert replaced(text, "n", max_words=9) == {"a sofa, a carpet and a rock"}


@pytest.mark.parametrize(
    ("text", "pos", "expected"), cases("a_synonym_is_taken_where_its_conditions_hold")
)
def test_a_synonym_is_taken_where_its_conditions_hold(
    text: str, pos: Any, expected: set[str]
) -> None:
    assert replaced(text, pos) == expected


def test_phrases_of_grammar_have_no_nouns_and_adjectives() -> None:
    text = "Next to it, ON TOP OF it"
    assert is_in_function_phrase(text, 0, 4)
    assert is_in_function_phrase(text, 15, 18)
    assert not is_in_function_phrase(text, 8, 10)
    assert not is_in_fixed_expression(text, 0, 4)


@given(st.text(max_size=30) | st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join))
def test_any_text_is_replaced_word_by_word_or_refused(text: str) -> None:
    (analysis,) = load_tagger().analyse([text])
    for pos in ("n", "a"):
        edits = replace_by_synonyms(analysis, random.Random(0), pos, max_words=3)
        if isinstance(edits, Reason):
            assert edits is Reason.NO_SYNONYM
            continue
        replaced_words = [text[edit.start : edit.end] for edit in edits]
        assert all(word.strip() == word != "" for word in replaced_words)
        assert apply_edits(text, edits).text.lower() != text.lower()


@pytest.mark.parametrize(
    ("replacement", "word", "cased"),
    [("sofa", "couch", "sofa"), ("sofa", "Couch", "Sofa"), ("sofa", "COUCH", "SOFA")],
)
def test_letter_case_follows_the_word_replaced(replacement: str, word: str, cased: str) -> None:
    assert match_case(replacement, word) == cased


def test_the_list_for_captions_is_sorted_and_no_word_is_its_own_synonym() -> None:
    resource = files("eqforge.generators.text") / "data" / "caption_synonyms.tsv"
    header, *lines = resource.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    assert header.split("\t") == ["pos", "word", "synonyms", "before", "unless"]
    keys = [tuple(row[:2]) for row in rows]
    assert keys == sorted(keys, key=lambda key: (key[0] != "n", key[1]))
    for pos, word, *lists in rows:
        assert pos in ("n", "a")
        for cell in lists:
            names = cell.split(",") if cell else []
            assert len(set(names)) == len(names)
            assert all(name.replace("-", "").isalpha() for name in names)
        assert word.isalpha()
        assert word not in lists[0].split(",")


def test_only_the_last_row_of_a_word_holds_everywhere() -> None:
    """A row behind one without conditions is never reached, and neither are two alike."""
    for rows in caption_synonyms().values():
        assert all(row.before or row.unless for row in rows[:-1])
        assert all(name == name.lower() or name == ANY_NOUN for row in rows for name in row.before)
