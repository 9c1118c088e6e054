"""Drafts of scene pairs: which objects, in which colours, with which captions; not yet where."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from eqforge.generators.scenes.captions import Mode, Phrase, counting_caption, related_caption
from eqforge.generators.scenes.contents import (
    PLAIN,
    AttributeContent,
    CountingContent,
    LocationContent,
    Noun,
    coloured_pairs,
    exchangeable,
    far_colours,
    material_colours,
    recolourable,
)
from eqforge.generators.scenes.manifest import MATERIALS, Asset
from eqforge.generators.scenes.palette import PALETTE
from eqforge.generators.scenes.pieces import CountedDraft, Piece, RelatedDraft, colours_of
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import SceneObject, SurfaceMaterial, Vector

T = TypeVar("T")
SIZE_FACTORS = {"small": 0.65, "large": 1.3}
"""Scales of a small and a large object relative to the usual size; the ratio is 2."""

COPY_FACTOR = 0.9
"""Scale of objects on a support, relative to the usual size."""

LEAST_FACTOR = 0.65
"""Of distractors on a support: smaller ones would hardly be seen."""

SUPPORT_SIDE_M = 2.9


@dataclass(frozen=True, slots=True)
class Drafter:
    """Turns contents into drafts; what a content leaves open is drawn at random.

    Args:
      nouns: all nouns, for distractors.
      mode: how captions are worded.
      max_distractors, min_distractors: maximum and minimum number of distractors in a scene.
      crowd_m: bulk that one copy may have where all are seen apart: about the mean of its height
        and of its width across corners. It falls with the root of their number.
    """

    nouns: tuple[Noun, ...]
    mode: Mode
    max_distractors: int
    min_distractors: int = 0
    crowd_m: float = 1.12

    def attribute(self, content: AttributeContent, rng: Random) -> RelatedDraft:
        """Draft a pair in which an attribute of the target changes."""
        if content.change == "material" and content.colour is None:
            content = replace(content, colour=rng.choice(material_colours(content.noun)))
        values = shuffled(content.values, rng)
        said = content.values if content.colour is None else _words_of(content.colour)
        assets = rng.choice(_able(content))
        if values != content.values:
            assets = (assets[1], assets[0])
        target = Piece(
            asset=assets[0],
            other=assets[1] if assets[1] != assets[0] else None,
            variants=_variants(content, assets, values),
            colours=said,
        )
        reference = self._another(content.reference, said, "reference", rng)
        calls = [_adjectives(content, value) for value in values]
        return RelatedDraft(
            change=content.change,
            target=target,
            reference=reference,
            distractors=self._distractors((content.noun, content.reference), said, "", rng),
            relations=(content.relation, content.relation),
            captions=_both(
                related_caption(
                    self.mode,
                    "attribute",
                    _phrase(asset, call),
                    content.relation,
                    label(reference),
                )
                for asset, call in zip(assets, calls, strict=True)
            ),
        )

    def location(self, content: LocationContent, rng: Random) -> RelatedDraft:
        """Draft a pair in which the target's place changes."""
        relations = shuffled(content.relations, rng)
        asset = rng.choice(content.noun.colours[content.colour])
        target = _piece(asset, content.colour, "target")
        reference = self._another(content.reference, (content.colour,), "reference", rng)
        nouns = (content.noun, content.reference)
        return RelatedDraft(
            change="position",
            target=target,
            reference=reference,
            distractors=self._distractors(nouns, (content.colour,), "", rng),
            relations=relations,
            captions=_both(
                related_caption(self.mode, "location", label(target), where, label(reference))
                for where in relations
            ),
        )

    def counting(self, content: CountingContent, rng: Random) -> CountedDraft:
        """Draft a pair in which the number of copies changes."""
        counts = shuffled(content.counts, rng)
        asset = rng.choice(content.noun.colours[content.colour])
        names = [f"copy{number}" for number in range(1, max(counts) + 1)]
        width, depth, height = (side / max(asset.extent) for side in asset.extent)
        across = math.hypot(width, depth)
        bulk = max((across + height) / 2, 0.9 * across) * usual_size(asset)
        factor = min(COPY_FACTOR, self.crowd_m / math.sqrt(max(counts)) / bulk)
        copies = tuple(_piece(asset, content.colour, name, factor) for name in names)
        words = content.support.words
        assert words is not None
        side = max(content.support.extent[:2])
        carrier = SceneObject(
            name="support",
            asset=content.support.asset_id,
            position=(0.0, 0.0, 0.0),
            scale=round(SUPPORT_SIDE_M / side, DECIMALS),
        )
        distractors = self._distractors(
            (content.noun,), (content.colour,), words.noun, rng, max(factor, LEAST_FACTOR)
        )
        return CountedDraft(
            copies=copies,
            counts=counts,
            support=Piece(asset=content.support, variants=(carrier, carrier), colours=()),
            distractors=distractors,
            captions=_both(
                counting_caption(self.mode, label(copies[0]), count, words.noun) for count in counts
            ),
        )

    def piece(self, noun: Noun, colour: str, name: str, rng: Random) -> Piece:
        """Return a thing of a noun in a colour, at its usual size."""
        return _piece(rng.choice(noun.colours[colour]), colour, name)

    def bystanders(
        self, nouns: Collection[Noun], pieces: Iterable[Piece], rng: Random
    ) -> tuple[Piece, ...]:
        """Draw things that no caption names, none of these nouns and in none of their colours."""
        return self._distractors(nouns, tuple(colours_of(pieces)), "", rng)

    def _another(
        self, noun: Noun, others: Collection[str], name: str, rng: Random, factor: float = 1.0
    ) -> Piece:
        """Return an object in a colour that is not taken for one of the others, if it can be."""
        colour = rng.choice(far_colours(noun, others) or list(noun.colours))
        return _piece(rng.choice(noun.colours[colour]), colour, name, factor)

    def _distractors(
        self, nouns: Collection[Noun], colours: Collection[str], support: str, rng: Random,
        factor: float = 1.0,
    ) -> tuple[Piece, ...]:  # fmt: skip
        said = {noun.words.noun for noun in nouns} | {support}
        others = [noun for noun in self.nouns if noun.words.noun not in said]
        number = min(rng.randint(self.min_distractors, self.max_distractors), len(others))
        return tuple(
            self._another(noun, colours, f"distractor{count}", rng, factor)
            for count, noun in enumerate(rng.sample(others, number), start=1)
        )


def usual_size(asset: Asset) -> float:
    """Return the largest extent of an asset in a scene, in metres."""
    return asset.words.size if asset.words else 1.0


def usual_scale(asset: Asset, factor: float = 1.0) -> float:
    """Return the scale at which an asset has its usual size, times a factor."""
    return round(usual_size(asset) * factor / max(asset.extent), DECIMALS)


def _piece(asset: Asset, colour: str, name: str, factor: float = 1.0) -> Piece:
    item = SceneObject(
        name=name,
        asset=asset.asset_id,
        position=(0.0, 0.0, 0.0),
        scale=usual_scale(asset, factor),
        colour=_painted(asset, colour),
    )
    return Piece(asset=asset, variants=(item, item), colours=_words_of(colour))


def _variants(
    content: AttributeContent, assets: tuple[Asset, Asset], values: tuple[str, str]
) -> tuple[SceneObject, SceneObject]:
    is_exchanged = assets[0] != assets[1]

    def variant(asset: Asset, value: str) -> SceneObject:
        is_colour, is_size = content.change == "colour", content.change == "size"
        own = None if not content.colour else _painted(asset, content.colour)
        materials: dict[str, SurfaceMaterial] = {each: each for each in MATERIALS}
        return SceneObject(
            name="target",
            asset=asset.asset_id,
            position=(0.0, 0.0, 0.0),
            scale=usual_scale(asset, SIZE_FACTORS[value] if is_size else 1.0),
            colour=PALETTE[value] if is_colour and not is_exchanged else own,
            material=materials.get(value),
        )

    return variant(assets[0], values[0]), variant(assets[1], values[1])


def _able(content: AttributeContent) -> list[tuple[Asset, Asset]]:
    """Return what may be the target with the first and with the second value."""
    if content.change == "colour":
        return coloured_pairs(content.noun, content.values)
    if content.change == "size":
        assert content.colour is not None
        able = content.noun.colours[content.colour]
    elif content.colour == PLAIN:
        able = exchangeable(content.noun, content.values)
    else:
        assert content.colour is not None
        able = recolourable(content.noun, (content.colour,))
    return [(asset, asset) for asset in able]


def _adjectives(content: AttributeContent, value: str) -> tuple[str, ...]:
    """Return the adjectives of a target in the order of English: a size before a colour.

    Beside a material no colour is said.
    """
    if content.change == "material" or not content.colour:
        return (value,)
    return (value, content.colour)


def _painted(asset: Asset, colour: str) -> Vector | None:
    """Return what a scene says of an object's colour: nothing where it is the asset's own."""
    is_own = colour == PLAIN or (asset.words is not None and colour == asset.words.colour)
    return None if is_own else PALETTE[colour]


def label(piece: Piece) -> Phrase:
    """Return what captions call a thing."""
    return _phrase(piece.asset, piece.colours)


def _words_of(colour: str) -> tuple[str, ...]:
    return () if colour == PLAIN else (colour,)


def _phrase(asset: Asset, adjectives: tuple[str, ...]) -> Phrase:
    assert asset.words is not None
    return Phrase(words=asset.words, adjectives=adjectives)


def shuffled(values: tuple[T, T], rng: Random) -> tuple[T, T]:
    """Return two values in one of their two orders."""
    return values if rng.random() < 0.5 else (values[1], values[0])


def _both(captions: Iterable[str]) -> tuple[str, str]:
    first, second = captions
    return first, second
