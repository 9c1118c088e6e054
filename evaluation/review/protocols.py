"""What reviewers are asked, and what they may answer.

Every protocol asks of each item whether it stays. EqBen describes two of its steps so: ten graduate
students screened the pairs of Eq-GEBC, and the pairs of Eq-SD were filtered by people (Wang et al.
2023, section 4 and its appendix). What a protocol asks word for word is eqforge's own: neither
paper prints its form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from eqforge.schemas.errors import InputError
from eqforge.schemas.io.typed_json import decode
from eqforge.schemas.visible import nearest

Need = Literal["", "pictures", "pairs"]
"""What an item has to show: anything, a picture, or two with a caption each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """What reviewers are asked of each item.

    Attributes:
      name: of the protocol.
      question: what they answer with keep, drop or unsure.
      guide: what they should know before they begin.
      reasons: why an item may be dropped; one key each, 1 to 9.
      seconds: about how long an item takes, for the estimate.
      source: where it is from, a citation; empty for one's own.
      of: what it is made for, in a few words; empty for one's own.
      needs: what an item has to show; empty for one's own.
    """

    name: str
    question: str
    guide: str = ""
    reasons: tuple[str, ...] = ()
    seconds: float = 10.0
    source: str = ""
    of: str = ""
    needs: Need = ""


_EQBEN: Final = "Wang et al. 2023 (EqBen)"

PROTOCOLS: Final[Mapping[str, Protocol]] = {
    each.name: each
    for each in (
        Protocol(
            name="eq-gebc-screening",
            question="Do both captions fit their pictures, and can the change be seen?",
            guide="Drop a pair where a caption says what its picture does not show, where both "
            "captions fit both pictures, or where the change cannot be seen in a still picture.",
            reasons=(
                "a caption does not fit its picture",
                "both captions fit both pictures",
                "the change cannot be seen",
                "more than one thing changes",
            ),
            source=f"{_EQBEN}, section 4: ten graduate students screened Eq-GEBC",
            of="pairs",
            needs="pairs",
        ),
        Protocol(
            name="eq-sd-filter",
            question="Do the pictures match the captions, and is the change minimal?",
            guide="Drop a pair where a picture does not show what its caption says, where "
            "something else changed as well, or where a picture is broken.",
            reasons=(
                "a caption does not fit its picture",
                "more than one thing changes",
                "a picture is broken",
            ),
            source=f"{_EQBEN}, section 4: people filtered Eq-SD",
            of="pairs",
            needs="pairs",
        ),
        Protocol(
            name="true-and-false",
            question="Is what is said to be true of the picture true, and the rest false?",
            guide="Drop an item where a caption or rewording is not true of its picture, or where "
            "what should be false of it is true.",
            reasons=(
                "a true text is false",
                "a false text is true",
                "a text is no English sentence",
                "it cannot be told from the picture",
            ),
            of="hard positives, foils, rewordings, any captions",
            needs="pictures",
        ),
    )
}
"""The protocols that come with eqforge, by name."""

_MOST_REASONS: Final = 9


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    question: str
    guide: str = ""
    reasons: list[str] = []
    seconds: float = 10.0
    source: str = ""


def protocol_of(name: str) -> Protocol:
    """Returns a protocol by its name, or the one that a TOML file describes.

    Raises:
      InputError: there is no such protocol, or the file describes none.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    if not name.endswith(".toml"):
        hint = nearest(name, PROTOCOLS) or f"; there are {', '.join(PROTOCOLS)}"
        raise InputError(f"--protocol {name}: no such protocol{hint}, or a file that ends in .toml")
    return _read(Path(name))


def _read(path: Path) -> Protocol:
    try:
        values = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no TOML: {error}") from error
    form = decode(msgspec.json.encode(values), _Form, str(path))
    for field, text in (("name", form.name), ("question", form.question)):
        if not text.strip():
            raise InputError(f"{path}: {field}: expected a text, found none")
    if len(form.reasons) > _MOST_REASONS:
        raise InputError(f"{path}: reasons: expected {_MOST_REASONS} at most, a key each")
    if not 0 < form.seconds < 86_400:
        raise InputError(f"{path}: seconds: expected a number above 0, found {form.seconds:g}")
    return Protocol(
        name=form.name,
        question=form.question,
        guide=form.guide,
        reasons=tuple(form.reasons),
        seconds=form.seconds,
        source=form.source,
    )
