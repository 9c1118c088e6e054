r"""Several finished datasets as one: pairs of any kind, or samples of one other.

Example:
    eqforge combine out/yc out/gebc out/ag out/kubric out/sd --output out/eqben
"""

import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import shown
from eqforge.core.visible import visible
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.pipeline import Input, NamedFile, Pipeline, Target
from eqforge.pipelines.base.recipe import DIGITS
from eqforge.pipelines.base.registry import stage_of
from eqforge.pipelines.base.settings import DatasetConfig, Mode
from eqforge.schemas.dataset.manifest import FILE_NAME, Certificate, PartManifest, as_parts
from eqforge.schemas.records.books import Stage
from eqforge.schemas.tables.combined import COMBINED, PAIRS_NAME
from eqforge.schemas.tables.datasets import TYPES, dataset_type
from eqforge.transforms.dataset.books import COMBINE_STAGE
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.table import Table

if TYPE_CHECKING:
    import apache_beam as beam

    from eqforge.schemas.dataset.reader import Dataset
    from eqforge.transforms.dataset.part_pictures import Part
    from eqforge.transforms.dataset.parts import Piece

PAIR_COLUMNS = ("sample_id", "split", "caption_0", "caption_1", "image_0_id", "image_1_id")
SAMPLES, JUDGEMENTS, IMAGES, REJECTS = "samples", "judgements", "images", "rejects of the parts"
SHOWN = 8
_NAMED = re.compile(r"([^/:=]*)=(.*)", re.DOTALL)
"""NAME=FOLDER; a folder with such a name is ./NAME=FOLDER."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Combine finished datasets into one: pairs of any kind, such as EqBen's five subsets, or
    samples of one other kind.

    Ids stay what they are, every picture is stored once, and rejects and books of the parts are
    carried over. Of each subset --sample 10% takes a tenth and --limit 100 at most 100 samples,
    those with the least hashes of their ids, whatever their order: of pairs a subset is what a part
    has of one kind, such as eq-kubric/location, and of other samples a whole part.
    """  # noqa: D205

    mode: tyro.conf.Suppress[Mode] = "corrected"
    """That of the parts: paper if one of them is."""

    parts: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Folders or URLs of the datasets, two or more; their order does not matter. NAME=FOLDER names
    a part, as in train=out/gebc-train val=out/gebc-val, in kind, stages and rejects."""


class Combined(Pipeline[Config]):
    """Rows of finished datasets, taken over as they are; equal ones of two parts once."""

    name = ""  # of an instance that of what its parts become
    Config = Config
    stages: tuple[Stage, ...] = (COMBINE_STAGE,)
    steps = (("combined", SAMPLES),)

    def __init__(self, config: Any) -> None:
        """Opens the parts.

        Raises:
          InputError: one cannot be read or is given twice, two parts have one name, they have no
            columns in common that could be combined, or the books of one do not balance.
        """
        from eqforge.schemas.dataset.reader import open_dataset
        from eqforge.transforms.dataset.part_pictures import Part
        from eqforge.transforms.dataset.parts import CombineRules

        if len(config.parts) < 2:
            raise InputError("name two or more datasets to combine")
        given = [_name_and_folder(each) for each in config.parts]
        opened = [(name, open_dataset(folder)) for name, folder in given]
        opened.sort(key=lambda each: (each[1].manifest.dataset, each[1].sha256))
        found = [each for _, each in opened]
        for one, other in itertools.pairwise(found):
            if one.sha256 == other.sha256:
                raise InputError(
                    f"{one.folder} and {other.folder}: are the same dataset; leave one of them out"
                )
        self.name = _kind({each.folder: each.manifest.dataset for each in found})
        names = Counter(name or each.manifest.dataset for name, each in opened)
        for name, each in opened:
            if name and names[name] > 1:
                raise InputError(
                    f"{name}={each.folder}: another part is called {name}, too; every part needs a "
                    "name of its own"
                )
        parts: list[Part] = []
        stages: list[Stage] = []
        for own, each in opened:
            name = each.manifest.dataset
            label = own or (name if names[name] == 1 else f"{name}@{each.sha256[:DIGITS]}")
            parts.append(Part(each.folder, each.sha256, label, bool(own)))
            for stage, books in each.manifest.stages.items():
                if not books.is_balanced():
                    raise InputError(
                        f"{each.folder}: the books of the stage {stage!r} do not balance; eqforge "
                        "verify looks for all damage"
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
        """Checks the share of samples, and prints the warnings that the parts have not."""
        _ = self.selection
        for warning in self._own_warnings:
            print(visible(f"WARNING: {warning}"), file=sys.stderr)

    def inputs(self) -> Iterator[Input]:
        """Yields the manifests of the parts, which have the digests of all their files."""
        for part in self.rules.parts:
            url = storage.join(part.folder, FILE_NAME)
            yield NamedFile(part.label, storage.locate(url)[1] if storage.is_local(url) else url)

    def warnings(self) -> Iterator[str]:
        """Yields the warnings of the parts, and after them its own."""
        for part in self.rules.parts:
            yield from (f"{part.label}: {text}" for text in part.open().manifest.warnings)
        yield from self._own_warnings

    def parts(self) -> Iterator[PartManifest]:
        """Yields the parts and what they were combined of, each once, behind its own parts."""
        found: dict[str, PartManifest] = {}
        for part in self.rules.parts:
            for each in as_parts(part.open().manifest, part.sha256, part.label):
                found.setdefault(each.sha256, each)
        yield from found.values()

    def plan(self) -> "Iterator[Piece]":
        """Yields what is taken over from each part."""
        from eqforge.transforms.dataset.combine import plan_pieces
        from eqforge.transforms.dataset.errata import by_sample, errata_of

        errata = errata_of(self.run.errata, self.name, self.run.decisions)
        found = list(plan_pieces(self.rules, self.selection, by_sample(errata).dropped))
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
        from eqforge.schemas.tables.pairs import IMAGES_TABLE
        from eqforge.schemas.tables.texts import JUDGEMENTS_TABLE
        from eqforge.transforms.dataset.part_pictures import PartPictures
        from eqforge.transforms.dataset.tables import files_for, rejects_table, table_of

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
    """Yields a warning of each dataset that several parts are builds of, where names would help.

    Rows of hard-positives and training-captions say nothing of their part, whatever its name.
    """
    if "dataset" not in COMBINED[kind].table("samples").schema.names:
        return
    unnamed = Counter(each.manifest.dataset for name, each in opened if not name)
    for name, count in unnamed.items():
        if count > 1:
            yield (
                f"{count} parts are builds of {name}, which kind does not tell apart; NAME=FOLDER "
                "would"
            )


def _uncertified(parts: "Sequence[Part]") -> Iterator[str]:
    """Yields a warning of each part whose certificate is not one of the combination."""
    for part in parts:
        if isinstance(part.open().manifest.certificate, Certificate):
            yield (
                f"{part.label}: its certificate of balanced texts holds of the whole of that part "
                "alone and is left out; eqforge audit measures what was combined"
            )


def _name_and_folder(given: str) -> tuple[str, str]:
    """Returns the name of a part, empty if it has none of its own, and its folder.

    Raises:
      InputError: the name is none that can stand in a table, or there is no folder.
    """
    found = _NAMED.fullmatch(given)
    if not found:
        return "", given
    name, folder = found.groups()
    if not _NAME.fullmatch(name) or not folder:
        raise InputError(
            f"{shown(given)}: expected NAME=FOLDER with a name of up to 64 of A-Z a-z 0-9 . _ -, "
            "of which the first is a letter or digit; a folder of such a name is ./FOLDER"
        )
    return name, folder


def _kind(datasets: dict[str, str]) -> str:
    """Returns the name of what datasets, by folder, become together.

    Raises:
      InputError: they cannot be combined; the message names the columns.
    """
    for folder, name in datasets.items():
        if name not in TYPES:
            raise InputError(f"{folder}: is a dataset {name!r}, which eqforge does not know")
    tables = {folder: dataset_type(name).table("samples") for folder, name in datasets.items()}
    if all({*PAIR_COLUMNS} <= {*table.schema.names} for table in tables.values()):
        return PAIRS_NAME
    records = {table.record for table in tables.values()}
    if len(records) == 1:
        (record,) = records
        for name, kind in COMBINED.items():
            if kind.table("samples").record is record:
                return name
        raise InputError(
            f"{', '.join(datasets)}: samples of {', '.join(sorted(set(datasets.values())))} "
            "cannot be combined; those of pairs, foils, rewordings, questions, hard-positives and "
            "training-captions can"
        )
    columns = {folder: [*table.schema.names] for folder, table in tables.items()}
    common = set.intersection(*(set(names) for names in columns.values()))
    said = "; ".join(
        f"{folder} ({datasets[folder]}) has {_some([c for c in names if c not in common])}"
        for folder, names in columns.items()
    )
    raise InputError(
        "the samples are not of one kind: all have to be pairs, with "
        f"{', '.join(PAIR_COLUMNS)}, or have the same columns; beside common ones {said}"
    )


def _some(names: list[str]) -> str:
    more = [f"{len(names) - SHOWN} more"] * (len(names) > SHOWN)
    return ", ".join([*names[:SHOWN], *more]) or "none"


main = Main(Combined, "combine")
"""Combines datasets as a command line says."""
