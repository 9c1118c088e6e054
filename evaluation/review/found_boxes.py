"""Whether reviewers find the box of a phrase: each vote becomes one to keep or drop the sample."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.answers import grounded
from eqforge.evaluation.review.votes import Vote, Votes
from eqforge.schemas.dataset.reader import Dataset

MISSED: Final = "another box was drawn"

Box = tuple[float, float, float, float]


def as_decisions(votes: Votes, dataset: Dataset) -> Votes:
    """Returns votes to keep what was found and drop the rest; what was skipped is dropped.

    A box is found as a model finds it; see `grounded`. These votes have no boxes: two are alike
    where both keep or both drop.

    Args:
      votes: the boxes that reviewers drew for phrases.
      dataset: with the boxes that the phrases are of.
    """
    sizes = {
        row["image_id"]: (row["width_px"], row["height_px"])
        for row in dataset.rows("images", ["image_id", "width_px", "height_px"])
    }
    boxes = {
        row["sample_id"]: _share(row["box"], sizes[row["image_id"]])
        for row in dataset.rows("grounding", ["sample_id", "image_id", "box"])
        if row["image_id"] in sizes
    }
    by_reviewer = {
        name: [_decided(vote, boxes[vote.id]) for vote in some]
        for name, some in votes.by_reviewer.items()
    }
    return replace(votes, by_reviewer=by_reviewer, form="decide")


def _decided(vote: Vote, box: Box) -> Vote:
    if vote.box is None or not vote.is_given:
        return msgspec.structs.replace(vote, answer="drop", box=None)
    if grounded(np.array([vote.box]), np.array([box])).all():
        return msgspec.structs.replace(vote, answer="keep", box=None)
    return msgspec.structs.replace(vote, answer="drop", reason=MISSED, box=None)


def _share(box: Mapping[str, Any], size: tuple[int, int]) -> Box:
    width, height = size
    return box["x"] / width, box["y"] / height, box["width"] / width, box["height"] / height
