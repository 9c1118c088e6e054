import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.analysis import find_tokens
from eqforge.generators.text.coordination.conjuncts import SWAP_REFUSALS
from eqforge.generators.text.coordination.swap import Swap, swap_coordination, swap_phrases
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.taggers import load_tagger
from eqforge.schemas.records.scores import Rejection
from tests.cases import cases_of
from tests.undone import invert

cases = cases_of(__file__)

TAGGER = load_tagger()


def _swap(caption: str) -> Swap | Rejection:
    return swap_coordination(TAGGER.analyse([caption])[0])


def _swapped(caption: str) -> str:
    swap = _swap(caption)
    assert isinstance(swap, Swap), swap
    return swap.edited.text


def _reason(caption: str) -> str:
    refusal = _swap(caption)
    assert isinstance(refusal, Rejection), refusal
    assert refusal.reason in SWAP_REFUSALS
    return refusal.reason


@pytest.mark.parametrize(
    ("caption", "swapped"), cases("the_papers_examples_are_swapped_as_the_paper_swaps_them")
)
def test_the_papers_examples_are_swapped_as_the_paper_swaps_them(
    caption: str, swapped: str
) -> None:
    assert _swapped(caption) == swapped


@pytest.mark.parametrize(
    ("caption", "swapped"), cases("modifiers_articles_and_capitals_stay_with_what_they_belong_to")
)
def test_modifiers_articles_and_capitals_stay_with_what_they_belong_to(
    caption: str, swapped: str | None
) -> None:
    swap = _swap(caption)
    assert (swap.edited.text if isinstance(swap, Swap) else None) == swapped


@pytest.mark.parametrize(
    ("caption", "reason"), cases("what_cannot_be_told_is_refused_with_a_reason")
)
def test_what_cannot_be_told_is_refused_with_a_reason(caption: str, reason: str) -> None:
    assert _reason(caption) == reason


def test_the_first_and_whose_sides_can_be_told_is_swapped() -> None:
    assert _swapped("a man and his black and white dog") == "a man and his white and black dog"


def test_aro_captions_are_swapped_by_their_form_alone() -> None:
    swap = swap_phrases("the sliced and and the open door")
    assert isinstance(swap, Swap)
    assert swap.edited.text == "the open door and the sliced and"
    for caption, reason in (
        ("the cat", "no_and"),
        ("the cat and a dog", "unlike_parts"),
        ("the cat and the dog and the cow", "unlike_parts"),
        ("the cat and the cat", "same_words"),
    ):
        refusal = swap_phrases(caption)
        assert isinstance(refusal, Rejection)
        assert refusal.reason == reason


def _words(text: str) -> Counter[str]:
    words = (match[0].lower() for match in find_tokens(text))
    return Counter("a" if word == "an" else word for word in words)


def _check(caption: str) -> None:
    swap = _swap(caption)
    if isinstance(swap, Rejection):
        assert swap.reason in SWAP_REFUSALS
        return
    assert swap.edited.text != caption
    assert _words(swap.edited.text) == _words(caption)
    undone = apply_edits(swap.edited.text, invert(caption, swap.edited))
    assert undone.text == caption


WORDS = st.sampled_from(
    [
        *("a", "an", "the", "two", "of", "in", "with", "and", ",", ".", "man", "dog", "red"),
        *("light", "blue", "holding", "sits", "his", "apple", "rice", "skis", "É"),
    ]
)


@given(st.text(max_size=40) | st.lists(WORDS, max_size=12).map(" ".join))
def test_a_swap_is_a_permutation_that_can_be_undone(caption: str) -> None:
    _check(caption)
    _check(f"{caption} and {caption[::-1]}")


def test_coco_captions_are_swapped_or_refused(data_folder: Path) -> None:
    """Of the paper's captions, with "and" and under 15 words, more than 2 in 5 can be told."""
    content = json.loads((data_folder / "coco" / "captions_val2017.json").read_text())
    captions = [annotation["caption"] for annotation in content["annotations"]]
    chosen = [c for c in captions if " and " in c and len(c.split()) < 15][::4]
    for caption in chosen:
        _check(caption)
    swapped = sum(isinstance(_swap(caption), Swap) for caption in chosen)
    assert swapped > len(chosen) * 0.4
