"""The pairs of Eq-SD: two prompts, with the words that the edit touches.

A pair depends only on vocabulary, seed, mode, additions, kind and number, and can be made by
itself; its id is kind and number, `eq-sd/object/000042`.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from eqforge.core.errors import InputError
from eqforge.core.identity import derive_seed
from eqforge.generators.diffusion.edits import EDIT_KINDS, Edit, EditKind, Picture, ordered_edits
from eqforge.generators.diffusion.vocabulary import Phrase, Vocabulary

DATASET = "eq-sd"
PROMPTS_VERSION = 1
Language = Literal["english", "published"]
Control = Literal["replace", "refine"]
Words = tuple[int, ...]

# Words of an attribute that have no location of their own in an image.
_PLACELESS = frozenset(
    ("a", "an", "covered", "in", "into", "it", "of", "on", "out", "taken", "top", "wearing", "with")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairCounts:
    """How many pairs of each kind."""

    object: int
    scene: int
    attribute: int

    @property
    def numbers(self) -> dict[str, range]:
        """The numbers of the first pairs of each kind."""
        return {kind: range(getattr(self, kind)) for kind in EDIT_KINDS}


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptPair:
    """Two prompts that differ in one thing.

    Words are counted from 0, as `str.split` finds them in a prompt.

    Attributes:
      sample_id: the id the sample will have.
      kind, change, group: see Edit.
      thing: the object of the first prompt.
      captions: caption i describes image i; a sentence with a full stop.
      prompts: what image i is made from: the caption without its full stop.
      control: `replace` where the prompts have equally many words: word i of the second takes the
        place of word i of the first. Else `refine`: the words that both have keep their places in
        the image, and the others find their own.
      changed: the words of each prompt that the edit touches; without them the prompts are equal.
      blended: the words of each prompt that say where the image may change; none in both if it
        may change everywhere.
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


def draw_counts(pairs: int, seed: int) -> PairCounts:
    """Returns how many pairs there are of each kind where every pair's kind is drawn.

    With the same seed, more pairs never mean fewer of a kind.

    Source: EqBen, appendix B.5: the aspect of every pair is selected at random.
    """
    drawn = Counter(
        random.Random(derive_seed(seed, f"{DATASET}/{number}", "kind", 1)).choice(EDIT_KINDS)
        for number in range(pairs)
    )
    return PairCounts(**{kind: drawn[kind] for kind in EDIT_KINDS})


def prompt_pairs(
    vocabulary: Vocabulary,
    numbers: Mapping[str, range],
    seed: int,
    language: Language,
    additions: bool = False,
) -> Iterator[PromptPair]:
    """Yields the pairs of some numbers of each kind, the kinds taking turns; see `prompt_pair`.

    Raises:
      InputError: the vocabulary does not have enough pairs of a kind.
    """
    for kind, asked in numbers.items():
        most = num_pairs(vocabulary, kind, seed, additions) if asked else 0
        if asked and asked.stop > most:
            raise InputError(
                f"the vocabulary has {most:,} pairs that change the {kind}, not {asked.stop:,}"
            )
    first = min((asked.start for asked in numbers.values() if asked), default=0)
    last = max((asked.stop for asked in numbers.values() if asked), default=0)
    for number in range(first, last):
        for kind in EDIT_KINDS:
            if number in numbers.get(kind, ()):
                yield prompt_pair(vocabulary, kind, number, seed, language, additions)


def num_pairs(vocabulary: Vocabulary, kind: str, seed: int, additions: bool = False) -> int:
    """Returns how many pairs of a kind the vocabulary has."""
    return len(ordered_edits(vocabulary, kind, seed, additions))


def prompt_pair(
    vocabulary: Vocabulary,
    kind: EditKind,
    number: int,
    seed: int,
    language: Language,
    additions: bool = False,
) -> PromptPair:
    """Returns one pair, independent of all others.

    Args:
      vocabulary: the words.
      kind: what differs.
      number: the pair's number among those of its kind, from 0.
      seed: the run's.
      language: `english`, or `published`: without the article of the object and with the phrases
        that the vocabulary has as published, "A photo of beach at sunset."
      additions: whether there are pairs that add a scene or attribute to the first image.

    Raises:
      IndexError: the vocabulary has no pair of this number.
    """
    edit = ordered_edits(vocabulary, kind, seed, additions)[number]
    sample_id = sample_id_of(kind, number)
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
        blended=_blended(edit, first, second),
        seed=derive_seed(seed, sample_id, "noise", PROMPTS_VERSION),
    )


def sample_id_of(kind: str, number: int) -> str:
    """Returns the id of a pair's sample."""
    return f"{DATASET}/{kind}/{number:06d}"


class _Prompt:
    """A prompt, and which of its words say what.

    Attributes:
      words: the words in order.
      slots: the numbers of the words of each slot: the fields of Picture, `of`, and `article` for
        the noun's.
    """

    def __init__(self, picture: Picture, vocabulary: Vocabulary, language: Language) -> None:
        self.words: list[str] = []
        self.slots: dict[str, range] = {}
        self._say("style", picture.style.text.capitalize().split())
        self._say("of", ["of"])
        self._say("article", _article(picture) if language == "english" else [])
        self._say("before", [] if picture.before is None else picture.before.words)
        self._say("thing", picture.thing.words)
        published = vocabulary.published if language == "published" else ()
        for slot in ("after", "place", "condition"):
            self._say(slot, _as_written(getattr(picture, slot), published))

    def _say(self, slot: str, words: Sequence[str]) -> None:
        self.slots[slot] = range(len(self.words), len(self.words) + len(words))
        self.words += words

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def of(self, *slots: str) -> Words:
        """Returns the numbers of the words of some slots."""
        return tuple(number for slot in slots for number in self.slots[slot])


def _article(picture: Picture) -> list[str]:
    """Returns the article of the noun, which is that of the word that follows it."""
    if not picture.thing.article:
        return []
    phrase = picture.thing if picture.before is None else picture.before
    return [phrase.article] if phrase.article else []


def _as_written(phrase: Phrase | None, published: tuple[tuple[str, str], ...]) -> list[str]:
    if phrase is None:
        return []
    return dict(published).get(phrase.text, phrase.text).split()


def _changed(first: _Prompt, second: _Prompt) -> tuple[Words, Words]:
    """Returns the words of two prompts that differ at the same position of their slot."""
    changed: tuple[list[int], list[int]] = ([], [])
    for slot in first.slots:
        numbers = first.slots[slot], second.slots[slot]
        words = first.words[numbers[0].start : numbers[0].stop]
        others = second.words[numbers[1].start : numbers[1].stop]
        head = _equal_words(words, others)
        tail = _equal_words(words[head:][::-1], others[head:][::-1])
        for side in (0, 1):
            changed[side].extend(numbers[side][head : len(numbers[side]) - tail])
    return tuple(changed[0]), tuple(changed[1])


def _equal_words(words_0: list[str], words_1: list[str]) -> int:
    """Returns the length of the common prefix of two lists of words."""
    pairs = zip(words_0, words_1, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _blended(edit: Edit, first: _Prompt, second: _Prompt) -> tuple[Words, Words]:
    """Returns the words that say where the image may change.

    The object where it is exchanged, coloured, or given something that it had not; an attribute
    that is exchanged for another stays where it is. A scene is everywhere.
    """
    if edit.kind == "scene":
        return (), ()
    if edit.slot != "after":
        return first.of("thing"), second.of("thing")
    slots = ("thing", "after") if edit.is_addition else ("after",)
    return _with_place(first, slots), _with_place(second, slots)


def _with_place(prompt: _Prompt, slots: tuple[str, ...]) -> Words:
    """Returns the words of some slots that name something to see; all where none is known to."""
    words = prompt.of(*slots)
    return tuple(number for number in words if prompt.words[number] not in _PLACELESS) or words
