"""What is laid over the samples: the answers of models, and what judges say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.harnesses.logs import form_of_file
from eqforge.evaluation.harnesses.table import shares_right
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.kinds import Row, read_table
from eqforge.evaluation.report.tables import SHARE, Answers
from eqforge.evaluation.tables.report import model_names
from eqforge.evaluation.tables.samples import read_columns, text_array
from eqforge.evaluation.tables.scores import places_of, read_file, read_folder
from eqforge.evaluation.tasks.questions import is_questions, right_in_groups
from eqforge.evaluation.tasks.samples import Task, task_of
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.judgements import (
    JudgeAnswer,
    disputed_by_judges,
    disputed_by_rules,
)

_JUDGEMENTS: Final = "judgements"
_OF_A_SAMPLE: Final = "judgement"


def read_answers(
    dataset: Dataset, paths: Sequence[Path], quantity: str | None = None
) -> list[Answers]:
    """Read the scores of some models, or what a harness wrote of them; samples may lack some.

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
    told = {
        key: ("right" if value > 0 else "wrong" if value < 0 else "tied", value)
        for key, value in zip(
            scores.keys.tolist(), _margins(scores.values, task).tolist(), strict=True
        )
    }
    return Answers(name=scores.model, told=told, measure="margin")


def _of_shares(path: Path, shares: Mapping[str, float]) -> Answers:
    """Return answers that are right where all questions of an item are."""
    told = {name: ("right" if share == 1 else "wrong", share) for name, share in shares.items()}
    return Answers(name=path.stem, told=told, measure=SHARE)


def _margins(values: NDArray[np.floating[Any]], task: Task) -> NDArray[np.float64]:
    """Return by how much each sample is right [n], of scores [n, images x captions].

    It is the least of the comparisons that a sample takes: above 0 right, 0 tied, below 0 wrong. Of
    pairs these are the group score's (Winoground, section 3.1), four comparisons; of hard positives
    the augmented accuracy's.
    """
    scores = values.astype(np.float64)
    if task.width == 4:
        own, other = scores[:, [0, 0, 3, 3]], scores[:, [1, 2, 1, 2]]
        least: NDArray[np.float64] = (own - other).min(axis=1)
        return least
    lowest: NDArray[np.float64] = scores[:, :-1].min(axis=1) - scores[:, -1]
    return lowest


def with_judgements(dataset: Dataset, samples: pa.Table) -> pa.Table:
    """Return samples with a column of what judges say of each; as they are without judgements.

    Raises:
      InputError: a file is missing or damaged.
    """
    if not dataset.files(_JUDGEMENTS) or not samples.num_rows:
        return samples
    known = read_table(dataset, _JUDGEMENTS, "sample_id").combine_chunks()
    places = pc.index_in(samples["sample_id"], value_set=known["sample_id"])
    return samples.append_column(_OF_A_SAMPLE, known.to_struct_array().take(places))


def judged(make: Callable[[list[Row]], Item], rows: list[Row]) -> tuple[Item, list[Row]]:
    """Return an item made of rows of `with_judgements`, and the rows with what it is found by.

    Of several rows the least probability counts.
    """
    found = [row.pop(_OF_A_SAMPLE, None) for row in rows]
    known = [each for each in found if each is not None]
    item, told = make(rows), dict[str, Any]()
    if not known:
        return item, rows
    given = [each["probability"] for each in known if each["probability"] is not None]
    if given:
        told["probability"] = min(given)
    answers = [msgspec.convert(one, JudgeAnswer) for each in known for one in each["answers"]]
    if answers and disputed_by_judges(answers):
        told["judges"] = "disagree"
    elif answers:
        told["judges"] = "against" if disputed_by_rules(answers) else "for"
    shown = msgspec.structs.replace(
        item,
        facts=(*item.facts, *((name, str(value)) for name, value in told.items())),
        rows=(*item.rows, *((_JUDGEMENTS, each) for each in known)),
    )
    return shown, [{**rows[0], **told}, *rows[1:]]
