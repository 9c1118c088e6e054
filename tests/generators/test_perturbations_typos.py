import random
from collections import Counter
from collections.abc import Callable

import pytest

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit, apply_edits
from eqforge.generators.text.perturbations.corrected import (
    NEIGHBOURING_LETTERS,
    add_character,
    drop_character,
    hit_nearby_key,
    swap_characters,
)
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.taggers import load_tagger

Typo = Callable[[Analysis, random.Random], list[Edit] | Reason]


def outcomes(typo: Typo, text: str, seeds: int = 300) -> Counter[str]:
    """What the typing error makes of a text, and how often, over many seeds."""
    (analysis,) = load_tagger().analyse([text])
    results = Counter[str]()
    for seed in range(seeds):
        edits = typo(analysis, random.Random(seed))
        assert not isinstance(edits, Reason)
        results[apply_edits(text, edits).text] += 1
    return results


def test_every_swap_that_shows_is_drawn_equally_often() -> None:
    found = outcomes(swap_characters, "a Happy cat.", seeds=1_200)
    # not "pp", and nothing across words or of the one-letter word
    expected = {"a Ahppy cat.", "a Hpapy cat.", "a Hapyp cat.", "a Happy act.", "a Happy cta."}
    assert set(found) == expected
    assert all(200 < count < 280 for count in found.values())  # 240 each; 4 deviations are 55


def test_a_character_is_dropped_from_words_of_two_or_more() -> None:
    found = outcomes(drop_character, "a bed, 42", seeds=1_000)
    assert set(found) == {"a ed, 42", "a bd, 42", "a be, 42", "a bed, 2", "a bed, 4"}
    assert all(150 < count < 250 for count in found.values())


def test_an_extra_letter_comes_from_a_neighbouring_key_in_the_same_case() -> None:
    found = outcomes(add_character, "I Ox 7up")
    expected = {f"I {n.upper()}Ox 7up" for n in NEIGHBOURING_LETTERS["o"]}
    expected |= {f"I O{n}x 7up" for n in NEIGHBOURING_LETTERS["x"]}
    expected |= {f"I Ox 7{n}up" for n in NEIGHBOURING_LETTERS["u"]}
    expected |= {f"I Ox 7u{n}p" for n in NEIGHBOURING_LETTERS["p"]}
    assert set(found) == expected


def test_a_nearby_key_replaces_letters_and_leaves_numbers_alone() -> None:
    found = outcomes(hit_nearby_key, "Ox 42")
    expected = {f"{n.upper()}x 42" for n in NEIGHBOURING_LETTERS["o"]}
    expected |= {f"O{n} 42" for n in NEIGHBOURING_LETTERS["x"]}
    assert set(found) == expected


@pytest.mark.parametrize(
    ("typo", "text"),
    [
        (swap_characters, "a b - ooo, Aa"),  # "Aa" swapped is "Aa" again
        (swap_characters, "\u00dfs"),  # folds to "sss" in either order
        (drop_character, "a b !"),
        (add_character, "42 \u4e2d\u6587"),
        (hit_nearby_key, ""),
    ],
)
def test_a_text_without_a_place_for_the_error_is_refused(typo: Typo, text: str) -> None:
    (analysis,) = load_tagger().analyse([text])
    assert typo(analysis, random.Random(0)) is Reason.NO_WORD_TO_EDIT


def test_neighbours_on_the_keyboard_are_mutual_but_for_one() -> None:
    """The package the table comes from has "d" beside "w", and not "w" beside "d"."""
    one_way = {
        (key, neighbour)
        for key, neighbours in NEIGHBOURING_LETTERS.items()
        for neighbour in neighbours
        if key not in NEIGHBOURING_LETTERS[neighbour]
    }
    assert one_way == {("w", "d")}
