r"""SIMAT: a gallery of crops, and queries that change one word of what a crop shows.

Crops of Visual Genome show a triplet (a man, sitting on, a chair). A query asks for a crop in which
one word of the triplet has changed; an oracle drops queries that the crop already answers.

Example:
    eqforge build simat --relationships relationships.json --image-data image_data.json \
        --images VG/ --oracle blip-itm:FOLDER --output out/simat

Source: Couairon et al., "Embedding Arithmetic of Multimodal Queries for Image Retrieval", 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.shell import MediaRoot
from eqforge.generators.simat.triplets import TripletSettings
from eqforge.generators.simat.wording import load_synonyms, write_caption
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.pipeline import DatasetConfig, Mode, Target
from eqforge.pipelines.base.text import TextPipeline
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.tables.pairs import IMAGES_TABLE
from eqforge.schemas.tables.simat import GALLERY_TABLE, QUERIES_TABLE, TRIPLETS_TABLE
from eqforge.sources.simat import Triplet
from eqforge.transforms.dataset.census import IMAGES, Medium, media_in
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.tables import Table, files_for, rejects_table, table_of
from eqforge.transforms.oracle.judges import (
    OracleSettings,
    oracle_warnings,
    prepare_oracle,
    specs_of,
)
from eqforge.transforms.simat.crops import CropSettings, Cutter
from eqforge.transforms.simat.images import SimatRules
from eqforge.transforms.simat.plan import PlanRules, SimatFiles, plan_images, select_planned
from eqforge.transforms.simat.planned import CUT, QUERIES_STAGE, RELATIONS_STAGE, PlannedImage

if TYPE_CHECKING:
    import apache_beam as beam

PUBLISHED_TOP = 20
"""Objects per subject and relation in the published files; the paper says 10."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SimatSettings:
    """Selection of triplets, crops and queries."""

    triplets: OmitArgPrefixes[TripletSettings] = field(default_factory=TripletSettings)
    crops: OmitArgPrefixes[CropSettings] = field(default_factory=CropSettings)
    oracle: OmitArgPrefixes[OracleSettings] = field(default_factory=OracleSettings)

    drop_synonyms: bool = True
    """Reject queries whose two words are synonyms. --no-drop-synonyms keeps them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(SimatFiles, DatasetConfig):
    """Build image crops from Visual Genome, and queries that change one word (SIMAT)."""

    images: MediaRoot | None = None
    """Folder, URL or tar shards of Visual Genome's images. Without images, eqforge stores no
    crops."""

    image_format: Literal["png", "jpeg"] = "png"
    """File format of the crops. The authors' code writes PNG."""

    choices: OmitArgPrefixes[SimatSettings] = field(default_factory=SimatSettings)


class Simat(TextPipeline[Config, PlannedImage]):
    """A gallery of crops of Visual Genome, and queries that change one word of a crop."""

    name = "simat"
    Config = Config
    basics = (
        "relationships",
        "retrieval-db",
        "triplets",
        "transfos",
        "captions",
        "oracle",
        "workers",
        "mode",
    )
    record = PlannedImage
    stages = (RELATIONS_STAGE, QUERIES_STAGE)
    steps = ((CUT, "source images"),)

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        if mode == "corrected":
            return {"choices": SimatSettings()}
        return {
            "choices": SimatSettings(
                triplets=TripletSettings(top_objects=PUBLISHED_TOP),
                crops=CropSettings(crop="published"),
                drop_synonyms=False,
            )
        }

    def check(self) -> None:
        config = self.config
        config.check_source()
        self.check_images()
        if config.images is None:
            for spec in specs_of(config.choices.oracle):
                if spec.kind not in ("matrix", "oscar"):
                    raise InputError(
                        f"--oracle {spec.kind}: this oracle needs images; pass --images FOLDER"
                    )
        prepare_oracle(config.choices.oracle)
        write_caption(Triplet(subject="man", relation="touching", object="elephant"))

    def plan(self) -> Iterator[PlannedImage]:
        config, choices = self.config, self.config.choices
        rules = PlanRules(
            triplets=choices.triplets,
            published=config.mode == "paper",
            synonyms=load_synonyms(config.synonyms) if choices.drop_synonyms else None,
            seed=self.run.seed,
            **config.read(),
        )
        yield from select_planned(plan_images(config.regions(), rules), self.run.selection)

    def images_of(self, image: PlannedImage) -> tuple[str, ...]:
        return image.paths if image.regions else ()

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        if (folder := self.images()) is not None:
            for image in read_plan(PlannedImage, plan.files):
                found = list(media_in(IMAGES, folder, self.images_of(image)))
                yield from ([each for each in found if each.file is not None] or found)[:1]

    def warnings(self) -> Iterator[str]:
        oracle = self.config.choices.oracle
        yield from oracle_warnings(prepare_oracle(oracle))
        if oracle.oracle is None and self.config.transfos is None:
            yield (
                "no oracle judged the queries, so some queries may ask for something that the "
                "crop already shows"
            )

    def measure(self, image: PlannedImage) -> dict[str, int]:
        queries = [query for planned in image.regions for query in planned.queries]
        return {
            "source images": 1,
            "triplets": image.new_triplets,
            "regions": len(image.regions),
            "queries": len(queries),
            "rejected queries": sum(query.rejection is not None for query in queries),
            "rejected regions": image.refused_regions,
        }

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset.steps import ReadPlan, WriteTables
        from eqforge.transforms.simat.steps import JudgeQueries, ShowImages, WeighQueries, rows_of

        rules = self.rules()
        works = root | ReadPlan(target.plan_files, PlannedImage) | ShowImages(rules, target.notes)
        queries = works | JudgeQueries()
        samples = queries | WeighQueries(rules)
        rows = rows_of(works, queries, samples, rules.has_images)
        _ = rows | "WriteDataset" >> WriteTables(target.dataset)

    def rules(self) -> SimatRules:
        config, done = self.config, storage.join(self.work, "done")
        return SimatRules(
            cutter=Cutter(
                root=None if config.images is None else self.shared_folder("images"),
                store=MediaStore(self.media_root),
                settings=config.choices.crops,
                encoding=FrameSettings(image_format=config.image_format),
                ledger_root=done,
            ),
            oracle=prepare_oracle(config.choices.oracle),
            published=config.mode == "paper",
            only=config.run.only,
        )

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        run, counts = self.run, plan.counts
        shown, num_queries = counts.get("regions", 0), counts.get("queries", 0)
        images = table_of(
            IMAGES_TABLE, files_for(shown, run.images_per_file), MediaStore(self.media_root)
        )
        return (
            table_of(QUERIES_TABLE, files_for(num_queries, run.samples_per_file)),
            table_of(GALLERY_TABLE, files_for(shown, run.samples_per_file)),
            table_of(TRIPLETS_TABLE, 1),
            *(() if self.config.images is None else (images,)),
            rejects_table(num_queries + shown + counts.get("rejected regions", 0)),
        )


main = Main(Simat)
