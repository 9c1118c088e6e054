"""A part of a thing in two colours: a toy house with a green roof, or with a blue one."""

from collections.abc import Callable, Mapping
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
from eqforge.generators.scenes.manifest import Asset, Trim
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
        noun, colour, trim, pair = _heads(vocabulary)[number]
        (target,) = cast(drafter, (noun,), ("target",), colour, rng)
        parts = sorted(part for part, known in _trims(target.asset).items() if known == trim)
        values = either_way(pair, rng)
        first, second = (
            replace(target.variants[0], trims=tuple((part, PALETTE[each]) for part in parts))
            for each in values
        )
        piece = replace(target, variants=(first, second), colours=(*target.colours, *values))
        claim = Claim(target="target", copies=("target",), trim=trim.noun)
        captions = [trim_caption(called(target), trim, each) for each in values]
        return alone(drafter, noun, piece, "trim", (claim, claim), captions, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Returns where the thing stands, in both scenes."""
        del draft, rng
        return in_the_middle()


def _heads(vocabulary: Vocabulary) -> list[tuple[Noun, str, Trim, tuple[str, str]]]:
    """Returns things in their own colour, a part of theirs, and two colours unlike that."""
    assets = [
        asset for noun in vocabulary.nouns for some in noun.colours.values() for asset in some
    ]
    trims = {trim for asset in assets for trim in _trims(asset).values()}
    return [
        (noun, colour, trim, pair)
        for trim in sorted(trims, key=lambda each: (each.noun, each.is_plural))
        for noun in vocabulary.of_those(_having(trim))
        for colour in noun.colours
        for pair in distinct_pairs()
        if _differs(colour, pair)
    ]


def _having(trim: Trim) -> Callable[[Asset], bool]:
    return lambda asset: trim in _trims(asset).values()


def _trims(asset: Asset) -> Mapping[str, Trim]:
    return {} if asset.words is None else asset.words.trims


def _differs(colour: str, others: tuple[str, str]) -> bool:
    return all(colour not in PALETTE or are_distinct(colour, other) for other in others)
