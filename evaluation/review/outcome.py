"""What came of a review: who answered what, how far they agree, and what is decided."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eqforge.evaluation.review.agreement import (
    ANSWERS,
    Agreement,
    Reviewer,
    agreement,
    first_votes,
    reviewers_of,
)
from eqforge.evaluation.review.rules import Rule, decide
from eqforge.evaluation.review.votes import read_votes
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.reviews import Decision


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewOutcome:
    """What came of a review.

    Attributes:
      protocol: what was asked.
      rule: what follows from several votes.
      reviewers: how each reviewer answered.
      agreement: how far they agree.
      decisions: how many items were decided how.
    """

    protocol: str
    rule: Rule
    reviewers: tuple[Reviewer, ...]
    agreement: Agreement
    decisions: dict[str, int]


def take_votes(
    dataset: Dataset, paths: Sequence[Path], rule: Rule
) -> tuple[ReviewOutcome, list[Decision]]:
    """Returns what came of a review, and the decisions, by the ids of the samples.

    Args:
      dataset: what was reviewed.
      paths: the files of votes.
      rule: what follows from several votes.

    Raises:
      InputError: a file of votes cannot be taken; the message says which and why.
    """
    ids = {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])}
    votes = read_votes(paths, dataset.folder, dataset.sha256, ids)
    first = first_votes(votes.by_reviewer)
    reviewers = reviewers_of(votes.by_reviewer, votes.tasks)
    decisions = decide(first, rule, reviewers)
    counts = Counter(each.decision for each in decisions)
    outcome = ReviewOutcome(
        protocol=votes.protocol,
        rule=rule,
        reviewers=reviewers,
        agreement=agreement(first),
        decisions={answer: counts[answer] for answer in ANSWERS},
    )
    return outcome, decisions
