"""Makes the texts to train on: each caption, its hard positive and its hard negative."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.language import Language
from eqforge.schemas.records.judgements import JudgeAnswer, Part
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.tables.texts import Judgement, TrainingCaption
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.dataset.tables import BatchWork
from eqforge.transforms.judges.decide import (
    JUDGE_REASONS,
    JudgedTexts,
    answers_about,
    ask_judges,
    judge_sample,
)
from eqforge.transforms.judges.settings import Judging
from eqforge.transforms.text.caption_edits import (
    EDIT_REASONS,
    CaptionEdit,
    EditedCaption,
    EditRules,
    edit_captions,
)
from eqforge.transforms.text.work import Admitted, CaptionBatch, admit_texts, reject

TRAINING_TEXTS_STAGE = Stage("training_texts", {**EDIT_REASONS, **JUDGE_REASONS})
ROLES: tuple[Part, ...] = ("original", "hard_positive", "hard_negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRules:
    """How training texts are made."""

    edits: EditRules
    captions: CaptionSettings
    images: ImageFolder | None
    only: tuple[str, ...] = ()
    language: Language = "en"
    judging: Judging | None = None


def make_training_texts(batch: CaptionBatch, rules: TrainingRules) -> BatchWork:
    """Make up to three texts for each caption of a batch of whole images.

    Source: Kamath et al., "The Hard Positive Truth about Vision-Language Compositionality",
      section 5: a caption, a hard positive and a hard negative of each caption of COCO.
    """
    admitted = admit_texts(
        batch.captions, rules.captions, rules.images, rules.only, language=rules.language
    )
    candidates = sum(
        is_wanted(f"{record.caption_id}/{role}", rules.only)
        for record in admitted.records
        for role in ROLES
    )
    samples: list[TrainingCaption] = []
    rejects: list[Reject] = list(admitted.rejects)
    judgements: list[Judgement] = []
    captions = edit_captions(admitted.records, rules.edits)
    answers = {} if rules.judging is None else _answers(captions, admitted, rules.judging)
    for edited in captions:
        for text in _texts(edited, admitted.image_id(edited.record)):
            name = text.candidate_id if isinstance(text, Reject) else text.sample_id
            if not is_wanted(name, rules.only):
                continue
            if isinstance(text, Reject):
                rejects.append(text)
                continue
            answer = answers.get(text.caption_id)
            verdict: Judgement | Rejection | None = None
            if isinstance(answer, Rejection):
                verdict = answer
            elif rules.judging is not None and answer is not None:
                part = text.role
                kinds: dict[Part, str] = {} if text.kind is None else {part: text.kind}
                about = answers_about(answer, part)
                verdict = judge_sample(text.sample_id, about, kinds, rules.judging)
            if isinstance(verdict, Rejection):
                refused = reject(edited.record, text.sample_id, TRAINING_TEXTS_STAGE, verdict)
                rejects.append(refused)
                continue
            samples.append(text)
            judgements += [] if verdict is None else [verdict]
    return BatchWork(
        samples=tuple(samples),
        judgements=tuple(judgements),
        images=admitted.images_of(samples),
        rejects=tuple(rejects),
        tallies=(admitted.tally, TRAINING_TEXTS_STAGE.tally(candidates, len(samples))),
    )


def captions_of(rules: TrainingRules, batch: CaptionBatch) -> tuple[CaptionRecord, ...]:
    """Return the captions of a batch to edit, before their images are looked up."""
    admitted = admit_texts(
        batch.captions, rules.captions, None, rules.only, language=rules.language
    )
    return admitted.records


def _answers(
    captions: Iterable[EditedCaption], admitted: Admitted[CaptionRecord], judging: Judging
) -> dict[str, tuple[JudgeAnswer, ...] | Rejection]:
    return ask_judges(
        (
            JudgedTexts(
                key=each.record.caption_id,
                picture=each.record.picture,
                caption=each.record.caption,
                hard_positive=_made(each.positive),
                hard_negative=_made(each.negative),
                image=admitted.image(each.record.text_id),
            )
            for each in captions
        ),
        judging,
    )


def _made(edit: CaptionEdit | Rejection) -> str | None:
    return None if isinstance(edit, Rejection) else edit.edited.text


def _texts(edited: EditedCaption, image_id: str | None) -> Iterator[TrainingCaption | Reject]:
    record = edited.record
    for role, edit in zip(ROLES, (None, edited.positive, edited.negative), strict=True):
        name = f"{record.caption_id}/{role}"
        if isinstance(edit, Rejection):
            yield reject(record, name, TRAINING_TEXTS_STAGE, edit)
            continue
        yield TrainingCaption(
            sample_id=name,
            caption_id=record.caption_id,
            image=record.image,
            image_id=image_id,
            split=record.split,
            role=role,
            text=record.caption if edit is None else edit.edited.text,
            kind=None if edit is None else edit.kind,
            generator=None if edit is None else edit.generator,
        )
