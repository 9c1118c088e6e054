"""What a multimodal model is asked about a sample by an evaluation harness, in every order.

A question has lettered options: captions of an image, or images of a caption. It is asked once for
each rotation of its options, so that each stands at each letter once; a model that always says A is
then right in one of them, and in all of none.

Source: CircularEval, in MMBench (Liu et al. 2024), section 4.2.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Literal

from eqforge.schemas.errors import InputError
from eqforge.schemas.identity import sha256_hex
from eqforge.schemas.records.lettered import LETTERS

Asks = Literal["text", "image"]

FOR_CAPTION: Final = "Which caption describes the image?"
FOR_IMAGE: Final = "Which of the two images does this caption describe? Caption: "
IMAGES: Final = ("the first image", "the second image")

_PAIR: Final = ("image_0_id", "image_1_id", "caption_0", "caption_1")
_FOIL: Final = ("image_id", "caption", "hard_negative")
_REWORDED: Final = "hard_positive"


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One question, in one order.

    Attributes:
      sample_id: the sample it is about.
      asks: `text` for a caption of an image, `image` for an image of a caption.
      number: which image or caption of the sample is asked about, from 0.
      turn: by how many places its options, or the images, are rotated.
      images: ids of the images to show, in this order.
      question: the text, without options.
      options: the texts of the options A, B, …
      right: index of the right one.
    """

    sample_id: str
    asks: Asks
    number: int
    turn: int
    images: tuple[str, ...]
    question: str
    options: tuple[str, ...]
    right: int

    @property
    def question_id(self) -> str:
        """An id made of everything that is asked: `q` and 16 hexadecimal digits.

        No program takes it for a number, and it can name a file.
        """
        what = [self.sample_id, self.asks, self.number, self.turn]
        content = [*what, self.images, self.question, self.options]
        return f"q{sha256_hex(json.dumps(content).encode())[:16]}"

    @property
    def answer(self) -> str:
        """The right letter."""
        return LETTERS[self.right]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionForm:
    """The questions that samples of some columns are asked.

    Attributes:
      kind: `pairs`, `foils` or `rewordings`.
      columns: what is read of a sample, besides its id.
      cluster: the column that names what samples share.
      by: columns that name a sample's subset, of which a dataset has one or none.
    """

    kind: Literal["pairs", "foils", "rewordings"]
    columns: tuple[str, ...]
    cluster: str
    by: tuple[str, ...]

    def questions(self, row: Mapping[str, Any]) -> tuple[Question, ...]:
        """Returns all questions about a sample; none where an image of it is not there.

        Args:
          row: `sample_id` and `columns` of the sample.
        """
        make = _of_pair if self.kind == "pairs" else _of_foil
        return tuple(make(row))


PAIRS: Final = QuestionForm(kind="pairs", columns=_PAIR, cluster="source_id", by=("kind",))
FOILS: Final = QuestionForm(
    kind="foils", columns=_FOIL, cluster="image", by=("hard_negative_kind", "kind")
)
REWORDINGS: Final = QuestionForm(
    kind="rewordings",
    columns=(*_FOIL, _REWORDED),
    cluster="image",
    by=("hard_negative_kind", "kind"),
)


def form_of(columns: Set[str], where: str) -> QuestionForm:
    """Returns what samples of these columns can be asked.

    Raises:
      InputError: they are neither pairs nor captions with a false one.
    """
    for form in (PAIRS, REWORDINGS, FOILS):
        if {*form.columns, form.cluster} <= columns:
            return form
    raise InputError(
        f"{where}: a harness asks about pairs ({', '.join(_PAIR)}) or about captions with a false "
        f"one ({', '.join(_FOIL)}); its samples have the columns "
        f"{', '.join(sorted(columns)) or 'none'}"
    )


def _rotations(count: int) -> Iterator[tuple[int, ...]]:
    for start in range(count):
        yield tuple((start + place) % count for place in range(count))


def _of_pair(row: Mapping[str, Any]) -> Iterator[Question]:
    images = (row["image_0_id"], row["image_1_id"])
    captions = (row["caption_0"], row["caption_1"])
    if None in images:
        return
    for number in (0, 1):
        yield from _for_caption(row["sample_id"], number, images[number], captions, number)
    for number, caption in enumerate(captions):
        for turn, order in enumerate(_rotations(2)):
            yield Question(
                sample_id=row["sample_id"],
                asks="image",
                number=number,
                turn=turn,
                images=tuple(images[place] for place in order),
                question=FOR_IMAGE + caption,
                options=IMAGES,
                right=order.index(number),
            )


def _of_foil(row: Mapping[str, Any]) -> Iterator[Question]:
    if row["image_id"] is None:
        return
    true = [row[name] for name in ("caption", _REWORDED) if name in row]
    for number, caption in enumerate(true):
        options = (caption, row["hard_negative"])
        yield from _for_caption(row["sample_id"], number, row["image_id"], options, 0)


def _for_caption(
    sample_id: str, number: int, image: str, captions: Sequence[str], right: int
) -> Iterator[Question]:
    for turn, order in enumerate(_rotations(len(captions))):
        yield Question(
            sample_id=sample_id,
            asks="text",
            number=number,
            turn=turn,
            images=(image,),
            question=FOR_CAPTION,
            options=tuple(captions[place] for place in order),
            right=order.index(right),
        )
