"""What a multimodal model is asked about a sample by an evaluation harness, in every order.

A question has lettered options: captions of an image, or images of a caption. It is asked once for
each rotation of its options, so that each stands at each letter once; a model that always says A is
then right in one of them, and in all of none.

The questions of an imported benchmark are asked once, as it asks them.

Source: CircularEval, in MMBench (Liu et al. 2024), section 4.2. NaturalBench's hints are those of
  its own code, which lmms-eval 0.7.3 (`tasks/naturalbench/utils.py`) and VLMEvalKit 0.0.20
  (`dataset/image_mcq.py`) use too.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Literal

from eqforge.core.errors import InputError
from eqforge.core.files.checked import names_of
from eqforge.core.identity import sha256_hex
from eqforge.core.visible import series
from eqforge.schemas.records.lettered import LETTERS

Asks = Literal["text", "image", "answer", "words"]

FOR_CAPTION: Final = "Which caption describes the image?"
FOR_IMAGE: Final = "Which of the two images does this caption describe? Caption: "
IMAGES: Final = ("the first image", "the second image")

_PAIR: Final = ("image_0_id", "image_1_id", "caption_0", "caption_1")
_FOIL: Final = ("image_id", "caption", "hard_negative")
_REWORDED: Final = "hard_positive"
_QUESTION: Final = ("image_id", "question", "options", "answer")

_FOR_LETTER: Final = "Please output the letter corresponding to the correct option."
_HINTS: Final = {
    **dict.fromkeys(("yes", "no"), "Please answer Yes or No."),
    **dict.fromkeys(("true", "false"), "Please answer True or False."),
}
UNITS: Final[Mapping[str, Callable[[Mapping[str, Any]], tuple[str, ...]]]] = {
    "question": lambda row: (row["group_id"], row["question"]),
    "image": lambda row: (row["group_id"], row["image_id"] or row["image"]),
    "group": lambda row: (row["group_id"],),
}
"""Which questions of an imported benchmark have to be answered right together for a credit: one
question on all its images, all questions on one image, or the whole group."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One question, in one order.

    Attributes:
      sample_id: the sample it is about.
      asks: `text` for a caption of an image, `image` for an image of a caption, `answer` for what
        the question of a benchmark says, `words` for a text that `eqforge metrics` judges.
      number: which image or caption of the sample is asked about, from 0.
      turn: by how many places its options, or the images, are rotated.
      images: ids of the images to show, in this order.
      question: the text, without options.
      options: the texts of the options A, B, …; empty where the question itself names them.
      right: index of the right one.
      wanted: the right answer where there are no options: a letter, yes or no, true or false; of
        `words` a remark.
    """

    sample_id: str
    asks: Asks
    number: int
    turn: int
    images: tuple[str, ...]
    question: str
    options: tuple[str, ...]
    right: int = 0
    wanted: str = ""

    @property
    def question_id(self) -> str:
        """An id made of everything that is asked: `q` and 16 hexadecimal digits.

        No program takes it for a number, and it can name a file.
        """
        key = [self.sample_id, self.asks, self.number, self.turn]
        content = [*key, self.images, self.question, self.options]
        return f"q{sha256_hex(json.dumps(content).encode())[:16]}"

    @property
    def answer(self) -> str:
        """The right letter; without options also yes or no."""
        return self.wanted or LETTERS[self.right]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionForm:
    """The questions that samples of some columns are asked.

    Attributes:
      kind: `pairs`, `foils`, `rewordings`, `questions` of a benchmark, or a task of VLUE.
      columns: what is read of a sample, besides its id.
      cluster: the column that names what samples share.
      by: columns that name a sample's subset, of which a dataset has one or none.
    """

    kind: Literal[
        "pairs", "foils", "rewordings", "questions", "nlvr2", "vqa", "captioning", "grounding"
    ]
    columns: tuple[str, ...]
    cluster: str
    by: tuple[str, ...]

    def questions(self, row: Mapping[str, Any]) -> tuple[Question, ...]:
        """Return all questions about a sample.

        There is none if an image is missing, or if neither letter, yes nor no answers it.

        Args:
          row: `sample_id` and `columns` of the sample.
        """
        makers = {"pairs": _of_pair, "questions": _of_question}
        default = _of_vlue if self in VLUE.values() else _of_foil
        return tuple(makers.get(self.kind, default)(row))


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
QUESTIONS: Final = QuestionForm(
    kind="questions", columns=_QUESTION, cluster="group_id", by=("kind",)
)

VLUE: Final[Mapping[str, QuestionForm]] = {
    form.kind: form
    for form in (
        QuestionForm(
            kind="nlvr2",
            columns=("image_0_id", "image_1_id", "statement", "label"),
            cluster="image_0",
            by=(),
        ),
        QuestionForm(kind="vqa", columns=("image_id", "question"), cluster="image", by=()),
        QuestionForm(kind="captioning", columns=("image_id", "references"), cluster="image", by=()),
        QuestionForm(kind="grounding", columns=("image_id", "phrase"), cluster="image", by=()),
    )
}
"""VLUE's tasks, by the table of their rows."""


def form_of(columns: Set[str], where: str) -> QuestionForm:
    """Return the questions that samples of these columns can be asked."""
    for form in (PAIRS, REWORDINGS, FOILS, QUESTIONS, *VLUE.values()):
        if {*form.columns, form.cluster} <= columns:
            return form
    raise InputError(
        f"{where}: no task has the columns {names_of(sorted(columns)) or '(none)'}. Expected "
        f"pairs ({', '.join(_PAIR)}), foils ({', '.join(_FOIL)}) or questions "
        f"({', '.join(_QUESTION)}). For VLUE, pass --table {series(VLUE, 'or')}."
    )


def short_answer(answer: str, options: Sequence[str]) -> str | None:
    """Return the letter, or the yes or no, that is the right answer to a question.

    Args:
      answer: in the words of the benchmark.
      options: to choose from; empty where the question names them.

    Returns:
      The letter of the option; without options the answer, if it is a capital letter, yes, no,
      true or false. None for all others, and for an answer that is no option, or beyond Z.
    """
    if options:
        known = list(options)[: len(LETTERS)]
        return LETTERS[known.index(answer)] if answer in known else None
    plain = answer.strip()
    return plain if plain in list(LETTERS) or plain.lower() in _HINTS else None


def _of_question(row: Mapping[str, Any]) -> Iterator[Question]:
    options, question = tuple(row["options"]), row["question"]
    right = short_answer(row["answer"], options)
    if right is None or row["image_id"] is None or len(options) > len(LETTERS):
        return
    hint = "" if options else _HINTS.get(right.lower(), _FOR_LETTER)
    if hint.removesuffix(".").casefold() not in question.casefold():
        question = f"{question} {hint}"
    yield Question(
        sample_id=row["sample_id"],
        asks="answer",
        number=0,
        turn=0,
        images=(row["image_id"],),
        question=question,
        options=options,
        right=LETTERS.index(right) if options else 0,
        wanted="" if options else right,
    )


FOR_BOX: Final = (
    "Bounding box coordinates are specified in the format (top-left x, top-left y, bottom-right x, "
    "bottom-right y). All values are floating point numbers bounded between 0 and 1. Please "
    "provide the bounding box coordinate of the region this sentence describes: "
)
"""lmms-eval's words for RefCOCO (`tasks/refcoco+`, 0.7.3); those below for VQA 2.0 and COCO too."""


def _of_vlue(row: Mapping[str, Any]) -> Iterator[Question]:
    images = tuple(row[name] for name in ("image_id", "image_0_id", "image_1_id") if name in row)
    if None in images:
        return
    if "statement" in row:
        question = (
            "The first image is the left one, the second image the right one. Statement: "
            f"{row['statement']} Is the statement true of the two images? {_HINTS['true']}"
        )
    elif "question" in row:
        question = f"{row['question']}\nAnswer the question using a single word or phrase."
    elif "phrase" in row:
        question = FOR_BOX + row["phrase"]
    else:
        question = "Provide a one-sentence caption for the provided image."
    is_statement = "statement" in row
    yield Question(
        sample_id=row["sample_id"],
        asks="answer" if is_statement else "words",
        number=0,
        turn=0,
        images=images,
        question=question,
        options=(),
        wanted=str(row["label"]).lower() if is_statement else "judged by eqforge metrics",
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
