r"""Eq-Edit: a captioned photograph, and an edit of it that shows the caption's hard negative.

Example:
    eqforge build eq-edit --images photos --captions captions.jsonl --masks masks \
        --model MODEL --revision COMMIT --device cuda:0 --precision fp16 --output out/eq-edit
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.generators.editors.registry import editor_names
from eqforge.generators.editors.settings import TINY, EditorSettings
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.hard_negatives.records import NegativeKind
from eqforge.generators.text.language import Language
from eqforge.generators.text.wordnet import check_wordnet, open_wordnet
from eqforge.models.pretrained import device_here
from eqforge.pipelines.eq_sd import check_installed
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.generated import made_of, tables_of
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
    select_images,
)
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.errors import InputError
from eqforge.schemas.io import storage
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.shell import MediaRoot
from eqforge.schemas.sources.caption_forms import Source
from eqforge.schemas.sources.edit_captions import EditCaption, read_edit_captions
from eqforge.schemas.sources.own_captions import caption_files
from eqforge.schemas.tables.edited import EDITED_PAIRS
from eqforge.transforms.dataset.census import Medium, media_in, model_files
from eqforge.transforms.dataset.finish import WriteWorks
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles, ReadPlan, read_plan
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.filters.faces import FACES
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.filters.perceptual import PerceptualSettings, prepare_perceptual
from eqforge.transforms.generated.edit import (
    EDITED,
    EditingRules,
    EditPhotographs,
    LockSettings,
    PlanEdits,
    edit_photograph,
    shared_editor,
)
from eqforge.transforms.generated.edit_masks import (
    GroundingSettings,
    MaskFolder,
    mask_names,
    shared_grounder,
)
from eqforge.transforms.generated.edit_plan import EditPlanRules, PhotographBatch, plan_edits
from eqforge.transforms.generated.edit_work import EDITS_STAGE, NEGATIVES_STAGE
from eqforge.transforms.generated.pairs import (
    IMAGES_STAGE,
    MEASURED,
    DropGenerated,
    GeneratedRules,
    MeasureGenerated,
    measure_generated,
)
from eqforge.transforms.oracle.judges import OracleSettings, oracle_warnings, prepare_oracle
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.work import CAPTIONS_STAGE

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "eq-edit"
BATCH = 32


@dataclass(frozen=True, kw_only=True)
class PairSettings(ImageFilters):
    """Which pairs of a photograph and its edit are refused."""

    gates: OmitArgPrefixes[GateSettings] = field(default_factory=GateSettings)
    perceptual: OmitArgPrefixes[PerceptualSettings] = field(default_factory=PerceptualSettings)
    oracle: OmitArgPrefixes[OracleSettings] = field(default_factory=OracleSettings)

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
    """Yields the captions in batches of whole images.

    Raises:
      InputError: a caption is wrong, or names a mask where there is no folder of masks.
    """
    batch: list[EditCaption] = []
    for captions in select_images(_captions(config), config.run):
        batch += captions
        if len(batch) >= BATCH:
            yield PhotographBatch(captions=tuple(batch))
            batch = []
    if batch:
        yield PhotographBatch(captions=tuple(batch))


def _captions(config: Config) -> Iterator[EditCaption]:
    for caption in read_edit_captions(config.captions, config.source):
        if caption.mask is not None and config.masks is None:
            raise InputError(
                f"{config.captions.name}: {caption.caption_id} names a mask, {caption.mask!r}; say "
                "with --masks in which folder it lies"
            )
        yield caption


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
    check_installed()
    check_writer(config.writing)
    config.settings.prepare()
    prepare_perceptual(config.settings.perceptual)
    prepare_oracle(config.settings.oracle)
    if config.editing.device != "cpu" and config.run.workers > 1:
        raise InputError(
            f"--workers {config.run.workers}: every worker would load the models onto "
            f"{config.editing.device} once more, and they would wait for each other; one edits as "
            "fast. To use more GPUs, build a part of the captions on each, in folders of their own"
        )


def confirm(config: Config, plan: PlanFiles) -> None:
    """Loads the models and looks for photographs, so that a mistake shows before any work.

    Raises:
      InputError: a model cannot be loaded, the settings do not fit it, it needs a mask and nobody
        says where one is from, or no photograph is there.
    """
    names = (caption.image for caption in _planned(plan))
    confirm_images(media_folder(config.images, config.run), names)
    confirm_writer(config.writing)
    # The machine that launches a job need not have the workers' device.
    device = device_here(config.editing.device)
    editor = shared_editor(replace(config.editing, device=device)).editor
    shared_grounder(config.grounding, device)
    if "mask" in editor.needs and not _has_masks(config):
        others = [name for name in editor_names() if name != editor.name]
        raise InputError(
            f"the editor {editor.name} changes a photograph where a mask says: name a folder of "
            "masks with --masks, or a detector that finds what changes with --grounder; other "
            f"editors: {', '.join(others) or 'none'}"
        )
    if config.editing.model == TINY:
        print(f"\n*** {_TINY_WARNING} ***\n", file=sys.stderr)


def _has_masks(config: Config) -> bool:
    return config.masks is not None or config.grounding.grounder is not None


def _planned(plan: PlanFiles) -> Iterator[EditCaption]:
    for batch in read_plan(PhotographBatch, plan.files):
        yield from batch.captions


def media(config: Config, plan: PlanFiles) -> Iterator[Medium]:
    """Yields photographs, masks, and the files of models that are folders."""
    yield from images_of(config.images, config.run, (each.image for each in _planned(plan)))
    if config.masks is not None:
        names = (name for each in _planned(plan) for name in mask_names(each))
        folder = media_folder(config.masks, config.run)
        yield from media_in("masks", folder, dict.fromkeys(names))
    for model in (
        *(config.editing.model, config.writing.writer),
        *(config.grounding.grounder, config.grounding.segmenter),
    ):
        yield from model_files(model)


_TINY_WARNING = (
    "The edits come from a tiny model with random weights, made to try the pipeline. They show "
    "nothing of what their captions say."
)
_EXACT_WARNING = (
    "An editor makes the same bytes again only on the same kind of device with the same versions "
    "of torch and diffusers; the column `generation` names them."
)
_GATES_WARNING = (
    "The limits on how much an edit changes are not calibrated on edited photographs, and nothing "
    "but an oracle or a review tells whether an edit shows what its caption says."
)


def warnings(config: Config) -> Iterator[str]:
    """Yields what a user should know before trusting the pictures."""
    if config.editing.model == TINY:
        yield _TINY_WARNING
    yield _EXACT_WARNING
    yield _GATES_WARNING
    if not config.locking.lock or not _has_masks(config):
        yield "Nothing is locked: an edit may change any pixel of its photograph."
    yield from oracle_warnings(prepare_oracle(config.settings.oracle))


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
    settings = config.settings
    return EditingRules(
        editor=config.editing,
        grounding=config.grounding,
        needs_mask=_has_masks(config),
        lock=config.locking,
        generated=GeneratedRules(
            work=work,
            images=settings,
            gates=settings.gates,
            distinct_captions=settings.distinct_captions,
            perceptual=prepare_perceptual(settings.perceptual),
            oracle=prepare_oracle(settings.oracle),
        ),
    )


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    work = storage.join(target.config.run.output, WORK)
    rules = rules_of(target.config, work)
    _ = (
        root
        | "ReadPlan" >> ReadPlan(target.plan_files, PhotographBatch)
        | "PlanEdits" >> PlanEdits(plan_rules_of(target.config, work))
        | "EditPhotographs" >> EditPhotographs(rules, target.notes)
        | "MeasurePairs" >> MeasureGenerated(rules.generated, target.notes)
        | "DropPairs" >> DropGenerated(rules.generated)
        | "WriteDataset" >> WriteWorks(target.dataset)
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
    started = time.perf_counter()
    shared_editor(config.editing)
    shared_grounder(config.grounding, config.editing.device)
    loaded = time.perf_counter()
    works = [work for batch in batches for work in plan_edits(batch, planning)]
    made = [measure_generated(edit_photograph(work, rules), rules.generated) for work in works]
    return PilotCost(
        seconds=time.perf_counter() - loaded,
        num_bytes=sum(i.num_bytes for work in made if work.made for i in work.made.images),
        start_s=loaded - started,
        made=made_of(made, rules.generated),
    )


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
    stages=(CAPTIONS_STAGE, NEGATIVES_STAGE, EDITS_STAGE, IMAGES_STAGE, PAIRS_STAGE),
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
