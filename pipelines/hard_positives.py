r"""Hard positives beside hard negatives: REPLACE and SWAP sets (Kamath et al.).

Example:
    eqforge build hard-positives --vl-checklist VL-CheckList/data --output out/replace
    eqforge build hard-positives --pairs visual_genome_attribution.json --output out/swap
    eqforge build hard-positives --captions captions_val2017.json --output out/coco
    eqforge build hard-positives --captions captions_val2017.json --output out/written \
        --model llama-2-70b-chat@http://localhost:8000/v1
"""

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.shell import MediaRoot
from eqforge.generators.text.hard_positives.published import PUBLISHED_GROUPS
from eqforge.generators.text.language import Language
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.wordnet import open_wordnet
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.language_model import (
    ModelSettings,
    ask_model,
    check_writer,
    confirm_server,
    cost_lines,
    language_and_model_of_mode,
    written,
)
from eqforge.pipelines.base.pipeline import Input, Target, files_of
from eqforge.pipelines.base.settings import DatasetConfig, Mode, RunSettings
from eqforge.pipelines.base.text import JudgedPipeline, check_language, select_images
from eqforge.schemas.tables.texts import HARD_POSITIVES_TABLE
from eqforge.sources.caption_sources import CaptionRecord, read_captions
from eqforge.sources.own_captions import caption_files
from eqforge.sources.pair_records import pair_files
from eqforge.sources.text_pairs import TextPair, read_text_pairs
from eqforge.sources.vl_checklist import read_vl_checklist
from eqforge.transforms.dataset.census import Medium, model_files
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import files_for, table_of
from eqforge.transforms.judges.settings import JudgeSettings
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.hard_positive_samples import HardPositiveRules
from eqforge.transforms.text.hard_positives import (
    HARD_POSITIVES_STAGE,
    captions_of,
    draw_texts,
    with_drawn,
)
from eqforge.transforms.text.image_texts import FoilRecord, ImageTexts, Text, TextsBatch
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.work import CAPTIONS_STAGE

if TYPE_CHECKING:
    import apache_beam as beam

    from eqforge.schemas.dataset.manifest import Certificate
    from eqforge.schemas.dataset.reader import Dataset

BATCH = 256
FOLDERS = {"attribute": "Attribute/vg", "relation": "Relation/vg"}


@dataclass(frozen=True, kw_only=True)
class Config(ModelSettings, DatasetConfig):
    """Captions with a rewording that stays true and one that is false: REPLACE and SWAP sets."""

    vl_checklist: Path | None = None
    """VL-CheckList's folder `data`: its Visual Genome files give the REPLACE set."""

    kinds: tuple[str, ...] = ("attribute", "relation")
    """Which of VL-CheckList's files are read."""

    pairs: Path | None = None
    """A file of text pairs (ARO, SugarCrepe, JSON lines ...), or a folder of Hugging Face's with
    their fields: its captions give the SWAP set."""

    captions: Path | None = None
    """COCO captions, a Karpathy-split JSON, Flickr30k's token or CSV file, or your own: a table
    (.csv, .tsv), a JSON array or JSON lines with a column caption and, if you like, image, id and
    split. Or a folder of Hugging Face's with such columns: of Dataset.save_to_disk, a snapshot of
    the hub, or with a metadata file. Both texts are made by rules, or the hard positives by a
    language model."""

    lexicon: Path | None = None
    """Your own lexicon of words and replacements: for --vl-checklist in place of the rules, beside
    them for --captions."""

    weak_synonyms: bool = True
    """Use the lexicon's weak synonyms, such as metallic for silver, in corrected mode."""

    images: MediaRoot | None = None
    """Folder of the images, here or in a store, or tar shards: they are embedded, and a record
    whose image is missing is a reject. Of an image for which a file of pairs has a box (ARO's
    bbox_x, bbox_y, bbox_w, bbox_h) that part is cut out, as PNG."""

    spacy_model: str | None = None
    """A spaCy pipeline for swaps; without it a tagger that needs no data."""

    language: Language = "en"
    """en refuses what is in another language than that of the rules; any takes it as it comes."""

    balance: Literal["text"] | None = None
    """text draws the hard negatives of all --captions together, so that classifiers that see no
    picture do not tell them from captions; costs rows, and two minutes for 25,000 captions. What
    limits such as --probability-min refuse is refused afterwards, and nothing is drawn in its
    place."""

    judging: OmitArgPrefixes[JudgeSettings] = field(default_factory=JudgeSettings)


class HardPositives(JudgedPipeline[Config]):
    """Captions of an image, each with a rewording that stays true and one that is false."""

    name = "hard-positives"
    Config = Config
    record = TextsBatch
    stages = (CAPTIONS_STAGE, HARD_POSITIVES_STAGE)
    steps = (("reworded", "images"),)

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        return language_and_model_of_mode(mode)

    def inputs(self) -> Iterator[Input]:
        """Yields the files of the source and the lexicon."""
        config = self.config
        yield from (path for _, _, path in self._vl_checklist_files())
        if config.pairs is not None:
            yield from files_of(config.pairs, pair_files(config.pairs))
        if config.captions is not None:
            yield from files_of(config.captions, caption_files(config.captions))
        if config.lexicon is not None:
            yield config.lexicon

    def _vl_checklist_files(self) -> Iterator[tuple[Any, str, Path]]:
        folder = self.config.vl_checklist
        for kind, groups in PUBLISHED_GROUPS.items():
            if folder is not None and kind in self.config.kinds:
                yield from (
                    (kind, name, folder / FOLDERS[kind] / f"{name}.json") for name in groups
                )

    def check(self) -> None:
        """Checks that there is one source, and the images and the lexicon, before any work.

        Raises:
          InputError: there is not exactly one source, or the images or the lexicon are unusable.
          MissingExtra: a required package is not installed.
        """
        config = self.config
        if (
            sum(each is not None for each in (config.vl_checklist, config.pairs, config.captions))
            != 1
        ):
            raise InputError(
                "name one source: --vl-checklist FOLDER, --pairs FILE or --captions FILE"
            )
        if not config.kinds:
            raise InputError("--kinds: name at least one kind")
        if unknown := sorted(set(config.kinds) - set(FOLDERS)):
            raise InputError(f"--kinds {unknown[0]}: expected {' or '.join(FOLDERS)}")
        if config.model is not None and config.captions is None:
            raise InputError("--model: writes hard positives of --captions alone")
        if config.balance is not None:
            self._check_balance()
        self.check_images()
        check_language(config.language)
        load_lexicon(config.lexicon)
        tagger_of(config.spacy_model)
        check_writer(config, config.mode)
        self.judges()
        has_own = config.lexicon is not None or config.mode == "paper"
        if config.captions is not None or (config.vl_checklist is not None and not has_own):
            open_wordnet()

    def _check_balance(self) -> None:
        """Checks that hard negatives are made here, and can be drawn."""
        if self.config.captions is None:
            raise InputError(
                "--balance text draws the hard negatives that rules make of --captions; the other "
                "sources bring their own: leave it out"
            )
        if self.config.model is not None:
            raise InputError("--balance text: draws texts of rules; leave out --model")
        if importlib.util.find_spec("sklearn") is None:
            raise MissingExtra("scikit-learn", "text")

    def plan(self) -> Iterator[TextsBatch]:
        """Returns the records of a source in batches of whole images."""
        batches = self._batches(self.run)
        if self.config.balance is None:
            return batches
        # All are drawn together, those too that are not asked for.
        drawn = draw_texts(self._batches(replace(self.run, only=())), self.rules())
        return with_drawn(batches, drawn)

    def _batches(self, run: RunSettings) -> Iterator[TextsBatch]:
        from more_itertools import batched

        images = map(_texts_of, select_images(self._texts(), run))
        for batch in batched(images, self.config.judging.batch(BATCH)):
            yield TextsBatch(images=tuple(batch))

    def _texts(self) -> Iterator[Text]:
        for kind, group, path in self._vl_checklist_files():
            for record in read_vl_checklist(path):
                yield FoilRecord(kind=kind, group=group, record=record)
        if self.config.pairs is not None:
            yield from read_text_pairs(self.config.pairs)
        if self.config.captions is not None:
            yield from read_captions(self.config.captions)

    def images_of(self, batch: TextsBatch) -> Iterator[str]:
        return (texts.image for texts in batch.images)

    def measure(self, batch: TextsBatch) -> dict[str, int]:
        records = sum(len(texts.records) for texts in batch.images)
        return {"images": len(batch.images), "records": records}

    def report(self, records: Iterable[TextsBatch]) -> Iterator[str]:
        yield from super().report(records)
        yield from cost_lines(self.config, self.rules().edits, lambda: self._asked(self.plan()))

    def _asked(self, batches: Iterable[TextsBatch]) -> Iterator[Sequence[CaptionRecord]]:
        return map(partial(captions_of, self.rules()), batches)

    def confirm(self, plan: PlanFiles) -> None:
        """Checks that images and server can be found, and what judges may be asked."""
        super().confirm(plan)
        self.confirm_judges(plan.counts.get("records", 0))
        confirm_server(self.config, self.run)

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        yield from super().media(plan)
        yield from model_files(self.config.model)

    def prepare(self, plan: PlanFiles) -> None:
        """Says what a language model will be asked, and asks a server; see `ask_model`."""
        batches = partial(read_plan, TextsBatch, plan.files)
        ask_model(self.config, self.rules().edits, lambda: self._asked(batches()))

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
        from eqforge.transforms.text.steps import MakeHardPositives

        _ = (
            root
            | ReadPlan(target.plan_files, TextsBatch)
            | MakeHardPositives(self.rules(), target.notes)
            | WriteDataset(target.dataset)
        )

    def rules(self) -> HardPositiveRules:
        """Returns how hard positives are made."""
        config = self.config
        return HardPositiveRules(
            published=config.mode == "paper",
            lexicon=load_lexicon(config.lexicon),
            allow_weak=config.weak_synonyms,
            edits=EditRules(
                seed=config.run.seed,
                lexicon=None if config.lexicon is None else load_lexicon(config.lexicon),
                spacy_model=config.spacy_model,
                written=written(config, config.run),
            ),
            images=self.image_folder(),
            only=config.run.only,
            language=config.language if config.vl_checklist is None else "any",  # it is in English
            judging=self.judges(),
        )

    def image_folder(self) -> ImageFolder | None:
        folder = super().image_folder()
        return folder and replace(folder, clip_boxes=self.config.mode != "paper")

    @property
    def is_by_rules(self) -> bool:
        """Whether rules make both texts, in the mode and language that their precision is of."""
        config = self.config
        has_own = config.vl_checklist is not None and bool(config.lexicon)
        is_written = config.model is not None and config.model_for == "all"
        return super().is_by_rules and not (config.pairs is not None or has_own or is_written)

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        records = plan.counts.get("records", 0)
        shards = files_for(records, self.run.samples_per_file)
        return (
            table_of(HARD_POSITIVES_TABLE, shards),
            *self.judgements_table(shards),
            *self.media_tables(records),
        )

    def certificate(self) -> "Callable[[Dataset], Certificate] | None":
        """Returns what measures how well the texts alone tell, where these were balanced."""
        if self.config.balance is None:
            return None
        from eqforge.evaluation.shortcuts.audit import certify

        return certify


def _texts_of(found: tuple[Text, ...]) -> ImageTexts:
    return ImageTexts(
        image=found[0].image,
        foils=tuple(text for text in found if isinstance(text, FoilRecord)),
        pairs=tuple(text for text in found if isinstance(text, TextPair)),
        captions=tuple(text for text in found if isinstance(text, CaptionRecord)),
    )


main = Main(HardPositives)
"""Builds the dataset as a command line says."""
