import collections
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import EditedText, agree_articles, apply_edits
from eqforge.generators.text.hard_negatives.lexicon import (
    NEGATIVE_KINDS,
    NEGATIVE_REFUSALS,
    NegativeKind,
    closed_classes,
    read_rows,
)
from eqforge.generators.text.hard_negatives.make import known_words, make_hard_negative
from eqforge.generators.text.taggers import load_tagger
from eqforge.schemas.records.scores import Rejection
from tests.cases import cases_of
from tests.undone import invert

cases = cases_of(__file__)

TAGGER = load_tagger()


def _analysis(caption: str) -> Analysis:
    return TAGGER.analyse([caption])[0]


def _negatives(analysis: Analysis, seed: int) -> list[EditedText | Rejection]:
    """One result per kind, of which each draws from a seed of its own."""
    return [
        make_hard_negative(analysis, kind, random.Random(f"{seed}/{kind}"))
        for kind in NEGATIVE_KINDS
    ]


def _outcomes(kind: NegativeKind, caption: str, known: frozenset[str] = frozenset()) -> set[str]:
    """Returns every negative, or reason, that 60 seeds give."""
    results = [
        make_hard_negative(_analysis(caption), kind, random.Random(seed), known)
        for seed in range(60)
    ]
    return {r.text if isinstance(r, EditedText) else r.reason for r in results}


@pytest.mark.parametrize(
    ("kind", "caption", "negatives"),
    cases("words_are_replaced_by_others_of_their_kind_in_the_same_form"),
)
def test_words_are_replaced_by_others_of_their_kind_in_the_same_form(
    kind: NegativeKind, caption: str, negatives: set[str]
) -> None:
    assert negatives <= _outcomes(kind, caption)


@pytest.mark.parametrize(
    ("kind", "caption", "reason"),
    cases("what_cannot_be_made_false_for_sure_is_refused_with_a_reason"),
)
def test_what_cannot_be_made_false_for_sure_is_refused_with_a_reason(
    kind: NegativeKind, caption: str, reason: str
) -> None:
    assert _outcomes(kind, caption) == {reason}
    assert reason in NEGATIVE_REFUSALS


@pytest.mark.parametrize(
    ("kind", "caption", "absent"), cases("what_may_be_true_or_is_not_english_is_not_put_in")
)
def test_what_may_be_true_or_is_not_english_is_not_put_in(
    kind: NegativeKind, caption: str, absent: str
) -> None:
    assert absent not in _outcomes(kind, caption)


@pytest.mark.parametrize(("kind", "caption", "negatives"), cases("swaps_and_negations"))
def test_swaps_and_negations(kind: NegativeKind, caption: str, negatives: set[str]) -> None:
    assert _outcomes(kind, caption) == negatives


def test_rice_takes_no_article_and_no_plural() -> None:
    for text in _outcomes("replace_object", "a carrot") | _outcomes("replace_object", "carrots"):
        assert "broccoli" not in text
    assert {"corn on it", "carrots on it"} <= _outcomes("replace_object", "broccoli on it")


def test_nothing_that_another_caption_names_is_put_in() -> None:
    known = known_words(["a book", "Newspapers and magazines"])
    assert _outcomes("replace_object", "a map", known) == {"all_known"}
    assert _outcomes("replace_object", "a map", known_words(["a book, a newspaper"])) == {
        "a magazine"
    }


@pytest.mark.parametrize(("kind", "caption"), cases("what_a_caption_denies_is_not_changed"))
def test_what_a_caption_denies_is_not_changed(kind: NegativeKind, caption: str) -> None:
    assert _outcomes(kind, caption) == {"already_negated"}


@pytest.mark.parametrize("kind", NEGATIVE_KINDS)
@pytest.mark.parametrize(
    "caption",
    [
        "A black dog might be next to an orange cat",
        "Clocks may be seen on all sides of the tower",
        "A man may be without a hat",
    ],
)
def test_what_may_be_has_no_negative(kind: NegativeKind, caption: str) -> None:
    assert _outcomes(kind, caption) == {"only_possible"}


def test_may_as_a_month_says_nothing_of_what_may_be() -> None:
    assert _outcomes("negation", "A dog on a beach in May") == {"No dog on a beach in May"}


def test_a_caption_in_capitals_has_a_negative_in_capitals() -> None:
    assert _outcomes("swap_object", "A HORSE CHASES A COW") == {"A COW CHASES A HORSE"}
    assert all(text.isupper() for text in _outcomes("negation", "A MAN RIDING A HORSE"))


def test_every_sense_is_one_of_its_words() -> None:
    for kind in ("object", "attribute", "relation", "verb"):
        rows = read_rows("hard_negative_lexicon.tsv", kind)
        words = {(row["group"], row["word"]) for row in rows}
        assert {(row["group"], row["sense"]) for row in rows} <= words


def test_words_of_one_sense_never_replace_each_other() -> None:
    for kind in ("object", "attribute", "relation", "verb"):
        classes = closed_classes(kind)
        for word, by_group in classes.alternatives.items():
            for others in by_group.values():
                assert word not in others
                assert others == tuple(sorted(set(others)))
            assert any(by_group.values()), (kind, word)
    assert "crimson" not in closed_classes("attribute").alternatives["red"]["color"]


def _check(caption: str, seed: int) -> collections.Counter[str]:
    counts: collections.Counter[str] = collections.Counter()
    results = _negatives(_analysis(caption), seed)
    for kind, result in zip(NEGATIVE_KINDS, results, strict=True):
        if isinstance(result, Rejection):
            assert result.reason in NEGATIVE_REFUSALS
            counts["refused"] += 1
            continue
        counts[kind] += 1
        assert result.text != caption
        undone = apply_edits(result.text, invert(caption, result))
        assert undone.text == caption
    return counts


WORDS = st.sampled_from(
    [
        *("a", "an", "the", "two", "on", "in", "with", "and", ",", ".", "man", "dogs", "apple"),
        *("red", "old", "table", "holding", "sits", "riding", "horse", "not", "É", "ICE", "Cat"),
    ]
)


@given(st.text(max_size=40) | st.lists(WORDS, max_size=10).map(" ".join), st.integers(0, 9))
def test_any_caption_is_edited_so_that_it_can_be_undone_or_refused(caption: str, seed: int) -> None:
    _check(caption, seed)


def test_coco_captions_get_negatives_with_agreeing_articles(data_folder: Path) -> None:
    content = json.loads((data_folder / "coco" / "captions_val2017.json").read_text())
    captions = [annotation["caption"] for annotation in content["annotations"]][::25]
    counts: collections.Counter[str] = collections.Counter()
    for index, caption in enumerate(captions):
        counts += _check(caption, index)
        if agree_articles(caption):
            continue
        for result in _negatives(_analysis(caption), index):
            if isinstance(result, EditedText):
                assert agree_articles(result.text) == (), result.text
    assert counts.total() == 6 * len(captions)
    assert counts["replace_object"] > 0.55 * len(captions)
    assert counts["negation"] > 0.8 * len(captions)
