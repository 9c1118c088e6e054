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
from tests.cases import cases_of
from tests.generators.published import published_order

cases = cases_of(__file__)


def _record(positive: str, negative: str) -> VlChecklistRecord:
    return VlChecklistRecord(
        index=0, image="VG_100K/1.jpg", positives=(positive,), negatives=(negative,)
    )


def _hard_positives(kind: Kind, group: str, positive: str, negative: str) -> list[tuple[str, str]]:
    triples = replace_as_published(_record(positive, negative), kind, group, load_lexicon())
    return [(triple.caption, triple.hard_positive) for triple in triples]


@pytest.mark.parametrize(
    ("kind", "group", "positive", "negative", "caption", "hard_positive"),
    cases("records_are_replaced_with_the_defects_of_the_published_rule"),
)
def test_records_are_replaced_with_the_defects_of_the_published_rule(
    kind: Kind, group: str, positive: str, negative: str, caption: str, hard_positive: str | None
) -> None:
    made = [] if hard_positive is None else [(caption, hard_positive)]
    assert _hard_positives(kind, group, positive, negative) == made


def test_a_relation_with_in_in_both_cases_is_taken_by_both_passes() -> None:
    found = _hard_positives("relation", "spatial", "hole in the IN house", "hole in the off house")
    assert found == [("hole in the in house", "hole within the in house")] * 2


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
