r"""Hard positives beside hard negatives: REPLACE and SWAP sets (Kamath et al., section 3.4).

True and false captions come from VL-CheckList, a file of text pairs, or rules. Rules, a lexicon or
a language model then reword what the false caption changed (REPLACE), or swap around "and" (SWAP).

Example:
    eqforge build hard-positives --vl-checklist VL-CheckList/data --output out/replace
    eqforge build hard-positives --pairs visual_genome_attribution.json --output out/swap
    eqforge build hard-positives --captions captions_val2017.json --output out/coco
    eqforge build hard-positives --captions captions_val2017.json --output out/written \
        --model llama-2-70b-chat@http://localhost:8000/v1
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from more_itertools import batched
from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.core.identity import Trace
from eqforge.core.shell import MediaRoot
from eqforge.generators.text.language import Language
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.wordnet import check_wordnet
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.pipeline import DatasetConfig, Input, RunSettings, files_of
from eqforge.pipelines.base.text import select_images
from eqforge.pipelines.base.written import ModelSettings, WrittenPipeline
from eqforge.schemas.tables.texts import HARD_POSITIVES_TABLE
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.tables import Table, files_for, table_of
from eqforge.transforms.judges.settings import JudgeSettings
from eqforge.transforms.text.hard_positive_samples import HardPositiveRules
from eqforge.transforms.text.hard_positives import (
    HARD_POSITIVES_STAGE,
    captions_of,
    check_balance,
    draw_texts,
    make_hard_positives,
    with_drawn,
)
from eqforge.transforms.text.image_texts import TextsBatch, TextSources, texts_of
from eqforge.transforms.text.work import CAPTIONS_STAGE

if TYPE_CHECKING:
    from eqforge.schemas.dataset.manifest import Certificate
    from eqforge.schemas.dataset.reader import Dataset

BATCH = 256


@dataclass(frozen=True, kw_only=True)
class Config(TextSources, ModelSettings, DatasetConfig):
    """Build captions, each with a true and a false rewording (the REPLACE or SWAP set)."""

    lexicon: Path | None = None
    """File of words and their replacements. With --vl-checklist, the file replaces the rules. With
    --captions, it extends the rules."""

    weak_synonyms: bool = True
    """In corrected mode, also use weak synonyms, such as silver for metallic. --no-weak-synonyms
    excludes them."""

    images: MediaRoot | None = None
    """Folder, URL or tar shards of the images to store in the dataset. Records without an image
    file are rejected. If the --pairs file has boxes, as in ARO, eqforge crops the images to the
    boxes."""

    spacy_model: str | None = None
    """spaCy pipeline that tags the words of captions. The built-in default tagger needs no
    download."""

    language: Language = "en"
    """Accept only English texts (`en`) or texts in any language (`any`)."""

    balance: Literal["text"] | None = None
    """Drop some rows so that text-only classifiers cannot recognize the hard negatives."""

    judging: Annotated[OmitArgPrefixes[JudgeSettings], Trace.IF_CHANGED] = field(
        default_factory=JudgeSettings
    )


class HardPositives(WrittenPipeline[Config, TextsBatch]):
    """Captions of an image, each with a true rewording and a false one."""

    name = "hard-positives"
    Config = Config
    basics = (
        "vl-checklist",
        "pairs",
        "captions",
        "images",
        "kinds",
        "model",
        "verify",
        "workers",
        "mode",
    )
    record = TextsBatch
    make = staticmethod(make_hard_positives)
    stages = (CAPTIONS_STAGE, HARD_POSITIVES_STAGE)
    steps = (("reworded", "images"),)
    judged = "records"
    captions_of = staticmethod(captions_of)

    def inputs(self) -> Iterator[Input]:
        config = self.config
        yield from (path for *_, path in config.vl_checklist_files())
        for source, files in config.folders():
            yield from files_of(source, files)
        if config.lexicon is not None:
            yield config.lexicon

    def check(self) -> None:
        config = self.config
        config.check_sources()
        if config.model is not None and config.captions is None:
            raise InputError("--model works only with --captions")
        if config.balance is not None:
            check_balance(config.captions, config.model)
        self.check_edits()
        has_own = config.lexicon is not None or config.mode == "paper"
        if config.captions is not None or (config.vl_checklist is not None and not has_own):
            check_wordnet()

    def plan(self) -> Iterator[TextsBatch]:
        if self.config.balance is None:
            return self._batches(self.run)
        # All are drawn together, those too that are not asked for.
        places = draw_texts(self._batches(replace(self.run, only=())), self.rules())
        return with_drawn(self._batches(self.run), places)

    def _batches(self, run: RunSettings) -> Iterator[TextsBatch]:
        images = map(texts_of, select_images(self.config.texts(), run))
        for batch in batched(images, self.config.judging.batch(BATCH)):
            yield TextsBatch(images=tuple(batch))

    def images_of(self, batch: TextsBatch) -> Iterator[str]:
        return (texts.image for texts in batch.images)

    def measure(self, batch: TextsBatch) -> dict[str, int]:
        images = batch.images
        return {"images": len(images), "records": sum(len(texts.records) for texts in images)}

    def rules(self) -> HardPositiveRules:
        config = self.config
        return HardPositiveRules(
            published=config.mode == "paper",
            lexicon=load_lexicon(config.lexicon),
            allow_weak=config.weak_synonyms,
            edits=self.edit_rules(),
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
        config = self.config
        has_own = bool(config.vl_checklist and config.lexicon)
        is_written = bool(config.model) and config.model_for == "all"
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
        if self.config.balance is None:
            return None
        from eqforge.evaluation.shortcuts.audit import certify

        return certify


main = Main(HardPositives)
