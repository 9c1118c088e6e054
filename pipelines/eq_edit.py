r"""Eq-Edit: a captioned photograph, and an edit of it that shows the caption's hard negative.

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
from eqforge.core.shell import MediaRoot
from eqforge.generators.editors.registry import describe_editors
from eqforge.generators.editors.settings import TINY, EditorSettings
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.hard_negatives.records import NegativeKind
from eqforge.generators.text.language import Language
from eqforge.generators.text.wordnet import open_wordnet
from eqforge.models.pretrained import device_here
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.drawn import (
    DrawnPipeline,
    DrawnSettings,
    check_installed,
    exact_warning,
    try_drawing,
)
from eqforge.pipelines.base.negatives import (
    NegativeWriterSettings,
    check_writer,
    confirm_writer,
    writing_of,
)
from eqforge.pipelines.base.pilot import PilotCost, PilotUnit
from eqforge.pipelines.base.pipeline import Input, Target, files_of
from eqforge.pipelines.base.settings import DatasetConfig, Mode
from eqforge.pipelines.base.text import (
    TextPipeline,
    check_at_least,
    check_language,
    language_of_mode,
    select_images,
    whole_groups,
)
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.tables.generated import EDITED_PAIRS
from eqforge.sources.caption_forms import Source
from eqforge.sources.edit_captions import EditCaption, read_edit_captions
from eqforge.sources.own_captions import caption_files
from eqforge.transforms.dataset.census import Medium, media_in, model_files
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.filters.faces import FACES
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.generated.draw_work import PROMPTS_STAGE, SEEDS_STAGE, Drawings
from eqforge.transforms.generated.edit import (
    EDITED,
    EditingRules,
    LockSettings,
    edit_photograph,
    shared_editor,
)
from eqforge.transforms.generated.edit_masks import (
    GroundingSettings,
    MaskFolder,
    mask_names,
    shared_grounder,
)
from eqforge.transforms.generated.edit_plan import (
    EDITS_STAGE,
    NEGATIVES_STAGE,
    EditPlanRules,
    PhotographBatch,
    plan_edits,
)
from eqforge.transforms.generated.pairs import IMAGES_STAGE, MEASURED
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.work import CAPTIONS_STAGE

if TYPE_CHECKING:
    import apache_beam as beam

BATCH = 32
_GATES_WARNING = "Only an oracle or a review can show whether an edit shows what its caption says."


@dataclass(frozen=True, kw_only=True)
class PairSettings(DrawnSettings):
    """Which pairs of a photograph and its edit are refused."""

    distinct_captions: bool = True
    """Refuse pairs whose two captions say the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Pairs of a photograph and an edit of it that shows what the photograph's hard negative says.

    `--model tiny` makes a tiny model of random weights on the spot, to try everything but the
    pictures; a folder of that name is written `./tiny`.
    """

    images: MediaRoot
    """Folder of the photographs, here or in a store, or tar shards."""

    captions: Path
    """COCO captions, a Karpathy-split JSON, Flickr30k's token or CSV file, or your own: a table
    (.csv, .tsv), a JSON array or JSON lines with the columns image and caption and, if you like,
    id, split, hard_negative (what the edited photograph is to show), kind, instruction (what the
    editor is told) and mask (a file below the masks folder). Or a folder of Hugging Face's."""

    source: Source | None = None
    """The format of the captions; told by the file where it is not given. `text-pairs` takes the
    captions and negatives of SugarCrepe, ARO, VL-CheckList and the like."""

    masks: MediaRoot | None = None
    """Folder of masks: pictures of the names and shapes of their photographs (.png will do for
    .jpg), which are black where the photograph stays. A photograph without one is left to the
    grounder, or is a reject."""

    max_side: int | None = None
    """Longest side of the photographs as they are stored, in pixels; larger ones are scaled down
    before they are edited."""

    negative_kinds: tuple[NegativeKind, ...] = ("replace_object", "replace_attribute")
    """Kinds of negatives that rules make of captions that bring none; the caption's seed decides
    which comes first. Editors seldom do the others well: relations, exchanges and negation."""

    spacy_model: str | None = None
    """A spaCy pipeline for tokens, tags and noun phrases, such as en_core_web_sm; without it a
    tagger that needs no data."""

    language: Language = "en"
    """The rules that make negatives are for English: en refuses captions in another language unless
    they bring their negative, any takes them as they come."""

    writing: OmitArgPrefixes[NegativeWriterSettings] = field(default_factory=NegativeWriterSettings)
    editing: OmitArgPrefixes[EditorSettings] = field(default_factory=EditorSettings)
    grounding: OmitArgPrefixes[GroundingSettings] = field(default_factory=GroundingSettings)
    locking: OmitArgPrefixes[LockSettings] = field(default_factory=LockSettings)
    settings: OmitArgPrefixes[PairSettings] = field(default_factory=PairSettings)


class EqEdit(DrawnPipeline[Config], TextPipeline[Config]):
    """Pairs of a photograph and an edit of it, which shows what its hard negative says."""

    name = "eq-edit"
    Config = Config
    record = PhotographBatch
    stages = (
        CAPTIONS_STAGE,
        NEGATIVES_STAGE,
        PROMPTS_STAGE,
        EDITS_STAGE,
        IMAGES_STAGE,
        PAIRS_STAGE,
        SEEDS_STAGE,
    )
    steps = ((EDITED, "captions"), (MEASURED, "captions"))
    unit, type = "captions", EDITED_PAIRS
    pilot = PilotUnit(records="batches", number=0, unit="captions", clock="the device")
    tiny = "edits"

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        """Returns the fields that a mode sets; no paper has such pairs, paper mode filters none."""
        if mode == "paper":
            return {
                **language_of_mode(mode),
                "settings": PairSettings.off(distinct_captions=False),
                "locking": LockSettings(max_changed_outside=None),
            }
        gates = GateSettings(min_changed_area=0.005, max_changed_area=0.8, min_background_ssim=0.5)
        return {"settings": PairSettings(faces=FACES.off, gates=gates)}

    def inputs(self) -> Iterator[Input]:
        """Yields the caption file, or those of the folder."""
        yield from files_of(self.config.captions, caption_files(self.config.captions))

    def check(self) -> None:
        """Checks ranges, folders, packages, tagger, and the models of text, before any work.

        Raises:
          InputError: one of them is invalid or missing.
          MissingExtra: a required package is not installed.
        """
        config = self.config
        if not config.negative_kinds:
            raise InputError("--negative-kinds: name at least one kind")
        if config.max_side is not None:
            check_at_least("--max-side", config.max_side, 1)
        self.check_images()
        if config.masks is not None:
            self.folder("masks").check("masks")
        check_language(config.language)
        tagger_of(config.spacy_model)
        open_wordnet()
        check_installed()
        check_writer(config.writing)
        self.check_drawn(config.editing.device, "a part of the captions")

    @property
    def has_masks(self) -> bool:
        """Whether somebody says where a photograph may change."""
        return self.config.masks is not None or self.config.grounding.grounder is not None

    def plan(self) -> Iterator[PhotographBatch]:
        """Yields the captions in batches of whole images.

        Raises:
          InputError: a caption is wrong, or names a mask where there is no folder of masks.
        """
        for captions in whole_groups(select_images(self._captions(), self.run), BATCH):
            yield PhotographBatch(captions=captions)

    def _captions(self) -> Iterator[EditCaption]:
        captions = self.config.captions
        for caption in read_edit_captions(captions, self.config.source):
            if caption.mask is not None and self.config.masks is None:
                raise InputError(
                    f"{captions.name}: {caption.caption_id} names a mask, {caption.mask!r}; say "
                    "with --masks in which folder it lies"
                )
            yield caption

    def measure(self, batch: PhotographBatch) -> dict[str, int]:
        return {
            "captions": len(batch.captions),
            "photographs": len({each.image for each in batch.captions}),
            "negatives given": sum(each.hard_negative is not None for each in batch.captions),
        }

    def confirm(self, plan: PlanFiles) -> None:
        """Looks for photographs and loads the models, so that a mistake shows before any work.

        Raises:
          InputError: a model cannot be loaded, the editor needs masks that nobody gives, or no
            photograph is there.
        """
        super().confirm(plan)
        confirm_writer(self.config.writing)
        # The machine that launches a job need not have the workers' device.
        here = self.config.editing.on(device_here(self.config.editing.device))
        editor = shared_editor(here).editor
        shared_grounder(self.config.grounding, here.device)
        if "mask" in editor.needs and not self.has_masks:
            raise InputError(
                f"the editor {editor.name} changes a photograph where a mask says: name a folder "
                "of masks with --masks, or a detector that finds what changes with --grounder; or "
                f"a model of an editor that needs none: {describe_editors(with_mask=False)}"
            )
        if self.config.editing.model == TINY:
            self.warn_of_tiny()

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        """Yields photographs, masks, and the files of models that are folders."""
        yield from super().media(plan)
        config = self.config
        if config.masks is not None:
            batches = read_plan(PhotographBatch, plan.files)
            captions = (caption for batch in batches for caption in batch.captions)
            names = (name for caption in captions for name in mask_names(caption))
            yield from media_in("masks", self.folder("masks"), dict.fromkeys(names))
        yield from model_files(config.editing.model)
        yield from model_files(config.writing.writer, "writer")
        yield from model_files(config.grounding.grounder, "grounder")
        yield from model_files(config.grounding.segmenter, "segmenter")

    def warnings(self) -> Iterator[str]:
        if self.config.editing.model == TINY:
            yield self.tiny_warning()
        yield exact_warning("An editor makes")
        yield _GATES_WARNING
        if not self.config.locking.lock or not self.has_masks:
            yield "Nothing is locked: an edit may change any pixel of its photograph."
        yield from self.judge_warnings()

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
        from eqforge.transforms.generated.steps import EditPhotographs, JudgeDrawn, PlanEdits

        rules = self.rules(self.work)
        _ = (
            root
            | ReadPlan(target.plan_files, PhotographBatch)
            | PlanEdits(self.plan_rules(self.work))
            | EditPhotographs(rules, target.notes)
            | JudgeDrawn(rules.generated, target.notes)
            | WriteDataset(target.dataset)
        )

    def plan_rules(self, work: str) -> EditPlanRules:
        """Returns how captions become edits, with media below a folder or URL."""
        config = self.config
        return EditPlanRules(
            edits=EditRules(
                seed=config.run.seed, kinds=config.negative_kinds, spacy_model=config.spacy_model
            ),
            writing=writing_of(config.writing, config.run),
            captions=CaptionSettings(),
            images=ImageFolder(
                self.shared_folder("images"),
                storage.join(work, "media"),
                encoded=FrameSettings(image_format="png", max_side=config.max_side),
            ),
            masks=None if config.masks is None else MaskFolder(self.shared_folder("masks")),
            language=config.language,
            only=config.run.only,
        )

    def rules(self, work: str) -> EditingRules:
        """Returns how edits become pairs, with media and finished work below a folder or URL."""
        return EditingRules(
            editor=self.config.editing,
            grounding=self.config.grounding,
            needs_mask=self.has_masks,
            lock=self.config.locking,
            generated=self.generated_rules(work),
        )

    def is_fit(self, batch: PhotographBatch) -> bool:
        return any(each.image for each in batch.captions)

    def try_records(self, batches: Sequence[PhotographBatch], folder: str) -> PilotCost:
        rules, planning = self.rules(folder), self.plan_rules(folder)

        def load() -> None:
            shared_editor(self.config.editing)
            shared_grounder(self.config.grounding, self.config.editing.device)

        def draw() -> Iterator[Drawings]:
            for batch in batches:
                yield from (edit_photograph(work, rules) for work in plan_edits(batch, planning))

        return try_drawing(load, draw, rules.generated)


main = Main(EqEdit)
"""Builds the dataset as a command line says."""
