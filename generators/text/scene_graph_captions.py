"""Captions from Action Genome's scene graphs, by the template of EqBen's appendix B.1."""

import re

# The published class names, and the noun that captions use for each.
OBJECT_NAMES = {
    "bag": "bag",
    "bed": "bed",
    "blanket": "blanket",
    "book": "book",
    "box": "box",
    "broom": "broom",
    "chair": "chair",
    "closet/cabinet": "closet",
    "clothes": "clothes",
    "cup/glass/bottle": "cup",
    "dish": "dish",
    "door": "door",
    "doorknob": "doorknob",
    "doorway": "doorway",
    "floor": "floor",
    "food": "food",
    "groceries": "groceries",
    "laptop": "laptop",
    "light": "light",
    "medicine": "medicine",
    "mirror": "mirror",
    "paper/notebook": "paper",
    "person": "person",
    "phone/camera": "phone",
    "picture": "picture",
    "pillow": "pillow",
    "refrigerator": "refrigerator",
    "sandwich": "sandwich",
    "shelf": "shelf",
    "shoe": "shoe",
    "sofa/couch": "sofa",
    "table": "table",
    "television": "television",
    "towel": "towel",
    "vacuum": "vacuum",
    "window": "window",
}
# The first slot of the template: how the relation reads after "The person is".
FIRST_SLOT = {
    "looking_at": "looking at the {}",
    "not_looking_at": "not looking at the {}",
    "carrying": "carrying the {}",
    "covered_by": "covered by the {}",
    "drinking_from": "drinking from the {}",
    "eating": "eating the {}",
    "have_it_on_the_back": "carrying the {} on the back",
    "holding": "holding the {}",
    "leaning_on": "leaning on the {}",
    "lying_on": "lying on the {}",
    "not_contacting": "not touching the {}",
    "sitting_on": "sitting on the {}",
    "standing_on": "standing on the {}",
    "touching": "touching the {}",
    "twisting": "twisting the {}",
    "wearing": "wearing the {}",
    "wiping": "wiping the {}",
    "writing_on": "writing on the {}",
}
# The second slot: where the object is relative to the person.
SECOND_SLOT = {
    "above": "above",
    "beneath": "beneath",
    "in_front_of": "in front of",
    "behind": "behind",
    "on_the_side_of": "on the side of",
    "in": "around",
}
# Relations that say nothing about the picture: they give no English caption.
UNTOLD = ("unsure", "other_relationship")


def _bare(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


_OBJECTS_BY_BARE = {_bare(name): name for name in OBJECT_NAMES}
_RELATIONS_BY_BARE = {_bare(name): name for name in (*FIRST_SLOT, *SECOND_SLOT, *UNTOLD)}


def canonical_object(name: str) -> str | None:
    """Returns the published class name for any spelling of it; None for an unknown class."""
    return _OBJECTS_BY_BARE.get(_bare(name))


def canonical_relation(name: str) -> str | None:
    """Returns the published relation name for any spelling of it; None for an unknown one."""
    return _RELATIONS_BY_BARE.get(_bare(name))


def english_captions(
    name: str, attention: tuple[str, ...], spatial: tuple[str, ...], contacting: tuple[str, ...]
) -> tuple[str, ...]:
    """Returns every caption of one object, in English, attention relations first.

    Args:
      name: canonical class name.
      attention: canonical relation names; `unsure` and `other_relationship` give no caption.
      spatial: likewise.
      contacting: likewise.

    Source: EqBen, appendix B.1, "The person is {attention} {object} which is {spatial} him/her.";
    the published captions also put contacting relations in the first slot.
    """
    noun = OBJECT_NAMES[name]
    return tuple(
        f"The person is {FIRST_SLOT[first].format(noun)} which is {SECOND_SLOT[second]} him/her."
        for first in (*attention, *contacting)
        for second in spatial
        if first in FIRST_SLOT and second in SECOND_SLOT
    )


def template_captions(
    name: str, attention: tuple[str, ...], spatial: tuple[str, ...], contacting: tuple[str, ...]
) -> tuple[str, ...]:
    """Returns the captions with the relation names put into the template unchanged.

    This is the paper's wording, with "The person is unsure the book" if the scene graph says so.
    """
    noun = OBJECT_NAMES[name]
    return tuple(
        f"The person is {first.replace('_', ' ')} the {noun} "
        f"which is {second.replace('_', ' ')} him/her."
        for first in (*attention, *contacting)
        for second in spatial
    )
