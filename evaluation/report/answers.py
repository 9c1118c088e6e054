"""The answers of models, laid over the samples: right, wrong or tied, and by what margin."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.report.columns import Gathered
from eqforge.evaluation.report.tables import Written
from eqforge.evaluation.tables.own_scores import read_file
from eqforge.evaluation.tables.sample_judges import SampleTask
from eqforge.evaluation.tables.sample_scores import SampleScores, places_of, read_folder
from eqforge.evaluation.tables.sample_tasks import model_names, task_of
from eqforge.evaluation.tables.samples import read_columns, text_array
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError

NOT_SCORED: Final = "not scored"
MARGIN: Final = "margin"
_OF_MODELS: Final = "model: "
"""Before the names of models, which may be those of columns, such as `split`."""


def margins(values: NDArray[np.floating[Any]], task: SampleTask) -> NDArray[np.float64]:
    """Returns by how much each sample is right: the least of the comparisons that it takes.

    Args:
      values: scores [n, images x captions], as in the table `scores`.
      task: pairs, hard positives or foils.

    Returns:
      The margins [n]: above 0 right, 0 tied, below 0 wrong. Of pairs that is the group score's
      (Winoground, section 3.1): four comparisons; of hard positives the augmented accuracy's.
    """
    scores = values.astype(np.float64)
    if task.width == 4:
        own, other = scores[:, [0, 0, 3, 3]], scores[:, [1, 2, 1, 2]]
        least: NDArray[np.float64] = (own - other).min(axis=1)
        return least
    lowest: NDArray[np.float64] = scores[:, :-1].min(axis=1) - scores[:, -1]
    return lowest


class Answers:
    """What one model answered.

    Args:
      name: of the model.
      scores: its scores.
      task: the kind of the samples.
    """

    def __init__(self, name: str, scores: SampleScores, task: SampleTask) -> None:
        self._name = name
        self._title = f"{_OF_MODELS}{name}"
        self._margins = dict(
            zip(scores.keys.tolist(), margins(scores.values, task).tolist(), strict=True)
        )

    def add(self, gathered: Gathered, number: int, name: str) -> None:
        """Adds the verdict on a sample and its margin."""
        margin = self._margins.get(name)
        gathered.facet(self._title, kept=True).add(number, (_verdict(margin),))
        gathered.number(MARGIN, self._title).add(number, margin)

    def found_in(self, written: Written) -> dict[str, Any] | None:
        """Returns where the verdicts and the margins are among the columns of a table."""
        facets = [facet.title for facet in written.facets]
        numbers = [(number.group, number.title) for number in written.numbers]
        if (self._title, MARGIN) not in numbers:
            return None
        place = numbers.index((self._title, MARGIN))
        return {"name": self._name, "facet": facets.index(self._title), "number": place}


def _verdict(margin: float | None) -> str:
    if margin is None:
        return NOT_SCORED
    return "right" if margin > 0 else "wrong" if margin < 0 else "tied"


def read_answers(
    dataset: Dataset, paths: Sequence[Path], quantity: str | None = None
) -> list[Answers]:
    """Reads the scores of some models; samples may lack some.

    Raises:
      InputError: scores are of another dataset, or samples of this kind are not scored one by one.
    """
    if not paths:
        return []
    task = task_of(dataset)
    if task is None:
        raise InputError(
            f"--scores: the samples of {dataset.folder} have no score of their own each; pairs, "
            "foils and rewordings have"
        )
    found = [
        read_folder(str(path), dataset, task.images, task.captions)
        if path.is_dir()
        else read_file(path, task.width, quantity)
        for path in paths
    ]
    keys = text_array(read_columns(dataset, "samples", ["sample_id"])["sample_id"])
    for path, scores in zip(paths, found, strict=True):
        places_of(keys, scores, str(path), allow_missing=True)
    names = model_names([scores.model for scores in found], list(paths))
    return [Answers(name, scores, task) for name, scores in zip(names, found, strict=True)]
