"""Finds the pipeline of a dataset; only the one that is asked for is imported."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eqforge.schemas import signals
from eqforge.schemas.records.books import Stage
from eqforge.schemas.tables.datasets import DATASETS

if TYPE_CHECKING:
    from eqforge.pipelines.shared.pipeline import Pipeline


def pipeline_of(dataset: str) -> "Pipeline[Any]":
    """Returns the Pipeline of a dataset, which stands in the file of its name."""
    with signals.idle():  # a library that is half loaded takes no exception well
        pipeline: Pipeline[Any] = import_module(
            f"eqforge.pipelines.{dataset.replace('-', '_')}"
        ).PIPELINE
    return pipeline


def stages_of(dataset: str) -> dict[str, Stage]:
    """Returns the stages of a dataset by name; none where no pipeline builds one of that name."""
    if dataset not in DATASETS:
        return {}
    return {stage.name: stage for stage in pipeline_of(dataset).stages}
