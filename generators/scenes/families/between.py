"""A thing between two others, or to one side of both."""

from dataclasses import dataclass
from itertools import combinations
from random import Random

from eqforge.generators.scenes.contents import Vocabulary
from eqforge.generators.scenes.drafts import Drafter, either_way
from eqforge.generators.scenes.families.base import Spots, StagedDraft, cast, close_m, moving
from eqforge.schemas.records.scenes import Kind, Relation

OFF_M = 0.2
"""How much nearer to the camera than the scene's middle, or farther, a thing is at most."""

_SIDES: tuple[Relation, ...] = ("left", "right")
_NAMES = ("target", "reference", "other")


@dataclass(frozen=True, slots=True)
class Between:
    """A thing between two others, or to one side of both."""

    kind: Kind = "between"

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""
        others = len(vocabulary.nouns) - 1
        return len(vocabulary.coloured) * len(_SIDES) * (others * (others - 1) // 2)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents."""
        pairs = list(combinations(range(len(vocabulary.nouns) - 1), 2))
        number, pair = divmod(number, len(pairs))
        head, place = divmod(number, len(_SIDES))
        noun, colour = vocabulary.coloured[head]
        nouns = (noun, *(vocabulary.other(noun, far) for far in either_way(pairs[pair], rng)))
        pieces = tuple(cast(drafter, nouns, _NAMES, colour, rng))
        side = _SIDES[place]
        said: dict[Relation, str] = {"between": "between", side: f"to the {side} of"}
        return moving(drafter, nouns, pieces, said, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draws where the things stand: the two others as the caption names them, left to right."""
        target, reference, other = draft.pieces
        left, right = -close_m(target, reference, rng), close_m(target, other, rng)
        beyond = {
            "between": 0.0,
            "left": left - close_m(target, reference, rng),
            "right": right + close_m(target, other, rng),
        }
        away = [rng.uniform(-OFF_M, OFF_M) for _ in draft.pieces]
        first, second = (
            {
                "target": (beyond[str(claim.relation)], away[0], 0.0),
                "reference": (left, away[1], 0.0),
                "other": (right, away[2], 0.0),
            }
            for claim in draft.claims
        )
        return first, second
