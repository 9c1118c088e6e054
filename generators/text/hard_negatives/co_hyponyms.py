"""Words of WordNet that exclude a word but are close to it in meaning.

Only the first (most frequent) sense of a word counts. A candidate must be in its own first sense,
occur in it at least `MIN_COUNT` times (verbs: `MIN_VERB_COUNT`) in the texts in which WordNet's
senses are counted, and be neither hypernym, hyponym nor synonym of the word.
"""

import functools
from collections.abc import Iterable
from typing import Any

from eqforge.generators.text.wordnet import WORDNET_LOCK, open_wordnet

MIN_COUNT = 5
MIN_VERB_COUNT = 20
# Verbs so general that nothing excludes them.
_GENERAL = frozenset(("be", "come", "do", "get", "give", "go", "have", "make", "put", "take"))
# What a picture can show; "idea" and "afternoon" have co-hyponyms too.
_VISIBLE = frozenset(
    ("noun.animal", "noun.artifact", "noun.body", "noun.food", "noun.plant", "noun.person")
)


@functools.lru_cache(maxsize=16_384)
def noun_co_hyponyms(lemma: str) -> tuple[str, ...]:
    """Returns the co-hyponyms of a noun, those that share a direct hypernym with it, sorted.

    Args:
      lemma: dictionary form, in lower case.

    Raises:
      InputError: WordNet is not on this machine; says how to get it.
    """
    wordnet = open_wordnet()
    with WORDNET_LOCK:
        sense = _first_sense(wordnet, lemma, "n")
        if sense is None or sense.lexname() not in _VISIBLE:
            return ()
        sisters = {sister for above in sense.hypernyms() for sister in above.hyponyms()}
        return _frequent_words(wordnet, sisters - _line(sense), lemma, "n")


@functools.lru_cache(maxsize=16_384)
def verb_co_hyponyms(lemma: str) -> tuple[str, ...]:
    """Returns the co-hyponyms of a verb, those that share a direct hypernym with it, sorted.

    A candidate takes the same kinds of object, and neither verb entails the other.

    Args:
      lemma: dictionary form, in lower case.

    Raises:
      InputError: WordNet is not on this machine; says how to get it.
    """
    wordnet = open_wordnet()
    with WORDNET_LOCK:
        sense = _first_sense(wordnet, lemma, "v")
        if sense is None:
            return ()
        sisters = {sister for above in sense.hypernyms() for sister in above.hyponyms()}
        related = _line(sense) | set(sense.entailments()) | set(sense.verb_groups())
        unlike = {
            sister
            for sister in sisters - related
            if sister.frame_ids() == sense.frame_ids() and sense not in sister.entailments()
        }
        words = _frequent_words(wordnet, unlike, lemma, "v", MIN_VERB_COUNT)
        return tuple(word for word in words if word not in _GENERAL)


@functools.lru_cache(maxsize=16_384)
def adjective_antonyms(lemma: str) -> tuple[str, ...]:
    """Returns the antonyms of an adjective, sorted.

    Args:
      lemma: dictionary form, in lower case.

    Raises:
      InputError: WordNet is not on this machine; says how to get it.
    """
    wordnet = open_wordnet()
    with WORDNET_LOCK:
        sense = _first_sense(wordnet, lemma, "a")
        own = () if sense is None else (word for word in sense.lemmas() if word.name() == lemma)
        opposites = {opposite for word in own for opposite in word.antonyms()}
        return tuple(sorted(o.name() for o in opposites if _is_frequent(o, MIN_COUNT)))


def _first_sense(wordnet: Any, lemma: str, pos: str) -> Any | None:
    senses = wordnet.synsets(lemma, pos)
    return senses[0] if senses and lemma in senses[0].lemma_names() else None


def _line(sense: Any) -> set[Any]:
    """Returns a sense with all its hypernyms and hyponyms."""
    above = set(sense.closure(lambda s: s.hypernyms()))
    return {sense, *above, *sense.closure(lambda s: s.hyponyms())}


def _frequent_words(
    wordnet: Any, senses: Iterable[Any], lemma: str, pos: str, min_count: int = MIN_COUNT
) -> tuple[str, ...]:
    synonyms = {name for sense in wordnet.synsets(lemma, pos) for name in sense.lemma_names()}
    return tuple(
        sorted(
            word.name()
            for sense in senses
            for word in sense.lemmas()
            if _is_frequent(word, min_count)
            and word.name() not in synonyms
            and wordnet.synsets(word.name(), pos)[0] == sense
        )
    )


def _is_frequent(word: Any, min_count: int) -> bool:
    name = word.name()
    return name.isalpha() and name.islower() and word.count() >= min_count
