r"""Hard positives beside hard negatives: REPLACE and SWAP sets (Kamath et al.).

Example:
    eqforge build hard-positives --vl-checklist VL-CheckList/data --output out/replace
    eqforge build hard-positives --pairs visual_genome_attribution.json --output out/swap
    eqforge build hard-positives --captions captions_val2017.json --output out/coco
    eqforge build hard-positives --captions captions_val2017.json --output out/written \
        --model llama-2-70b-chat@http://localhost:8000/v1
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator
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
from eqforge.generators.text.wordnet import check_wordnet, open_wordnet
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.language_model import (
    ModelSettings,
    ask_model,
    check_writer,
    confirm_server,
    cost_lines,
    language_and_model_of_mode,
    written,
)
from eqforge.pipelines.shared.pipeline import Input, Pipeline, Target, files_of
from eqforge.pipelines.shared.settings import DatasetConfig, RunSettings
from eqforge.pipelines.shared.text import (
    check_images,
    check_language,
    confirm_images,
    confirm_judges,
    image_folder,
    images_folder,
    images_of,
    judgements_table,
    judging,
    media_root,
    select_images,
)
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
from eqforge.transforms.dataset.tables import files_for, media_tables, table_of
from eqforge.transforms.judges.settings import JudgeSettings, Judging
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

NAME = "hard-positives"
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


def plan(config: Config) -> Iterator[TextsBatch]:
    """Returns the records of a source in batches of whole images."""
    batches = _batches(config, config.run)
    if config.balance is None:
        return batches
    # All are drawn together, those too that are not asked for.
    drawn = draw_texts(_batches(config, replace(config.run, only=())), rules(config))
    return with_drawn(batches, drawn)


def _batches(config: Config, run: RunSettings) -> Iterator[TextsBatch]:
    from more_itertools import batched

    images = map(_texts_of, select_images(_texts(config), run))
    for batch in batched(images, config.judging.batch(BATCH)):
        yield TextsBatch(images=tuple(batch))


def _texts_of(found: tuple[Text, ...]) -> ImageTexts:
    return ImageTexts(
        image=found[0].image,
        foils=tuple(text for text in found if isinstance(text, FoilRecord)),
        pairs=tuple(text for text in found if isinstance(text, TextPair)),
        captions=tuple(text for text in found if isinstance(text, CaptionRecord)),
    )


def _texts(config: Config) -> Iterator[Text]:
    for kind, group, path in _vl_checklist_files(config):
        for record in read_vl_checklist(path):
            yield FoilRecord(kind=kind, group=group, record=record)
    if config.pairs is not None:
        yield from read_text_pairs(config.pairs)
    if config.captions is not None:
        yield from read_captions(config.captions)


def _vl_checklist_files(config: Config) -> Iterator[tuple[Any, str, Path]]:
    if config.vl_checklist is not None:
        for kind, groups in PUBLISHED_GROUPS.items():
            if kind in config.kinds:
                yield from (
                    (kind, group, config.vl_checklist / FOLDERS[kind] / f"{group}.json")
                    for group in groups
                )


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
    from eqforge.transforms.text.steps import MakeHardPositives

    _ = (
        root
        | ReadPlan(target.plan_files, TextsBatch)
        | MakeHardPositives(rules(target.config), target.notes)
        | WriteDataset(target.dataset)
    )


def rules(config: Config) -> HardPositiveRules:
    """Returns how the hard positives of a configuration are made."""
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
        images=_images(config),
        only=config.run.only,
        language=config.language if config.vl_checklist is None else "any",  # it is in English
        judging=_judging(config),
    )


def _images(config: Config) -> ImageFolder | None:
    folder = image_folder(config.images, config.run)
    return None if folder is None else replace(folder, clip_boxes=config.mode != "paper")


def _judging(config: Config) -> Judging | None:
    return judging(config.judging, config.images, config.run, by_rules=_is_by_rules(config))


def _is_by_rules(config: Config) -> bool:
    """Tells whether rules make both texts, in the mode and language that their precision is of."""
    has_own = config.pairs is not None or (config.vl_checklist is not None and bool(config.lexicon))
    is_written = config.model is not None and config.model_for == "all"
    return config.mode != "paper" and config.language == "en" and not (has_own or is_written)


def prepare(config: Config, plan: PlanFiles) -> None:
    """Says what a language model will be asked, and asks a server; see `ask_model`."""
    made = rules(config)
    ask_model(config, made.edits, lambda: map(partial(captions_of, made), _planned(plan)))


def cost(config: Config) -> Iterator[str]:
    """Yields what a language model would be asked."""
    made = rules(config)
    yield from cost_lines(config, made.edits, lambda: map(partial(captions_of, made), plan(config)))


def _planned(plan: PlanFiles) -> Iterator[TextsBatch]:
    return read_plan(TextsBatch, plan.files)


def inputs(config: Config) -> Iterator[Input]:
    """Yields the files of the source and the lexicon."""
    yield from (path for _, _, path in _vl_checklist_files(config))
    if config.pairs is not None:
        yield from files_of(config.pairs, pair_files(config.pairs))
    if config.captions is not None:
        yield from files_of(config.captions, caption_files(config.captions))
    if config.lexicon is not None:
        yield config.lexicon


def needs(config: Config) -> None:
    """Looks for WordNet where texts are made by rules; see check_wordnet."""
    if _uses_rules(config):
        check_wordnet()


def _uses_rules(config: Config) -> bool:
    own = config.lexicon is not None or config.mode == "paper"
    return config.captions is not None or (config.vl_checklist is not None and not own)


def check(config: Config) -> None:
    """Checks that there is one source, and the images and the lexicon, before any work.

    Raises:
      InputError: there is not exactly one source, or the images or the lexicon are unusable.
    """
    sources = (config.vl_checklist, config.pairs, config.captions)
    if sum(source is not None for source in sources) != 1:
        raise InputError("name one source: --vl-checklist FOLDER, --pairs FILE or --captions FILE")
    if not config.kinds:
        raise InputError("--kinds: name at least one kind")
    if unknown := sorted(set(config.kinds) - set(FOLDERS)):
        raise InputError(f"--kinds {unknown[0]}: expected {' or '.join(FOLDERS)}")
    if config.model is not None and config.captions is None:
        raise InputError("--model: writes hard positives of --captions alone")
    if config.balance is not None:
        check_balance(config)
    check_images(config.images, config.run)
    check_language(config.language)
    load_lexicon(config.lexicon)
    tagger_of(config.spacy_model)
    check_writer(config, config.mode)
    _judging(config)
    if _uses_rules(config):
        open_wordnet()


def check_balance(config: Config) -> None:
    """Checks that hard negatives are made here, and can be drawn.

    Raises:
      InputError: the source brings its own.
      MissingExtra: scikit-learn is not installed.
    """
    if config.captions is None:
        raise InputError(
            "--balance text draws the hard negatives that rules make of --captions; the other "
            "sources bring their own: leave it out"
        )
    if config.model is not None:
        raise InputError("--balance text: draws texts of rules; leave out --model")
    if importlib.util.find_spec("sklearn") is None:
        raise MissingExtra("scikit-learn", "text")


def confirm(config: Config, plan: PlanFiles) -> None:
    """Checks that images and server can be found, and what judges may be asked."""
    names = (texts.image for batch in _planned(plan) for texts in batch.images)
    confirm_images(images_folder(config.images, config.run), names)
    confirm_judges(config.judging, plan.counts.get("records", 0))
    confirm_server(config, config.run)


def media(config: Config, plan: PlanFiles) -> Iterator[Medium]:
    """Yields the images of a plan, and the files of a language model from a folder."""
    names = (texts.image for batch in _planned(plan) for texts in batch.images)
    yield from images_of(config.images, config.run, names)
    yield from model_files(config.model)


def measure(_: Config, batch: TextsBatch) -> dict[str, int]:
    """Returns what a batch adds to the counts of a plan."""
    records = sum(len(texts.records) for texts in batch.images)
    return {"images": len(batch.images), "records": records}


def tables(config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    records = plan.counts.get("records", 0)
    shards = files_for(records, config.run.samples_per_file)
    return (
        table_of(HARD_POSITIVES_TABLE, shards),
        *judgements_table(config.judging, shards, by_rules=_is_by_rules(config)),
        *media_tables(records, None if config.images is None else media_root(config.run)),
    )


def certificate(config: Config) -> "Callable[[Dataset], Certificate] | None":
    """Returns what measures how well the texts alone tell, where these were balanced."""
    if config.balance is None:
        return None
    from eqforge.evaluation.shortcuts.certificate import certify

    return certify


PIPELINE = Pipeline(
    name=NAME,
    config=Config,
    defaults=language_and_model_of_mode,
    inputs=inputs,
    needs=needs,
    check=check,
    confirm=confirm,
    media=media,
    prepare=prepare,
    cost=cost,
    plan=plan,
    certify=certificate,
    measure=measure,
    build=build,
    tables=tables,
    stages=(CAPTIONS_STAGE, HARD_POSITIVES_STAGE),
    steps={"reworded": "images"},
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
