"""Make the pairs of Eq-SD: two prompts, with the words that the edit touches.

An edit changes the object, the scene or an attribute; the rest is the same on both sides. All edits
that a vocabulary allows are listed, each in one direction only, in an order that a seed decides:
first one edit of every object, then a second one of each, and so on. Any prefix covers the objects
evenly.

A pair depends only on vocabulary, seed, mode, additions, kind and number, and can be made by
itself. Its id is kind and number, `eq-sd/object/000042`.

Source: EqBen, section 4.2 and appendix B.5. The paper prints pairs to which a scene or an attribute
is added ("a photo of beach", "… at sunset"), and pairs in which one is exchanged ("wearing a cap",
"… a crown"). The caption without the addition is true of both images.
"""

import functools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product, takewhile
from typing import Literal, get_args

from eqforge.core.errors import InputError
from eqforge.core.identity import derive_seed
from eqforge.generators.diffusion.vocabulary import Family, Group, Phrase, Vocabulary

EditKind = Literal["object", "scene", "attribute"]
EDIT_KINDS: tuple[EditKind, ...] = get_args(EditKind)
ORDER_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """The content of an image, in caption order; `before` and `after` are attributes."""

    style: Phrase
    before: Phrase | None = None
    thing: Phrase
    after: Phrase | None = None
    place: Phrase | None = None
    condition: Phrase | None = None

    @property
    def key(self) -> str:
        found = (self.style, self.before, self.thing, self.after, self.place, self.condition)
        return "/".join("" if phrase is None else phrase.text for phrase in found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """The contents of two images that differ in one slot.

    Attributes:
      change: `object`, or the name of the family whose phrase is added or exchanged.
      slot: the field of Picture that differs; if it is added, the first has None.
    """

    kind: EditKind
    change: str
    group: str
    slot: str
    pictures: tuple[Picture, Picture]

    @property
    def is_addition(self) -> bool:
        return getattr(self.pictures[0], self.slot) is None


@functools.lru_cache(maxsize=2 * len(EDIT_KINDS))
def ordered_edits(
    vocabulary: Vocabulary, kind: EditKind, seed: int, additions: bool = False
) -> tuple[Edit, ...]:
    """Return all edits of a kind in the order of a seed; about 1 s for 100,000.

    If a phrase or object is exchanged, the seed also decides which image is the first. Edits that
    add a phrase are included only with `additions`.
    """
    ranked: list[tuple[int, int, str, Edit]] = []
    for group in vocabulary.groups:
        for thing in group.objects:
            entries = sorted(
                (*_draw(edit, seed), edit)
                for style in vocabulary.styles
                for edit in _LISTS[kind](Picture(style=style, thing=thing), group)
                if additions or not edit.is_addition
            )
            ranked += [(rank, *entry) for rank, entry in enumerate(entries)]
    ordered = []
    for _, number, _, edit in sorted(ranked):
        if number % 2 and not edit.is_addition:
            edit = replace(edit, pictures=(edit.pictures[1], edit.pictures[0]))
        ordered.append(edit)
    return tuple(ordered)


def _draw(edit: Edit, seed: int) -> tuple[int, str]:
    key = " | ".join(picture.key for picture in edit.pictures)
    return derive_seed(seed, key, "eq-sd order", ORDER_VERSION), key


def _object_edits(picture: Picture, group: Group) -> Iterator[Edit]:
    places = _each(picture, "place", group.places)
    conditions = _each(picture, "condition", group.conditions)
    # Half of the other objects, so that any two of a group are paired exactly once.
    here = group.objects.index(picture.thing)
    partners = [
        other
        for there, other in enumerate(group.objects)
        if (here < there if (here + there) % 2 else here > there)
    ]
    for shared, other in product([picture, *places, *conditions], partners):
        pictures = (shared, replace(shared, thing=other))
        yield Edit(
            kind="object", change="object", group=group.name, slot="thing", pictures=pictures
        )


def _scene_edits(picture: Picture, group: Group) -> Iterator[Edit]:
    yield from _changes("scene", picture, "place", group, group.places)
    for shared in (picture, *_each(picture, "place", group.places)):
        yield from _changes("scene", shared, "condition", group, group.conditions)


def _attribute_edits(picture: Picture, group: Group) -> Iterator[Edit]:
    for shared in (picture, *_each(picture, "place", group.places)):
        for family in group.attributes:
            yield from _changes("attribute", shared, family.position, group, (family,))


def _changes(
    kind: EditKind, picture: Picture, slot: str, group: Group, families: tuple[Family, ...]
) -> Iterator[Edit]:
    for family in families:
        shown = [picture, *_each(picture, slot, (family,))]
        for pictures in combinations(shown, 2):
            yield Edit(
                kind=kind, change=family.name, group=group.name, slot=slot, pictures=pictures
            )


def _each(picture: Picture, slot: str, families: tuple[Family, ...]) -> Iterator[Picture]:
    for family in families:
        for phrase in family.values:
            yield replace(picture, **{slot: phrase})


_LISTS = {"object": _object_edits, "scene": _scene_edits, "attribute": _attribute_edits}


DATASET = "eq-sd"
PUBLISHED_PAIRS = 1_513
PROMPTS_VERSION = 1
Language = Literal["english", "published"]
Control = Literal["replace", "refine"]
Words = tuple[int, ...]

# Words of an attribute that have no location of their own in an image.
_PLACELESS = frozenset(
    ("a", "an", "covered", "in", "into", "it", "of", "on", "out", "taken", "top", "wearing", "with")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptPair:
    """Two prompts that differ in one thing.

    Words are counted from 0, in the order of `str.split`.

    Attributes:
      kind, change, group: see Edit.
      thing: the object of the first prompt.
      captions: caption i describes image i; a sentence with a full stop.
      prompts: caption i without its full stop, the prompt of image i.
      control: `replace` if the prompts have equally many words: word i of the second replaces word
        i of the first. Otherwise `refine`: shared words keep their places in the image, and the
        others find their own.
      changed: the words of each prompt that the edit touches; without them the prompts are equal.
      blended: the words of each prompt that locate the change; none in both if the whole image may
        change.
      seed: seed of the initial noise of both images, in [0, 2**63).
    """

    sample_id: str
    kind: EditKind
    change: str
    group: str
    thing: str
    captions: tuple[str, str]
    prompts: tuple[str, str]
    control: Control
    changed: tuple[Words, Words]
    blended: tuple[Words, Words]
    seed: int


def wanted_counts(
    pairs: int | None, by_kind: Mapping[str, int | None], seed: int
) -> dict[str, int]:
    counts = [number for number in (pairs, *by_kind.values()) if number is not None]
    if min(counts, default=0) < 0:
        raise InputError(f"number of pairs: expected 0 or more, found {min(counts)}")
    if any(number is not None for number in by_kind.values()):
        if pairs is not None:
            raise InputError(
                "pass either --pairs or numbers of pairs by kind, such as --object-pairs, not both"
            )
        return {kind: by_kind[kind] or 0 for kind in EDIT_KINDS}
    return draw_counts(PUBLISHED_PAIRS if pairs is None else pairs, seed)


def draw_counts(pairs: int, seed: int) -> dict[str, int]:
    """Return the number of pairs of each kind if every pair's kind is drawn.

    With the same seed, more pairs never mean fewer of a kind.

    Source: EqBen, appendix B.5: the aspect of every pair is selected at random.
    """
    counts = Counter(
        random.Random(derive_seed(seed, f"{DATASET}/{number}", "kind", 1)).choice(EDIT_KINDS)
        for number in range(pairs)
    )
    return {kind: counts[kind] for kind in EDIT_KINDS}


def prompt_pairs(
    vocabulary: Vocabulary,
    numbers: Mapping[str, range],
    seed: int,
    language: Language,
    additions: bool = False,
) -> Iterator[PromptPair]:
    for kind, span in numbers.items():
        most = num_pairs(vocabulary, kind, seed, additions) if span else 0
        if span and span.stop > most:
            raise InputError(
                f"the vocabulary allows only {most:,} pairs that change the {kind}, but the build "
                f"needs {span.stop:,}; build fewer pairs, or extend the vocabulary"
            )
    first = min((span.start for span in numbers.values() if span), default=0)
    last = max((span.stop for span in numbers.values() if span), default=0)
    for number in range(first, last):
        for kind in EDIT_KINDS:
            if number in numbers.get(kind, ()):
                yield prompt_pair(vocabulary, kind, number, seed, language, additions)


def num_pairs(vocabulary: Vocabulary, kind: str, seed: int, additions: bool = False) -> int:
    return len(ordered_edits(vocabulary, kind, seed, additions))


def prompt_pair(
    vocabulary: Vocabulary,
    kind: EditKind,
    number: int,
    seed: int,
    language: Language,
    additions: bool = False,
) -> PromptPair:
    """Return pair `number` of a kind, from 0; it depends on no other pair.

    The `published` language omits the object's article and uses the vocabulary's published phrases:
    "A photo of beach at sunset." With `additions`, some pairs add a scene or attribute to the first
    image.
    """
    edit = ordered_edits(vocabulary, kind, seed, additions)[number]
    sample_id = f"{DATASET}/{kind}/{number:06d}"
    first, second = (_Prompt(picture, vocabulary, language) for picture in edit.pictures)
    return PromptPair(
        sample_id=sample_id,
        kind=kind,
        change=edit.change,
        group=edit.group,
        thing=edit.pictures[0].thing.text,
        captions=(f"{first.text}.", f"{second.text}."),
        prompts=(first.text, second.text),
        control="replace" if len(first.words) == len(second.words) else "refine",
        changed=_changed(first, second),
        blended=(_blended(edit, first), _blended(edit, second)),
        seed=derive_seed(seed, sample_id, "noise", PROMPTS_VERSION),
    )


class _Prompt:
    """The words of a prompt, and their indices by slot: a field of Picture, `of` or `article`."""

    def __init__(self, picture: Picture, vocabulary: Vocabulary, language: Language) -> None:
        self.words: list[str] = []
        self.slots: dict[str, range] = {}
        self._say("style", picture.style.text.capitalize().split())
        self._say("of", ["of"])
        # The article of the noun is that of the word that follows it.
        after = picture.thing if picture.before is None else picture.before
        has_article = language == "english" and picture.thing.article and after.article
        self._say("article", [after.article] if has_article else [])
        self._say("before", [] if picture.before is None else picture.before.words)
        self._say("thing", picture.thing.words)
        published = vocabulary.published if language == "published" else ()
        for slot in ("after", "place", "condition"):
            phrase = getattr(picture, slot)
            written = "" if phrase is None else dict(published).get(phrase.text, phrase.text)
            self._say(slot, written.split())

    def _say(self, slot: str, words: Sequence[str]) -> None:
        self.slots[slot] = range(len(self.words), len(self.words) + len(words))
        self.words += words

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def of(self, *slots: str) -> Words:
        return tuple(number for slot in slots for number in self.slots[slot])


def _changed(first: _Prompt, second: _Prompt) -> tuple[Words, Words]:
    changed: tuple[list[int], list[int]] = ([], [])
    for slot in first.slots:
        numbers = first.slots[slot], second.slots[slot]
        words = first.words[numbers[0].start : numbers[0].stop]
        second_words = second.words[numbers[1].start : numbers[1].stop]
        head = _equal_words(words, second_words)
        tail = _equal_words(words[head:][::-1], second_words[head:][::-1])
        for side in (0, 1):
            changed[side].extend(numbers[side][head : len(numbers[side]) - tail])
    return tuple(changed[0]), tuple(changed[1])


def _equal_words(words_0: list[str], words_1: list[str]) -> int:
    pairs = zip(words_0, words_1, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _blended(edit: Edit, prompt: _Prompt) -> Words:
    """Return the words that locate the change in the image.

    It is the object if the edit exchanges, colours or adds something to it, and an exchanged
    attribute itself. A scene is everywhere.
    """
    if edit.kind == "scene":
        return ()
    if edit.slot != "after":
        return prompt.of("thing")
    words = prompt.of("thing", "after") if edit.is_addition else prompt.of("after")
    return tuple(number for number in words if prompt.words[number] not in _PLACELESS) or words
