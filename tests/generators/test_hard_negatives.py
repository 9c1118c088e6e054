import collections
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.articles import agree_articles
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.hard_negatives.lexicon import closed_classes, read_rows
from eqforge.generators.text.hard_negatives.make import (
    known_words,
    make_hard_negative,
)
from eqforge.generators.text.hard_negatives.records import (
    NEGATIVE_KINDS,
    NEGATIVE_REFUSALS,
    HardNegative,
    NegativeKind,
)
from eqforge.generators.text.taggers import load_tagger
from eqforge.schemas.records.scores import Rejection
from tests.undone import invert

TAGGER = load_tagger()


def _analysis(caption: str) -> Analysis:
    return TAGGER.analyse([caption])[0]


def _negatives(analysis: Analysis, seed: int) -> list[HardNegative | Rejection]:
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
    return {r.edited.text if isinstance(r, HardNegative) else r.reason for r in results}


@pytest.mark.parametrize(
    ("kind", "caption", "negatives"),
    [
        ("replace_object", "a man on an elephant", {"a woman on an elephant", "a man on a bear"}),
        ("replace_object", "Two benches.", {"Two chairs.", "Two couches.", "Two stools."}),
        ("replace_object", "a red fire hydrant", {"a red stop sign", "a red traffic light"}),
        ("replace_object", "A photo of a clock", {"A photo of a camera"}),
        ("replace_object", "three sheep", {"three goats"}),
        ("replace_attribute", "an old man", {"a young man"}),
        ("replace_attribute", "A black and white photo of a cat", {"A color photo of a cat"}),
        ("replace_attribute", "Two adult males", {"Three adult males"}),
        ("replace_attribute", "an old house", {"a new house"}),
        ("replace_attribute", "the largest dog", {"the smallest dog"}),
        ("replace_attribute", "three dogs", {"two dogs", "five dogs"}),
        ("replace_relation", "a cup on a table", {"a cup under a table"}),
        ("replace_relation", "a car in front of a house", {"a car behind a house"}),
        ("replace_relation", "a man sits near a dog", {"a man stands near a dog"}),
        ("replace_relation", "a bear that is lying on it", {"a bear that is standing on it"}),
        ("replace_relation", "flowers in a vase", {"flowers next to a vase"}),
        ("replace_relation", "a man holding a bat", {"a man dropping a bat"}),
    ],
)
def test_words_are_replaced_by_others_of_their_kind_in_the_same_form(
    kind: NegativeKind, caption: str, negatives: set[str]
) -> None:
    assert negatives <= _outcomes(kind, caption)


@pytest.mark.parametrize(
    ("kind", "caption", "reason"),
    [
        ("replace_object", "some thing", "no_object"),
        ("replace_object", "his glasses", "no_object"),
        ("replace_object", "a van and a van", "no_object"),
        ("replace_attribute", "a dog", "no_attribute"),
        ("replace_attribute", "a black and white television", "no_attribute"),
        ("replace_relation", "a dog on a sunny day", "no_relation"),
        ("replace_relation", "a man in a shirt", "no_relation"),
        ("replace_relation", "a bicycle sitting there", "no_relation"),
        ("replace_relation", "a man riding a wave", "no_relation"),
        ("swap_object", "a dog", "no_pair"),
        ("swap_object", "a dog next to a cat", "same_meaning"),
        ("swap_object", "a dog and a cat", "same_meaning"),
        ("swap_object", "a man in the air", "no_pair"),
        ("swap_object", "a bowl of soup", "no_pair"),
        ("swap_object", "A laptop on a table", "same_meaning"),
        ("swap_object", "A man watching a dog", "same_meaning"),
        ("replace_relation", "two men waiting on a bus", "no_relation"),
        ("replace_object", "the sheep are grazing", "no_object"),
        ("replace_object", "a polar bear", "no_object"),
        ("replace_object", "a train of animals", "no_object"),
        ("replace_object", "other trucks", "no_object"),
        ("replace_object", "glass fronted cabinets", "no_object"),
        ("replace_object", "man made rocks", "no_object"),
        ("replace_object", "them at bat", "no_object"),
        ("replace_attribute", "an old toddler", "no_attribute"),
        ("replace_attribute", "some tall buildings", "no_attribute"),
        ("replace_relation", "cows lying, grazing and walking", "no_relation"),
        ("replace_relation", "a person jumping into the air", "no_relation"),
        ("replace_object", "people looking off camera", "no_object"),
        ("replace_attribute", "a tower next to other short buildings", "no_attribute"),
        ("replace_relation", "flowers on the outside of a house", "no_relation"),
        ("replace_relation", "coming up close to people", "no_relation"),
        ("replace_relation", "water under a boat", "no_relation"),
        ("replace_relation", "a printer sitting there", "no_relation"),
        ("swap_attribute", "a blonde woman in a red shirt", "same_meaning"),
        ("negation", "Various sink cabinets", "nothing_to_negate"),
        ("negation", "Men, some are sitting", "nothing_to_negate"),
        ("replace_object", "a store that sells teddy bears", "no_object"),
        ("replace_attribute", "an off white toilet", "no_attribute"),
        ("replace_relation", "a man holding a cup in the other hand", "no_relation"),
        ("replace_object", "a boy using his phone", "no_object"),
        ("replace_attribute", "two cows, one lying and the other standing", "no_attribute"),
        ("replace_attribute", "a big sky", "no_attribute"),
        ("replace_relation", "a dog lying on its side", "no_relation"),
        ("replace_relation", "a cat crouched on it", "no_relation"),
        ("replace_relation", "preparing to hit a ball", "no_relation"),
        ("replace_relation", "an airplane flying in the sky", "no_relation"),
        ("replace_relation", "holding the end of a leash", "no_relation"),
        ("replace_relation", "a picture on a wall", "no_relation"),
        ("swap_attribute", "a red car and a dog", "no_pair"),
        ("swap_attribute", "a red car and a blue car", "same_meaning"),
        ("swap_attribute", "a gray cat and a grey car", "same_meaning"),
        ("swap_attribute", "a red car and a big dog", "same_meaning"),
        ("negation", "a man without his hat", "already_negated"),
        ("negation", "a man without a hat and no shoes", "already_negated"),
        ("negation", "two", "nothing_to_negate"),
        ("negation", "Someone is sitting on a bench", "nothing_to_negate"),
        ("negation", "A picture of a man", "nothing_to_negate"),
        ("negation", "A group of three stuffed animals", "nothing_to_negate"),
        ("negation", "A lot of different trees", "nothing_to_negate"),
        ("negation", "There are a couple of dogs", "nothing_to_negate"),
        ("negation", "There are plenty of oranges", "nothing_to_negate"),
        ("negation", "A room with some chairs and tables", "nothing_to_negate"),
        ("negation", "Some stairs, a couch and a table", "nothing_to_negate"),
    ],
)
def test_what_cannot_be_made_false_for_sure_is_refused_with_a_reason(
    kind: NegativeKind, caption: str, reason: str
) -> None:
    assert _outcomes(kind, caption) == {reason}
    assert reason in NEGATIVE_REFUSALS


@pytest.mark.parametrize(
    ("kind", "caption", "absent"),
    [
        ("replace_object", "a man watches the water", "a man watches the umbrella"),
        ("replace_object", "a dog on a beach", "a dog on a forest"),
        ("replace_object", "a sandwich on a plate", "a sandwich on a bowl"),
        ("replace_object", "a train on the tracks", "a car on the tracks"),
        ("replace_object", "a frozen pizza", "a frozen soup"),
        ("replace_object", "a man at a table", "a man at a chair"),
        ("replace_object", "a swimming pool", "a swimming lake"),
        ("replace_relation", "a person sitting by a person", "a person standing by a person"),
        ("negation", "a railroad crossing sign", "a railroad not crossing sign"),
        ("replace_object", "a chocolate frosted donut", "a chocolate frosted ice cream"),
        ("replace_object", "a large multi layered cake", "a large multi layered pies"),
        ("replace_object", "a snow covered field with trees", "a snow covered forest with trees"),
        ("replace_object", "a car in the rain", "a van in the rain"),
        ("replace_object", "a sandwich", "a hot dog"),
        ("replace_relation", "a dog running there", "a dog jumping there"),
        ("replace_relation", "a pizza on a plate", "a pizza under a plate"),
        ("replace_attribute", "two hot dogs", "two cold dogs"),
        ("replace_attribute", "a black car", "a blond car"),
        ("replace_attribute", "a little girl", "a big girl"),
        ("replace_relation", "a man throwing a ball", "a man holding a ball"),
        ("replace_relation", "a cow sitting on grass", "a cow lying on grass"),
        ("replace_relation", "a man about to hit a ball", "a man about to caught a ball"),
        ("replace_relation", "a tree near a house", "a tree far from a house"),
    ],
)
def test_what_may_be_true_or_is_not_english_is_not_put_in(
    kind: NegativeKind, caption: str, absent: str
) -> None:
    assert absent not in _outcomes(kind, caption)


@pytest.mark.parametrize(
    ("kind", "caption", "negatives"),
    [
        ("swap_object", "A dog chasing two cats", {"Two cats chasing a dog"}),
        ("swap_object", "a cup on a book.", {"a book on a cup."}),
        ("swap_attribute", "a black cat and an orange dog", {"an orange cat and a black dog"}),
        ("swap_attribute", "A big dog by a small car", {"A small dog by a big car"}),
        ("negation", "a man is sitting", {"a man is not sitting"}),
        ("negation", "Two dogs eat.", {"Two dogs do not eat."}),
        (
            "negation",
            "a man riding a horse with a hat",
            {"a man not riding a horse with a hat", "a man riding a horse without a hat"},
        ),
        ("negation", "A red car", {"No red car"}),
        ("negation", "A couple of cars on a street", {"No cars on a street"}),
        ("negation", "some people at a beach", {"no people at a beach"}),
        ("negation", "A couple of dogs are here", {"No dogs are here"}),
        ("negation", "there is a dog here", {"there is no dog here"}),
        ("negation", "there are several dogs here", {"there are no dogs here"}),
        ("negation", "there are 25 dogs here", {"there are not 25 dogs here"}),
        ("negation", "A person with some skis", {"A person without any skis"}),
        ("negation", "A man without a hat", {"A man with a hat"}),
        ("negation", "A train with no passengers", {"A train with passengers"}),
        ("negation", "A dog that is not sleeping", {"A dog that is sleeping"}),
        ("negation", "A red umbrella. No people.", {"A red umbrella. People."}),
        ("negation", "a red umbrella. no people.", {"a red umbrella. people."}),
        ("negation", "A RED UMBRELLA. NO PEOPLE.", {"A RED UMBRELLA. PEOPLE."}),
        ("negation", "A street. Not raining.", {"A street. Raining."}),
        ("negation", "No people on a beach", {"People on a beach"}),
        ("negation", "The man has a bat", {"The man does not have a bat"}),
        (
            "negation",
            "A bird that is standing on a rock",
            {"A bird that is not standing on a rock"},
        ),
        ("negation", "Dogs on a beach", {"No dogs on a beach"}),
    ],
)
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


@pytest.mark.parametrize(
    ("kind", "caption"),
    [
        ("replace_attribute", "A woman is not wearing a red hat"),
        ("replace_object", "There is no milk in the fridge."),
        ("swap_object", "A dog without a tail chasing a cat"),
        ("replace_object", "A dog cannot reach the frisbee"),
        ("replace_object", "A dog isnt sitting on a couch"),
        ("negation", "A dog isnt sitting on a couch"),
        ("replace_relation", "Two men arent riding horses"),
        ("negation", "A man doesnt wear a hat"),
        ("replace_object", "A man lacking a hat sits on a bench"),
        ("negation", "A room lacks furniture"),
        ("negation", "A No bicycles sign"),
        ("replace_object", "A lack of people on a beach"),
        ("negation", "A man doesnt wear a hat without a brim"),
    ],
)
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


def test_another_process_with_another_hash_seed_makes_the_same_negatives() -> None:
    caption = "a small dog on a red table near two cats in a kitchen"
    code = (
        "from eqforge.generators.text.taggers import load_tagger\n"
        "from tests.generators.test_hard_negatives import _negatives\n"
        f"a = load_tagger().analyse([{caption!r}])[0]\n"
        "for i in range(20): print(_negatives(a, i))\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "12345", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    analysis = _analysis(caption)
    own = [_negatives(analysis, i) for i in range(20)]
    assert other.stdout.splitlines() == [str(results) for results in own]


def _check(caption: str, seed: int) -> collections.Counter[str]:
    counts: collections.Counter[str] = collections.Counter()
    for result in _negatives(_analysis(caption), seed):
        if isinstance(result, Rejection):
            assert result.reason in NEGATIVE_REFUSALS
            counts["refused"] += 1
            continue
        counts[result.kind] += 1
        assert result.edited.text != caption
        undone = apply_edits(result.edited.text, invert(caption, result.edited))
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
            if isinstance(result, HardNegative):
                assert agree_articles(result.edited.text) == (), result.edited.text
    assert counts.total() == 6 * len(captions)
    assert counts["replace_object"] > 0.55 * len(captions)
    assert counts["negation"] > 0.8 * len(captions)
