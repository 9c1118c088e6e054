"""The row of people in a table of models: their ranks of captions, judged like scores."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.hard_positives import COSTS
from eqforge.evaluation.review.agreement import first_votes
from eqforge.evaluation.review.votes import Vote, Votes, check_ids, read_votes
from eqforge.evaluation.tables.report import Rules
from eqforge.evaluation.tables.sample_judges import SampleTask, Verdict
from eqforge.schemas.dataset.reader import Dataset


def read_ranks(paths: Sequence[Path], dataset: Dataset, task: SampleTask) -> Votes:
    """Reads the votes of people who ranked the captions of a dataset's samples.

    Raises:
      InputError: a file cannot be taken, or other things were asked than ranks of these captions.
    """
    votes = read_votes(paths, dataset.folder, dataset.sha256)
    if votes.form != "rank":
        raise InputError(
            f"{paths[0]}: votes by the protocol {votes.protocol}; people are measured by ranks: "
            "eqforge review plan DATASET --protocol caption-ranking"
        )
    check_ids(votes, {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])})
    check_ranks(votes, task)
    return votes


def check_ranks(votes: Votes, task: SampleTask) -> None:
    """Checks that all captions have ranks, for each picture.

    Raises:
      InputError: some have none, or there are more.
    """
    shape = (len(task.images), len(task.captions))
    for name, some in votes.by_reviewer.items():
        for vote in some:
            if vote.is_given and [len(each) for each in vote.ranks] != [shape[1]] * shape[0]:
                raise InputError(
                    f"{votes.paths[name]}: task {vote.task}: ranks: expected {shape[1]} of each "
                    f"of {shape[0]} pictures"
                )


def judge_people(votes: Votes, task: SampleTask, rules: Rules) -> tuple[list[str], Verdict]:
    """Returns the samples that all who were asked have ranked, and how these are judged.

    A sample counts where every one of them has it right, as in the paper; it is brittle where it is
    for one of them.

    Source: Kamath et al. 2024, section 4.1: a point is awarded if both annotators agree on the
      correct rank.
    """
    ranked = dict(_ranked(votes))
    if not ranked:
        raise InputError(
            "no sample was ranked by all who were asked about it, "
            f"{max(1, votes.overlap)} each; name the votes of all of them"
        )
    rows = [vote.ranks for own in ranked.values() for vote in own]
    values = -np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    found = task.judge(values, None, rules)
    first = np.cumsum([0, *(len(own) for own in ranked.values())])[:-1]
    shares = [name for name in found.credits if name not in found.units]
    return list(ranked), Verdict(
        credits={name: _worst(name).reduceat(found.credits[name], first) for name in shares},
        tied=np.logical_or.reduceat(found.tied, first),
        chance={},
        units={},
    )


def _worst(metric: str) -> np.ufunc:
    return np.maximum if metric in COSTS else np.minimum


def _ranked(votes: Votes) -> Iterator[tuple[str, list[Vote]]]:
    for item, own in first_votes(votes.by_reviewer).items():
        given = [vote for vote in own.values() if vote.is_given]
        if len(given) >= max(1, votes.overlap):
            yield item, given
