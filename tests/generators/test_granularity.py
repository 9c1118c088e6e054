import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.granularity import measure_granularity
from eqforge.generators.text.taggers import load_tagger


def measure(text: str) -> Any:
    return SimpleNamespace(**measure_granularity(*load_tagger().analyse([text])))


def test_modifiers_and_determiners_are_counted_per_caption_and_per_noun(wordnet: Any) -> None:
    found = measure(
        "Two of the 12 big dogs on the red couch near some trees and behind; each is wet."
    )
    assert found.nouns == 3  # dogs, couch, trees
    assert found.adjectives == 3  # big, red, wet
    assert found.complement_phrases == 4  # of ..., on ..., near ..., behind
    assert found.articles == 4  # the, the, some, each
    assert found.quantifiers == 2  # two, 12
    assert found.adjectives_per_noun == 3 / 3
    assert found.complement_phrases_per_noun == 4 / 3
    assert found.articles_per_noun == 4 / 3
    assert found.quantifiers_per_noun == 2 / 3
    assert (found.words, found.characters) == (18, 80)


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
    senses = [sense for word in ("sofa", "couch") for sense in wordnet.synsets(word)]
    names = {name for sense in senses for name in sense.lemma_names()}
    assert {"sofa", "couch"} < names
    assert measure("sofa couch").concept_diversity == len(names) / 2
    assert measure("sofa couch dog!").concept_diversity == len(names) / 3


@pytest.mark.parametrize(
    ("file", "figures"),
    [
        ("coco/captions_val2017.json", (0.76, 1.56, 2.14, 0.12, 7.89, 52.39, 10.59, 9.14)),
        (
            "published/fine_grained/Flickr30K_FG_ann_first200.json",
            (1.30, 2.19, 2.55, 0.27, 7.97, 68.29, 13.67, 10.68),
        ),
    ],
)
def test_the_features_are_near_those_of_the_papers_table(
    file: str, figures: tuple[float, ...], wordnet: Any, data_folder: Path
) -> None:
    """Within 7% on COCO, and within three standard errors on 100 images of Flickr30k-FG."""
    found = json.loads((data_folder / file).read_text())
    if "annotations" in found:
        images = [[row["caption"]] for row in found["annotations"][::60]]
    else:
        images = list(found.values())[::2]
    features = (
        *("adjectives", "complement_phrases", "articles", "quantifiers"),
        *("concept_depth", "characters", "words", "concept_diversity"),
    )
    for feature, figure in zip(features, figures, strict=True):
        means = [np.mean([getattr(measure(text), feature) for text in texts]) for texts in images]
        error = np.std(means) / np.sqrt(len(means))
        assert np.mean(means) == pytest.approx(figure, abs=0.07 * figure + 3 * error), feature


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
