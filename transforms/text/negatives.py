"""Lets a language model write hard negatives, and checks its answers."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, Literal

from eqforge.core.errors import InputError
from eqforge.core.identity import Trace, derive_seed
from eqforge.core.ledger import Ledger
from eqforge.core.visible import shortened
from eqforge.generators.text.edits import EditedText
from eqforge.generators.text.hard_positives.reconcile import text_key
from eqforge.generators.text.lints.word_edits import exchanged_words, stays_true, words_of
from eqforge.generators.text.llm.endpoint import Endpoint
from eqforge.generators.text.llm.model import Answer, LanguageModel, Question, ask
from eqforge.generators.text.llm.validate import (
    REWRITE_REFUSALS,
    InvalidRewrite,
    first_valid,
    parse_published_rewrite,
)
from eqforge.generators.text.llm.writer import WriterSettings, open_model
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.text.caption_edits import TRUE_OF_IMAGE, CaptionEdit

VERSION: Final = 1
KIND: Final = "written"
PROMPT: Final = """\
Change one thing in the caption of a photograph: replace an object by another object, or an \
attribute by another attribute, so that the caption is no longer true of the photograph. Change \
nothing else. Only output the changed caption.

Input: A brown dog lies on a red sofa.
Output: A brown cat lies on a red sofa.

Input: two men in blue shirts play football
Output: two men in yellow shirts play football

Input: {example}
Output: """
_TAKEN: Final = ("refused", "empty", "cut_off", "unchanged", "huge", "not_plain", "another_text")
NEGATIVE_REFUSALS: Final = {
    **{reason: REWRITE_REFUSALS[reason] for reason in (*_TAKEN, "several_edits")},
    "stays_true": "The model only used synonyms or broader words, so its text is still true.",
}
"""Why a language model's answer is not a hard negative, besides TRUE_OF_IMAGE."""
_LOCK = threading.Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class NegativeWriting:
    """How a language model writes hard negatives: all, or those for which no rule applies."""

    model: WriterSettings
    rest: bool
    retries: int
    seed: int
    ledger: Ledger | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NegativeWriterSettings:
    """Language model that writes hard negatives."""

    writer: Annotated[str | None, Trace.NAME] = None
    """Language model that writes missing hard negatives (default: rules generate them). Pass
    the folder of a saved Transformers model, or an id on the Hugging Face Hub. For an
    OpenAI-compatible server, pass NAME@URL. Set the environment variable EQFORGE_MODEL_KEY to the
    server's API key."""

    writer_for: Literal["all", "rest"] = "all"
    """Use the writer for every missing negative (`all`), or only where no rule applies (`rest`)."""

    writer_revision: str | None = None
    """Branch, tag or commit of the writer on the Hub. Only a commit makes runs reproducible."""

    writer_device: str = "cpu"
    """PyTorch device for the writer, such as cuda:0."""

    writer_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Data type of the writer's weights."""

    writer_chat: bool = False
    """Apply the model's chat template. Only for Transformers models; servers do it themselves."""

    writer_retries: int = 3
    """Number of retries after an invalid answer. Each retry uses the next seed."""

    @property
    def model(self) -> WriterSettings:
        return WriterSettings(
            model=str(self.writer),
            revision=self.writer_revision,
            device=self.writer_device,
            dtype=self.writer_dtype,
            chat=self.writer_chat,
        )

    def check(self) -> None:
        if self.writer_retries < 0:
            raise InputError(f"--writer-retries {self.writer_retries}: expected 0 or more")
        if self.writer is not None:
            open_model(self.model)
        elif self != NegativeWriterSettings():
            raise InputError(
                "options that begin with --writer- need a language model; pass --writer"
            )

    def confirm(self) -> None:
        """Check that a server answers, before the output is begun."""
        model = None if self.writer is None else open_model(self.model)
        if isinstance(model, Endpoint):
            model.check()

    def writing(self, seed: int, done: str) -> NegativeWriting | None:
        if self.writer is None:
            return None
        return NegativeWriting(
            model=self.model,
            rest=self.writer_for == "rest",
            retries=self.writer_retries,
            seed=seed,
            ledger=Ledger(root=done, step="answers", basis=None),
        )


def write_negatives(
    captions: Sequence[CaptionRecord],
    known: Sequence[CaptionRecord],
    writing: NegativeWriting,
    model: LanguageModel | None = None,
) -> dict[str, CaptionEdit | Rejection]:
    """Ask a language model for negatives of captions; return them by the captions' ids.

    The first answer takes the likeliest tokens. Each further one is drawn with a seed from the
    run's seed, the caption's id and the number of the try. A negative says nothing that a `known`
    caption says.
    """
    true: dict[str, set[str]] = {}
    for each in known:
        true.setdefault(each.picture, set()).add(text_key(each.caption))
    found: dict[str, CaptionEdit | Rejection] = {}
    left = list(captions)
    with _LOCK:
        writer = model or (open_model(writing.model) if left else None)
        for attempt in range(writing.retries + 1):
            if writer is None or not left:
                break
            step, retried = f"negative/{attempt}", attempt > 0 or writing.model.sample
            questions = [
                Question(
                    prompt=PROMPT.replace("{example}", each.caption.strip()).strip(),
                    seed=derive_seed(writing.seed, each.caption_id, step, VERSION)
                    if retried
                    else None,
                    max_new_tokens=60,
                )
                for each in left
            ]
            answers = ask(writer, questions, writing.ledger)
            for each, question, answer in zip(left, questions, answers, strict=True):
                found[each.caption_id] = _edit(each, question, answer, true[each.picture])
            left = [each for each in left if isinstance(found[each.caption_id], Rejection)]
    return found


def _edit(
    record: CaptionRecord, question: Question, answer: Answer, true: set[str]
) -> CaptionEdit | Rejection:
    if answer.refusal:
        return Rejection(reason="refused", detail=shortened(answer.refusal, 200))
    try:
        check = partial(_checked, record.caption, true)
        edited = first_valid(answer.text, record.caption, check, is_cut=answer.is_cut)
    except InvalidRewrite as error:
        detail = shortened(" ".join(answer.text.split()), 200)
        return Rejection(reason=str(error), detail=detail)
    seed = "greedy" if question.seed is None else f"seed {question.seed}"
    return CaptionEdit(kind=KIND, edited=edited, generator=f"{answer.model} {seed}")


def _checked(caption: str, true: set[str], line: str) -> EditedText:
    """Return a line of an answer that changes one place of a caption and makes it false."""
    edited = parse_published_rewrite(caption, line)
    if max(len(edited.spans_before), len(edited.spans_after)) > 1:
        raise InvalidRewrite("several_edits")
    if text_key(edited.text) in true:
        raise InvalidRewrite(TRUE_OF_IMAGE)
    if stays_true(words_of(caption), exchanged_words(caption, edited.text)):
        raise InvalidRewrite("stays_true")
    return edited
