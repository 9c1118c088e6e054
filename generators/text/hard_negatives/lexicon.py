"""Closed classes of words of which an image shows one at most: "red", "blue"; "on", "under".

The file has the columns kind, group, sense, word and role. Words of one group exclude each other,
but for words of the same sense: "car" and "automobile". A word whose role is "target" may only be
put in: a cake can be sold where it was eaten, but what is sold cannot always be eaten.
"""

import csv
import functools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

ClassKind = Literal["object", "attribute", "relation", "verb"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedClasses:
    """The words of one kind.

    Attributes:
      alternatives: for each word the words that may stand in its place, sorted.
      groups: for each word the names of its groups, sorted.
    """

    alternatives: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, tuple[str, ...]]


@functools.cache
def closed_classes(kind: ClassKind) -> ClosedClasses:
    """Returns the closed classes of a kind.

    An alternative is the first word of another sense of one of the word's groups; no word that
    shares a sense with the word in any group is one.
    """
    text = (files("eqforge.generators.text") / "data" / "hard_negative_lexicon.tsv").read_text(
        encoding="utf-8"
    )
    rows = [row for row in csv.DictReader(text.splitlines(), delimiter="\t") if row["kind"] == kind]
    senses: dict[str, set[tuple[str, str]]] = defaultdict(set)
    leaders: dict[str, set[str]] = defaultdict(set)
    members: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        sense = (row["group"], row["sense"])
        if row["role"] == "both":
            senses[row["word"]].add(sense)
        leaders[row["group"]].add(row["sense"])
        members[sense].add(row["word"])
    alternatives = {}
    for word, own in senses.items():
        same = set().union(*(members[sense] for sense in own))
        others = set().union(*(leaders[group] for group, _ in own))
        alternatives[word] = tuple(sorted(others - same))
    groups = {word: tuple(sorted(group for group, _ in own)) for word, own in senses.items()}
    return ClosedClasses(alternatives=alternatives, groups=groups)
