"""Finds the pipeline of a dataset, importing only that one."""

from importlib import import_module
from typing import Any

from eqforge.core import signals
from eqforge.pipelines.base.pipeline import Pipeline
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.records.books import Stage
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import TYPES
from eqforge.transforms.dataset.errata import ERRATA_STAGE, REVIEW_STAGE


def pipeline_of(dataset: str) -> type[Pipeline[Any]]:
    """Returns the pipeline of a dataset that is known, from the module of its name."""
    with signals.idle():  # an exception may break a half-imported library
        if dataset in BENCHMARKS:
            imported: type[Pipeline[Any]] = import_module(
                "eqforge.pipelines.benchmarks"
            ).pipeline_of(dataset)
            return imported
        module = "combined" if dataset in COMBINED else dataset.replace("-", "_")
        pipeline: type[Pipeline[Any]] = import_module(f"eqforge.pipelines.{module}").main.pipeline
    return pipeline


def stages_of(dataset: str) -> dict[str, Stage]:
    """Returns the stages of a dataset by name; none if no pipeline has the dataset's name."""
    known = pipeline_of(dataset).stages if dataset in TYPES else ()
    return {stage.name: stage for stage in (*known, REVIEW_STAGE, ERRATA_STAGE) if known}


def stage_of(manifest: Manifest, name: str) -> Stage | None:
    """Returns a stage of a dataset, also one that a part brought as `PART: STAGE`; else None."""
    known = [stages_of(manifest.dataset).get(name)]
    known += [
        stages_of(part.dataset).get(name.removeprefix(f"{part.name}: "))
        for part in manifest.parts
        if name.startswith(f"{part.name}: ")
    ]
    return next((stage for stage in known if stage is not None), None)
