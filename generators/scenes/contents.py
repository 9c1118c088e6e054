"""Enumerate the contents of scene pairs, each once, in an order that the seed decides.

A content is what a caption says: which object, in which colour, how related to which other object,
in two versions. The contents of a kind are numbered, and the n-th pair takes the n-th of a
permutation. So no two pairs say the same, and any pair can be made without the earlier ones.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from eqforge.core.errors import InputError
from eqforge.generators.scenes.manifest import MATERIALS as ALL_MATERIALS
from eqforge.generators.scenes.manifest import Asset, AssetWords
from eqforge.generators.scenes.palette import PALETTE, are_distinct, distinct_pairs
from eqforge.schemas.records.scenes import Attribute, Relation, SurfaceMaterial

RELATIONS: tuple[Relation, ...] = ("left", "right", "front", "behind")
MATERIALS: tuple[SurfaceMaterial, ...] = ("rubber", "metal", "glass")  # on the plain stage
SIZES = ("small", "large")
SHAPE_TOLERANCE = 0.1  # of the sides of two scans that are exchanged, as shares of the longest
PLAIN = ""  # instead of a colour: the asset as it is, if no word names its colour


@dataclass(frozen=True, kw_only=True, slots=True)
class Noun:
    """The words of a noun, and its assets by possible colour (PLAIN: unnamed) and material."""

    words: AssetWords
    colours: Mapping[str, tuple[Asset, ...]]
    materials: Mapping[str, tuple[Asset, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AttributeContent:
    """One object next to another, with two values of one attribute, in no order.

    The colour is None if it changes or no caption names it, and PLAIN if materials keep their own.
    """

    change: Attribute
    noun: Noun
    colour: str | None
    values: tuple[str, str]
    relation: Relation
    reference: Noun


class Vocabulary:
    """The contents that the assets of a manifest allow; assets without words are left out.

    With `by_noun`, only materials that an asset's words name may change. Otherwise everything that
    can be recoloured is rubber, metal or glass, as on the plain stage.
    """

    def __init__(self, assets: Iterable[Asset], max_count: int, by_noun: bool = False) -> None:
        self._by_noun = by_noun
        named = [asset for asset in assets if asset.kind == "object" and asset.words]
        self.nouns = _nouns(named)
        self._places = {noun.words.noun: place for place, noun in enumerate(self.nouns)}
        self.supports = [asset for asset in named if "support" in asset.naming.roles]
        self.counts = tuple(combinations(range(1, max_count + 1), 2))
        if len(self.nouns) < 3:
            raise InputError(
                "expected 3 or more nouns of objects in `words` of the asset manifest, found "
                f"{len(self.nouns)}; to add words, run `eqforge assets fetch --words FILE`"
            )

    def attributes(self, change: Attribute) -> int:
        return len(self._heads[change]) * len(RELATIONS) * (len(self.nouns) - 1)

    def attribute(self, change: Attribute, number: int) -> AttributeContent:
        number, far = divmod(number, len(self.nouns) - 1)
        head, relation = divmod(number, len(RELATIONS))
        noun, colour, values = self._heads[change][head]
        return AttributeContent(
            change=change,
            noun=noun,
            colour=colour,
            values=values,
            relation=RELATIONS[relation],
            reference=self.other(noun, far),
        )

    @property
    def of_materials(self) -> int:
        return len({noun.words.noun for noun, _, _ in self._heads["material"]})

    @property
    def locations(self) -> int:
        return len(self.coloured) * len(RELATION_PAIRS) * (len(self.nouns) - 1)

    @property
    def countings(self) -> int:
        return len(self.countable) * len(self.counts)

    def other(self, noun: Noun, far: int) -> Noun:
        return self.nouns[(self._places[noun.words.noun] + 1 + far) % len(self.nouns)]

    @cached_property
    def coloured(self) -> list[tuple[Noun, str]]:
        return [(noun, colour) for noun in self.nouns for colour in noun.colours]

    def of_those(self, is_able: Callable[[Asset], bool]) -> list[Noun]:
        able = [
            {colour: tuple(filter(is_able, assets)) for colour, assets in noun.colours.items()}
            for noun in self.nouns
        ]
        kept = (
            {colour: assets for colour, assets in colours.items() if assets} for colours in able
        )
        return [
            replace(noun, colours=colours)
            for noun, colours in zip(self.nouns, kept, strict=True)
            if colours
        ]

    @cached_property
    def countable(self) -> list[tuple[Noun, str, Asset]]:
        return [
            (noun, colour, support)
            for noun, colour in self.coloured
            for support in self.supports
            if not noun.words.is_plural and support.naming.noun != noun.words.noun
        ]

    @cached_property
    def _heads(self) -> Mapping[Attribute, Sequence[tuple[Noun, str | None, tuple[str, str]]]]:
        return {
            "colour": [
                (noun, None, pair)
                for noun in self.nouns
                for pair in distinct_pairs()
                if coloured_pairs(noun, pair)
            ],
            "size": [(noun, colour, (SIZES[0], SIZES[1])) for noun, colour in self.coloured],
            "material": [
                (noun, PLAIN if self._by_noun else None, pair)
                for noun in self.nouns
                for pair in self._material_pairs(noun)
            ],
        }

    def _material_pairs(self, noun: Noun) -> list[tuple[str, str]]:
        if self._by_noun:
            # A rubber duck made of metal contradicts itself.
            if not MATERIAL_WORDS.isdisjoint(re.split(r"[^a-z]+", noun.words.noun.lower())):
                return []
            return [pair for pair in combinations(noun.materials, 2) if exchangeable(noun, pair)]
        contradicts = set(noun.words.noun.split()) & set(MATERIALS)
        if contradicts or not material_colours(noun):
            return []
        return list(combinations(MATERIALS, 2))


RELATION_PAIRS: tuple[tuple[Relation, Relation], ...] = tuple(combinations(RELATIONS, 2))


def recolourable(noun: Noun, colours: Iterable[str]) -> tuple[Asset, ...]:
    wanted = [{each.asset_id for each in noun.colours.get(colour, ())} for colour in colours]
    first = next(iter(colours))
    return tuple(
        asset
        for asset in noun.colours.get(first, ())
        if asset.naming.is_recolourable and all(asset.asset_id in ids for ids in wanted)
    )


def coloured_pairs(noun: Noun, colours: tuple[str, str]) -> list[tuple[Asset, Asset]]:
    first, second = (
        [each for each in noun.colours.get(colour, ()) if _own_colour(each) == colour]
        for colour in colours
    )
    exchanged = [(a, b) for a in first for b in second if _are_alike(a, b)]
    return [(asset, asset) for asset in recolourable(noun, colours)] + exchanged


def exchangeable(noun: Noun, materials: tuple[str, str]) -> tuple[Asset, ...]:
    second = {asset.asset_id for asset in noun.materials.get(materials[1], ())}
    return tuple(
        asset for asset in noun.materials.get(materials[0], ()) if asset.asset_id in second
    )


def material_colours(noun: Noun) -> list[str]:
    """Return a noun's colours for material changes; not black, which hides the material."""
    return [colour for colour in noun.colours if colour != "black" and recolourable(noun, [colour])]


MATERIAL_WORDS = frozenset(
    {
        *("rubber", "metal", "metallic", "steel", "iron", "tin", "brass", "copper", "silver"),
        *("gold", "aluminium", "aluminum", "glass", "glasses", "crystal", "wood", "wooden"),
        *("plastic", "ceramic", "porcelain", "clay", "stone", "paper", "cardboard", "leather"),
        *("fabric", "cloth"),
    }
)


def far_colours(noun: Noun, others: Iterable[str]) -> list[str]:
    named = [colour for colour in others if colour in PALETTE]
    return [
        colour
        for colour in noun.colours
        if colour not in PALETTE or all(are_distinct(colour, other) for other in named)
    ]


def _nouns(assets: Sequence[Asset]) -> tuple[Noun, ...]:
    groups: dict[str, list[Asset]] = {}
    for asset in sorted(assets, key=lambda each: each.asset_id):
        if "object" in asset.naming.roles:
            groups.setdefault(asset.naming.noun, []).append(asset)
    found = []
    for group in (groups[name] for name in sorted(groups)):
        colours = [
            *PALETTE,
            *(colour for asset in group if (colour := _own_colour(asset)) not in PALETTE),
        ]
        able = {c: tuple(asset for asset in group if _can_have(asset, c)) for c in colours}
        made_of = {
            material: tuple(
                asset
                for asset in group
                if asset.naming.is_recolourable and material in asset.naming.materials
            )
            for material in ALL_MATERIALS
        }
        found.append(
            Noun(
                words=group[0].naming,
                colours={c: members for c, members in able.items() if members},
                materials={m: members for m, members in made_of.items() if members},
            )
        )
    return tuple(found)


def _can_have(asset: Asset, colour: str) -> bool:
    if colour == _own_colour(asset):
        return True
    words = asset.naming
    return words.is_recolourable and colour in PALETTE and colour not in words.clashes


def _own_colour(asset: Asset) -> str:
    return asset.naming.colour or PLAIN


def _are_alike(first: Asset, second: Asset) -> bool:
    one, two = first.naming, second.naming
    sides = [[side / max(asset.extent) for side in asset.extent] for asset in (first, second)]
    return (
        first != second
        and (one.detail, one.is_plural, one.size) == (two.detail, two.is_plural, two.size)
        and max(abs(a - b) for a, b in zip(*sides, strict=True)) <= SHAPE_TOLERANCE
    )
