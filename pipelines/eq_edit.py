r"""Eq-Edit: pairs of a photograph and an edit of it that shows its caption's hard negative.

Example:
    eqforge build eq-edit --images photos --captions captions.jsonl --masks masks \
        --model MODEL --revision COMMIT --device cuda:0 --precision fp16 --output out/eq-edit
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.ranges import expect
from eqforge.core.shell import MediaRoot
from eqforge.generators.editors.settings import EditorSettings
from eqforge.generators.text.hard_negatives.lexicon import NegativeKind
from eqforge.generators.text.wordnet import check_wordnet
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.drawn import JUDGED_STAGES, DrawnPipeline, DrawnSettings
from eqforge.pipelines.base.pipeline import Mode, PilotUnit, Target
from eqforge.pipelines.base.text import CaptionDataset, TextPipeline, select_images, whole_groups
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.tables.generated import EDITED_PAIRS
from eqforge.sources.edit_captions import read_edit_captions
from eqforge.transforms.dataset.census import Medium, media_in, model_files
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.generated.draw_work import PROMPTS_STAGE, Drawings
from eqforge.transforms.generated.edit import EDITED, confirm_editor, edit_photograph
from eqforge.transforms.generated.edit_masks import GroundingSettings, MaskFolder
from eqforge.transforms.generated.edit_plan import (
    EDITS_STAGE,
    NEGATIVES_STAGE,
    EditingRules,
    LockSettings,
    PhotographBatch,
    plan_edits,
)
from eqforge.transforms.generated.pairs import MEASURED
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.negatives import NegativeWriterSettings
from eqforge.transforms.text.work import CAPTIONS_STAGE

if TYPE_CHECKING:
    import apache_beam as beam

BATCH = 32  # captions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(CaptionDataset):
    """Build pairs of a photograph and an edited version that shows a hard negative of the caption.

    `--model tiny` creates a small model with random weights. It lets you test everything except
    image quality.
    """

    images: MediaRoot
    """Folder or URL of the photographs, or tar shards."""

    captions: Path
    """Caption file in COCO, Karpathy or Flickr30k (token or CSV) format, or your own captions. Pass
    your own captions as a table, a JSON file or a Hugging Face folder, with the columns image and
    caption. Optional columns are id, split, kind, hard_negative (the caption of the edited
    photograph), instruction (for the editor) and mask (a file in the masks folder)."""

    masks: MediaRoot | None = None
    """Folder of masks, each with the same name and size as its photograph. Black areas stay
    unchanged. A photograph without a mask is rejected, unless --grounder finds the area to edit."""

    max_side: int | None = None
    """Maximum width and height of a photograph, in pixels. Larger photographs are scaled down."""

    negative_kinds: tuple[NegativeKind, ...] = ("replace_object", "replace_attribute")
    """Kinds of hard negatives that the rules generate. Image editors often fail on non-default
    kinds."""

    writing: OmitArgPrefixes[NegativeWriterSettings] = field(default_factory=NegativeWriterSettings)
    editing: OmitArgPrefixes[EditorSettings] = field(default_factory=EditorSettings)
    grounding: OmitArgPrefixes[GroundingSettings] = field(default_factory=GroundingSettings)
    locking: OmitArgPrefixes[LockSettings] = field(default_factory=LockSettings)
    settings: OmitArgPrefixes[DrawnSettings] = field(default_factory=DrawnSettings)


class EqEdit(DrawnPipeline[Config, PhotographBatch], TextPipeline[Config, PhotographBatch]):
    """Pairs of a photograph and an edit of it that shows its hard negative."""

    name = "eq-edit"
    Config = Config
    basics = ("model", "editor", "device", "precision", "masks", "grounder", "seeds", "workers")
    record = PhotographBatch
    stages = (CAPTIONS_STAGE, NEGATIVES_STAGE, PROMPTS_STAGE, EDITS_STAGE, *JUDGED_STAGES)
    steps = ((EDITED, "captions"), (MEASURED, "captions"))
    unit, type = "captions", EDITED_PAIRS
    pilot = PilotUnit(records="batches", number=0, unit="captions", clock="the device")
    tiny = "edits"

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        paper = {"language": "any", "locking": LockSettings(max_changed_outside=None)}
        return {"settings": DrawnSettings.of_mode(mode), **(paper if mode == "paper" else {})}

    @property
    def model(self) -> str:
        return self.config.editing.model

    def check(self) -> None:
        config = self.config
        if not config.negative_kinds:
            raise InputError("--negative-kinds: name at least one kind")
        expect(config, "max_side", config.max_side is None or config.max_side >= 1, "1 or more")
        if config.masks is not None:
            self.folder("masks").check("masks")
        self.check_captions()
        config.writing.check()
        self.check_drawn(config.editing.device, "a part of the captions")

    def plan(self) -> Iterator[PhotographBatch]:
        config = self.config
        captions = read_edit_captions(config.captions, config.source, config.masks is not None)
        for batch in whole_groups(select_images(captions, self.run), BATCH):
            if any(each.hard_negative is None for each in batch):
                check_wordnet()  # the rules of negatives need it
            yield PhotographBatch(captions=batch)

    def measure(self, batch: PhotographBatch) -> dict[str, int]:
        return batch.counts

    def load(self) -> None:
        self.config.writing.confirm()
        confirm_editor(self.rules(self.work))

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        yield from super().media(plan)
        config = self.config
        if config.masks is not None:
            names = (name for each in read_plan(PhotographBatch, plan.files) for name in each.masks)
            yield from media_in("masks", self.folder("masks"), dict.fromkeys(names))
        yield from model_files(config.writing.writer, "writer")
        yield from model_files(config.grounding.grounder, "grounder")
        yield from model_files(config.grounding.segmenter, "segmenter")

    def warnings(self) -> Iterator[str]:
        if not self.config.locking.lock or not self.rules(self.work).has_masks:
            yield "An edit may change any pixel of its photograph, because no mask limits it."
        yield from super().warnings()

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
        from eqforge.transforms.generated.steps import EditPhotographs, JudgeDrawn, PlanEdits

        rules = self.rules(self.work)
        _ = (
            root
            | ReadPlan(target.plan_files, PhotographBatch)
            | PlanEdits(rules)
            | EditPhotographs(rules, target.notes)
            | JudgeDrawn(rules.generated, target.notes)
            | WriteDataset(target.dataset)
        )

    def rules(self, work: str) -> EditingRules:
        config, seed = self.config, self.run.seed
        edits = EditRules(seed=seed, kinds=config.negative_kinds, spacy_model=config.spacy_model)
        encoded = FrameSettings(image_format="png", max_side=config.max_side)
        media = storage.join(work, "media")
        return EditingRules(
            edits=edits,
            writing=config.writing.writing(seed, storage.join(self.work, "done")),
            images=ImageFolder(self.shared_folder("images"), media, encoded=encoded),
            masks=None if config.masks is None else MaskFolder(self.shared_folder("masks")),
            language=config.language,
            editor=config.editing,
            grounding=config.grounding,
            lock=config.locking,
            generated=self.generated_rules(work),
            only=self.run.only,
        )

    def is_fit(self, batch: PhotographBatch) -> bool:
        return any(each.image for each in batch.captions)

    def drawings(
        self, records: Sequence[PhotographBatch], rules: EditingRules
    ) -> Iterator[Drawings]:
        planned = (each for batch in records for each in plan_edits(batch, rules))
        return (edit_photograph(work, rules) for work in planned)


main = Main(EqEdit)
