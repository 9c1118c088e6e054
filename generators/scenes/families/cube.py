"""Cubes: two colours, two places and two numbers of copies, of which each pair changes one.

The eight scenes of a cube stand on the same floor before the same camera; its twelve edges are
pairs. A model that understands colour, place and number is right on all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from eqforge.generators.scenes.captions import counted_where
from eqforge.generators.scenes.contents import Noun, Vocabulary, far_colours, recolourable
from eqforge.generators.scenes.drafts import Drafter, called, usual_scale
from eqforge.generators.scenes.families.base import Spots, StagedDraft
from eqforge.generators.scenes.palette import PALETTE, distinct_pairs
from eqforge.generators.scenes.pieces import Piece
from eqforge.schemas.records.scenes import Claim, Kind, Relation, SceneObject, ScenePair, SceneSpec

Corner = tuple[int, int, int]
"""Which colour, which place and which number."""

CHANGES = ("colour", "position", "count")
_CORNERS: tuple[Corner, ...] = tuple(
    (colour, place, number) for colour in (0, 1) for place in (0, 1) for number in (0, 1)
)
EDGES = tuple(
    (first, second)
    for axis in range(3)
    for first, second in combinations(_CORNERS, 2)
    if [place for place in range(3) if first[place] != second[place]] == [axis]
)
"""The pairs of corners that differ in one axis: four for each."""

COUNTS = tuple(combinations((1, 2, 3), 2))
SIDES: tuple[Relation, Relation] = ("left", "right")
COPY_FACTOR = 0.65
"""Scale of the copies relative to the usual size."""

GAP_M = (0.1, 0.2)
"""Between the reference and the nearest copy, and between copies."""

DEEP = 0.5
"""Share of a copy's height by which the row in front is nearer, and the one behind farther away."""

RAISED = 0.9
"""Share of the camera's elevations that is left out, so that one row does not hide the other."""


@dataclass(frozen=True, slots=True)
class Cube:
    """The edges of cubes."""

    kind: Kind = "cube"
    group: int = len(EDGES)
    turns: int = 1

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many cubes there are."""
        return len(_heads(vocabulary)) * len(COUNTS) * (len(vocabulary.nouns) - 1)

    def size_of(self, vocabulary: Vocabulary, sort: int) -> int:
        """Returns how many contents there are, which are of one sort."""
        del sort
        return self.size(vocabulary)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of a cube: all copies in the first colour, which change sides."""
        number, far = divmod(number, len(vocabulary.nouns) - 1)
        head, counts = divmod(number, len(COUNTS))
        noun, colours = _heads(vocabulary)[head]
        other = vocabulary.other(noun, far)
        said = rng.choice(far_colours(other, colours) or list(other.colours))
        reference = drafter.piece(other, said, "reference", rng)
        asset = rng.choice(recolourable(noun, colours))
        copy = drafter.piece(noun, colours[0], "copy", rng)
        scale = usual_scale(asset, COPY_FACTOR)
        item = replace(copy.variants[0], asset=asset.asset_id, scale=scale)
        pieces = [
            replace(
                copy,
                asset=asset,
                colours=colours,
                variants=(replace(item, name=f"copy{each}"),) * 2,
            )
            for each in range(1, max(COUNTS[counts]) + 1)
        ]
        claims = [_claim(side, len(pieces)) for side in SIDES]
        return StagedDraft(
            change="cube",
            pieces=(reference, *pieces),
            distractors=drafter.bystanders((noun, other), (reference, *pieces), rng),
            claims=(claims[0], claims[1]),
            captions=("", ""),
            corners=(colours, COUNTS[counts]),
            raised=RAISED,
            least=0.01,
        )

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draws where the copies stand: two in front, one behind, and mirrored on the other side.

        So they take little of the picture's width, and may be large.
        """
        reference, copy, *_ = draft.pieces
        wide = 2 * copy.radius + rng.uniform(*GAP_M)
        start = reference.radius + copy.radius + rng.uniform(*GAP_M)
        deep = DEEP * copy.height + copy.radius
        spots = ((start, -deep), (start + wide, -deep), (start + wide / 2, deep))
        names = [piece.name for piece in draft.pieces[1:]]
        first, second = (
            {
                "reference": (0.0, 0.0, 0.0),
                **{name: (sign * x, y, 0.0) for name, (x, y) in zip(names, spots, strict=False)},
            }
            for sign in (-1, 1)
        )
        return first, second

    def member(self, pair: ScenePair, draft: StagedDraft, place: int) -> ScenePair:
        """Returns the pair of one edge."""
        first, second = EDGES[place]
        axis = next(each for each in range(3) if first[each] != second[each])
        ends = [_corner(pair, draft, corner) for corner in (first, second)]
        (scene, claim, said), (other, its_claim, its_said) = ends
        return replace(
            pair,
            change=CHANGES[axis],
            scenes=(scene, other),
            captions=(said, its_said),
            claims=(claim, its_claim),
        )


def _heads(vocabulary: Vocabulary) -> Sequence[tuple[Noun, tuple[str, str]]]:
    return [
        (noun, pair)
        for noun in vocabulary.nouns
        for pair in distinct_pairs()
        if recolourable(noun, pair) and not noun.words.is_plural
    ]


def _claim(side: Relation, number: int) -> Claim:
    copies = tuple(f"copy{each}" for each in range(1, number + 1))
    return Claim(target="copy1", copies=copies, relation=side, reference="reference")


def _corner(pair: ScenePair, draft: StagedDraft, corner: Corner) -> tuple[SceneSpec, Claim, str]:
    """Returns the scene of a corner, what its caption claims, and the caption."""
    colours, counts = draft.corners
    colour, number = colours[corner[0]], counts[corner[2]]
    claim = _claim(SIDES[corner[1]], number)
    copy: Piece = draft.pieces[1]

    def painted(item: SceneObject) -> SceneObject:
        is_own = copy.asset.words is not None and copy.asset.words.colour == colour
        return replace(item, colour=None if is_own else PALETTE[colour])

    scene = pair.scenes[corner[1]]
    others = [item for item in scene.objects if not item.name.startswith("copy")]
    copies = [painted(item) for item in scene.objects if item.name in claim.copies]
    copies.sort(key=lambda item: item.name)
    phrase = replace(called(copy), adjectives=(colour,))
    caption = counted_where(phrase, number, SIDES[corner[1]], called(draft.pieces[0]).singular)
    return replace(scene, objects=(*others, *copies)), claim, caption
