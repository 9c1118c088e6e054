"""Finds the pipeline of a dataset, importing only that one."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eqforge.core import signals
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.records.books import Stage
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.combined import COMBINED
from eqforge.schemas.tables.datasets import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from eqforge.pipelines.shared.pipeline import Pipeline
    from eqforge.pipelines.shared.settings import Mode


def pipeline_of(dataset: str) -> "Pipeline[Any]":
    """Returns the Pipeline of a dataset, from the module of its name."""
    with signals.idle():  # an exception may break a half-imported library
        if dataset in BENCHMARKS:
            imported: Pipeline[Any] = import_module("eqforge.pipelines.benchmarks").pipeline_of(
                dataset
            )
            return imported
        pipeline: Pipeline[Any] = import_module(
            f"eqforge.pipelines.{dataset.replace('-', '_')}"
        ).PIPELINE
    return pipeline


def settings_of(dataset: str) -> "tuple[type[Any], Callable[[Mode], dict[str, Any]]]":
    """Returns the configuration of a dataset that is known, and the fields of it that a mode sets.

    Those of a combined dataset have no pipeline before its parts are known.
    """
    if dataset in COMBINED:
        combined = import_module("eqforge.pipelines.combined")
        return combined.Config, combined.no_defaults
    pipeline = pipeline_of(dataset)
    return pipeline.config, pipeline.defaults


def stages_of(dataset: str) -> dict[str, Stage]:
    """Returns the stages of a dataset by name; none if no pipeline has the dataset's name."""
    if dataset in COMBINED:
        stage: Stage = import_module("eqforge.transforms.dataset.parts").COMBINE_STAGE
        from eqforge.transforms.dataset.errata import ERRATA_STAGE, REVIEW_STAGE

        return {each.name: each for each in (stage, REVIEW_STAGE, ERRATA_STAGE)}
    if dataset not in TYPES:
        return {}
    from eqforge.transforms.dataset.errata import ERRATA_STAGE, REVIEW_STAGE

    return {
        stage.name: stage for stage in (*pipeline_of(dataset).stages, REVIEW_STAGE, ERRATA_STAGE)
    }


def stage_of(manifest: Manifest, name: str) -> Stage | None:
    """Returns a stage of a dataset, also one that a part brought as `PART: STAGE`; else None."""
    known = [stages_of(manifest.dataset).get(name)]
    known += [
        stages_of(part.dataset).get(name.removeprefix(f"{part.name}: "))
        for part in manifest.parts
        if name.startswith(f"{part.name}: ")
    ]
    return next((stage for stage in known if stage is not None), None)
