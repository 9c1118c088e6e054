"""What reviewers are asked: eqforge's protocols in protocols.toml, and files of a user's own."""

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
"""How an item is answered: keep or drop it, call each text true or false, give each caption a rank,
put pictures in order, write texts, or draw a box; `forms.py` has each."""

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
"""What an item is; `units.py` has each."""

TEXT_RULES: Final[Mapping[str, str]] = {
    "empty": "Nothing is written.",
    "few_words": "The text has fewer words than it has to have.",
    "never": "The text has words that it must not have.",
    "not_first": "The text starts with words that it must not start with.",
    "same_answer": "The answers for two pictures are the same.",
    "not_listed": "The answer is not in the list of answers.",
}
"""What is asked of texts, by the name of each rule."""

_MOST_PICTURES: Final = 9
"""Up to this many pictures have a text each."""
_SHIPPED: Final = Path(__file__).with_name("protocols.toml")

Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text to write.

    Attributes:
      name: of the text, as answers have it.
      label: what stands beside it.
      never: words that it must not have, whatever their capitals.
      not_first: words that it must not start with.
      per_picture: whether one is written for each picture; no two may be the same.
      listed: whether it has to be in the list of answers, where there is one.
    """

    name: Text
    label: Text
    # A text on a page has 1,000 characters at most.
    min_words: Annotated[int, msgspec.Meta(ge=1, le=200)] = 1
    never: tuple[Text, ...] = ()
    not_first: tuple[Text, ...] = ()
    per_picture: bool = False
    listed: bool = False

    def names(self, pictures: int) -> list[str]:
        """Return the names of the texts that are written for some pictures."""
        if not self.per_picture:
            return [self.name]
        return [f"{self.name}_{place}" for place in range(pictures)]


class Protocol(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What reviewers are asked of each item.

    Attributes:
      guide: what they should know before they begin.
      reasons: why an item may be dropped, or skipped; one key each, 1 to 9.
      seconds: about how long an item takes, for the estimate.
      source: where it is from, a citation.
      of: what it is made for, in a few words; like `needs`, empty for a user's own.
      needs: what a sample has to show: a picture with texts that are true or false of it,
        two pictures with a caption each, or anything.
      fields: the texts to write.
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
        """Whether some items come twice: nobody is to write or draw the same again."""
        return self.form not in ("write", "box")


@functools.cache
def protocols() -> Mapping[str, Protocol]:
    found = msgspec.toml.decode(_SHIPPED.read_bytes())
    return {name: msgspec.convert({"name": name, **each}, Protocol) for name, each in found.items()}


def unit_of(name: str, form: Form) -> Unit:
    """Return what a protocol is about, by its name, or one of a user's own by its form."""
    if (known := protocols().get(name)) is not None:
        return known.unit
    own: dict[Form, Unit] = {"rank": "captions", "order": "queries", "box": "pictures"}
    return own.get(form, "samples")


def protocol_of(name: str) -> Protocol:
    """Return a protocol by its name, or the one that a TOML file describes."""
    known = protocols()
    if name in known:
        return known[name]
    if not name.endswith(".toml"):
        hint = nearest(name, known) or f"; there are {', '.join(known)}"
        raise InputError(f"--protocol {name}: unknown protocol{hint}, or a file that ends in .toml")
    path = Path(name)
    return _own(path, read_toml(path))


def _own(path: Path, values: dict[str, Any]) -> Protocol:
    if ours := [name for name in ("of", "unit", "needs") if name in values]:
        raise InputError(f"{path}: the field '{ours[0]}' is not known")
    found = decode(msgspec.json.encode(values), Protocol, str(path))
    if bool(found.fields) != (found.form in ("write", "box")):
        wanted = "at least one field" if not found.fields else "no fields"
        raise InputError(f"{path}: fields: expected {wanted} where the form is {found.form}")
    if found.name in protocols():
        raise InputError(f"{path}: name: {found.name} is a protocol of eqforge's; take another")
    seen = {"item", "images"}  # what rows have beside the texts
    for each in found.fields:
        names = {each.name, *each.names(_MOST_PICTURES)}
        if not seen.isdisjoint(names):
            raise InputError(
                f"{path}: fields: name: expected another for each, none of item, images, found "
                f"{shown(each.name)}"
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

    Source: Zhou et al. 2022 (VLUE), section 3.2, as `fields.js` has it too.
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
