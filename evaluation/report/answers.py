"""The answers of models, laid over the samples: right, wrong or tied, and by what margin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.harnesses.logs import form_of_file
from eqforge.evaluation.harnesses.table import shares_right
from eqforge.evaluation.report.columns import Gathered
from eqforge.evaluation.report.tables import Written
from eqforge.evaluation.tables.report import model_names
from eqforge.evaluation.tables.samples import read_columns, text_array
from eqforge.evaluation.tables.scores import places_of, read_file, read_folder
from eqforge.evaluation.tasks.questions import is_questions, right_in_groups
from eqforge.evaluation.tasks.samples import Task, task_of
from eqforge.schemas.dataset.reader import Dataset

NOT_SCORED: Final = "not scored"
MARGIN: Final = "margin"
SHARE: Final = "questions right"
"""The share of the questions about an item that a model answered right, each in every order."""
_OF_MODELS: Final = "model: "
"""Before the names of models, which may be those of columns, such as `split`."""


def margins(values: NDArray[np.floating[Any]], task: Task) -> NDArray[np.float64]:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What one model answered.

    Attributes:
      name: of the model.
      told: of each item that is scored, by its id, its verdict and a number: the worse, the less.
      measure: what the number is: MARGIN, or SHARE.
    """

    name: str
    told: Mapping[str, tuple[str, float]]
    measure: str

    @property
    def title(self) -> str:
        """What its columns are called."""
        return f"{_OF_MODELS}{self.name}"

    def add(self, gathered: Gathered, number: int, name: str) -> None:
        """Adds the verdict on an item and its number."""
        verdict, value = self.told.get(name, (NOT_SCORED, None))
        gathered.facet(self.title, kept=True).add(number, (verdict,))
        gathered.number(self.measure, self.title).add(number, value)

    def found_in(self, written: Written) -> dict[str, Any] | None:
        """Returns where the verdicts and the numbers are among the columns of a table."""
        facets = [facet.title for facet in written.facets]
        numbers = [(number.group, number.title) for number in written.numbers]
        if (self.title, self.measure) not in numbers:
            return None
        return {
            "name": self.name,
            "facet": facets.index(self.title),
            "number": numbers.index((self.title, self.measure)),
            "share": self.measure == SHARE,
        }


def _verdict(margin: float) -> str:
    return "right" if margin > 0 else "wrong" if margin < 0 else "tied"


def read_answers(
    dataset: Dataset, paths: Sequence[Path], quantity: str | None = None
) -> list[Answers]:
    """Reads the scores of some models, or what a harness wrote of them; samples may lack some.

    Raises:
      InputError: scores are of another dataset, or samples of this kind are not scored one by one.
    """
    found = [_read(dataset, path, quantity) for path in paths]
    names = model_names([each.name for each in found], list(paths))
    return [replace(each, name=name) for name, each in zip(names, found, strict=True)]


def _read(dataset: Dataset, path: Path, quantity: str | None) -> Answers:
    if is_questions(dataset):
        return _of_shares(path, right_in_groups(dataset, path))
    task = task_of(dataset)
    if task is None:
        raise InputError(
            f"--scores: the samples of {dataset.folder} have no score of their own each; pairs, "
            "foils, rewordings and questions in groups have"
        )
    if form_of_file(path) is not None:
        return _of_shares(path, shares_right(dataset, path))
    scores = (
        read_folder(str(path), dataset, task.images, task.captions)
        if path.is_dir()
        else read_file(path, task.width, quantity)
    )
    keys = text_array(read_columns(dataset, "samples", ["sample_id"])["sample_id"])
    places_of(keys, scores, str(path), allow_missing=True)
    margin = margins(scores.values, task).tolist()
    told = {
        key: (_verdict(value), value)
        for key, value in zip(scores.keys.tolist(), margin, strict=True)
    }
    return Answers(name=scores.model, told=told, measure=MARGIN)


def _of_shares(path: Path, shares: Mapping[str, float]) -> Answers:
    """Returns answers that are right where all questions of an item are."""
    told = {name: ("right" if share == 1 else "wrong", share) for name, share in shares.items()}
    return Answers(name=path.stem, told=told, measure=SHARE)
