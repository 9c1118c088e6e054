r"""Several finished datasets as one: pairs of any kind, or samples of one other.

Example:
    eqforge combine out/yc out/gebc out/ag out/kubric out/sd --output out/eqben
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import Trace
from eqforge.core.visible import visible
from eqforge.pipelines import stage_of
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.pipeline import DatasetConfig, Input, Mode, NamedFile, Pipeline, Target
from eqforge.pipelines.base.recipe import DIGITS
from eqforge.schemas.dataset.manifest import FILE_NAME, Certificate, PartManifest, as_parts
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.benchmark_rows import COMBINE_STAGE, COMBINED
from eqforge.schemas.tables.pairs import IMAGES_TABLE
from eqforge.schemas.tables.texts import JUDGEMENTS_TABLE
from eqforge.transforms.dataset.errata import by_sample, errata_of
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.tables import Table, files_for, rejects_table, table_of

if TYPE_CHECKING:
    import apache_beam as beam

    from eqforge.schemas.dataset.reader import Dataset
    from eqforge.transforms.dataset.part_pictures import Part
    from eqforge.transforms.dataset.parts import Piece

SAMPLES, JUDGEMENTS, IMAGES, REJECTS = "samples", "judgements", "images", "rejects of the parts"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Combine finished datasets of the same kind into one dataset, such as EqBen's five subsets.

    The combined dataset keeps all ids and all rejected candidates. --sample and --limit apply to
    each subset. A subset is one kind of pair in an input dataset, such as eq-kubric/location. An
    input dataset without kinds is a single subset.
    """

    mode: tyro.conf.Suppress[Mode] = "corrected"
    """Mode of the combined dataset. It is `paper` if any input was built in paper mode."""

    parts: Annotated[tuple[str, ...], tyro.conf.Positional, Trace.NONE]
    """Folders or URLs of the datasets, in any order. To name a dataset, pass NAME=FOLDER."""


class Combined(Pipeline[Config, "Piece"]):
    """Rows of finished datasets, unchanged; equal rows of two parts appear once."""

    name = ""  # of an instance that of what its parts become
    Config = Config
    basics = ("sample", "limit", "workers", "overwrite")
    stages: tuple[Stage, ...] = (COMBINE_STAGE,)
    steps = (("combined", SAMPLES),)

    def __init__(self, config: Any) -> None:
        from eqforge.core.files.table_file import ADVICE
        from eqforge.transforms.dataset.part_pictures import Part
        from eqforge.transforms.dataset.parts import CombineRules, kind_of, open_parts

        opened = open_parts(config.parts)
        found = [each for _, each in opened]
        self.name = kind_of({each.folder: each.manifest.dataset for each in found})
        names = Counter(name or each.manifest.dataset for name, each in opened)
        parts: list[Part] = []
        stages: list[Stage] = []
        for chosen_name, each in opened:
            name = each.manifest.dataset
            label = chosen_name or (name if names[name] == 1 else f"{name}@{each.sha256[:DIGITS]}")
            parts.append(Part(each.folder, each.sha256, label, bool(chosen_name)))
            for stage, counts in each.manifest.stages.items():
                if not counts.is_balanced():
                    raise InputError(
                        f"{each.folder}: the counts of the stage {stage!r} do not add up; {ADVICE}"
                    )
                known = stage_of(each.manifest, stage) or Stage(stage)
                stages.append(Stage(f"{label}: {stage}", known.reasons))
        is_paper = any(each.manifest.mode == "paper" for each in found)
        super().__init__(replace(config, mode="paper" if is_paper else "corrected"))
        self.rules = CombineRules(kind=self.name, parts=tuple(parts))
        self.stages = (*stages, COMBINE_STAGE)
        self._has_images = any(each.files("images") for each in found)
        self._is_judged = any(each.files("judgements") for each in found)
        self._own_warnings = (*_untold(self.name, opened), *_uncertified(parts))

    def check(self) -> None:
        for warning in self._own_warnings:
            print(visible(f"WARNING: {warning}"), file=sys.stderr)

    def inputs(self) -> Iterator[Input]:
        """Yield the manifests of the parts, which hold the digests of all their files."""
        for part in self.rules.parts:
            url = storage.join(part.folder, FILE_NAME)
            yield NamedFile(part.label, storage.locate(url)[1] if storage.is_local(url) else url)

    def warnings(self) -> Iterator[str]:
        for part in self.rules.parts:
            yield from (f"{part.label}: {text}" for text in part.open().manifest.warnings)
        yield from self._own_warnings

    def parts(self) -> Iterator[PartManifest]:
        """Yield each part once, after the parts that it was combined from."""
        found: dict[str, PartManifest] = {}
        for part in self.rules.parts:
            for each in as_parts(part.open().manifest, part.sha256, part.label):
                found.setdefault(each.sha256, each)
        yield from found.values()

    def plan(self) -> "Iterator[Piece]":
        from eqforge.transforms.dataset.combine import plan_pieces

        errata = errata_of(self.run.errata, self.name, self.run.decisions)
        found = list(plan_pieces(self.rules, self.run.selection, by_sample(errata).dropped))
        return iter(found if any(piece.table == SAMPLES for piece in found) else ())

    def measure(self, piece: "Piece") -> dict[str, int]:
        names = {name: name for name in (SAMPLES, JUDGEMENTS, IMAGES)} | {"rejects": REJECTS}
        counts = {names[piece.table]: piece.size} if piece.table else {}
        return counts | ({"duplicates": len(piece.duplicates)} if piece.duplicates else {})

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset.parts import Piece
        from eqforge.transforms.dataset.steps import ReadPlan, TakeOver, WriteCombined

        _ = (
            root
            | ReadPlan(target.plan_files, Piece)
            | TakeOver(self.rules, target.notes)
            | WriteCombined(target.dataset)
        )

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        from eqforge.transforms.dataset.part_pictures import PartPictures

        run, counts = self.run, plan.counts
        samples = COMBINED[self.name].table("samples")
        found = [table_of(samples, files_for(counts.get(SAMPLES, 0), run.samples_per_file))]
        if self._is_judged:
            files = files_for(counts.get(JUDGEMENTS, 0), run.samples_per_file)
            found.append(table_of(JUDGEMENTS_TABLE, files))
        if self._has_images:
            files = files_for(counts.get(IMAGES, 0), run.images_per_file)
            found.append(table_of(IMAGES_TABLE, files, PartPictures(self.rules.parts)))
        return (*found, rejects_table(counts.get(REJECTS, 0) + counts.get("duplicates", 0)))


def _untold(kind: str, opened: "Sequence[tuple[str, Dataset]]") -> Iterator[str]:
    """Yield a warning for each dataset that several parts build, if part names would help.

    Rows of hard-positives and training-captions lack their part, whatever its name.
    """
    if "dataset" not in COMBINED[kind].table("samples").schema.names:
        return
    unnamed = Counter(each.manifest.dataset for name, each in opened if not name)
    for name, count in unnamed.items():
        if count > 1:
            yield (
                f"{count} parts are builds of {name}, so their samples get the same kind; to "
                "distinguish them, pass NAME=FOLDER"
            )


def _uncertified(parts: "Sequence[Part]") -> Iterator[str]:
    for part in parts:
        if isinstance(part.open().manifest.certificate, Certificate):
            yield (
                f"{part.label}: its certificate of balanced texts does not cover the combined "
                "dataset; run eqforge audit on the combined dataset"
            )


main = Main(Combined, "combine")
