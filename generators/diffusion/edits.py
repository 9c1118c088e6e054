"""The edits of Eq-SD: which two images a pair shows, in phrases of the vocabulary.

An edit changes the object, the scene or an attribute; everything else is the same on both sides.
All edits that a vocabulary allows are listed, each in one direction only, in an order that a seed
decides: first one edit of every object, then a second one of each, and so on, so that any prefix
covers the objects evenly.

Source: EqBen, section 4.2 and appendix B.5. The paper prints pairs to which a scene or an
  attribute is added ("a photo of beach", "… at sunset"), and pairs in which one is exchanged
  ("wearing a cap", "… a crown"). The caption without the addition is true of both images.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal, get_args

from eqforge.core.identity import derive_seed
from eqforge.generators.diffusion.vocabulary import Family, Group, Phrase, Vocabulary

EditKind = Literal["object", "scene", "attribute"]
EDIT_KINDS: tuple[EditKind, ...] = get_args(EditKind)
ORDER_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """The content of an image, in the order of its caption.

    Attributes:
      style: such as `a photo`.
      before: an attribute before the noun.
      thing: the object.
      after: an attribute after the noun.
      place: where it is.
      condition: time, season, weather or light.
    """

    style: Phrase
    before: Phrase | None = None
    thing: Phrase
    after: Phrase | None = None
    place: Phrase | None = None
    condition: Phrase | None = None

    @property
    def key(self) -> str:
        """The content as text."""
        found = (self.style, self.before, self.thing, self.after, self.place, self.condition)
        return "/".join("" if phrase is None else phrase.text for phrase in found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """The contents of two images that differ in one slot.

    Attributes:
      kind: whether the object, the scene or an attribute differs.
      change: `object`, or the name of the family whose phrase is added or exchanged.
      group: the group of the object.
      slot: the field of Picture that differs; if it is added, the first has None.
      pictures: the first and the second content.
    """

    kind: EditKind
    change: str
    group: str
    slot: str
    pictures: tuple[Picture, Picture]

    @property
    def is_addition(self) -> bool:
        """Whether the second image has a phrase where the first has none."""
        return getattr(self.pictures[0], self.slot) is None


@functools.lru_cache(maxsize=2 * len(EDIT_KINDS))
def ordered_edits(
    vocabulary: Vocabulary, kind: EditKind, seed: int, additions: bool = False
) -> tuple[Edit, ...]:
    """Returns all edits of a kind in the order of a seed; about 1 s for 100,000.

    If a phrase or object is exchanged, the seed also decides which image is the first. Edits that
    add a phrase are included only with `additions`.
    """
    ranked: list[tuple[int, int, str, Edit]] = []
    for group in vocabulary.groups:
        for thing in group.objects:
            drawn = sorted(
                (*_draw(edit, seed), edit)
                for style in vocabulary.styles
                for edit in _LISTS[kind](Picture(style=style, thing=thing), group)
                if additions or not edit.is_addition
            )
            ranked += [(rank, *entry) for rank, entry in enumerate(drawn)]
    return tuple(_turned(edit, number) for _, number, _, edit in sorted(ranked))


def _draw(edit: Edit, seed: int) -> tuple[int, str]:
    """Returns the random number of an edit, and its unique key."""
    key = " | ".join(picture.key for picture in edit.pictures)
    return derive_seed(seed, key, "eq-sd order", ORDER_VERSION), key


def _turned(edit: Edit, number: int) -> Edit:
    """Returns an exchange with its images in the order given by its random number."""
    if edit.is_addition or number % 2 == 0:
        return edit
    return replace(edit, pictures=(edit.pictures[1], edit.pictures[0]))


def _object_edits(picture: Picture, group: Group) -> Iterator[Edit]:
    places = _each(picture, "place", group.places)
    conditions = _each(picture, "condition", group.conditions)
    for shared, other in product([picture, *places, *conditions], _partners(picture.thing, group)):
        pictures = (shared, replace(shared, thing=other))
        yield Edit(
            kind="object", change="object", group=group.name, slot="thing", pictures=pictures
        )


def _partners(thing: Phrase, group: Group) -> Iterator[Phrase]:
    """Yields half of the other objects, so that any two of a group are paired exactly once."""
    here = group.objects.index(thing)
    for there, other in enumerate(group.objects):
        is_first = here < there if (here + there) % 2 else here > there
        if is_first:
            yield other


def _scene_edits(picture: Picture, group: Group) -> Iterator[Edit]:
    yield from _changes("scene", picture, "place", group, group.places)
    for shared in (picture, *_each(picture, "place", group.places)):
        yield from _changes("scene", shared, "condition", group, group.conditions)


def _attribute_edits(picture: Picture, group: Group) -> Iterator[Edit]:
    for shared in (picture, *_each(picture, "place", group.places)):
        for family in group.attributes:
            yield from _changes("attribute", shared, family.position, group, (family,))


def _changes(
    kind: EditKind, picture: Picture, slot: str, group: Group, families: tuple[Family, ...]
) -> Iterator[Edit]:
    """Yields the edits that add a phrase to a picture, or exchange two of one family."""
    for family in families:
        shown = [picture, *_each(picture, slot, (family,))]
        for pictures in combinations(shown, 2):
            yield Edit(
                kind=kind, change=family.name, group=group.name, slot=slot, pictures=pictures
            )


def _each(picture: Picture, slot: str, families: tuple[Family, ...]) -> Iterator[Picture]:
    """Yields a picture with each phrase of some families in a slot."""
    for family in families:
        for phrase in family.values:
            yield replace(picture, **{slot: phrase})


_LISTS = {"object": _object_edits, "scene": _scene_edits, "attribute": _attribute_edits}
