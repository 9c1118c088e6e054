from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.granularity import Granularity, measure_granularity
from eqforge.generators.text.taggers import load_tagger


def measure(text: str) -> Granularity:
    return measure_granularity(*load_tagger().analyse([text]))


def test_modifiers_and_determiners_are_counted_per_caption_and_per_noun(wordnet: Any) -> None:
    found = measure("A couple of big dogs on the red couch near some trees; each is wet.")
    assert found.nouns == 4  # couple, dogs, couch, trees
    assert found.adjectives == 3  # big, red, wet
    assert found.complement_phrases == 3  # of ..., on ..., near ...
    assert found.articles == 2
    assert found.quantifiers == 3  # a couple of, some, each
    assert found.adjectives_per_noun == 3 / 4
    assert found.complement_phrases_per_noun == 3 / 4
    assert found.articles_per_noun == 2 / 4
    assert found.quantifiers_per_noun == 3 / 4
    assert (found.words, found.characters) == (15, 67)


def test_conjunctions_open_no_complement_phrase(wordnet: Any) -> None:
    assert measure("A dog sleeps while a cat eats").complement_phrases == 0


def test_depth_is_the_deepest_of_the_senses_least_depths(wordnet: Any) -> None:
    def depth(word: str, pos: str | None = None) -> int:
        def least(sense: Any) -> int:
            above = sense.hypernyms() + sense.instance_hypernyms()
            return 1 + min(map(least, above)) if above else 0

        return max(map(least, wordnet.synsets(word, pos)))

    found = measure("the dogs bark at them")
    # WordNet has neither "the" nor "them", and has "at", a coin of Laos.
    expected = [depth("dogs"), depth("bark"), depth("at")]
    assert found.concept_depth == pytest.approx(sum(expected) / 3)
    # dog.n.01 has two chains of hypernyms, of which the shorter counts.
    assert measure("two dogs").noun_depth == depth("dog", "n")


def test_diversity_counts_the_synonyms_of_all_senses(wordnet: Any) -> None:
    words = ["sofa", "couch"]
    names = {
        name.lower()
        for word in words
        for sense in wordnet.synsets(word)
        for name in sense.lemma_names()
        if name.lower() != word
    }
    assert measure("sofa, couch!").concept_diversity == len(names) / 2


def test_a_caption_without_words_has_no_ratios(wordnet: Any) -> None:
    for text in ("", " ... "):
        found = measure(text)
        assert (found.words, found.nouns, found.adjectives) == (0, 0, 0)
        assert found.adjectives_per_noun is None
        assert found.concept_depth is found.noun_depth is found.concept_diversity is None
    assert measure("zzzq runs").concept_depth is not None


@pytest.mark.usefixtures("wordnet")
@given(st.text(max_size=60))
def test_any_caption_can_be_measured(text: str) -> None:
    found = measure(text)
    assert found.characters == len(text)
    assert 0 <= found.nouns + found.adjectives <= found.words
