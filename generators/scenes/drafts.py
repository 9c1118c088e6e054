"""Draft scene pairs: objects, colours and captions, but no positions yet."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from eqforge.generators.scenes.captions import (
    Mode,
    Phrase,
    counting_caption,
    related_caption,
    sentence,
)
from eqforge.generators.scenes.contents import (
    PLAIN,
    RELATION_PAIRS,
    AttributeContent,
    Noun,
    Vocabulary,
    coloured_pairs,
    exchangeable,
    far_colours,
    material_colours,
    recolourable,
)
from eqforge.generators.scenes.manifest import MATERIALS, Asset
from eqforge.generators.scenes.palette import PALETTE
from eqforge.generators.scenes.pieces import (
    CountedDraft,
    Piece,
    RelatedDraft,
    StagedDraft,
    colours_of,
)
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import Claim, Relation, SceneObject, SurfaceMaterial, Vector

T = TypeVar("T")
SIZE_FACTORS = {"small": 0.65, "large": 1.3}  # relative to the usual size; the ratio is 2
COPY_FACTOR = 0.9  # scale of objects on a support, relative to the usual size
LEAST_FACTOR = 0.65  # of distractors on a support: smaller ones would hardly be seen
SUPPORT_SIDE_M = 2.9


@dataclass(frozen=True, slots=True)
class Drafter:
    """Turns contents into drafts; draws at random what a content leaves open."""

    vocabulary: Vocabulary
    mode: Mode
    settings: SceneSettings

    def attribute(self, content: AttributeContent, rng: Random) -> RelatedDraft:
        if content.change == "material" and content.colour is None:
            content = replace(content, colour=rng.choice(material_colours(content.noun)))
        values = shuffled(content.values, rng)
        colours = content.values if content.colour is None else _words_of(content.colour)
        assets = rng.choice(_able(content))
        if values != content.values:
            assets = (assets[1], assets[0])
        target = Piece(
            asset=assets[0],
            other=assets[1] if assets[1] != assets[0] else None,
            variants=_variants(content, assets, values),
            colours=colours,
        )
        reference = self._another(content.reference, colours, "reference", rng)
        # English puts size before colour. Captions that name a material name no colour.
        colour = () if content.change == "material" or not content.colour else (content.colour,)
        return RelatedDraft(
            change=content.change,
            target=target,
            reference=reference,
            distractors=self._distractors((content.noun, content.reference), colours, "", rng),
            relations=(content.relation, content.relation),
            captions=_both(
                related_caption(
                    self.mode,
                    "attribute",
                    Phrase(words=asset.naming, adjectives=(value, *colour)),
                    content.relation,
                    label(reference),
                )
                for asset, value in zip(assets, values, strict=True)
            ),
        )

    def location(self, number: int, rng: Random) -> RelatedDraft:
        number, far = divmod(number, len(self.vocabulary.nouns) - 1)
        head, pair = divmod(number, len(RELATION_PAIRS))
        noun, colour = self.vocabulary.coloured[head]
        other = self.vocabulary.other(noun, far)
        relations = shuffled(RELATION_PAIRS[pair], rng)
        target = self.piece(noun, colour, "target", rng)
        reference = self._another(other, (colour,), "reference", rng)
        return RelatedDraft(
            change="position",
            target=target,
            reference=reference,
            distractors=self._distractors((noun, other), (colour,), "", rng),
            relations=relations,
            captions=_both(
                related_caption(self.mode, "location", label(target), where, label(reference))
                for where in relations
            ),
        )

    def counting(self, number: int, rng: Random) -> CountedDraft:
        head, pair = divmod(number, len(self.vocabulary.counts))
        noun, colour, support = self.vocabulary.countable[head]
        counts = shuffled(self.vocabulary.counts[pair], rng)
        asset = rng.choice(noun.colours[colour])
        names = [f"copy{number}" for number in range(1, max(counts) + 1)]
        width, depth, height = (side / max(asset.extent) for side in asset.extent)
        across = math.hypot(width, depth)
        bulk = max((across + height) / 2, 0.9 * across) * asset.naming.size
        # To show all copies apart, their size falls with the square root of their number.
        factor = min(COPY_FACTOR, self.settings.crowd_m / math.sqrt(max(counts)) / bulk)
        copies = tuple(_piece(asset, colour, name, factor) for name in names)
        on = support.naming.noun
        carrier = SceneObject(
            name="support",
            asset=support.asset_id,
            position=(0.0, 0.0, 0.0),
            scale=round(SUPPORT_SIDE_M / max(support.extent[:2]), DECIMALS),
        )
        return CountedDraft(
            copies=copies,
            counts=counts,
            support=Piece(asset=support, variants=(carrier, carrier), colours=()),
            distractors=self._distractors((noun,), (colour,), on, rng, max(factor, LEAST_FACTOR)),
            captions=_both(
                counting_caption(self.mode, label(copies[0]), count, on) for count in counts
            ),
        )

    def piece(self, noun: Noun, colour: str, name: str, rng: Random) -> Piece:
        return _piece(rng.choice(noun.colours[colour]), colour, name)

    def pieces(
        self, nouns: Sequence[Noun], names: Sequence[str], first: str | None, rng: Random
    ) -> list[Piece]:
        found: list[Piece] = []
        for noun, name in zip(nouns, names, strict=True):
            used = [colour for piece in found for colour in piece.colours]
            if first is not None and not found:
                found.append(self.piece(noun, first, name, rng))
            else:
                found.append(self._another(noun, used, name, rng))
        return found

    def staged(
        self,
        change: str,
        nouns: Sequence[Noun],
        pieces: Sequence[Piece],
        claims: Sequence[Claim],
        captions: Sequence[str],
        rng: Random,
    ) -> StagedDraft:
        return StagedDraft(
            change=change,
            pieces=tuple(pieces),
            distractors=self._distractors(nouns, tuple(colours_of(pieces)), "", rng),
            claims=(claims[0], claims[1]),
            captions=(captions[0], captions[1]),
            is_even=True,
        )

    def moving(
        self,
        nouns: Sequence[Noun],
        pieces: Sequence[Piece],
        words: Mapping[Relation, str],
        rng: Random,
        stand: Piece | None = None,
    ) -> StagedDraft:
        first, second = words
        relations = shuffled((first, second), rng)
        target, reference, *others = pieces
        references = " and the ".join(label(piece).singular for piece in (reference, *others))
        claims = [
            Claim(
                target=target.name,
                copies=(target.name,),
                relation=relation,
                reference=reference.name,
                others=tuple(piece.name for piece in others),
            )
            for relation in relations
        ]
        captions = [
            sentence(label(target), f"{words[relation]} the {references}") for relation in relations
        ]
        draft = self.staged("position", nouns, pieces, claims, captions, rng)
        return replace(draft, stand=stand, is_even=False)

    def _another(
        self, noun: Noun, others: Collection[str], name: str, rng: Random, factor: float = 1.0
    ) -> Piece:
        colour = rng.choice(far_colours(noun, others) or list(noun.colours))
        return _piece(rng.choice(noun.colours[colour]), colour, name, factor)

    def _distractors(
        self, nouns: Collection[Noun], colours: Collection[str], support: str, rng: Random,
        factor: float = 1.0,
    ) -> tuple[Piece, ...]:  # fmt: skip
        excluded = {noun.words.noun for noun in nouns} | {support}
        others = [noun for noun in self.vocabulary.nouns if noun.words.noun not in excluded]
        wanted = rng.randint(self.settings.min_bystanders, self.settings.bystanders)
        number = min(wanted, len(others))
        return tuple(
            self._another(noun, colours, f"distractor{count}", rng, factor)
            for count, noun in enumerate(rng.sample(others, number), start=1)
        )


def usual_scale(asset: Asset, factor: float = 1.0) -> float:
    return round(asset.naming.size * factor / max(asset.extent), DECIMALS)


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
        painted_colour = None if not content.colour else _painted(asset, content.colour)
        materials: dict[str, SurfaceMaterial] = {each: each for each in MATERIALS}
        return SceneObject(
            name="target",
            asset=asset.asset_id,
            position=(0.0, 0.0, 0.0),
            scale=usual_scale(asset, SIZE_FACTORS[value] if is_size else 1.0),
            colour=PALETTE[value] if is_colour and not is_exchanged else painted_colour,
            material=materials.get(value),
        )

    return variant(assets[0], values[0]), variant(assets[1], values[1])


def _able(content: AttributeContent) -> list[tuple[Asset, Asset]]:
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


def _painted(asset: Asset, colour: str) -> Vector | None:
    is_own = colour == PLAIN or colour == asset.naming.colour
    return None if is_own else PALETTE[colour]


def label(piece: Piece) -> Phrase:
    return Phrase(words=piece.asset.naming, adjectives=piece.colours)


def _words_of(colour: str) -> tuple[str, ...]:
    return () if colour == PLAIN else (colour,)


def shuffled(values: tuple[T, T], rng: Random) -> tuple[T, T]:
    return values if rng.random() < 0.5 else (values[1], values[0])


def _both(captions: Iterable[str]) -> tuple[str, str]:
    first, second = captions
    return first, second
