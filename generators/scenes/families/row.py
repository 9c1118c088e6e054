"""Three things in a row, in two orders."""

from dataclasses import dataclass
from itertools import combinations, permutations
from random import Random

from eqforge.generators.scenes.captions import row_caption
from eqforge.generators.scenes.claims import names_of
from eqforge.generators.scenes.contents import Vocabulary
from eqforge.generators.scenes.drafts import Drafter, called, either_way
from eqforge.generators.scenes.families.base import CLOSE, GAP_M, Spots, StagedDraft, cast
from eqforge.schemas.records.scenes import Claim, Kind

OFF_M = 0.12
"""How much nearer to the camera than the scene's middle, or farther, a thing is at most."""

_NAMES = ("target", "second", "third")
_ORDERS = tuple(
    (one, two)
    for one, two in combinations(permutations(range(3)), 2)
    if sum(a != b for a, b in zip(one, two, strict=True)) == 2
)
"""Two orders of three things, in which two have changed places."""


@dataclass(frozen=True, slots=True)
class Row:
    """Three things in a row, of which two change places."""

    kind: Kind = "row"

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""
        number = len(vocabulary.nouns)
        return number * (number - 1) * (number - 2) // 6 * len(_ORDERS)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents."""
        three, orders = divmod(number, len(_ORDERS))
        nouns = list(combinations(vocabulary.nouns, 3))[three]
        pieces = tuple(cast(drafter, nouns, _NAMES, None, rng))
        first, second = either_way(_ORDERS[orders], rng)
        return StagedDraft(
            change="order",
            pieces=pieces,
            distractors=drafter.bystanders(nouns, pieces, rng),
            claims=(_claim(first), _claim(second)),
            captions=(
                row_caption([called(pieces[place]) for place in first]),
                row_caption([called(pieces[place]) for place in second]),
            ),
        )

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draws where the things stand, so far apart that any two may change places."""
        apart = 2 * CLOSE * max(piece.radius for piece in draft.pieces) + rng.uniform(*GAP_M)
        away = [rng.uniform(-OFF_M, OFF_M) for _ in draft.pieces]
        first, second = (
            {
                name: ((place - 1) * apart, away[place], 0.0)
                for place, name in enumerate(names_of(claim))
            }
            for claim in draft.claims
        )
        return first, second


def _claim(order: tuple[int, ...]) -> Claim:
    first, second, third = (_NAMES[place] for place in order)
    return Claim(target=first, copies=(first,), relation="row", reference=second, others=(third,))
