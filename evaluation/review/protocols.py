"""Review protocols: eqforge's own in protocols.toml, and users' files."""

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_toml, shown
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import nearest

Form = Literal["decide", "judge", "rank", "order", "write", "box"]
"""The ways to answer an item: keep or drop it, judge each text, rank captions, order images, write
texts, or draw a box. `forms.py` implements each.
"""

Unit = Literal[
    "samples",
    "captions",
    "queries",
    "pictures",
    "picture pairs",
    "statements",
    "boxes",
    "phrases",
]

TEXT_RULES: Final[Mapping[str, str]] = {
    "empty": "The text is empty.",
    "few_words": "The text has too few words.",
    "never": "The text contains a forbidden word.",
    "not_first": "The text starts with a forbidden phrase.",
    "same_answer": "The answers for two images are the same.",
    "not_listed": "The answer is not in the list of allowed answers.",
}

_MOST_PICTURES: Final = 9
"""Maximum number of images with a text each."""
_SHIPPED: Final = Path(__file__).with_name("protocols.toml")

Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text to write.

    Attributes:
      name: key of the text in answers.
      never: forbidden words, in any letter case.
      not_first: words that the text must not start with.
      per_picture: whether each image gets its own text; no two may be equal.
      listed: whether the text has to be in the list of answers, if there is one.
    """

    name: Text
    label: Text
    # Pages limit a text to 1,000 characters.
    min_words: Annotated[int, msgspec.Meta(ge=1, le=200)] = 1
    never: tuple[Text, ...] = ()
    not_first: tuple[Text, ...] = ()
    per_picture: bool = False
    listed: bool = False

    def names(self, pictures: int) -> list[str]:
        if not self.per_picture:
            return [self.name]
        return [f"{self.name}_{place}" for place in range(pictures)]


class Protocol(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The questions to reviewers about each item.

    Attributes:
      guide: instructions to read before starting.
      reasons: why an item may be dropped or skipped; keys 1 to 9 select them.
      seconds: typical duration of an item, for the estimate.
      of: purpose in a few words; like `needs`, empty for user-defined protocols.
      needs: required content of a sample: an image with texts that are true or false of it,
        two images with a caption each, or anything.
    """

    name: Text
    question: Text
    guide: str = ""
    reasons: Annotated[tuple[str, ...], msgspec.Meta(max_length=9)] = ()
    seconds: Annotated[float, msgspec.Meta(gt=0, lt=86_400)] = 10.0
    source: str = ""
    of: str = ""
    form: Form = "decide"
    unit: Unit = "samples"
    needs: Literal["", "claims", "pairs"] = ""
    fields: tuple[Field, ...] = ()

    @property
    def repeats(self) -> bool:
        """Whether some items are repeated; nobody writes or draws the same again."""
        return self.form not in ("write", "box")


@functools.cache
def protocols() -> Mapping[str, Protocol]:
    found = msgspec.toml.decode(_SHIPPED.read_bytes())
    return {name: msgspec.convert({"name": name, **each}, Protocol) for name, each in found.items()}


def unit_of(name: str, form: Form) -> Unit:
    if (known := protocols().get(name)) is not None:
        return known.unit
    units: dict[Form, Unit] = {"rank": "captions", "order": "queries", "box": "pictures"}
    return units.get(form, "samples")


def protocol_of(name: str) -> Protocol:
    known = protocols()
    if name in known:
        return known[name]
    if not name.endswith(".toml"):
        hint = nearest(name, known) or f"; the protocols are {', '.join(known)}"
        raise InputError(
            f"--protocol {name}: unknown protocol (your own must be a .toml file){hint}"
        )
    path = Path(name)
    return _own(path, read_toml(path))


def _own(path: Path, values: dict[str, Any]) -> Protocol:
    if ours := [name for name in ("of", "unit", "needs") if name in values]:
        raise InputError(f"{path}: the field '{ours[0]}' is unknown; remove it")
    found = decode(msgspec.json.encode(values), Protocol, str(path))
    if bool(found.fields) != (found.form in ("write", "box")):
        wanted = "allows no fields" if found.fields else "needs at least one field"
        raise InputError(f"{path}: fields: the form {found.form!r} {wanted}")
    if found.name in protocols():
        raise InputError(
            f"{path}: name: {found.name} is the name of a built-in protocol; choose another name"
        )
    seen = {"item", "images"}  # row fields in addition to the texts
    for each in found.fields:
        names = {each.name, *each.names(_MOST_PICTURES)}
        if not seen.isdisjoint(names):
            raise InputError(
                f"{path}: fields: the name {shown(each.name)} is already in use; rename the field "
                "(item and images are reserved)"
            )
        seen |= names
    needs = "claims" if found.form == "judge" else ""
    unit = unit_of(found.name, found.form)
    return msgspec.structs.replace(found, unit=unit, needs=needs)


def broken(
    texts: Mapping[str, str],
    fields: Sequence[Field],
    pictures: int,
    answers: Collection[str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield the name of each text that breaks a rule, and the rule, a key of TEXT_RULES.

    Source: Zhou et al. 2022 (VLUE), section 3.2. `fields.js` implements the same rules.
    """
    for field in fields:
        names = field.names(pictures)
        written = [" ".join(texts.get(name, "").split()) for name in names]
        for name, text in zip(names, written, strict=True):
            if not text:
                yield name, "empty"
            elif len(text.split(" ")) < field.min_words:
                yield name, "few_words"
            elif any(_has(text, each) for each in field.never):
                yield name, "never"
            elif any(_has(text, each, "^") for each in field.not_first):
                yield name, "not_first"
            elif field.listed and answers is not None and text not in answers:
                yield name, "not_listed"
        if field.per_picture and len({text.lower() for text in written}) < len(written):
            yield names[-1], "same_answer"


def _has(text: str, words: str, before: str = r"(?<!\w)") -> bool:
    return re.search(rf"{before}{re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None
