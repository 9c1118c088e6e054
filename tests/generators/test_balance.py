import random
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqforge.core.identity import bucket
from eqforge.core.word_model import WordModel
from eqforge.evaluation.shortcuts.audit import audit_pairs
from eqforge.evaluation.shortcuts.judges import likelihood_judge, probe_judges
from eqforge.generators.text import balance
from eqforge.generators.text.balance import NO_NEGATIVE, Possible, draw_negatives, features_of
from eqforge.sources.text_pairs import TextPair

COLOURS = ("red", "blue", "green", "black", "white")
THINGS = ("bus", "car", "cat", "dog", "hat", "cup", "kite", "boat")


def _captions(number: int) -> list[Possible]:
    """Captions whose colours are not equally common, and depend on the thing."""
    found = []
    for index in range(number):
        rng = random.Random(index)
        thing = rng.choice(THINGS)
        likely = [1 + 6 * ((len(thing) + place) % 3 == 0) for place in range(len(COLOURS))]
        (colour,) = rng.choices(COLOURS, likely)
        text = f"a {colour} {thing} on a {rng.choice(('table', 'road'))}"
        others = [text.replace(colour, other, 1) for other in COLOURS if other != colour]
        found.append(
            Possible(
                name=f"{index:05d}",
                image=f"{index}.jpg",
                true=(text,),
                negatives=(*others, f"no {text}"),
            )
        )
    return found


def _drawn(captions: list[Possible], seed: int = 0) -> list[tuple[str, str]]:
    places = draw_negatives(captions, seed)
    return [
        (each.true[0], each.negatives[place])
        for each, place in zip(captions, places, strict=True)
        if place != NO_NEGATIVE
    ]


def _told(pairs: list[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    texts = [
        TextPair(pair_id=str(n), image=f"{n}.jpg", positive=right, negative=wrong)
        for n, (right, wrong) in enumerate(pairs)
    ]
    audit = audit_pairs(texts, probe_judges() | {"likelihood": likelihood_judge(5)})
    return {result.probe: (result.low, result.high) for result in audit.results}


def test_blind_probes_are_at_chance_on_what_is_drawn_and_not_on_what_could_be() -> None:
    captions = _captions(2_000)
    at_random = [
        (each.true[0], random.Random(each.name).choice(each.negatives)) for each in captions
    ]

    before, after = _told(at_random), _told(_drawn(captions))

    assert min(before["words"]) > 0.7
    for probe, (low, high) in after.items():
        assert low < 0.5 < high, (probe, low, high)


def test_a_rewording_that_has_fewer_negatives_stands_in_true_and_false_texts_alike() -> None:
    """Negatives of rewordings look falser here, so that more captions of theirs are left out."""
    captions, reworded = [], set()
    for index, each in enumerate(_captions(3_000)):
        true = (each.true[0], each.true[0].replace("a ", "one ", 1))
        of_rewording = index % 2
        negatives = [text.replace("a ", ("a ", "one ")[of_rewording], 1) for text in each.negatives]
        captions.append(replace(each, true=true, negatives=tuple(negatives[of_rewording * 2 :])))
        reworded |= {each.name} if of_rewording else set()
    kept = [
        each.name
        for each, place in zip(captions, draw_negatives(captions, 0), strict=True)
        if place != NO_NEGATIVE
    ]
    share = sum(name in reworded for name in kept) / len(kept)
    assert abs(share - 0.5) < 2 / len(kept) ** 0.5


def test_every_edit_is_as_common_as_its_reverse() -> None:
    edits: Counter[tuple[str, str]] = Counter()
    for right, wrong in _drawn(_captions(3_000)):
        if not wrong.startswith("no"):
            edits[right.split()[1], wrong.split()[1]] += 1
    for (one, other), count in edits.items():
        total = count + edits[other, one]
        assert abs(count - total / 2) < 4 * total**0.5, (one, other)


def test_what_no_caption_says_is_hardly_drawn() -> None:
    """No caption of the source is a negation, so a negation would be a false one."""
    drawn = _drawn(_captions(2_000))
    assert len(drawn) > 1_000
    assert sum(wrong.startswith("no") for _, wrong in drawn) < 10


def test_how_likely_a_text_is_is_told_by_other_images_for_each_true_text() -> None:
    texts = [("a red bus", "one red bus"), ("a red car", "one red car"), ("a blue cat", "one cat")]
    images = {bucket(str(n), balance._GROUPS): str(n) for n in range(100)}
    captions = [
        Possible(name=str(n), image=images[n], true=true, negatives=(f"{true[0]} no", "one"))
        for n, true in enumerate(texts)
    ]
    expected = []
    for each in captions:
        model = WordModel()
        model.learn(text for other in captions if other.image != each.image for text in other.true)
        for negative in each.negatives:
            more = [model.score(negative) - model.score(true) for true in each.true]
            expected.append((sum(more) / 2, sum(np.sign(more)) / 2))
    found = balance._likelihoods(captions)
    np.testing.assert_allclose(found * np.std(expected, axis=0), expected, atol=1e-8)


def test_the_order_of_the_captions_changes_nothing() -> None:
    captions = _captions(300)
    shuffled = random.Random(1).sample(captions, len(captions))
    by_name = dict(zip((each.name for each in captions), draw_negatives(captions, 5), strict=True))
    assert draw_negatives(shuffled, 5) == [by_name[each.name] for each in shuffled]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(max_size=12), st.lists(st.text(max_size=12), min_size=1, max_size=4)),
        max_size=6,
    ),
    st.integers(0, 3),
)
def test_any_texts_can_be_drawn_among(texts: list[tuple[str, list[str]]], seed: int) -> None:
    captions = [
        Possible(name=str(n), image=str(n), true=(text,), negatives=tuple(negatives))
        for n, (text, negatives) in enumerate(texts)
    ]
    with patch.object(balance, "_HASHED", 1 << 12):
        places = draw_negatives(captions, seed)
        assert places == draw_negatives(captions, seed)
    for each, place in zip(captions, places, strict=True):
        assert place == NO_NEGATIVE or 0 <= place < len(each.negatives)


@pytest.mark.parametrize(
    ("text", "marks"),
    [("", Counter({"^ $": 1})), ("A cat", Counter({"#": 2, ".": 5, "_ A": 1, "_cat ": 1}))],
)
def test_features_hold_the_length_and_letters(text: str, marks: Counter[str]) -> None:
    found = Counter(features_of(text))
    assert marks <= found
