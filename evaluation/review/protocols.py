"""What reviewers are asked, and how they answer.

What a protocol asks word for word is eqforge's own: the papers that describe these steps do not
print their forms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import nearest
from eqforge.evaluation.review.fields import Field

Form = Literal["decide", "rank", "order", "write", "box"]
"""How an item is answered: keep or drop it, give each caption a rank, put pictures in order, write
texts, or draw a box."""

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

Need = Literal["", "pictures", "pairs"]
"""What a sample has to show: anything, a picture, or two with a caption each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """What reviewers are asked of each item.

    Attributes:
      name: of the protocol.
      question: what they answer.
      guide: what they should know before they begin.
      reasons: why an item may be dropped, or skipped; one key each, 1 to 9.
      seconds: about how long an item takes, for the estimate.
      source: where it is from, a citation; empty for one's own.
      of: what it is made for, in a few words; empty for one's own.
      form: how they answer.
      unit: what an item is.
      needs: what a sample has to show; empty for one's own.
      fields: the texts to write.
    """

    name: str
    question: str
    guide: str = ""
    reasons: tuple[str, ...] = ()
    seconds: float = 10.0
    source: str = ""
    of: str = ""
    form: Form = "decide"
    unit: Unit = "samples"
    needs: Need = ""
    fields: tuple[Field, ...] = ()

    @property
    def repeats(self) -> bool:
        """Whether some items come twice: nobody is to write or draw the same again."""
        return self.form not in ("write", "box")


_EQBEN: Final = "Wang et al. 2023 (EqBen)"
_VLUE: Final = "Zhou et al. 2022 (VLUE), section 3.2"
_UNCLEAR: Final = "it cannot be told from the picture"
_TOO_HARD: Final = "it is too hard"
_UNFIT: Final = "the picture is not fit for this"
_SKIPPED: Final = (_TOO_HARD, _UNFIT)
"""Workers of VLUE are allowed to skip what is too hard or not appropriate."""

_PLACES: Final = (
    *("left", "right", "top", "bottom", "middle", "center", "centre", "upper", "lower", "front"),
    *("behind", "next to", "first", "second", "third", "last"),
)
"""RefCOCO+ has phrases without words of place."""

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
        Protocol(
            name="caption-ranking",
            question="How well does each caption fit its picture?",
            guide="Give the caption that fits best rank 1. Captions that fit as well as each other "
            "get the same rank.",
            reasons=(_UNCLEAR,),
            seconds=15,
            source="Kamath et al. 2024 (hard positives), section 4.1: two annotators each rank the "
            "captions of 100 samples of SWAP and of REPLACE",
            of="hard positives, foils, pairs: people's row in `metrics`",
            form="rank",
            unit="captions",
        ),
        Protocol(
            name="picture-ranking",
            question="Which picture fits the text best, which next, and so on to the last?",
            guide="Choose the pictures one after the other, from the most similar to the text to "
            "the least.",
            reasons=("the text cannot be understood",),
            seconds=240,
            source=f"{_EQBEN}, figure 1(a): five graduate students rank 25 pictures for a text",
            of="captions to retrieve pictures for, or texts of one's own",
            form="order",
            unit="queries",
        ),
        Protocol(
            name="vlue-captions",
            question="What does the picture show?",
            guide="Write one sentence of eight words or more that describes all important parts of "
            "the scene and nothing else. Do not start with 'there is'. Do not say what might have "
            "happened before or may happen next, what somebody might say, or names of people.",
            reasons=_SKIPPED,
            seconds=45,
            source=f"{_VLUE}: caption annotation, after the instructions of COCO captions",
            of="pictures; makes rows for `--retrieval` and `--captioning`",
            form="write",
            unit="pictures",
            fields=(Field(name="caption", label="Caption", min_words=8, not_first=("there is",)),),
        ),
        Protocol(
            name="vlue-translation",
            question="What does the statement say, in fluent English?",
            guide="The statement comes from another language, perhaps through a machine. Write it "
            "in English that is fluent and says the same. Look at the pictures to understand what "
            "is meant. Whether it is true of them does not matter.",
            reasons=("the statement cannot be understood", _TOO_HARD, _UNFIT),
            seconds=45,
            source=f"{_VLUE}: statement annotation",
            of="statements on two pictures; makes rows for `--nlvr2`",
            form="write",
            unit="statements",
            fields=(Field(name="sentence", label="In English", min_words=2),),
        ),
        Protocol(
            name="vlue-questions",
            question="Which question has another answer for each of the two pictures?",
            guide="Write a question that can only be answered by looking, and its short answer for "
            "each picture. The two answers have to be different.",
            reasons=_SKIPPED,
            seconds=60,
            source=f"{_VLUE}: VQA annotation, after Goyal et al. 2017 (VQA 2.0)",
            of="pairs of pictures; makes rows for `--vqa`",
            form="write",
            unit="picture pairs",
            fields=(
                Field(name="question", label="Question", min_words=3),
                Field(name="answer", label="Answer for", per_picture=True, listed=True),
            ),
        ),
        Protocol(
            name="vlue-boxes",
            question="Is there more than one of some kind of thing? Draw a box around one of them.",
            guide="Choose a kind of thing that the picture shows more than once, and one of these "
            "at random. Draw its box, as tight as you can, and write what it is. Skip a picture "
            "that shows nothing more than once.",
            reasons=("nothing is there more than once", *_SKIPPED),
            seconds=30,
            source=f"{_VLUE}: visual grounding annotation, the first group",
            of="pictures; makes the boxes that `vlue-expressions` is asked about",
            form="box",
            unit="pictures",
            fields=(Field(name="object", label="What it is"),),
        ),
        Protocol(
            name="vlue-expressions",
            question="How would you tell somebody which of these things the box is around?",
            guide="Write a phrase that fits the thing in the box and no other in the picture. Say "
            "what it looks like. Do not say where it is, such as left, top or next to.",
            reasons=("the box is wrong", *_SKIPPED),
            seconds=30,
            source=f"{_VLUE}: visual grounding annotation, the second group, after the "
            "instructions of RefCOCO+ (Yu et al. 2016)",
            of="boxes that another group drew; makes rows for `--grounding`",
            form="write",
            unit="boxes",
            fields=(Field(name="text", label="Phrase", never=_PLACES),),
        ),
        Protocol(
            name="vlue-boxes-check",
            question="Where is what the phrase names? Draw a box around it.",
            guide="Draw the box as tight as you can. Skip a phrase that fits nothing in the "
            "picture, or more than one thing.",
            reasons=("the phrase fits nothing", "the phrase fits several things", *_SKIPPED),
            seconds=15,
            source="eqforge's own, with the threshold of VLUE's accuracy of grounding, IoU 0.5",
            of="phrases with boxes; decides which of them stay",
            form="box",
            unit="phrases",
        ),
    )
}
"""The protocols that come with eqforge, by name."""

_MOST_REASONS: Final = 9
_MOST_WORDS: Final = 200
"""A text on a page has 1,000 characters at most."""

_MOST_PICTURES: Final = 9
"""So many pictures, or fewer, have a text each."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    question: str
    guide: str = ""
    reasons: list[str] = []
    seconds: float = 10.0
    source: str = ""
    form: Form = "decide"
    fields: list[Field] = []


_KEPT: Final = ("item", "images")
"""Names that rows have beside those of the texts."""

_UNITS: Final[Mapping[Form, Unit]] = {"rank": "captions", "order": "queries", "box": "pictures"}
"""What a user's own protocol is about, by its form; others are about samples."""


def unit_of(name: str, form: Form) -> Unit:
    """Returns what a protocol is about, by its name, or one of a user's own by its form."""
    return PROTOCOLS[name].unit if name in PROTOCOLS else _UNITS.get(form, "samples")


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
    file = decode(msgspec.json.encode(values), _File, str(path))
    for field, text in (("name", file.name), ("question", file.question)):
        if not text.strip():
            raise InputError(f"{path}: {field}: expected a text, found none")
    if len(file.reasons) > _MOST_REASONS:
        raise InputError(f"{path}: reasons: expected {_MOST_REASONS} at most, a key each")
    if not 0 < file.seconds < 86_400:
        raise InputError(f"{path}: seconds: expected a number above 0, found {file.seconds:g}")
    if bool(file.fields) != (file.form in ("write", "box")):
        wanted = "at least one field" if not file.fields else "no fields"
        raise InputError(f"{path}: fields: expected {wanted} where the form is {file.form}")
    _check_fields(path, file.fields)
    if file.name in PROTOCOLS:
        raise InputError(f"{path}: name: {file.name} is a protocol of eqforge's; take another")
    return Protocol(
        name=file.name,
        question=file.question,
        guide=file.guide,
        reasons=tuple(file.reasons),
        seconds=file.seconds,
        source=file.source,
        form=file.form,
        unit=unit_of(file.name, file.form),
        fields=tuple(file.fields),
    )


def _check_fields(path: Path, fields: Sequence[Field]) -> None:
    """Checks that each text has a name of its own, and that its rules can be broken and kept."""
    seen = set(_KEPT)
    for field in fields:
        names = {field.name, *field.names(_MOST_PICTURES)}
        if not field.name.strip() or not seen.isdisjoint(names):
            raise InputError(
                f"{path}: fields: name: expected another for each, none of {', '.join(_KEPT)}, "
                f"found {shown(field.name)}"
            )
        seen |= names
        if not field.label.strip():
            raise InputError(f"{path}: fields: {field.name}: label: expected a text, found none")
        if not all(word.strip() for word in (*field.never, *field.not_first)):
            raise InputError(f"{path}: fields: {field.name}: expected words, found an empty one")
        if not 1 <= field.min_words <= _MOST_WORDS:
            raise InputError(
                f"{path}: fields: {field.name}: min_words: expected 1 to {_MOST_WORDS}, found "
                f"{field.min_words:,}"
            )
