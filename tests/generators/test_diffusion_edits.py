"""The edits that a vocabulary allows: all of them, none twice, in an order that a seed decides."""

from collections import Counter
from itertools import combinations, islice

import pytest

from eqforge.generators.diffusion.prompts import EDIT_KINDS, Edit, EditKind, Picture, ordered_edits
from eqforge.generators.diffusion.vocabulary import (
    Family,
    Group,
    Phrase,
    Vocabulary,
    load_vocabulary,
)


def phrase(text: str) -> Phrase:
    first, _, rest = text.partition(" ")
    return Phrase(first, tuple(rest.split())) if first in ("a", "an") else Phrase("", (text,))


def family(name: str, position: str, *values: str) -> Family:
    return Family(name=name, position=position, values=tuple(map(phrase, values)))  # type: ignore[arg-type]


ANIMALS = Group(
    name="animals",
    objects=tuple(map(phrase, ("a horse", "a goat", "a deer"))),
    places=(family("ground", "after", "outside", "inside"),),
    conditions=(family("time", "after", "early", "now", "late"),),
    attributes=(family("colour", "before", "a red", "a blue"),),
)
SMALL = Vocabulary(
    styles=(phrase("a photo"), phrase("a painting")), groups=(ANIMALS,), published=()
)


def differing(edit: Edit) -> list[str]:
    first, second = edit.pictures
    names = ("style", "before", "thing", "after", "place", "condition")
    return [name for name in names if getattr(first, name) != getattr(second, name)]


def test_every_edit_of_a_small_vocabulary_is_there() -> None:
    """Counted by hand, for each of two styles.

    Objects: 3 pairs, with none, 2 places or 3 conditions. Scenes: for 3 objects, places 2 added
    and 1 exchanged, and conditions, beside none or 2 places, 3 added and 3 exchanged. Attributes:
    for 3 objects, beside none or 2 places, 2 added and 1 exchanged.
    """
    found = {kind: len(ordered_edits(SMALL, kind, 0, additions=True)) for kind in EDIT_KINDS}
    assert found == {"object": 2 * 3 * 6, "scene": 2 * 3 * (3 + 3 * 6), "attribute": 2 * 3 * 3 * 3}
    found = {kind: len(ordered_edits(SMALL, kind, 0)) for kind in EDIT_KINDS}
    assert found == {"object": 2 * 3 * 6, "scene": 2 * 3 * (1 + 3 * 3), "attribute": 2 * 3 * 3}


@pytest.mark.parametrize("additions", [True, False])
@pytest.mark.parametrize("kind", EDIT_KINDS)
def test_an_edit_changes_one_slot_and_says_which(kind: EditKind, additions: bool) -> None:
    edits = ordered_edits(SMALL, kind, 0, additions)
    assert any(edit.is_addition for edit in edits) == (additions and kind != "object")
    for edit in edits:
        assert differing(edit) == [edit.slot]
        assert edit.kind == kind
        assert edit.group == "animals"
        assert getattr(edit.pictures[1], edit.slot) is not None
        assert edit.is_addition == (getattr(edit.pictures[0], edit.slot) is None)


def test_every_two_objects_of_a_group_meet_once_in_each_scene() -> None:
    plain = [
        frozenset(picture.thing.text for picture in edit.pictures)
        for edit in ordered_edits(SMALL, "object", 0)
        if edit.pictures[0] == Picture(style=phrase("a photo"), thing=edit.pictures[0].thing)
    ]
    names = [thing.text for thing in ANIMALS.objects]
    assert Counter(plain) == Counter(map(frozenset, combinations(names, 2)))


@pytest.mark.parametrize("additions", [True, False])
def test_any_number_from_the_start_covers_the_objects_evenly(additions: bool) -> None:
    vocabulary = load_vocabulary()
    things = [thing.text for group in vocabulary.groups for thing in group.objects]
    for kind in EDIT_KINDS:
        first = islice(ordered_edits(vocabulary, kind, 0, additions), 3 * len(things))
        named = Counter(picture.thing.text for edit in first for picture in edit.pictures)
        assert set(named) == set(things)
        if kind != "object":
            assert set(named.values()) == {6}  # three edits of two pictures each


def test_the_seed_decides_the_order_and_which_picture_comes_first() -> None:
    orders = [ordered_edits(SMALL, "object", seed) for seed in (0, 1)]
    contents = [{frozenset(p.key for p in edit.pictures) for edit in order} for order in orders]
    assert orders[0] != orders[1]
    assert contents[0] == contents[1]
    directions = Counter(
        edit.pictures[0].thing.text < edit.pictures[1].thing.text
        for edit in ordered_edits(load_vocabulary(), "object", 0)
    )
    assert 0.45 < directions[True] / directions.total() < 0.55


def test_more_words_leave_the_order_of_the_others_as_it_was() -> None:
    """The order of the edits of one object comes from what they say, not from where they stand."""
    longer = family("time", "after", "early", "never", "now", "late")
    group = Group(
        name="animals",
        objects=ANIMALS.objects,
        places=ANIMALS.places,
        conditions=(longer,),
        attributes=ANIMALS.attributes,
    )
    more = Vocabulary(styles=SMALL.styles, groups=(group,), published=())

    def of_the_horse(vocabulary: Vocabulary) -> list[Edit]:
        edits = ordered_edits(vocabulary, "scene", 0)
        return [
            edit
            for edit in edits
            if edit.pictures[0].thing.text == "a horse"
            and not any("never" in picture.key for picture in edit.pictures)
        ]

    assert of_the_horse(more) == of_the_horse(SMALL)
