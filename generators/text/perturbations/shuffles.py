"""Shuffles nouns and adjectives, all words, all other words, within trigrams, and trigrams.

Words move; the punctuation and white space between them stay. Words are separated by white space,
without the punctuation at their ends, so that "man's" and "t-shirt" move whole; only the shuffle of
nouns and adjectives moves single tokens ("man" of "man's"), except those that a letter, digit,
hyphen or underscore touches. The capital of a sentence stays at its start, that of a name goes
with it: "New and old building" becomes "Old and new building". Orders are drawn until the caption
reads differently, ignoring letter case: at most about half of all orders read the same.

Source: `TextShuffler` in ARO's dataset_zoo/perturbations.py, which the published code copies. It
splits differently (see `published`), joins with spaces and may return the caption itself.
"""

import functools
import random
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from eqforge.generators.text.analysis import MARKS, Analysis, Token, is_adjective, is_noun
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.perturbations.synonyms import lowered, raised, sentence_capitals
from eqforge.generators.text.words import is_in_function_phrase

_WORD = re.compile(rf"\w(?:\S*[\w{MARKS}])?")
_ATTEMPTS = 64

Place = tuple[int, int]
"""First character of a word, and the first after it."""


def shuffle_nouns_and_adjectives(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    """Shuffle the nouns among their places, and the adjectives among theirs."""
    text = analysis.text
    free = [
        token
        for token in _nouns_and_adjectives(analysis)
        if not any(
            character.isalnum() or character in "-_"
            for character in text[token.start - 1 : token.start] + text[token.end : token.end + 1]
        )
    ]
    nouns = [(token.start, token.end) for token in free if is_noun(token)]
    adjectives = [(token.start, token.end) for token in free if is_adjective(token)]

    def draw(words: list[str]) -> list[str]:
        return [*_shuffled(words[: len(nouns)], rng), *_shuffled(words[len(nouns) :], rng)]

    return _rearrange(analysis, nouns + adjectives, draw)


def shuffle_all_words(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    return _rearrange(analysis, find_words(analysis.text), lambda words: _shuffled(words, rng))


def shuffle_other_words(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    """Shuffle all words that contain neither a noun nor an adjective."""
    starts = [token.start for token in _nouns_and_adjectives(analysis)]
    others = [
        word
        for word in find_words(analysis.text)
        if bisect_left(starts, word[0]) == bisect_left(starts, word[1])  # none starts in it
    ]
    return _rearrange(analysis, others, lambda words: _shuffled(words, rng))


def shuffle_within_trigrams(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:

    def draw(words: list[str]) -> list[str]:
        return [word for group in _trigrams(words) for word in _shuffled(group, rng)]

    return _rearrange(analysis, find_words(analysis.text), draw)


def shuffle_trigrams(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:

    def draw(words: list[str]) -> list[str]:
        groups = _trigrams(words)
        rng.shuffle(groups)
        return [word for group in groups for word in group]

    return _rearrange(analysis, find_words(analysis.text), draw)


@functools.lru_cache(maxsize=2)  # four shuffles of a caption ask
def find_words(text: str) -> tuple[Place, ...]:
    """Return the words separated by white space, without the punctuation at their ends."""
    return tuple(match.span() for match in _WORD.finditer(text))


def _rearrange(
    analysis: Analysis, places: Sequence[Place], draw: Callable[[list[str]], list[str]]
) -> list[Edit] | Reason:
    """Return the edits that put words in an order of `draw` that reads differently."""
    capitals = sentence_capitals(analysis)
    written = [analysis.text[start:end] for start, end in places]
    words = written.copy()
    firsts = [index for index, (start, _) in enumerate(places) if start in capitals]
    for index in firsts:
        if not capitals[places[index][0]]:
            words[index] = lowered(words[index])
    folded = [word.casefold() for word in words]
    if len(set(folded)) < 2:
        return Reason.ONE_ORDER_ONLY
    for _ in range(_ATTEMPTS):
        drawn = draw(words)
        if [word.casefold() for word in drawn] != folded:
            for index in firsts:
                drawn[index] = raised(drawn[index])
            return [
                Edit(start=start, end=end, replacement=word)
                for (start, end), before, word in sorted(zip(places, written, drawn, strict=True))
                if word != before
            ]
    return Reason.ONE_ORDER_ONLY


def _nouns_and_adjectives(analysis: Analysis) -> list[Token]:
    """Return the nouns and adjectives, without "front" of "in front of" and "next" of "next to"."""
    return [
        token
        for token in analysis.tokens
        if (is_noun(token) or is_adjective(token))
        and not is_in_function_phrase(analysis.text, token.start, token.end)
    ]


def _shuffled(words: list[str], rng: random.Random) -> list[str]:
    order = words[:]
    rng.shuffle(order)
    return order


def _trigrams(words: list[str]) -> list[list[str]]:
    return [words[i : i + 3] for i in range(0, len(words), 3)]
