"""A hard negative, its kinds, and why a caption has none."""

from dataclasses import dataclass
from typing import Literal, get_args

from eqforge.generators.text.edits import EditedText

NegativeKind = Literal[
    "replace_object",
    "replace_attribute",
    "replace_relation",
    "swap_object",
    "swap_attribute",
    "negation",
]
NEGATIVE_KINDS: tuple[NegativeKind, ...] = get_args(NegativeKind)

NEGATIVE_REFUSALS: dict[str, str] = {
    "no_object": "No noun has a word of the same kind to stand in its place.",
    "no_attribute": "No adjective or number has one of the same kind to stand in its place.",
    "no_relation": "No preposition or verb has one of the same kind to stand in its place.",
    "all_known": "Every word that could stand in the place is in a caption of the image.",
    "no_pair": "The caption has no two noun phrases, or no two adjectives, to exchange.",
    "same_meaning": "Exchanged, the caption would say the same: 'a cat next to a dog'.",
    "true_of_image": "Edited, the caption would say what another true one of the image says.",
    "already_negated": "The caption denies something, and an edit may change what it denies.",
    "only_possible": "The caption says what may or might be, and so may an edited one.",
    "nothing_to_negate": "The caption has no verb and no noun phrase that can be negated.",
}
"""The closed list of reasons why a caption has no hard negative, each in one sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HardNegative:
    """A caption that an edit has made false."""

    kind: NegativeKind
    edited: EditedText
