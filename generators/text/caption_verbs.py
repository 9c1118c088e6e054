"""Verbs of what a picture shows, and how each is used in captions.

In the table, `object` is `none` where no noun phrase follows the verb ("sitting on"), `object`
where one has to ("holding a cup"), and `both` where one may. `subject` is `living` where things
that are said to do it mean something else ("a shelf holds books"), `mover` where things that cannot
move do ("a bridge crosses a river"), `posture` where only movable things do ("a cup sits on a
table", but not "a house sits on a hill"), and `any`. `simple` is `yes` where "rides" and "is
riding" say the same of a picture.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

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
    """Return the verbs by their forms of the simple present, with the agreeing form of "be"."""
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
