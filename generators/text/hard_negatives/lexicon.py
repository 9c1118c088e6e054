"""Closed classes of words of which at most one is true of a thing: "red", "blue"; "on", "under".

The file has the columns kind, group, sense, word and role. Words of one group exclude each other,
except those of the same sense: "car" and "automobile". A word whose role is "target" is only put
in, never replaced: "eating" may become "selling", but not everything sold can be eaten.
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
      alternatives: for each word the words that may replace it, sorted.
      groups: for each word the names of its groups, sorted.
    """

    alternatives: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, tuple[str, ...]]


@functools.cache
def closed_classes(kind: ClassKind) -> ClosedClasses:
    """Returns the closed classes of a kind.

    The alternatives of a word are the words that name the other senses of its groups, except any
    that shares a sense with it in some group.
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
