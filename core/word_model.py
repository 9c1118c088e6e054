"""Score texts with a word trigram model.

It uses stupid backoff (Brants et al. 2007, "Large language models in machine translation"):
relative frequencies, times 0.4 for each word of context that has to be left out.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

WORD: Final = re.compile(r"\w+(?:['\u2019-]\w+)*")
_ORDER: Final = 3
_BACKOFF: Final = math.log(0.4)
_UNKNOWN: Final = 0.5
"""Count of an unseen word."""


class WordModel:
    """Learns from texts, and can forget some of them."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()

    def learn(self, texts: Iterable[str]) -> None:
        self._counts.update(run for text in texts for run in _runs(text))

    def forget(self, texts: Iterable[str]) -> None:
        self._counts.subtract(run for text in texts for run in _runs(text))

    def score(self, text: str) -> float:
        """Return the log score of a text, in nats: 0 or less."""
        words = words_of(text)
        return sum(
            self._after(tuple(words[max(0, place - _ORDER + 1) : place + 1]))
            for place in range(1, len(words))
        )

    def _after(self, words: tuple[str, ...]) -> float:
        backoff = 0.0
        while len(words) > 1 and not self._counts[words]:
            words, backoff = words[1:], backoff + _BACKOFF
        count, of = self._counts[words], self._counts[words[:-1]]
        return backoff + math.log((count or _UNKNOWN) / max(of, 1))


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a text, with boundary marks at both ends."""
    return ["^", *WORD.findall(text.lower()), "$"]


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """Yield runs of up to three words, with the empty run once per word."""
    words = words_of(text)
    yield from ((),) * len(words)
    for size in range(1, _ORDER + 1):
        yield from (tuple(words[place : place + size]) for place in range(len(words) - size + 1))
