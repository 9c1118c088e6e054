"""What came of a review: who answered what, how far they agree, and what is decided."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eqforge.evaluation.review.agreement import (
    Agreement,
    Reviewer,
    agreement,
    first_votes,
    reviewers_of,
)
from eqforge.evaluation.review.rules import Rule, decide
from eqforge.evaluation.review.votes import Votes, read_votes
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import shown
from eqforge.schemas.records.reviews import VERDICTS, Decision
from eqforge.schemas.sources.decisions import read_decisions, with_earlier


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewOutcome:
    """What came of a review.

    Attributes:
      protocol: what was asked.
      rule: what follows from several votes.
      reviewers: how each reviewer answered.
      agreement: how far they agree.
      decisions: how many items were decided how.
      earlier: how many decisions of an earlier round stay beside these.
    """

    protocol: str
    rule: Rule
    reviewers: tuple[Reviewer, ...]
    agreement: Agreement
    decisions: dict[str, int]
    earlier: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What came of a review, and what is written of it.

    Attributes:
      outcome: what is told.
      decisions: by the ids of the samples, those of an earlier round included.
      votes: all answers.
    """

    outcome: ReviewOutcome
    decisions: list[Decision]
    votes: Votes


def take_votes(
    dataset: Dataset, paths: Sequence[Path], rule: Rule, earlier: Path | None = None
) -> Taken:
    """Returns what came of a review.

    Args:
      dataset: what was reviewed.
      paths: the files of votes.
      rule: what follows from several votes.
      earlier: file of decisions of an earlier round; None for none.

    Raises:
      InputError: a file of votes or decisions cannot be taken; the message says which and why.
    """
    ids = {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])}
    before = () if earlier is None else read_decisions(earlier)
    if lost := [each.id for each in before if each.id not in ids]:
        raise InputError(f"--earlier {earlier}: {shown(lost[0])} is no sample of {dataset.folder}")
    votes = read_votes(paths, dataset.folder, dataset.sha256, ids)
    first = first_votes(votes.by_reviewer)
    reviewers = reviewers_of(votes.by_reviewer, votes.tasks)
    decisions = decide(first, rule, reviewers, votes.overlap)
    counts = Counter(each.decision for each in decisions)
    together = with_earlier(decisions, before)
    outcome = ReviewOutcome(
        protocol=votes.protocol,
        rule=rule,
        reviewers=reviewers,
        agreement=agreement(first),
        decisions={answer: counts[answer] for answer in VERDICTS},
        earlier=len(set(together) - set(decisions)),
    )
    return Taken(outcome=outcome, decisions=together, votes=votes)
