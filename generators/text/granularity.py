"""Measure how fine-grained captions are: the features of Hendriksen et al., section 3.

The paper's definitions are ambiguous and no code was published, so each choice here is the one
nearest to all columns of its Table 1. Below are each feature with the lexicon tagger and the
paper's figure: first for the 25,014 captions of COCO val2017 (the paper has all of MS-COCO), then
for the first 1,000 captions of Flickr30k-FG:

    adjectives           0.79   0.76   1.22   1.30    concept depth       7.89  7.89   8.02   7.97
    complement phrases   1.67   1.56   2.15   2.19    characters         52.42 52.39  66.49  68.29
    articles             2.15   2.14   2.61   2.55    words              10.45 10.59  13.45  13.67
    quantifiers          0.13   0.12   0.20   0.27    concept diversity   9.13  9.14  10.84  10.68

The text counts modifiers and determiners "per identified noun", its table per caption. Both are
given here.

Source: Hendriksen et al., "Assessing Brittleness of Image-Text Retrieval Benchmarks from
Vision-Language Models Perspective", sections 3.1 and 3.2, Table 1.
"""

import functools
from typing import Any

from eqforge.generators.text.analysis import Analysis, is_adjective, is_noun, is_word
from eqforge.generators.text.wordnet import WORDNET_LOCK, open_wordnet
from eqforge.generators.text.words import word_set

_CONJUNCTIONS = word_set("granularity.conjunctions")


def measure_granularity(analysis: Analysis) -> dict[str, Any]:
    """Return the features of a caption, as the table of captions names them.

    Returns:
      complement_phrases: prepositions, each of which opens one ("on a bench"); the paper does not
        define them.
      articles: determiners: "a", "the", and also "some", "each" and "this", as the paper's figure
        requires.
      quantifiers: numbers, in words or digits.
      adjectives_per_noun, complement_phrases_per_noun, articles_per_noun, quantifiers_per_noun:
        these counts divided by the number of nouns; None for a caption without a noun.
      concept_depth: mean depth of the words that WordNet has. A word's depth is the maximum over
        its senses, of any part of speech, of the sense's minimum depth below the root. "a" and "in"
        are included, as the paper's figure requires. None if WordNet has no word of the caption.
      noun_depth: likewise over nouns, by lemma, with noun senses only.
      characters: code points of the caption as given.
      words: tokens that hold a letter or digit.
      concept_diversity: the number of distinct lemmas over all senses of the words, divided by the
        number of words, which are split at spaces ("dog." has no sense); None for a caption without
        a word.
    """
    words = [token for token in analysis.tokens if is_word(token)]
    nouns = [token for token in words if is_noun(token)]
    adjectives = sum(map(is_adjective, words))
    complement_phrases = sum(
        token.tag == "IN" and token.text.lower() not in _CONJUNCTIONS for token in words
    )
    articles = sum(token.tag == "DT" for token in words)
    quantifiers = sum(token.tag == "CD" for token in words)
    spaced = analysis.text.split() if words else []
    synonyms = set[str]().union(*map(_synonyms, spaced))
    return {
        "nouns": len(nouns),
        "adjectives": adjectives,
        "complement_phrases": complement_phrases,
        "articles": articles,
        "quantifiers": quantifiers,
        "adjectives_per_noun": _ratio(adjectives, len(nouns)),
        "complement_phrases_per_noun": _ratio(complement_phrases, len(nouns)),
        "articles_per_noun": _ratio(articles, len(nouns)),
        "quantifiers_per_noun": _ratio(quantifiers, len(nouns)),
        "concept_depth": _mean([_depth(token.text.lower()) for token in words]),
        "noun_depth": _mean([_depth(token.lemma, "n") for token in nouns]),
        "characters": len(analysis.text),
        "words": len(words),
        "concept_diversity": _ratio(len(synonyms), len(spaced)),
    }


@functools.lru_cache(maxsize=65_536)
def _depth(word: str, pos: str | None = None) -> int | None:
    """Return the maximum over a word's senses of the sense's minimum depth; 0 is the root."""
    wordnet = open_wordnet()
    with WORDNET_LOCK:
        return max((sense.min_depth() for sense in wordnet.synsets(word, pos)), default=None)


@functools.lru_cache(maxsize=65_536)
def _synonyms(word: str) -> frozenset[str]:
    wordnet = open_wordnet()
    with WORDNET_LOCK:
        return frozenset(
            str(name) for sense in wordnet.synsets(word) for name in sense.lemma_names()
        )


def _mean(values: list[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _ratio(sum(known), len(known))


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator > 0 else None
