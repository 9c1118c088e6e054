import functools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.perturbations import published as typos
from eqforge.generators.text.perturbations.catalogue import PERTURBATIONS
from eqforge.generators.text.perturbations.published import (
    first_synonym,
    perturb_as_published,
    tokenize_words,
    tokens_as_in_spacy,
)
from eqforge.generators.text.perturbations.record import Perturbation, Reason
from eqforge.generators.text.taggers import load_tagger
from tests.cases import cases_of

cases = cases_of(__file__)

TYPO_FUNCTIONS = {
    "char_swap": typos.swap_characters,
    "missing_char": typos.drop_character,
    "extra_char": typos.add_character,
    "nearby_char": typos.hit_nearby_key,
}


def published(name: str, text: str, seed: int = 0) -> Perturbation:
    (analysis,) = load_tagger().analyse([text])
    made = PERTURBATIONS[name].published
    assert made is not None
    return perturb_as_published(name, made, analysis, random.Random(seed))


@pytest.mark.parametrize(("places", "index"), [(30, 20), (35, 7), (40, 7), (45, 40)])
def test_every_caption_with_as_many_characters_is_damaged_at_one_place(
    places: int, index: int
) -> None:
    """The indices that were measured on the published code."""
    text = "abcdefghij" * 5
    text = text[:places]
    assert typos.drop_character(text) == text[:index] + text[index + 1 :]


@pytest.mark.parametrize("name", TYPO_FUNCTIONS)
@given(text=st.text(max_size=40) | st.text("aAbB1 9_\u00df\u0130.", max_size=12))
def test_typing_errors_are_those_of_the_package_typo(name: str, text: str) -> None:
    typo = pytest.importorskip("typo")
    try:
        expected = getattr(typo.StrErrer(text, seed=42), name)().result
    except KeyError:  # a digit of another script, looked for on the numeric pad
        with pytest.raises(KeyError):
            TYPO_FUNCTIONS[name](text)
    else:
        assert TYPO_FUNCTIONS[name](text) == expected


@pytest.mark.parametrize("name", TYPO_FUNCTIONS)
def test_typing_errors_in_coco_captions_are_those_of_the_package_typo(
    name: str, data_folder: Path
) -> None:
    typo = pytest.importorskip("typo")
    path = data_folder / "coco" / "captions_val2017.json"
    captions = [item["caption"] for item in json.loads(path.read_text())["annotations"]]
    for caption in captions[::10]:
        expected = getattr(typo.StrErrer(caption, seed=42), name)().result
        assert TYPO_FUNCTIONS[name](caption) == expected


def test_a_failure_of_the_code_leaves_the_caption_as_it_was() -> None:
    text = next(
        digits
        for digits in ("\u0665" * n for n in range(1, 30))
        if published("nearby_char", digits).reason is Reason.CODE_FAILED
    )
    result = published("nearby_char", text)
    assert (result.text, result.applied) == (text, False)


@pytest.mark.usefixtures("wordnet")
@pytest.mark.parametrize(
    ("name", "text", "expected"), cases("words_are_changed_as_by_the_published_code")
)
def test_words_are_changed_as_by_the_published_code(name: str, text: str, expected: str) -> None:
    assert published(name, text).text == expected


def test_the_first_synonym_is_of_any_sense_and_part_of_speech(wordnet: Any) -> None:
    def reference(word: str) -> str | None:
        synonyms: list[str] = []
        for sense in wordnet.synsets(word):
            for lemma in sense.lemmas():
                name = lemma.name()
                if name not in synonyms and name.lower() != word.lower():
                    synonyms.append(name.replace("_", " "))
        return synonyms[0] if synonyms else None

    for word in ("man", "couch", "Box", "open", "next", "grass", "skateboard", "zzz", "Zebras"):
        assert first_synonym(word) == reference(word)


def test_tokens_are_nltks_with_sentences_split_at_every_end_mark() -> None:
    assert tokenize_words('A dog isn\'t here. He "runs"!  Yes') == [
        *("A", "dog", "is", "n't", "here", ".", "He", "``", "runs", "''", "!", "Yes")
    ]


@functools.cache
def blank_english() -> Any:
    import spacy

    return spacy.blank("en")


@given(st.text("ab \n\t", max_size=12))
def test_white_space_becomes_tokens_as_in_spacy(text: str) -> None:
    doc = blank_english()(text)
    tokens = tuple(
        Token(text=t.text, start=t.idx, end=t.idx + len(t.text), tag="NN", lemma="")
        for t in doc
        if not t.is_space
    )
    analysis = Analysis(text=text, tokens=tokens, noun_phrases=(), tagger="blank")
    assert [word for word, _ in tokens_as_in_spacy(analysis)] == [token.text for token in doc]


@pytest.mark.parametrize(
    ("name", "text", "possible"), cases("shuffles_draw_every_order_the_captions_own_included")
)
def test_shuffles_draw_every_order_the_captions_own_included(
    name: str, text: str, possible: set[str]
) -> None:
    assert {published(name, text, seed).text for seed in range(200)} == possible


def test_a_statement_after_a_long_caption_is_stored_but_not_encoded() -> None:
    text = "a " * 160
    result = published("distraction_true", text)
    assert result.text == text + " and true it true."
    assert (result.applied, result.words_changed, result.reason) == (True, False, None)
    assert published("distraction_true", "a " * 140).words_changed


def test_an_unchanged_caption_is_told() -> None:
    result = published("char_swap", "a  oo")
    assert (result.text, result.applied, result.reason) == ("a  oo", False, Reason.UNCHANGED)
    assert result.spans_before == result.spans_after == ()


@pytest.mark.usefixtures("wordnet")
def test_a_caption_that_was_only_spaced_otherwise_has_its_words(wordnet: Any) -> None:
    text = 'A man\'s "zzz", near him.'
    for name, changed in (("synonym_noun", True), ("synonym_adj", False)):
        result = published(name, text)
        assert (result.applied, result.words_changed) == (True, changed)
    assert published("synonym_adj", text).text == "A man 's `` zzz '' , near him ."


def test_the_changed_stretch_is_one_span_of_either_text() -> None:
    text = "A cat sits."
    result = published("distraction_true", text)
    (before,), (after,) = result.spans_before, result.spans_after
    assert text[: before.start] == result.text[: after.start]
    assert text[before.end :] == result.text[after.end :]
    assert result.text[after.start : after.end] == " and true it true"
