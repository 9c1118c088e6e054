import random
from importlib.resources import files
from typing import Any

import pytest

from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.perturbations.synonyms import (
    find_synonyms,
    match_case,
    replace_by_synonyms,
)
from eqforge.generators.text.taggers import load_tagger


def replaced(text: str, pos: Any, max_words: int = 1) -> set[str]:
    """All texts that seeds 0 to 39 give; empty where the caption is refused."""
    (analysis,) = load_tagger().analyse([text])
    found = set()
    for seed in range(40):
        edits = replace_by_synonyms(analysis, random.Random(seed), pos, max_words)
        if not isinstance(edits, Reason):
            found.add(apply_edits(text, edits).text)
    return found


@pytest.mark.usefixtures("wordnet")
@pytest.mark.parametrize(
    ("text", "pos", "expected"),
    [
        ("A couch.", "n", {"A sofa."}),
        ("A wet TV.", "n", {"A wet television."}),
        ("TV on top", "n", {"Television on top"}),
        ("A TV", "n", {"A TELEVISION"}),
        ("A car, parked", "n", {"An automobile, parked", "An auto, parked"}),
        ("near an  airplane", "n", {"near a  plane"}),
        ("Two young Children", "n", {"Two young Kids", "Two young Youngsters"}),
        ("A LARGE CAT", "a", {"A BIG CAT"}),
        ("the largest cat", "a", {"the biggest cat"}),
        ("A dirty plate", "a", {"A filthy plate", "A soiled plate"}),
        ("the baby sleeps", "n", {"the infant sleeps", "the babe sleeps"}),  # WordNet's
    ],
)
def test_synonyms_take_the_form_of_the_word_and_the_article_agrees(
    text: str, pos: Any, expected: set[str]
) -> None:
    assert replaced(text, pos) == expected


@pytest.mark.usefixtures("wordnet")
@pytest.mark.parametrize(
    ("text", "pos"),
    [
        ("a tennis court", "n"),  # the sense on the picture is not WordNet's first
        ("a car park", "n"),  # a compound has a sense of its own
        ("a couch-bed", "n"),
        ("a glass of red wine", "a"),
        ("in the center of", "n"),
        ("Ford and Obama", "n"),  # names
        ("they run", "n"),
        ("several axes around", "n"),  # the plural of "axis", too
        ("a couch", "a"),
        ("", "n"),
    ],
)
def test_words_without_a_sure_synonym_are_refused(text: str, pos: Any) -> None:
    (analysis,) = load_tagger().analyse([text])
    assert replace_by_synonyms(analysis, random.Random(0), pos) is Reason.NO_SYNONYM


@pytest.mark.usefixtures("wordnet")
def test_up_to_k_words_are_replaced() -> None:
    text = "a couch, a rug and a stone"
    assert replaced(text, "n", max_words=1) == {
        "a sofa, a rug and a stone",
        "a couch, a carpet and a stone",
        "a couch, a rug and a rock",
    }
    assert replaced(text, "n", max_words=3) == {"a sofa, a carpet and a rock"}
    assert replaced(text, "n", max_words=9) == {"a sofa, a carpet and a rock"}


def test_wordnets_synonyms_share_the_first_sense_and_are_common(wordnet: Any) -> None:
    for lemma, pos in (("infant", "n"), ("baby", "n"), ("bathtub", "n"), ("immense", "a")):
        for synonym in find_synonyms(lemma, pos):
            assert wordnet.synsets(synonym, pos)[0] == wordnet.synsets(lemma, pos)[0]
    assert find_synonyms("baby", "n") == ("babe", "infant")
    assert find_synonyms("giraffe", "n") == ()  # "camelopard" is never met
    assert find_synonyms("flurb", "n") == ()


@pytest.mark.parametrize(
    ("replacement", "word", "cased"),
    [("sofa", "couch", "sofa"), ("sofa", "Couch", "Sofa"), ("sofa", "COUCH", "SOFA")],
)
def test_letter_case_follows_the_word_replaced(replacement: str, word: str, cased: str) -> None:
    assert match_case(replacement, word) == cased


def test_the_list_for_captions_is_sorted_and_no_word_is_its_own_synonym() -> None:
    resource = files("eqforge.generators.text") / "data" / "caption_synonyms.tsv"
    header, *lines = resource.read_text(encoding="utf-8").splitlines()
    rows = [tuple(line.split("\t")) for line in lines]
    assert header.split("\t") == ["pos", "word", "synonyms"]
    keys = [row[:2] for row in rows]
    assert keys == sorted(set(keys), key=lambda key: (key[0] != "n", key[1]))
    for pos, word, synonyms in rows:
        assert pos in ("n", "a")
        assert word.isalpha()
        for synonym in filter(None, synonyms.split(",")):
            assert synonym.isalpha()
            assert synonym != word
