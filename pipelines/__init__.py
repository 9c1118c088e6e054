"""One module per dataset: the paper's figure in words, its settings, and its pipeline."""

import logging
from importlib import import_module

from eqforge.core import signals
from eqforge.core.errors import is_not_about_gcp
from eqforge.pipelines.base.pipeline import AnyPipeline
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import TYPES
from eqforge.transforms.dataset.errata import ERRATA_STAGE, REVIEW_STAGE

logging.getLogger().addFilter(is_not_about_gcp)


def pipeline_of(dataset: str) -> type[AnyPipeline]:
    """Return the pipeline of a known dataset; import only its module."""
    with signals.idle():  # an exception may break a half-imported library
        found: type[AnyPipeline]
        if dataset in BENCHMARKS:
            found = import_module("eqforge.pipelines.benchmarks").pipeline_of(dataset)
        else:
            module = "combined" if dataset in COMBINED else dataset.replace("-", "_")
            found = import_module(f"eqforge.pipelines.{module}").main.pipeline
        return found


def stages_of(dataset: str) -> dict[str, Stage]:
    known = pipeline_of(dataset).stages if dataset in TYPES else ()
    return {stage.name: stage for stage in (*known, REVIEW_STAGE, ERRATA_STAGE) if known}


def stage_of(manifest: Manifest, name: str) -> Stage | None:
    """Return a stage of a dataset, including a part's stage `PART: STAGE`; None if unknown."""
    known = [stages_of(manifest.dataset).get(name)]
    known += [
        stages_of(part.dataset).get(name.removeprefix(f"{part.name}: "))
        for part in manifest.parts
        if name.startswith(f"{part.name}: ")
    ]
    return next((stage for stage in known if stage is not None), None)
