"""The table of a model's answers: accuracy as in the paper, and over all four orders."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.evaluation.conversations.command import ConverseSettings
from eqforge.evaluation.conversations.folder import Answered, read_answers
from eqforge.evaluation.conversations.questions import ARRANGEMENTS, read_answer
from eqforge.evaluation.conversations.run import choose_pairs, converse
from eqforge.evaluation.metrics.ties import Credits
from eqforge.evaluation.tables.render import Measure, Report, Rules
from eqforge.evaluation.tables.report import Judged, measure, model_names
from eqforge.evaluation.tables.samples import Samples, read_samples
from eqforge.schemas.dataset.reader import open_dataset

ORDERS = tuple(arrangement.names for arrangement in ARRANGEMENTS)
CHANCE = {
    "captions 1,2": 1 / 2,
    "captions 2,1": 1 / 2,
    "every order": 1 / 2,
    "consistent": 1 / 8,
    "right in all": 1 / 16,
}
"""Chance levels: a coin toss for every question.

A model that always says "1;2" gets 1/2 over all orders, and is never consistent.
"""


def converse_report(settings: ConverseSettings) -> Report:
    """Asks, or reads answers, and returns their table.

    Raises:
      EqforgeError: the input cannot be used, or a package is missing.
    """
    dataset = open_dataset(settings.dataset)
    pairs = choose_pairs(dataset, settings.samples, settings.by, settings.seed)
    if settings.answers is not None:
        captions = {pair.sample_id: pair.captions for pair in pairs}
        name, found = settings.answers.stem, read_foreign_answers(settings.answers, captions)
    else:
        manifest = converse(dataset, pairs, settings)
        (name,) = model_names([manifest.model.name], [settings.folder()])
        found = read_answers(str(settings.folder()), manifest.tables["answers"])
    samples = read_samples(dataset, "source_id", settings.by)
    return answers_report(
        dataset.manifest.dataset,
        name,
        samples.only(np.isin(samples.keys, [pair.sample_id for pair in pairs])),
        found,
        Rules(seed=settings.seed, resamples=settings.resamples),
        allow_missing=settings.allow_missing,
    )


def judge_answers(answers: Iterable[Answered]) -> tuple[list[str], dict[str, Credits]]:
    """Returns the sorted sample ids and the credits of each metric [samples].

    `captions 1,2` and `captions 2,1` are the paper's two rows: images in order, captions in order
    and exchanged; an unparsed answer is wrong. `every order` is the mean of all four.
    `consistent` are samples all of whose answers give an image the same caption, and `right in all`
    those that are right in all four orders. `1;2` is the share of answers that say so, 1/2 for a
    model without position bias; `not read` the share that could not be parsed.

    Raises:
      InputError: a sample does not have exactly one answer in each of the four orders.
    """
    by_sample: dict[str, dict[tuple[str, str], Answered]] = {}
    for answer in answers:
        found = by_sample.setdefault(answer.sample_id, {})
        if answer.orders in found:
            raise InputError(f"{answer.sample_id}: is answered twice in the order {answer.orders}")
        found[answer.orders] = answer
    keys = sorted(by_sample)
    for key in keys:
        if missing := [orders for orders in ORDERS if orders not in by_sample[key]]:
            raise InputError(f"{key}: has no answer in the order (images, captions) {missing[0]}")
    asked = [[by_sample[key][orders] for orders in ORDERS] for key in keys]
    left = np.array([[one.left or 0 for one in row] for row in asked]).reshape(-1, len(ORDERS))
    true = np.array([[one.true_left for one in row] for row in asked]).reshape(-1, len(ORDERS))
    right = left == true
    read = left > 0
    # Consistent: all answers give each image its own caption, or all give it the other one.
    same = right.all(axis=1) | (read & ~right).all(axis=1)
    columns = {
        "captions 1,2": right[:, ORDERS.index(("01", "01"))],
        "captions 2,1": right[:, ORDERS.index(("01", "10"))],
        "every order": right.mean(axis=1),
        "consistent": same,
        "right in all": right.all(axis=1),
        "1;2": (left == 1).mean(axis=1),
        "not read": (~read).mean(axis=1),
    }
    return keys, {name: values.astype(np.float64) for name, values in columns.items()}


def answers_report(
    dataset: str,
    model: str,
    samples: Samples,
    answers: Iterable[Answered],
    rules: Rules,
    *,
    allow_missing: bool = False,
) -> Report:
    """Returns the table of one model's answers.

    Raises:
      InputError: answers are missing though not allowed to be, too many, or of other samples.
    """
    keys, credits = judge_answers(answers)
    if not keys:
        raise InputError(f"{dataset}: no pair was answered about; the table of failures says why")
    if strange := sorted(set(keys) - set(samples.keys.tolist())):
        raise InputError(f"{strange[0]}: is answered about, but not among the samples")
    missing = sorted(set(samples.keys.tolist()) - set(keys))
    if missing and not allow_missing:
        raise InputError(
            f"{dataset}: {len(missing):,} of {len(samples.keys):,} pairs have no answer, such as "
            f"{missing[0]!r}; a model's table of failures says why; --allow-missing leaves them out"
        )
    place = {key: number for number, key in enumerate(samples.keys.tolist())}
    places = np.array([place[key] for key in keys])
    measures: list[Measure] = []
    for subset, members in samples.subsets.items():
        chosen = members[places]
        if chosen.any():
            judged = Judged(
                credits={name: values[chosen] for name, values in credits.items()},
                chance=CHANCE,
                tied=None,
                clusters=samples.clusters[places][chosen],
                expected=int(members.sum()),
            )
            measures += measure(model, subset, judged, rules)[1]
    return Report(
        title=f"{dataset}: which caption is of which image, in per cent of pairs",
        rules=rules,
        measures=tuple(measures),
        notes=(
            "The paper's way is the first two columns: images in order, captions in order and",
            "exchanged. An answer that cannot be read is wrong. Chance throws a coin a question.",
        ),
    )


class _Foreign(msgspec.Struct):
    sample_id: str
    image_order: Literal["01", "10"]
    caption_order: Literal["01", "10"]
    answer: str


def read_foreign_answers(path: Path, captions: Mapping[str, tuple[str, str]]) -> list[Answered]:
    """Reads answers of any program about the samples with some captions, from JSON lines.

    Raises:
      InputError: a line is malformed.
    """
    found = []
    arrangements = {arrangement.names: arrangement for arrangement in ARRANGEMENTS}
    for line, data in read_lines(path):
        row = decode(data, _Foreign, str(path), f"line {line}")
        own = captions.get(row.sample_id)
        if own is None:
            raise InputError(
                f"{path}: line {line}: sample_id {shown(row.sample_id)} is none of the dataset's "
                f"{len(captions):,} chosen pairs"
            )
        orders = row.image_order, row.caption_order
        arrangement = arrangements[orders]
        first, second = (own[number] for number in arrangement.captions)
        found.append(
            Answered(
                sample_id=row.sample_id,
                orders=orders,
                left=read_answer(row.answer, (first, second)).left,
                true_left=arrangement.truth[0],
            )
        )
    return found
