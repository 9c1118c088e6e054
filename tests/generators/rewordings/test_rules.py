import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.records import Rewording
from eqforge.generators.text.rewordings.rules import FAMILIES, KINDS, find_rewordings
from eqforge.generators.text.taggers import load_tagger
from tests.generators.rewordings.reworded import RULES, analysed, reverse_of
from tests.undone import invert


def _rewordings(caption: str) -> Iterator[Rewording]:
    """Yields the rewordings of a caption, each checked for what holds of all."""
    for found in find_rewordings(analysed(caption)):
        assert found.rule in RULES
        edited = apply_edits(caption, found.edits)  # refuses edits that overlap
        assert edited.text != caption
        assert apply_edits(edited.text, invert(caption, edited)).text == caption
        yield found


def test_each_rule_is_known_by_its_name() -> None:
    assert len(RULES) == sum(map(len, FAMILIES.values())) == len(set(KINDS.values()))


@pytest.mark.parametrize(
    "caption",
    [
        "",
        " ",
        ".",
        "一个人骑着马",
        "Мужчина едет на лошади.",
        "رجل يركب حصانا",
        "\U0001f600",
        "a",
        "of a",
    ],
)
def test_what_is_no_english_caption_has_no_rewording(caption: str) -> None:
    assert list(_rewordings(caption)) == []


def test_a_pipelines_tags_and_phrases_are_taken_as_well(pipeline_folder: Path) -> None:
    (analysis,) = load_tagger(str(pipeline_folder)).analyse(["A dog sits on the mat"])

    found = [apply_edits(analysis.text, made.edits).text for made in find_rewordings(analysis)]

    assert "A dog is sitting on the mat" in found


def _by(rule: str, caption: str) -> list[str]:
    found = [each for each in find_rewordings(analysed(caption)) if each.rule == rule]
    return [apply_edits(caption, each.edits).text for each in found]


def test_capitals_stay_capitals() -> None:
    caption = "A MAN IS RIDING A WAVE"

    found = {apply_edits(caption, made.edits).text for made in _rewordings(caption)}

    assert {"A MAN RIDING A WAVE", "THERE IS A MAN RIDING A WAVE"} <= found
    assert all(text.isupper() for text in found)


def test_a_participle_that_is_known_as_a_noun_is_read_as_one() -> None:
    caption = "A person reading a book"

    found = {apply_edits(caption, each.edits).text for each in _rewordings(caption)}

    assert "A person who is reading a book" in found
    assert "There is a person reading a book" in found


WORDS = st.sampled_from(
    [
        *("a", "an", "the", "two", "2", "of", "in", "with", "and", ",", ".", "man", "dogs", "red"),
        *("holding", "sits", "is", "are", "There", "there", "who", "that", "his", "street", "has"),
        *("picture", "wearing", "hat", "next", "to", "above", "by", "being", "held", "many", "É"),
        *("group", "people", "each", "other", "on", "top", "filled", "rides", "horse", "A", "MAN"),
    ]
)


@given(st.text(max_size=40) | st.lists(WORDS, max_size=14).map(" ".join))
def test_edits_stay_apart_and_can_be_undone(caption: str) -> None:
    list(_rewordings(caption))


def test_coco_captions_come_back(data_folder: Path) -> None:
    """All do, but where a word lexicon takes a verb for a noun: "the man drives".

    Others are made of more than they make: "this is" stands before pictures alone, and a synonym
    may have conditions of its own ("a bunch of bananas" is no group).
    """
    content = json.loads((data_folder / "coco" / "captions_val2017.json").read_text())
    lost = Counter[str]()
    made = Counter[str]()
    for annotation in content["annotations"][::40]:
        caption = annotation["caption"]
        for found in _rewordings(caption):
            if caption.isupper():  # tags differ with letter case
                continue
            made[found.rule] += 1
            reverse = reverse_of(found.rule)
            edited = apply_edits(caption, found.edits).text
            lost[found.rule] += reverse is not None and caption not in _by(reverse, edited)
    share = {"drop_this_is": 1.0} | dict.fromkeys(
        ("noun_as_synonym", "present_to_participle", "progressive_to_simple"), 0.2
    )
    assert all(lost[rule] <= max(3, share.get(rule, 0.05) * made[rule]) for rule in made), lost
