"""Finds the stages of a dataset with their reasons, in the pipeline that builds it."""

import importlib

from eqforge.cli import DATASETS
from eqforge.schemas.records.books import Stage


def stages_of(dataset: str) -> dict[str, Stage]:
    """Returns the stages of a dataset by name; none where no pipeline builds one of that name.

    Pipelines take a while to import, so only the one that is asked for is.
    """
    if dataset not in DATASETS:
        return {}
    pipeline = importlib.import_module(DATASETS[dataset][0]).PIPELINE
    return {stage.name: stage for stage in pipeline.stages}
