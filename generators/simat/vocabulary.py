"""The subjects and relations of SIMAT, and their names in annotations.

The canonical names are those of the published files: 15 subjects, people and animals, and 20
relations, none purely spatial (SIMAT, figure 2). Visual Genome's annotators wrote the same relation
in many ways; a user's file may replace the vocabulary:

    {"subjects": {"man": ["man", "guy"]}, "relations": {"sitting on a": ["sitting on", "sits on"]}}
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from eqforge.core.files.checked import Node, load_json
from eqforge.sources.simat import Region, Triplet
from eqforge.sources.visual_genome import Relation

SUBJECTS = (
    "bear", "bird", "boy", "cat", "cow", "dog", "elephant", "giraffe", "girl", "horse", "man",
    "people", "sheep", "woman", "zebra",
)  # fmt: skip

# Each relation with the forms of its verb, and the prepositions that mean the same with it.
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
    """Maps the names in annotations to canonical names.

    Attributes:
      subjects, relations: the canonical name, by cleaned name.
      objects: aliases of objects, and of subjects not in `subjects`; other objects keep their name.
      predicates: aliases of relations not in `relations`, mapped to names that are looked up there.
    """

    subjects: Mapping[str, str]
    relations: Mapping[str, str]
    objects: Mapping[str, str] = field(default_factory=dict)
    predicates: Mapping[str, str] = field(default_factory=dict)

    def with_objects(self, aliases: Mapping[str, str]) -> "Vocabulary":
        """Returns a copy with aliases of objects."""
        return replace(self, objects=aliases)

    def with_predicates(self, aliases: Mapping[str, str]) -> "Vocabulary":
        """Returns a copy with aliases of relations."""
        return replace(self, predicates=aliases)

    def triplet(self, subject: str, predicate: str, target: str) -> Triplet | None:
        """Returns the triplet of three names; None if the first or second is unknown."""
        who = clean_name(subject)
        found = self.subjects.get(who) or self.subjects.get(self.objects.get(who, who))
        what = clean_predicate(predicate)
        # The list takes precedence over aliases: Visual Genome's aliases join unlike relations.
        relation = self.relations.get(what) or self.relations.get(self.predicates.get(what, what))
        other = clean_name(target)
        if found is None or relation is None or not other:
            return None
        return Triplet(subject=found, relation=relation, object=self.objects.get(other, other))

    def regions(self, relations: Iterator[Relation]) -> Iterator[Region]:
        """Yields the regions of the relations whose triplets are in the vocabulary."""
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
    """Returns a name in lower case, without slashes and without an article at one end."""
    apart = "".join(c if c.isprintable() and c != "/" else " " for c in text.casefold())
    return _ARTICLE.sub("", " ".join(apart.split()).strip(" ."), count=1)


def clean_predicate(text: str) -> str:
    """Returns a relation's cleaned name, without articles at the ends or a leading auxiliary."""
    return _HELPER.sub("", _ARTICLE.sub("", clean_name(text)))


def load_vocabulary(path: str | Path | None = None) -> Vocabulary:
    """Returns SIMAT's vocabulary, or that of a user's file.

    Raises:
      InputError: the file does not have the form in the module's docstring, or has no names.
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
