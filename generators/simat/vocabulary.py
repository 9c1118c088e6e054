"""Which subjects and relations SIMAT is about, and the names under which annotations have them.

The names that stand are those of the published files: 15 subjects, people and animals, and 20
relations, none of place alone (SIMAT, figure 2). Visual Genome's annotators wrote the same relation
in many ways; a user's file names others:

    {"subjects": {"man": ["man", "guy"]}, "relations": {"sitting on a": ["sitting on", "sits on"]}}
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from eqforge.schemas.io.checked import Node, load_json
from eqforge.schemas.sources.simat import Region, Triplet
from eqforge.schemas.sources.visual_genome import Relation

SUBJECTS = (
    "bear", "bird", "boy", "cat", "cow", "dog", "elephant", "giraffe", "girl", "horse", "man",
    "people", "sheep", "woman", "zebra",
)  # fmt: skip

# Each relation with its verb's other forms and the prepositions that say the same of a picture.
_VERBS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "balancing on": (("balancing", "balances", "balanced"), ("on",)),
    "biting": (("biting", "bites", "bite"), ("",)),
    "chasing": (("chasing", "chases", "chase"), ("",)),
    "eating from": (("eating", "eats", "eat"), ("from", "out of")),
    "entering": (("entering", "enters", "enter"), ("",)),
    "grabbing": (("grabbing", "grabs", "grab"), ("",)),
    "jumping on": (("jumping", "jumps", "jump"), ("on", "onto")),
    "laying in": (("laying", "lays", "lying", "lies", "lay", "lie"), ("in", "on", "against")),
    "leaning on": (("leaning", "leans", "lean"), ("on", "against")),
    "leaving": (("leaving", "leaves", "leave"), ("",)),
    "licking": (("licking", "licks", "lick"), ("",)),
    "playing with": (("playing", "plays", "play"), ("with", "in", "on", "")),
    "running in": (("running", "runs", "run"), ("in", "on", "through")),
    "selling": (("selling", "sells", "sell"), ("",)),
    "sitting on a": (("sitting", "sits", "sit", "sat", "seated"), ("on", "in", "at")),
    "sleeping on": (("sleeping", "sleeps", "sleep", "asleep"), ("on", "in")),
    "sniffing": (("sniffing", "sniffs", "sniff"), ("",)),
    "swinging": (("swinging", "swings", "swing"), ("", "at")),
    "touching": (("touching", "touches", "touch"), ("",)),
    "waiting at": (("waiting", "waits", "wait"), ("at", "for", "on")),
}
RELATIONS = tuple(_VERBS)

_ARTICLE = re.compile(r"^(?:a|an|the|some)\s+|\s+(?:a|an|the)$")
_HELPER = re.compile(r"^(?:is|are|was|were|that is|who is)\s+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """The names that are looked for, and what stands for each.

    Attributes:
      subjects, relations: the name that stands, by cleaned name.
      objects: the name that stands for an object; others stand for themselves.
      predicates: the name that stands for a relation before `relations` is asked; for aliases.
    """

    subjects: Mapping[str, str]
    relations: Mapping[str, str]
    objects: Mapping[str, str] = field(default_factory=dict)
    predicates: Mapping[str, str] = field(default_factory=dict)

    def with_objects(self, aliases: Mapping[str, str]) -> "Vocabulary":
        """Returns a vocabulary that knows aliases of objects."""
        return replace(self, objects=aliases)

    def with_predicates(self, aliases: Mapping[str, str]) -> "Vocabulary":
        """Returns a vocabulary that knows aliases of relations."""
        return replace(self, predicates=aliases)

    def triplet(self, subject: str, predicate: str, target: str) -> Triplet | None:
        """Returns the triplet of three names; None where subject or relation is not looked for."""
        who = clean_name(subject)
        found = self.subjects.get(who) or self.subjects.get(self.objects.get(who, who))
        what = clean_predicate(predicate)
        # What the list has counts before an alias: Visual Genome's aliases join unlike relations.
        relation = self.relations.get(what) or self.relations.get(self.predicates.get(what, what))
        other = clean_name(target)
        if found is None or relation is None or not other:
            return None
        return Triplet(subject=found, relation=relation, object=self.objects.get(other, other))

    def regions(self, relations: Iterator[Relation]) -> Iterator[Region]:
        """Yields the relations whose subject and relation are looked for."""
        for relation in relations:
            triplet = self.triplet(relation.subject, relation.predicate, relation.object)
            if triplet is not None:
                yield Region(
                    region_id=f"{relation.image_id}-{relation.relationship_id}",
                    image_id=str(relation.image_id),
                    triplet=triplet,
                    subject_box=relation.subject_box,
                    object_box=relation.object_box,
                )


def clean_name(text: str) -> str:
    """Returns a name in lower case with single spaces, no article before it and no slash."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text.casefold()).split())
    return _ARTICLE.sub("", words.replace("/", " ").strip(" ."), count=1)


def clean_predicate(text: str) -> str:
    """Returns a relation as a name is cleaned, without an auxiliary verb before it."""
    return _HELPER.sub("", _ARTICLE.sub("", clean_name(text)))


def load_vocabulary(path: str | Path | None = None) -> Vocabulary:
    """Returns SIMAT's vocabulary, or that of a user's file.

    Raises:
      InputError: the file has not the form that the module shows, or is empty of names.
    """
    if path is None:
        relations = {clean_predicate(name): name for name in RELATIONS}
        for name, (verbs, prepositions) in _VERBS.items():
            for verb in verbs:
                relations |= {f"{verb} {word}".strip(): name for word in prepositions}
        return Vocabulary(subjects={name: name for name in SUBJECTS}, relations=relations)
    root = load_json(path)
    return Vocabulary(
        subjects=dict(_names(root["subjects"], clean_name)),
        relations=dict(_names(root["relations"], clean_predicate)),
    )


def _names(node: Node, clean: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    if not node.mapping():
        node.fail("names, each with the ways it is written")
    for name, written in node.items():
        if "/" in name:
            node.fail("names without /")
        yield clean(name), name
        yield from ((clean(other), name) for other in written.names())
