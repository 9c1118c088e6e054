"""The vocabulary of Eq-SD, and what its reader refuses."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.vocabulary import BUILT_IN, Phrase, load_vocabulary
from eqforge.generators.text.edits import article_for

SMALL: dict[str, Any] = {
    "styles": ["a photo"],
    "published": {"with an eye patch": "with a eye patch"},
    "families": {
        "ground": {"position": "after", "values": ["on the grass", "in the desert"]},
        "time": {"position": "after", "values": ["at sunset", "at night"]},
        "eyewear": {"position": "after", "values": ["with sunglasses", "with an eye patch"]},
        "colour": {"position": "before", "values": ["a red", "an orange"]},
    },
    "groups": [
        {
            "name": "animals",
            "objects": ["a horse", "cattle"],
            "places": ["ground"],
            "conditions": ["time"],
            "attributes": ["eyewear", "colour"],
        }
    ],
}


def write(folder: Path, change: Callable[[dict[str, Any]], None] | None = None) -> Path:
    content = json.loads(json.dumps(SMALL))
    if change is not None:
        change(content)
    (folder / "words.json").write_text(json.dumps(content), encoding="utf-8")
    return folder / "words.json"


def test_a_file_is_read_as_it_stands(tmp_path: Path) -> None:
    vocabulary = load_vocabulary(write(tmp_path))
    (group,) = vocabulary.groups
    assert vocabulary.styles == (Phrase("a", ("photo",)),)
    assert group.objects == (Phrase("a", ("horse",)), Phrase("", ("cattle",)))
    assert [family.name for family in group.attributes] == ["eyewear", "colour"]
    assert group.attributes[1].values == (Phrase("a", ("red",)), Phrase("an", ("orange",)))
    assert group.attributes[0].values[1].text == "with an eye patch"
    assert vocabulary.published == (("with an eye patch", "with a eye patch"),)


def test_the_built_in_vocabulary_has_what_the_paper_prints() -> None:
    """EqBen, section 4.2 and appendix B.5."""
    vocabulary = load_vocabulary()
    group = vocabulary.groups[0]
    assert {thing.text for thing in group.objects} == {
        "a horse", "cattle", "an elephant", "a goat", "a deer", "a camel", "a zebra",
    }  # fmt: skip
    assert {phrase.text for family in group.places for phrase in family.values} == {
        "standing on the grass", "in the desert", "near the river", "in the zoo",
    }  # fmt: skip
    assert [style.text for style in vocabulary.styles] == ["a photo", "a painting"]
    assert ("with sunglasses", "with a sunglasses") in vocabulary.published
    every = {thing.text for group in vocabulary.groups for thing in group.objects}
    assert {"a cat", "a dog", "a beach"} <= every


def test_the_articles_of_the_built_in_vocabulary_are_those_of_inflect() -> None:
    content = json.loads(BUILT_IN.read_text(encoding="utf-8"))
    phrases = [text for group in content["groups"] for text in group["objects"]]
    phrases += [text for family in content["families"].values() for text in family["values"]]
    followed = 0
    for words in map(str.split, phrases):
        for word, following in itertools.pairwise(words):
            if word in ("a", "an"):
                assert word == article_for(following), words
                followed += 1
    assert followed > 200


def refused(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Returns a change that puts a value at a dotted place of the file."""

    def change(content: dict[str, Any]) -> None:
        *folders, last = name.split(".")
        for folder in folders:
            content = content[int(folder)] if isinstance(content, list) else content[folder]
        content[int(last) if isinstance(content, list) else last] = value

    return change


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("styles", [], "styles: expected 1 or more phrases"),
        ("styles", ["a photo", "a photo"], "every phrase once, found 'a photo' twice"),
        ("styles", ["a  photo"], "one space apart; found 'a  photo'"),
        ("styles", ["a photo."], "words of letters, digits and hyphens"),
        ("styles", ["a"], "words of letters"),
        (
            "extra",
            1,
            "unknown field 'extra'; the fields are styles, published, families, groups",
        ),
        ("published", {"with a cap": "with cap"}, "found 'with a cap'"),
        ("families.time.position", "behind", "families.time.position: expected before or after"),
        ("families.time.values", ["at sunset"], "families.time.values: expected 2 or more phrases"),
        (
            "families.unused",
            SMALL["families"]["time"],
            "families.unused: no group uses this family; add it",
        ),
        ("groups.0.objects", ["a horse"], "groups[0].objects: expected 2 or more phrases"),
        ("groups.0.places", ["colour"], "places[0]: expected a family with the position 'after'"),
        ("groups.0.places", ["hills"], "groups[0].places[0]: expected the name of a family"),
        (
            "groups.0.places",
            ["ground", "ground"],
            "every family once, found 'ground' twice",
        ),
        (
            "groups.0.conditions",
            ["ground"],
            "every phrase once, found 'on the grass' twice",
        ),
        ("groups", SMALL["groups"] * 2, "every group once, found 'animals' twice"),
        (
            "groups",
            [SMALL["groups"][0], SMALL["groups"][0] | {"name": "others"}],
            "every object once, found 'a horse' twice",
        ),
    ],
)
def test_a_wrong_file_is_one_clear_error(
    tmp_path: Path, place: str, value: Any, message: str
) -> None:
    path = write(tmp_path, refused(place, value))
    with pytest.raises(InputError) as error:
        load_vocabulary(path)
    assert message in str(error.value)
    assert str(error.value).startswith("words.json: ")


def test_the_vocabulary_that_the_documentation_shows_can_be_read(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "datasets" / "eq-sd.md"
    (example,) = re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "words.json"
    file.write_text(example, encoding="utf-8")
    assert load_vocabulary(file).groups[0].objects[2].text == "an elephant"
