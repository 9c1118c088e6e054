r"""Eq-Edit: a captioned photograph, and an edit of it that shows the caption's hard negative.

Example:
    eqforge build eq-edit --images photos --captions captions.jsonl --masks masks \
        --model MODEL --revision COMMIT --device cuda:0 --precision fp16 --output out/eq-edit
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.shell import MediaRoot
from eqforge.generators.editors.settings import TINY, EditorSettings
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.hard_negatives.records import NegativeKind
from eqforge.generators.text.language import Language
from eqforge.generators.text.wordnet import check_wordnet, open_wordnet
from eqforge.pipelines.shared import drawn
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.edited import batches_of, captions_of, confirm_editor
from eqforge.pipelines.shared.generated import tables_of
from eqforge.pipelines.shared.media import media_folder, shared_folder
from eqforge.pipelines.shared.negatives import (
    NegativeWriterSettings,
    check_writer,
    confirm_writer,
    writing_of,
)
from eqforge.pipelines.shared.pipeline import Input, Pilot, PilotCost, Pipeline, Target, files_of
from eqforge.pipelines.shared.settings import DatasetConfig, Mode
from eqforge.pipelines.shared.text import (
    check_at_least,
    check_images,
    check_language,
    confirm_images,
    images_of,
    language_of_mode,
)
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.records.books import Stage
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.tables.generated import EDITED_PAIRS
from eqforge.sources.caption_forms import Source
from eqforge.sources.own_captions import caption_files
from eqforge.transforms.dataset.census import Medium, media_in, model_files
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.table import Table
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

NAME = "eq-edit"


@dataclass(frozen=True, kw_only=True)
class PairSettings(drawn.DrawnSettings):
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


def defaults(mode: Mode) -> dict[str, Any]:
    """Returns the fields that a mode sets; no paper has such pairs, paper mode filters nothing."""
    if mode == "paper":
        return {
            **language_of_mode(mode),
            "settings": PairSettings.off(distinct_captions=False),
            "locking": LockSettings(max_changed_outside=None),
        }
    gates = GateSettings(min_changed_area=0.005, max_changed_area=0.8, min_background_ssim=0.5)
    return {"settings": PairSettings(faces=FACES.off, gates=gates)}


def plan(config: Config) -> Iterator[PhotographBatch]:
    """Returns the captions in batches of whole images.

    Raises:
      InputError: a caption is wrong, or names a mask where there is no folder of masks.
    """
    has_folder = config.masks is not None
    return batches_of(config.captions, config.source, has_folder, config.run)


def inputs(config: Config) -> Iterator[Input]:
    """Yields the caption file, or those of the folder."""
    yield from files_of(config.captions, caption_files(config.captions))


def needs(_config: Config) -> None:
    """Looks for WordNet; see check_wordnet."""
    check_wordnet()


def check(config: Config) -> None:
    """Checks ranges, folders, packages, tagger, and the models of text, before any work.

    Raises:
      InputError: one of them is invalid or missing.
      MissingExtra: a required package is not installed.
    """
    if not config.negative_kinds:
        raise InputError("--negative-kinds: name at least one kind")
    if config.max_side is not None:
        check_at_least("--max-side", config.max_side, 1)
    check_images(config.images, config.run)
    if config.masks is not None:
        media_folder(config.masks, config.run).check("masks")
    check_language(config.language)
    tagger_of(config.spacy_model)
    open_wordnet()
    drawn.check_installed()
    check_writer(config.writing)
    drawn.check_drawn(config.settings)
    drawn.check_one_worker(config.run.workers, config.editing.device, "a part of the captions")


def confirm(config: Config, plan: PlanFiles) -> None:
    """Loads the models and looks for photographs, so that a mistake shows before any work.

    Raises:
      InputError: a model cannot be loaded, the editor cannot do what is asked of it, or no
        photograph is there.
    """
    names = (caption.image for caption in captions_of(plan))
    confirm_images(media_folder(config.images, config.run), names)
    confirm_writer(config.writing)
    confirm_editor(config.editing, config.grounding, _has_masks(config))
    if config.editing.model == TINY:
        drawn.tell(_TINY_WARNING)


def _has_masks(config: Config) -> bool:
    return config.masks is not None or config.grounding.grounder is not None


def media(config: Config, plan: PlanFiles) -> Iterator[Medium]:
    """Yields photographs, masks, and the files of models that are folders."""
    yield from images_of(config.images, config.run, (each.image for each in captions_of(plan)))
    if config.masks is not None:
        names = (name for each in captions_of(plan) for name in mask_names(each))
        folder = media_folder(config.masks, config.run)
        yield from media_in("masks", folder, dict.fromkeys(names))
    yield from model_files(config.editing.model)
    yield from model_files(config.writing.writer, "writer")
    yield from model_files(config.grounding.grounder, "grounder")
    yield from model_files(config.grounding.segmenter, "segmenter")


_TINY_WARNING = drawn.tiny_warning("edits")
_GATES_WARNING = "Only an oracle or a review can show whether an edit shows what its caption says."


def warnings(config: Config) -> Iterator[str]:
    """Yields what a user should know before trusting the pictures."""
    if config.editing.model == TINY:
        yield _TINY_WARNING
    yield drawn.exact_warning("An editor makes")
    yield _GATES_WARNING
    if not config.locking.lock or not _has_masks(config):
        yield "Nothing is locked: an edit may change any pixel of its photograph."
    yield from drawn.drawn_warnings(config.settings)


def unused(config: Config) -> tuple[Stage, ...]:
    """Returns the stages that no pair goes through."""
    return drawn.unused_stages(config.settings)


def measure(_: Config, batch: PhotographBatch) -> dict[str, int]:
    """Returns what a batch adds to the counts of a plan."""
    given = sum(each.hard_negative is not None for each in batch.captions)
    photographs = len({each.image for each in batch.captions})
    counts = {"captions": len(batch.captions), "photographs": photographs}
    return {**counts, "negatives given": given}


def plan_rules_of(config: Config, work: str) -> EditPlanRules:
    """Returns how captions become edits, with media below a folder or URL."""
    images = shared_folder("images", config.images, config.run)
    masks = None
    if config.masks is not None:
        masks = MaskFolder(shared_folder("masks", config.masks, config.run))
    return EditPlanRules(
        edits=EditRules(
            seed=config.run.seed, kinds=config.negative_kinds, spacy_model=config.spacy_model
        ),
        writing=writing_of(config.writing, config.run),
        captions=CaptionSettings(),
        images=ImageFolder(
            images,
            storage.join(work, "media"),
            encoded=FrameSettings(image_format="png", max_side=config.max_side),
        ),
        masks=masks,
        language=config.language,
        only=config.run.only,
    )


def rules_of(config: Config, work: str) -> EditingRules:
    """Returns how edits become pairs, with media and finished work below a folder or URL."""
    return EditingRules(
        editor=config.editing,
        grounding=config.grounding,
        needs_mask=_has_masks(config),
        lock=config.locking,
        generated=drawn.drawn_rules(config.settings, work, config.settings.distinct_captions),
    )


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
    from eqforge.transforms.generated.steps import EditPhotographs, JudgeDrawn, PlanEdits

    work = storage.join(target.config.run.output, WORK)
    rules = rules_of(target.config, work)
    _ = (
        root
        | ReadPlan(target.plan_files, PhotographBatch)
        | PlanEdits(plan_rules_of(target.config, work))
        | EditPhotographs(rules, target.notes)
        | JudgeDrawn(rules.generated, target.notes)
        | WriteDataset(target.dataset)
    )


def tables(config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    return tables_of(config.run, plan.counts.get("captions", 0), EDITED_PAIRS)


def is_fit(_config: Config, batch: PhotographBatch) -> bool:
    """Tells whether a batch can be edited on trial: it has a photograph."""
    return any(each.image for each in batch.captions)


def run_pilot(config: Config, batches: Sequence[PhotographBatch], folder: str) -> PilotCost:
    """Edits some photographs in a temporary folder and measures what that takes."""
    rules, planning = rules_of(config, folder), plan_rules_of(config, folder)

    def load() -> None:
        shared_editor(config.editing)
        shared_grounder(config.grounding, config.editing.device)

    def draw() -> Iterator[Drawings]:
        for batch in batches:
            yield from (edit_photograph(work, rules) for work in plan_edits(batch, planning))

    return drawn.try_drawing(load, draw, rules.generated)


PIPELINE = Pipeline(
    name=NAME,
    config=Config,
    defaults=defaults,
    inputs=inputs,
    needs=needs,
    check=check,
    plan=plan,
    measure=measure,
    confirm=confirm,
    media=media,
    warnings=warnings,
    build=build,
    tables=tables,
    stages=(
        CAPTIONS_STAGE,
        NEGATIVES_STAGE,
        PROMPTS_STAGE,
        EDITS_STAGE,
        IMAGES_STAGE,
        PAIRS_STAGE,
        SEEDS_STAGE,
    ),
    unused=unused,
    steps={EDITED: "captions", MEASURED: "captions"},
    pilot=Pilot(
        records="batches",
        number=0,
        unit="captions",
        clock="the device",
        is_fit=is_fit,
        run=run_pilot,
    ),
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
