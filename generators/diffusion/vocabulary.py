"""Define the words of Eq-SD: groups of objects, with their scenes and attributes.

A vocabulary is a JSON file. `families` are lists of mutually exclusive phrases: no two can be true
of one image ("at sunset", "at night"). A phrase stands before the noun ("a red") or after it
("wearing a cap"). A group has interchangeable objects, and names the families that make sense with
all of them: `places`, `conditions` (time, season, weather, light) and `attributes`. All phrases are
in plain English with their articles; `published` lists the published captions' variants.

Source: EqBen, appendix B.5: an object is replaced with one of the same subset (horse, cattle,
elephant, goat, deer, camel, zebra), with a scene of a subset that fits them. The paper gives these
seven objects and their four scenes, "in the winter", "at sunset", "with a sunglasses" and "wearing
a cap" and "a crown"; the other words are ours.
"""

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json

BUILT_IN = Path(__file__).with_name("data") / "vocabulary.json"
Position = Literal["before", "after"]
_ARTICLES = ("a", "an")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of one word or more after its article: `a`, `an`, or empty."""

    article: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join((self.article, *self.words) if self.article else self.words)


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Two or more phrases that exclude each other, before the noun or after it.

    The article of a phrase before the noun, if it has one, replaces the noun's.
    """

    name: str
    position: Position
    values: tuple[Phrase, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Two or more interchangeable objects, and the families that fit them.

    No object is in two groups, no phrase in two families of a group. Places and conditions follow
    the noun.
    """

    name: str
    objects: tuple[Phrase, ...]
    places: tuple[Family, ...]
    conditions: tuple[Family, ...]
    attributes: tuple[Family, ...]

    @property
    def families(self) -> tuple[Family, ...]:
        return (*self.places, *self.conditions, *self.attributes)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Vocabulary:
    """All words of Eq-SD; compared and hashed by identity, so that it is a cheap cache key.

    `published` has phrases and how the published captions write them.
    """

    styles: tuple[Phrase, ...]
    groups: tuple[Group, ...]
    published: tuple[tuple[str, str], ...]


@functools.lru_cache(maxsize=4)
def load_vocabulary(path: Path = BUILT_IN) -> Vocabulary:
    root = load_json(path)
    _check_keys(root, ("styles", "published", "families", "groups"))
    families: dict[str, Family] = {}
    for name, node in root["families"].items():
        _check_keys(node, ("position", "values"))
        position = node["position"].name()
        if position not in get_args(Position):
            node["position"].fail("before or after")
        values = _phrases(node["values"], least=2)
        families[name] = Family(name=name, position=cast(Position, position), values=values)
    groups = tuple(_group(node, families) for node in root["groups"].elements())
    _check_once(root["groups"], "group", (group.name for group in groups))
    _check_once(root["groups"], "object", (each.text for group in groups for each in group.objects))
    used = {family.name for group in groups for family in group.families}
    for name in families:
        if name not in used:
            place = root["families"][name].place
            raise InputError(f"{place}: no group uses this family; add it to a group or remove it")
    return Vocabulary(
        styles=_phrases(root["styles"], least=1),
        groups=groups,
        published=_published(root["published"], families),
    )


def _group(node: Node, families: dict[str, Family]) -> Group:
    _check_keys(node, ("name", "objects", "places", "conditions", "attributes"))
    group = Group(
        name=node["name"].name(),
        objects=_phrases(node["objects"], least=2),
        places=_families(node["places"], families, ("after",)),
        conditions=_families(node["conditions"], families, ("after",)),
        attributes=_families(node["attributes"], families, get_args(Position)),
    )
    _check_once(node, "phrase", (each.text for family in group.families for each in family.values))
    return group


def _families(
    node: Node, families: dict[str, Family], positions: tuple[str, ...]
) -> tuple[Family, ...]:
    found = []
    for element in node.elements():
        family = families.get(element.name())
        if family is None:
            element.fail("the name of a family under `families`")
        if family.position not in positions:
            element.fail(f"a family with the position {positions[0]!r}")
        found.append(family)
    _check_once(node, "family", (family.name for family in found))
    return tuple(found)


def _phrases(node: Node, least: int) -> tuple[Phrase, ...]:
    elements = list(node.elements())
    if len(elements) < least:
        node.fail(f"{least} or more phrases")
    phrases = tuple(_phrase(element) for element in elements)
    _check_once(node, "phrase", (phrase.text for phrase in phrases))
    return phrases


def _phrase(node: Node) -> Phrase:
    words = node.name().split(" ")
    article = words.pop(0) if words[0] in _ARTICLES else ""
    if not words or not all(word.replace("-", "").isalnum() for word in words):
        node.fail("words of letters, digits and hyphens, one space apart", repr(node.value))
    return Phrase(article, tuple(words))


def _published(node: Node, families: dict[str, Family]) -> tuple[tuple[str, str], ...]:
    known = {value.text for family in families.values() for value in family.values}
    found = []
    for text, other in node.items():
        if text not in known:
            node.fail("phrases of the families as keys", repr(text))
        found.append((text, _phrase(other).text))
    return tuple(found)


def _check_once(node: Node, kind: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        node.fail(f"every {kind} once", f"{twice[0]!r} twice")


def _check_keys(node: Node, keys: tuple[str, ...]) -> None:
    if unknown := sorted(set(map(str, node.mapping())) - set(keys)):
        fields = ", ".join(keys)
        raise InputError(f"{node.place}: unknown field {unknown[0]!r}; the fields are {fields}")
