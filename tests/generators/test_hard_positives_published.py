import functools
import json
from collections import Counter
from pathlib import Path

import pytest

from eqforge.generators.text.hard_positives.published import (
    PUBLISHED_GROUPS,
    PublishedTriple,
    replace_as_published,
)
from eqforge.generators.text.lexicon import Kind, load_lexicon
from eqforge.sources.vl_checklist import VlChecklistRecord, read_vl_checklist
from tests.generators.published import published_order


def _record(positive: str, negative: str) -> VlChecklistRecord:
    return VlChecklistRecord(
        index=0, image="VG_100K/1.jpg", positives=(positive,), negatives=(negative,)
    )


def _hard_positives(kind: Kind, group: str, positive: str, negative: str) -> list[tuple[str, str]]:
    triples = replace_as_published(_record(positive, negative), kind, group, load_lexicon())
    return [(triple.caption, triple.hard_positive) for triple in triples]


def test_attributes_are_replaced_inside_words_too() -> None:
    """The published defect: str.replace of the first word of the lexicon, anywhere."""
    assert _hard_positives("attribute", "color", "covered red barn", "covered tan barn") == [
        ("covered red barn", "covecrimson crimson barn")
    ]


def test_attributes_replace_the_first_word_of_the_lexicon_not_the_foiled_one() -> None:
    found = _hard_positives("attribute", "size", "long bus on large lot", "short bus on large lot")
    assert found == [("long bus on large lot", "long bus on big lot")]


def test_attributes_need_exactly_one_missing_word_of_the_lexicon() -> None:
    assert _hard_positives("attribute", "color", "pink dog", "tan dog") == []
    assert _hard_positives("attribute", "color", "red and white dog", "tan dog") == []


def test_relations_in_capitals_are_put_in_lower_case() -> None:
    assert _hard_positives("relation", "spatial", "cup IN sink", "cup out of sink") == [
        ("cup in sink", "cup within sink")
    ]
    assert _hard_positives("relation", "action", "man WEARING hat", "man eating hat") == [
        ("man wearing hat", "man in hat")
    ]
    assert _hard_positives("relation", "spatial", "cup IN THE sink", "cup nearby sink") == []


def test_every_relation_is_put_in_lower_case_but_no_attribute() -> None:
    assert _hard_positives("relation", "action", "woman WEARING A cap", "woman eating cap") == [
        ("woman wearing a cap", "woman in a cap")
    ]
    assert _hard_positives("relation", "spatial", "cup near THE sink", "cup off THE sink") == [
        ("cup near the sink", "cup next to the sink")
    ]
    assert _hard_positives("attribute", "color", "top OF red car", "top OF tan car") == [
        ("top OF red car", "top OF crimson car")
    ]


def test_the_first_pass_replaces_the_first_in_and_the_second_those_in_lower_case() -> None:
    """A caption that both passes take, as the published files have it."""
    found = _hard_positives("relation", "spatial", "hole in the IN house", "hole in the off house")
    assert found == [
        ("hole in the in house", "hole within the in house"),
        ("hole in the in house", "hole within the in house"),
    ]


def test_wearing_in_capitals_goes_before_any_word_of_the_lexicon() -> None:
    caption = "man wearing tie WEARING hat"
    assert _hard_positives("relation", "action", caption, "man") == [
        ("man wearing tie wearing hat", "man wearing tie in hat")
    ]


def test_relations_are_kept_whatever_the_negative_says() -> None:
    assert _hard_positives("relation", "action", "man riding horse", "man riding horse") == [
        ("man riding horse", "man traveling on horse")
    ]
    assert _hard_positives("relation", "action", "riding crop held in hand", "crop") == []


@functools.cache
def _published(folder: Path, kind: Kind) -> list[PublishedTriple]:
    root = folder / "vl_checklist" / "data" / kind.capitalize() / "vg"
    records = {group: read_vl_checklist(root / f"{group}.json") for group in PUBLISHED_GROUPS[kind]}
    return published_order(records, kind, load_lexicon())


@pytest.mark.parametrize("kind", ["attribute", "relation"])
def test_every_worked_example_stands_at_its_place_byte_by_byte(
    data_folder: Path, kind: Kind
) -> None:
    triples = _published(data_folder, kind)
    path = data_folder / "hard_positives" / "worked_examples.json"
    examples = [e for e in json.loads(path.read_text()) if e["file"] == f"{kind}s"]
    assert len(examples) > 400
    for example in examples:
        triple = triples[example["index"]]
        assert Path(triple.image).stem == example["image_id"]
        assert triple.caption == example["caption"]
        assert triple.hard_positive == example["hard_positive"]
        assert triple.hard_negative == example["hard_negative"]
        assert triple.hard_negative == example["hard_negative_of_positive"]


def test_the_words_have_the_frequencies_of_tables_4_to_6(data_folder: Path) -> None:
    relations = Counter(t.entry.word for t in _published(data_folder, "relation"))
    assert relations["wearing"] + relations["wears"] == 3976
    assert relations["riding"] + relations["riding on"] == 283
    del relations["wearing"], relations["wears"], relations["riding"], relations["riding on"]
    assert relations == {
        "in": 6173,
        "behind": 1057,
        "on top of": 683,
        "near": 657,
        "next to": 621,
        "under": 467,
        "by": 394,
        "above": 298,
        "holding": 950,
        "sitting": 639,
        "hanging": 382,
        "walking": 288,
    }
    attributes = Counter(t.entry.word for t in _published(data_folder, "attribute"))
    expected = {"white": 2742, "black": 1790, "large": 571, "clear": 43, "standing": 153}
    assert {word: attributes[word] for word in expected} == expected
