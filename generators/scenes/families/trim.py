"""A part of a thing in two colours: a toy house with a green roof, or with a blue one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from eqforge.generators.scenes.captions import trim_caption
from eqforge.generators.scenes.contents import Noun, Vocabulary
from eqforge.generators.scenes.drafts import Drafter, called, either_way
from eqforge.generators.scenes.families.base import (
    Spots,
    StagedDraft,
    alone,
    cast,
    in_the_middle,
)
from eqforge.generators.scenes.manifest import Asset
from eqforge.generators.scenes.palette import PALETTE, are_distinct, distinct_pairs
from eqforge.schemas.records.scenes import Claim, Kind


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A thing a part of which has two colours."""

    kind: Kind = "trim"

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""
        return len(_heads(vocabulary))

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents."""
        noun, colour, part, pair = _heads(vocabulary)[number]
        (target,) = cast(drafter, (noun,), ("target",), colour, rng)
        words = target.asset.words
        assert words is not None
        values = either_way(pair, rng)
        first, second = (
            replace(target.variants[0], trims=((part, PALETTE[each]),)) for each in values
        )
        piece = replace(target, variants=(first, second), colours=(*target.colours, *values))
        claim = Claim(target="target", copies=("target",), trim=part)
        captions = [trim_caption(called(target), words.trims[part], each) for each in values]
        return alone(drafter, noun, piece, "trim", (claim, claim), captions, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Returns where the thing stands, in both scenes."""
        del draft, rng
        return in_the_middle()


def _heads(vocabulary: Vocabulary) -> list[tuple[Noun, str, str, tuple[str, str]]]:
    """Returns things in their own colour, a part of theirs, and two colours unlike that."""
    heads = []
    for noun, colour in vocabulary.coloured:
        parts = sorted({part for asset in noun.colours[colour] for part in _parts(asset)})
        for part in parts:
            able = tuple(asset for asset in noun.colours[colour] if part in _parts(asset))
            colours: Mapping[str, tuple[Asset, ...]] = {colour: able}
            some = replace(noun, colours=colours)
            heads += [
                (some, colour, part, pair) for pair in distinct_pairs() if _differs(colour, pair)
            ]
    return heads


def _parts(asset: Asset) -> list[str]:
    return [] if asset.words is None else [*asset.words.trims]


def _differs(colour: str, others: tuple[str, str]) -> bool:
    return all(colour not in PALETTE or are_distinct(colour, other) for other in others)
