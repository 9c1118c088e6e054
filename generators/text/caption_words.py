"""Read hand-made lists of verbs and synonyms for captions.

In `caption_verbs.tsv`, `object` is `none` if no noun phrase follows the verb ("sitting on"),
`object` if one must ("holding a cup"), and `both` if one may. `subject` is `living` if the verb has
a different sense for things ("a shelf holds books"), and `mover` if it has one for immobile things
("a bridge crosses a river"). It is `posture` if only movable things do it ("a cup sits on a table",
but not "a house sits on a hill"), else `any`. `simple` is `yes` if "rides" and "is riding" say the
same of an image.

In `caption_synonyms.tsv`, `before` names what must follow a word: for an adjective the noun that it
describes, else the next word; `NOUN` is any noun. `unless` names words that the caption must not
have. The first row whose conditions hold applies; empty synonyms keep the word. A word that is not
a dictionary form, such as "clothes", stands for this form alone, and its synonyms are used as
written.
"""

import functools
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final, Literal, cast

from eqforge.generators.text.parts import inflect_word
from eqforge.generators.text.words import read_table

ObjectUse = Literal["none", "object", "both"]
SubjectKind = Literal["living", "mover", "posture", "any"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionVerb:
    """A verb ("ride") and its forms ("rides", "riding"); see above."""

    lemma: str
    third: str
    participle: str
    takes: ObjectUse
    subject: SubjectKind
    is_momentary: bool


@functools.cache
def participles() -> Mapping[str, CaptionVerb]:
    return {verb.participle: verb for verb in _verbs()}


@functools.cache
def finite_forms() -> Mapping[str, tuple[CaptionVerb, str]]:
    return {
        form: (verb, be)
        for verb in _verbs()
        for form, be in ((verb.third, "is"), (verb.lemma, "are"))
    }


@functools.cache
def _verbs() -> tuple[CaptionVerb, ...]:
    return tuple(
        CaptionVerb(
            lemma=row["verb"],
            third=inflect_word(row["verb"], "VBZ") or f"{row['verb']}s",
            participle=inflect_word(row["verb"], "VBG") or f"{row['verb']}ing",
            takes=cast(ObjectUse, row["object"]),
            subject=cast(SubjectKind, row["subject"]),
            is_momentary=row["simple"] == "yes",
        )
        for row in read_table("caption_verbs.tsv")
    )


PartOfSpeech = Literal["n", "a"]

ANY_NOUN: Final = "NOUN"


@dataclass(frozen=True, kw_only=True, slots=True)
class Synonyms:
    """The synonyms of a word, and their conditions; see above."""

    words: tuple[str, ...]
    before: frozenset[str]
    unless: frozenset[str]

    def applies(self, following: Set[str], there: Set[str]) -> bool:
        """Return True if the row's conditions hold; both sets hold texts and lemmas."""
        is_followed = not self.before or not self.before.isdisjoint(following)
        return is_followed and self.unless.isdisjoint(there)


@functools.cache
def caption_synonyms() -> dict[tuple[PartOfSpeech, str], tuple[Synonyms, ...]]:
    found: dict[tuple[PartOfSpeech, str], tuple[Synonyms, ...]] = {}
    for row in read_table("caption_synonyms.tsv"):
        key: tuple[PartOfSpeech, str] = ("n" if row["pos"] == "n" else "a", row["word"])
        words, before, unless = (
            tuple(filter(None, row[name].split(","))) for name in ("synonyms", "before", "unless")
        )
        entry = Synonyms(words=words, before=frozenset(before), unless=frozenset(unless))
        found[key] = (*found.get(key, ()), entry)
    return found
