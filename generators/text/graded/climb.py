"""Composes steps to a ladder, each rung of which is checked as if every step were the last.

Two edits that are sound by themselves need not be together: "there is a man" and "a man is riding"
make no sentence. A ladder is kept where each of its steps is offered again, by the same rule, in
the caption that all the other steps have edited, and where it makes the same text of it.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.graded.records import Step, are_apart, compose

MOST_TRIED = 24
"""Ladders of one height that are tried."""

Offers = Callable[[Analysis, Step, str], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Climber:
    """How ladders are composed.

    Attributes:
      analyse: returns the analysis of a text.
      offers: tells whether an analysed text offers a step that makes some other text of it.
      takes: tells whether a text may stand in a ladder, for what else is said of the image.
    """

    analyse: Callable[[str], Analysis]
    offers: Offers
    takes: Callable[[str], bool]

    def climb(
        self, analysis: Analysis, steps: Iterable[Step], levels: int, rng: random.Random
    ) -> tuple[Step, ...]:
        """Returns the steps of the highest ladder that was found, of at most so many levels.

        The text of a level has the first so many of them. Empty where none can be taken.

        Args:
          analysis: the caption's analysis.
          steps: what the caption offers, in an order that depends on the caption alone.
          levels: the most steps.
          rng: draws the ladder among those of the same height.
        """
        offered = list(dict.fromkeys(steps))
        for height in range(min(levels, len(offered)), 0, -1):
            for ladder in dict.fromkeys(_ladders(analysis.text, offered, height, rng)):
                if self._is_sound(analysis, ladder):
                    return ladder
        return ()

    def _is_sound(self, analysis: Analysis, ladder: Sequence[Step]) -> bool:
        caption, analyses = analysis.text, {frozenset[Step](): analysis}
        for level in range(1, len(ladder) + 1):
            rung = tuple(ladder[:level])
            text = compose(caption, rung).text
            if not self.takes(text):
                return False
            for step in rung if level > 1 else ():
                rest = tuple(other for other in rung if other is not step)
                before = analyses.setdefault(
                    frozenset(rest), self.analyse(compose(caption, rest).text)
                )
                if not self.offers(before, step, text):
                    return False
        return True


def _ladders(
    caption: str, offered: Sequence[Step], height: int, rng: random.Random
) -> Iterator[tuple[Step, ...]]:
    """Yields ladders of some height, each of steps that were drawn until enough were apart."""
    for _ in range(MOST_TRIED):
        ladder: tuple[Step, ...] = ()
        for step in rng.sample(offered, len(offered)):
            if are_apart(caption, (*ladder, step)):
                ladder = (*ladder, step)
            if len(ladder) == height:
                yield ladder
                break
