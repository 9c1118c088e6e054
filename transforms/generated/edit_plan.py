"""Plans edits of captioned photographs: negative, instruction, mask and seed.

A negative comes from the user, a language model or a rule. Captions of one image stay together, as
a rule must not insert words that another caption of the image names.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.identity import derive_seed, fingerprint, short_digest
from eqforge.core.ranges import check_range
from eqforge.generators.editors.instructions import find_change, make_instruction
from eqforge.generators.editors.settings import EditorSettings
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_lint import CaptionSettings, lint_pair
from eqforge.generators.text.language import Language, reject_language
from eqforge.schemas.records.frames import StoredImage
from eqforge.schemas.records.scores import Rejection, compact_json
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.generated import EditedSample, MaskRow
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.sources.edit_captions import EditCaption
from eqforge.transforms.dataset.image_folder import FoundImage, ImageFolder
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.generated.edit_masks import GroundingSettings, MaskFolder, mask_names
from eqforge.transforms.generated.pairs import GeneratedRules
from eqforge.transforms.generated.work import PairProposal, PairWork, samples_of
from eqforge.transforms.text.caption_edits import (
    NO_HARD_NEGATIVE,
    TRUE_OF_IMAGE,
    CaptionEdit,
    EditRules,
    edit_captions,
)
from eqforge.transforms.text.negatives import KIND as WRITTEN
from eqforge.transforms.text.negatives import NEGATIVE_REFUSALS, NegativeWriting, write_negatives
from eqforge.transforms.text.perturb import analyse_captions
from eqforge.transforms.text.work import Admitted, admit_texts, reject

NEGATIVES_STAGE = Stage(
    "negatives",
    {
        NO_HARD_NEGATIVE: "No rule can generate a hard negative for the caption.",
        TRUE_OF_IMAGE: "The negative equals another caption of the image, so it is true.",
        "equal_captions": "The negative equals the caption, apart from case and spacing.",
        "duplicate": "Another caption of the image produces the same edit.",
        **NEGATIVE_REFUSALS,
    },
    note="This stage writes the captions of the edited images.",
)
EDITS_STAGE = Stage(
    "edits",
    {
        "mask_missing": "The mask folder does not contain the mask named in the caption file.",
        "undecodable_mask": "The mask cannot be read or has too many pixels.",
        "mask_size": "The mask and the photograph have different sizes.",
        "empty_mask": "The mask marks no pixels to edit.",
        "no_mask": "The photograph has no mask, and the grounder finds no area to edit.",
        "unfit_request": "The editing model lacks a component or cannot process the texts.",
        "safety_checker": "The model's safety checker flagged an image.",
        "unchanged": "The edit changed no pixels.",
        "changed_outside": "The editor changed more outside the mask than --max-changed-outside "
        "allows.",
    },
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EditTask:
    """A planned edit of a photograph.

    Attributes:
      photograph: its upright pixels, in the media store.
      negative, generator: the caption to show, and what made it.
      instruction: text for editors that follow instructions.
      things: words for the grounder if there is no mask.
    """

    photograph: StoredImage
    source_sha256: str
    caption: EditCaption
    negative: str
    generator: str
    instruction: str
    things: tuple[str, ...]
    mask: MaskRow | None = None
    seed: int

    @property
    def content(self) -> list[Any]:
        """What defines the edit, apart from names and positions, as JSON-like values."""
        mask = None if self.mask is None else self.mask.mask_id
        texts = [self.caption.caption, self.negative, self.instruction, list(self.things)]
        return [self.photograph.image_id, *texts, mask]


@dataclass(frozen=True, kw_only=True, slots=True)
class EditWork(PairWork):
    """A pair of a photograph and its edit; `task` is None if no edit is planned."""

    task: EditTask | None = None

    def rows(self, table: str, dataset: str) -> Iterable[Any]:
        if table != "samples":
            return PairWork.rows(self, table, dataset)  # `slots` makes super() name another class
        return (self._edited(sample) for sample in samples_of(self, dataset))

    def _edited(self, sample: Any) -> EditedSample:
        assert self.task is not None
        caption = self.task.caption
        return EditedSample(
            **{field.name: getattr(sample, field.name) for field in fields(sample)},
            caption_id=caption.caption_id,
            source_path=caption.image,
            source_sha256=self.task.source_sha256,
            source_box=caption.box,
            negative_generator=self.task.generator,
        )


VERSION = 1
GIVEN = "given"


@dataclass(frozen=True, kw_only=True, slots=True)
class PhotographBatch:
    """Captions of whole images that are processed together."""

    captions: tuple[EditCaption, ...]

    @property
    def masks(self) -> Iterator[str]:
        return (name for caption in self.captions for name in mask_names(caption))

    @property
    def counts(self) -> dict[str, int]:
        return {
            "captions": len(self.captions),
            "photographs": len({each.image for each in self.captions}),
            "negatives given": sum(each.hard_negative is not None for each in self.captions),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class LockSettings:
    """Protection of the photograph outside the mask."""

    lock: bool = True
    """Keep the photograph's pixels outside the mask. --no-lock keeps the edited pixels instead."""

    feather_px: int = 0
    """Width in pixels of the transition from photograph to edit, measured inward from the mask's
    edge."""

    max_changed_outside: float | None = 0.5
    """Maximum fraction of pixels outside the mask that the editor may change."""

    def __post_init__(self) -> None:
        check_range("max_changed_outside", self.max_changed_outside, 0, 1)
        if self.feather_px < 0:
            raise InputError(f"--feather-px {self.feather_px}: expected 0 or more")


@dataclass(frozen=True, kw_only=True, slots=True)
class EditingRules:
    """How captions become edits, and edits become pairs.

    Attributes:
      edits, writing: how rules, or a language model, make negatives.
      images: the folder of the photographs; it stores their pixels without loss.
      language: required language of captions that rules or a model change.
      only: ids of the samples to make; empty makes all.
    """

    edits: EditRules
    writing: NegativeWriting | None
    images: ImageFolder
    masks: MaskFolder | None
    language: Language
    editor: EditorSettings
    grounding: GroundingSettings
    lock: LockSettings
    generated: GeneratedRules
    only: tuple[str, ...] = ()

    @property
    def has_masks(self) -> bool:
        """Whether masks or a grounder limit the edit; otherwise the whole image may change."""
        return self.masks is not None or self.grounding.grounder is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Negative:
    text: str
    kind: str
    change: str
    generator: str


def plan_edits(batch: PhotographBatch, rules: EditingRules) -> Iterator[EditWork]:
    admitted: dict[str, Admitted[EditCaption]] = {}
    for each in batch.captions:
        # A caption with its negative may be in any language.
        language: Language = rules.language if each.hard_negative is None else "any"
        admitted[each.text_id] = admit_texts(
            [each], CaptionSettings(), rules.images, rules.only, language=language
        )
    kept = [each for each in batch.captions if admitted[each.text_id].records]
    negatives = _negatives(kept, rules)
    analyses = _analyses(kept, negatives, rules)
    seen: set[str] = set()
    for caption in batch.captions:
        if not is_wanted(caption.text_id, rules.only):
            continue
        found = admitted[caption.text_id]
        work = EditWork(proposal=None, rejects=found.rejects, tallies=(found.tally,))
        if found.records:
            negative, image = negatives[caption.text_id], found.images[caption.text_id]
            task = _task(caption, negative, image, analyses, rules)
            work = _with_task(work, caption, task, negative, seen)
        if work.proposal is None or is_wanted(work.proposal.sample_id, rules.only):
            yield _with_mask(work, rules)


def _with_task(
    work: EditWork,
    caption: EditCaption,
    task: EditTask | Rejection,
    negative: _Negative | Rejection,
    seen: set[str],
) -> EditWork:
    if isinstance(task, EditTask) and fingerprint(task.content) in seen:
        task = Rejection(reason="duplicate", detail=task.negative[:200])
    if isinstance(task, Rejection) or isinstance(negative, Rejection):
        assert isinstance(task, Rejection)
        refused = reject(caption, caption.text_id, NEGATIVES_STAGE, task)
        tallies = (*work.tallies, NEGATIVES_STAGE.tally(1, 0))
        return replace(work, rejects=(refused,), tallies=tallies)
    seen.add(fingerprint(task.content))
    tallies = (*work.tallies, NEGATIVES_STAGE.tally(1, 1))
    return replace(work, proposal=_proposal(task, negative), task=task, tallies=tallies)


def _with_mask(work: EditWork, rules: EditingRules) -> EditWork:
    task = work.task
    if task is None or rules.masks is None:
        return work
    media = MediaStore(rules.images.media_root)
    mask = rules.masks.find(task.caption, task.photograph, media)
    if isinstance(mask, Rejection):
        return work.refused(EDITS_STAGE, mask)
    return replace(work, task=replace(task, mask=mask))


def _negatives(
    captions: Sequence[EditCaption], rules: EditingRules
) -> dict[str, _Negative | Rejection]:
    records = {
        each.text_id: CaptionRecord(
            caption_id=each.caption_id, image=each.image, caption=each.caption, split=each.split
        )
        for each in captions
    }
    missing = {each.text_id for each in captions if each.hard_negative is None}
    images = {records[name].picture for name in missing}
    known = [record for record in records.values() if record.picture in images]
    edits: dict[str, CaptionEdit | Rejection] = {}
    if rules.writing is None or rules.writing.rest:
        edited = edit_captions(known, rules.edits)
        edits = {each.record.caption_id: each.negative for each in edited}
    if rules.writing is not None:
        left = [
            records[name]
            for name in records
            if name in missing and not isinstance(edits.get(name), CaptionEdit)
        ]
        edits.update(write_negatives(left, known, rules.writing))
    return {each.text_id: _negative(each, edits.get(each.text_id)) for each in captions}


def _negative(caption: EditCaption, edit: CaptionEdit | Rejection | None) -> _Negative | Rejection:
    if caption.hard_negative is not None:
        kind = caption.kind or GIVEN
        equal = lint_pair(caption.caption, caption.hard_negative)
        return equal or _Negative(
            text=caption.hard_negative, kind=kind, change=kind, generator=GIVEN
        )
    assert edit is not None
    if isinstance(edit, Rejection):
        return edit
    kind = WRITTEN if edit.kind == WRITTEN else edit.kind.rpartition("_")[2]
    return _Negative(text=edit.edited.text, kind=kind, change=edit.kind, generator=edit.generator)


def _analyses(
    captions: Sequence[EditCaption],
    negatives: dict[str, _Negative | Rejection],
    rules: EditingRules,
) -> dict[str, Analysis]:
    """Analyse each text that the tagger, which is for English, may understand."""
    pairs = ((each.caption, negatives[each.text_id]) for each in captions)
    texts = [
        text
        for caption, negative in pairs
        if isinstance(negative, _Negative) and reject_language(caption) is None
        for text in (caption, negative.text)
    ]
    distinct = list(dict.fromkeys(texts))
    found = analyse_captions(distinct, rules.edits.spacy_model) if distinct else []
    pairs_found = zip(distinct, found, strict=True)
    return {text: each for text, each in pairs_found if isinstance(each, Analysis)}


def _task(
    caption: EditCaption,
    negative: _Negative | Rejection,
    image: FoundImage,
    analyses: dict[str, Analysis],
    rules: EditingRules,
) -> EditTask | Rejection:
    if isinstance(negative, Rejection):
        return negative
    first, second = analyses.get(caption.caption), analyses.get(negative.text)
    both = None if first is None or second is None else (first, second)
    change = find_change(caption.caption, negative.text, both)
    content = fingerprint([image.source_sha256, caption.caption, negative.text])
    return EditTask(
        photograph=StoredImage(
            image_id=image.row.image_id,
            suffix=image.row.suffix,
            width_px=image.row.width_px,
            height_px=image.row.height_px,
            num_bytes=image.row.num_bytes,
        ),
        source_sha256=image.source_sha256,
        caption=caption,
        negative=negative.text,
        generator=negative.generator,
        instruction=caption.instruction or make_instruction(negative.text, change),
        things=change.things,
        # 0 is the number of the first edit; the seeds of other edits derive from this one.
        seed=derive_seed(rules.edits.seed, content, "edit/0", VERSION),
    )


def _proposal(task: EditTask, negative: _Negative) -> PairProposal:
    caption, box = task.caption, task.caption.box
    corners = None if box is None else [box.x0, box.y0, box.x1, box.y1]
    content = [task.source_sha256, corners, caption.caption, negative.text, task.instruction]
    photograph = {"image": caption.image, "sha256": task.source_sha256, "box": corners}
    return PairProposal(
        sample_id=f"{caption.caption_id}/{short_digest(content)}",
        source_id=caption.image,
        kind=negative.kind,
        change=negative.change,
        captions=(caption.caption, negative.text),
        specs=(
            compact_json(photograph),
            compact_json({"instruction": task.instruction, "things": task.things}),
        ),
        split=caption.split,
    )
