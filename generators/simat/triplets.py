"""Name triplets as annotations do, and choose triplets with enough regions.

The published files follow exactly from the published regions by these rules. Keep triplets with at
least two regions; of their objects, keep the ones with at least two relations; of these, keep the
20 most frequent for each subject and relation (SIMAT's text says 10), ties going to the first in
the file. Drop a triplet that differs from every other in more than one word.

The published files have these canonical names: 15 subjects, people and animals, and 20 relations,
none purely spatial (SIMAT, figure 2). Visual Genome's annotators wrote the same relation in many
ways; a user's file may replace the vocabulary:

    {"subjects": {"man": ["man", "guy"]}, "relations": {"sitting on a": ["sitting on", "sits on"]}}

Source: SIMAT, section 3.2, "Subject/Relation filtering" and "Object filtering".
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from more_itertools import map_reduce

from eqforge.core.files.checked import Node, load_json
from eqforge.core.ranges import expect
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.simat import PARTS, Part, Region, Triplet
from eqforge.sources.visual_genome import Relation

TRIPLET_REASONS = {
    "implausible": "No image can plausibly show the annotated triplet, such as 'a man running in "
    "a man'.",
    "too_few_regions": "Too few regions show the triplet (--min-regions).",
    "one_way_object": "The triplet's object occurs in too few different relations "
    "(--min-relations).",
    "rare_object": "Other objects occur more often with this subject and relation (--top-objects).",
    "no_neighbour": "No other triplet differs in exactly one word, so there is no query.",
}
_POSTURES = frozenset(("laying in", "leaning on", "running in", "sitting on a", "sleeping on"))
_NO_SUPPORTS = frozenset(("kite", "umbrella", "frisbee", "ball"))


@dataclass(frozen=True, kw_only=True, slots=True)
class TripletSettings:
    """Selection of triplets."""

    min_regions: int = 2
    """Minimum number of regions (in corrected mode: images) that show a triplet."""

    min_relations: int = 2
    """Minimum number of different relations in which an object must appear."""

    top_objects: int | None = 10
    """Keep this many of the most frequent objects for each subject and relation."""

    def __post_init__(self) -> None:
        for name in ("min_regions", "min_relations", "top_objects"):
            value = getattr(self, name)
            expect(self, name, value is None or value >= 1, "1 or more")


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of one word of a triplet."""

    part: Part
    source: Triplet
    target: Triplet

    @property
    def words(self) -> tuple[str, str]:
        return self.source.word(self.part), self.target.word(self.part)


def changes_of(triplets: Iterable[Triplet]) -> dict[Triplet, tuple[Change, ...]]:
    known = tuple(triplets)
    groups: defaultdict[tuple[Part, Triplet], list[Triplet]] = defaultdict(list)
    for triplet in known:
        for part in PARTS:
            groups[part, triplet.changed(part, "")].append(triplet)
    return {
        triplet: tuple(
            Change(part=part, source=triplet, target=target)
            for part in PARTS
            for target in sorted(groups[part, triplet.changed(part, "")])
            if target != triplet
        )
        for triplet in known
    }


def select_triplets(
    regions: Sequence[Region], settings: TripletSettings, *, published: bool
) -> tuple[dict[Triplet, int], dict[Triplet, Rejection]]:
    """Return the kept triplets with their numbers of regions, and why the others are rejected.

    As published, ties go to the triplet that comes first, and every region counts. Otherwise ties
    are broken alphabetically, the regions of an image count once, and implausible triplets are
    rejected.
    """
    seen = (
        (region.triplet, region.region_id if published else region.image_id) for region in regions
    )
    counts = Counter(triplet for triplet, _ in dict.fromkeys(seen))
    refused = {}
    if not published:
        counts = Counter(dict(sorted(counts.items())))
        refused = {t: Rejection(reason="implausible") for t in counts if not is_plausible(t)}
    least = settings.min_regions
    refused |= {
        triplet: Rejection(reason="too_few_regions", value=count, threshold=least)
        for triplet, count in counts.items()
        if triplet not in refused and count < least
    }
    for judge in (_one_way, _rare):
        refused |= judge({t: n for t, n in counts.items() if t not in refused}, settings)
    left = {triplet: n for triplet, n in counts.items() if triplet not in refused}
    found = changes_of(left)
    refused |= {t: Rejection(reason="no_neighbour") for t in left if not found[t]}
    return {triplet: n for triplet, n in left.items() if triplet not in refused}, refused


def is_plausible(triplet: Triplet) -> bool:
    """Return True if a triplet makes sense literally, unlike "woman laying in head"."""
    if triplet.object in {"arm", "back", "hand", "head", "leg"} and triplet.relation in _POSTURES:
        return triplet.subject == "bird"
    if triplet.object in SUBJECTS and triplet.relation in {"eating from", "running in"}:
        return False
    if triplet.subject == triplet.object and triplet.relation == "sitting on a":
        return False
    return triplet.object not in _NO_SUPPORTS or triplet.relation not in _POSTURES


def _one_way(counts: Mapping[Triplet, int], settings: TripletSettings) -> dict[Triplet, Rejection]:
    relations = Counter(name for name, _ in {(each.object, each.relation) for each in counts})
    least = settings.min_relations
    return {
        triplet: Rejection(reason="one_way_object", value=number, threshold=least)
        for triplet in counts
        if (number := relations[triplet.object]) < least
    }


def _rare(counts: Mapping[Triplet, int], settings: TripletSettings) -> dict[Triplet, Rejection]:
    if settings.top_objects is None:
        return {}
    refused = {}
    for triplets in map_reduce(counts, lambda each: (each.subject, each.relation)).values():
        # Sorting is stable: ties keep the order of `counts`.
        ranked = sorted(triplets, key=lambda triplet: -counts[triplet])
        for rank, triplet in enumerate(ranked[settings.top_objects :], settings.top_objects + 1):
            refused[triplet] = Rejection(
                reason="rare_object", value=rank, threshold=settings.top_objects
            )
    return refused


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
    """Maps the cleaned names in annotations to canonical names.

    Attributes:
      objects: aliases of objects, and of subjects not in `subjects`; other objects keep their name.
      predicates: aliases of relations not in `relations`, mapped to names that are looked up there.
    """

    subjects: Mapping[str, str]
    relations: Mapping[str, str]
    objects: Mapping[str, str] = field(default_factory=dict)
    predicates: Mapping[str, str] = field(default_factory=dict)

    def triplet(self, subject: str, predicate: str, target: str) -> Triplet | None:
        who = clean_name(subject)
        found = self.subjects.get(who) or self.subjects.get(self.objects.get(who, who))
        phrase = clean_predicate(predicate)
        # The list takes precedence over aliases: Visual Genome's aliases join unlike relations.
        relation = self.relations.get(phrase) or self.relations.get(
            self.predicates.get(phrase, phrase)
        )
        other = clean_name(target)
        if found is None or relation is None or not other:
            return None
        return Triplet(subject=found, relation=relation, object=self.objects.get(other, other))

    def regions(self, relations: Iterator[Relation]) -> Iterator[Region]:
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
    """Return a name in lower case, without slashes and an article at one end."""
    apart = "".join(c if c.isprintable() and c != "/" else " " for c in text.casefold())
    return _ARTICLE.sub("", " ".join(apart.split()).strip(" ."), count=1)


def clean_predicate(text: str) -> str:
    """Return a relation's name without articles at the ends or a leading auxiliary."""
    return _HELPER.sub("", _ARTICLE.sub("", clean_name(text)))


def load_vocabulary(path: str | Path | None = None) -> Vocabulary:
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
        node.fail("a name and its spellings")
    for name, written in node.items():
        if "/" in name:
            node.fail("names without /")
        yield clean(name), name
        yield from ((clean(other), name) for other in written.names())
