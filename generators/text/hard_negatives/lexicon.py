"""Read closed classes of mutually exclusive words: "red", "blue"; "on", "under".

The file has the columns kind, group, sense, word and role. Words of one group exclude each other,
except words of the same sense: "car" and "automobile". A "target" is only put in, never replaced:
"eating" may become "selling", but not everything sold can be eaten. A "source" is only replaced:
whoever throws a ball has held it. A "class" is neither: a kitchen has a sink and an oven.
"""

import functools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from eqforge.generators.text.words import read_table, reasons

ClassKind = Literal["object", "attribute", "relation", "verb"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedClasses:
    """The words of one kind.

    Attributes:
      alternatives: for each word, by group, the words that may replace it, sorted.
      groups: for each word the names of its groups, sorted.
      senses: for each word its groups, each with its sense, for words that exclude others.
    """

    alternatives: Mapping[str, Mapping[str, tuple[str, ...]]]
    groups: Mapping[str, tuple[str, ...]]
    senses: Mapping[str, frozenset[tuple[str, str]]]

    def are_synonyms(self, left: str, right: str) -> bool:
        return self.alternatives.get(left) == self.alternatives.get(right)


@functools.cache
def closed_classes(kind: ClassKind) -> ClosedClasses:
    """Return the closed classes of a kind.

    The alternatives of a word are the words of its groups' other senses, except any that shares a
    sense with it in some group.
    """
    senses: dict[str, set[tuple[str, str]]] = defaultdict(set)
    known: dict[str, set[tuple[str, str]]] = defaultdict(set)
    groups: dict[str, set[str]] = defaultdict(set)
    leaders: dict[str, set[str]] = defaultdict(set)
    members: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in read_rows("hard_negative_lexicon.tsv", kind):
        sense = (row["group"], row["sense"])
        if row["role"] != "target":
            groups[row["word"]].add(row["group"])
        if row["role"] == "class":
            continue
        known[row["word"]].add(sense)
        if row["role"] != "target":
            senses[row["word"]].add(sense)
        if row["role"] != "source":
            leaders[row["group"]].add(row["sense"])
        members[sense].add(row["word"])
    alternatives = {}
    for word, own in senses.items():
        same = set().union(*(members[sense] for sense in own))
        alternatives[word] = {
            group: tuple(sorted(leaders[group] - same)) for group, _ in sorted(own)
        }
    return ClosedClasses(
        alternatives=alternatives,
        groups={word: tuple(sorted(own)) for word, own in groups.items()},
        senses={word: frozenset(own) for word, own in known.items()},
    )


def read_rows(name: str, kind: ClassKind) -> list[dict[str, str]]:
    return [row for row in read_table(name) if row["kind"] == kind]


NegativeKind = Literal[
    "replace_object",
    "replace_attribute",
    "replace_relation",
    "swap_object",
    "swap_attribute",
    "negation",
]
NEGATIVE_KINDS: tuple[NegativeKind, ...] = get_args(NegativeKind)

NEGATIVE_REFUSALS = reasons("negatives")
