"""Captions in other languages are found, and English ones are left alone."""

import csv
import importlib
import json
import pkgutil
from pathlib import Path

import pytest

from eqforge.generators.text.language import known_words, reject_language
from tests.cases import cases_of

cases = cases_of(__file__)


@pytest.mark.parametrize(
    "text", [*cases("what_is_english_or_says_too_little_is_taken"), "dog " * 2000]
)
def test_what_is_english_or_says_too_little_is_taken(text: str) -> None:
    assert reject_language(text) is None


@pytest.mark.parametrize(("text", "language"), cases("another_language_is_refused_by_name"))
def test_another_language_is_refused_by_name(text: str, language: str) -> None:
    refused = reject_language(text)
    assert refused is not None
    assert (refused.reason, refused.detail) == ("not_english", f"likeliest: {language}")
    assert refused.value is not None
    assert refused.threshold is not None
    assert 0 <= refused.value < refused.threshold


def test_known_words_are_counted_without_their_apostrophes() -> None:
    assert known_words("a man's dog doesn't qwrtp") == pytest.approx(4 / 5)
    assert known_words("1 2 3") == 1


def test_sentences_of_sixty_languages_are_told_from_english() -> None:
    """spaCy's own example sentences, from 2 to 30 words; they were not used to choose anything."""
    import spacy.lang

    found: dict[str, list[bool]] = {}
    for module in pkgutil.iter_modules(spacy.lang.__path__):
        folder = Path(spacy.lang.__path__[0]) / module.name
        if module.name in ("en", "xx") or not (folder / "examples.py").exists():
            continue  # xx mixes languages, English among them
        sentences = importlib.import_module(f"spacy.lang.{module.name}.examples").sentences
        found[module.name] = [reject_language(text) is not None for text in sentences]
    told = [each for all_of_them in found.values() for each in all_of_them]
    assert len(found) > 60
    assert sum(told) / len(told) > 0.98
    assert min(sum(each) / len(each) for each in found.values()) > 0.8


def test_of_real_english_captions_less_than_one_in_a_thousand_is_refused(data_folder: Path) -> None:
    content = json.loads((data_folder / "coco" / "captions_val2017.json").read_text())
    coco = [each["caption"] for each in content["annotations"]][::5]
    phrases: set[str] = set()
    for file in sorted((data_folder / "vl_checklist" / "data").rglob("vg/*.json")):
        for _, captions in json.loads(file.read_text())[::10]:
            phrases |= {*captions["POS"], *captions["NEG"]}

    assert [text for text in coco if reject_language(text)] == []
    refused = [text for text in phrases if reject_language(text)]
    assert len(refused) < len(phrases) / 1_000


def test_short_captions_of_eight_languages_are_told_from_english() -> None:
    """200 captions written for this; the list of articles was made before them."""
    path = Path(__file__).parent / "captions" / "other_languages.tsv"
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines(), delimiter="\t"))
    taken = [row["caption"] for row in rows if reject_language(row["caption"]) is None]

    assert len(rows) == 200
    assert len(taken) <= 1, taken
