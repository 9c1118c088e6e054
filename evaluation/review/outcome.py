"""What came of a review: who answered what, how far they agree, and what follows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.review.agreement import (
    Agreement,
    Reviewer,
    agreement,
    first_votes,
    reviewers_of,
)
from eqforge.evaluation.review.fields import RULES as TEXT_RULES
from eqforge.evaluation.review.found_boxes import as_decisions
from eqforge.evaluation.review.protocols import Form
from eqforge.evaluation.review.ranking import (
    Correlation,
    Scores,
    among_people,
    ranked_by,
    ranking_lines,
    with_model,
)
from eqforge.evaluation.review.rows import given_of, rows_of, source_of
from eqforge.evaluation.review.rules import Rule, decide
from eqforge.evaluation.review.units import units_of
from eqforge.evaluation.review.votes import Vote, Votes, check_ids, read_votes
from eqforge.evaluation.tables.report import model_names
from eqforge.evaluation.tasks.samples import check_ranks, task_of
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.reviews import VERDICTS, Decision
from eqforge.sources.decisions import read_decisions, with_earlier

First = Mapping[str, Mapping[str, Vote]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewOutcome:
    """What came of a review.

    Attributes:
      protocol: what was asked.
      form: how it was answered.
      reviewers: how each reviewer answered.
      agreement: how far they agree.
      rule: what follows from several votes; None where nothing is decided.
      decisions: how many items were decided how; empty where nothing is.
      earlier: how many decisions of an earlier round stay beside these.
      people: how far each reviewer ranks pictures as the others do.
      models: how far each model ranks them as people do.
      broken: how many texts break each rule; these make no rows.
      written: how many decisions, rows, ranks or queries are written.
    """

    protocol: str
    form: Form
    reviewers: tuple[Reviewer, ...]
    agreement: Agreement
    rule: Rule | None = None
    decisions: dict[str, int]
    earlier: int = 0
    people: tuple[Correlation, ...] = ()
    models: tuple[Correlation, ...] = ()
    broken: dict[str, int]
    written: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeSettings:
    """How votes are taken.

    Attributes:
      rule: what follows from several decisions.
      earlier: file of decisions of an earlier round; None for none.
      of: file of the queries or boxes that the tasks were about; None for none.
      scores: what models say of ranked pictures: folders of scores, or files.
      answers: the answers that may be given; None for any.
    """

    rule: Rule = "majority"
    earlier: Path | None = None
    of: Path | None = None
    scores: tuple[Path, ...] = ()
    answers: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What came of a review, and what is written of it.

    Attributes:
      outcome: what is told.
      decisions: by the ids of the samples, those of an earlier round included; empty where
        something else than decisions was asked for.
      rows: what is written in place of decisions.
      votes: all answers.
    """

    outcome: ReviewOutcome
    decisions: Sequence[Decision] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    votes: Votes


def take_votes(dataset: Dataset, paths: Sequence[Path], settings: TakeSettings) -> Taken:
    """Returns what came of a review.

    Args:
      dataset: what was reviewed.
      paths: the files of votes.
      settings: how they are taken.

    Raises:
      InputError: a file of votes or decisions cannot be taken, or a setting is not for answers of
        this form; the message says which and why.
    """
    votes = read_votes(paths, dataset.folder, dataset.sha256)
    _check_settings(votes, settings)
    units = units_of(dataset, votes.unit, settings.of)
    if units.digest != votes.of:
        named = "" if settings.of is None else f"--of {settings.of}: "
        wanted = "name that one as --of" if votes.of else "leave it out"
        raise InputError(f"{named}not the file that the tasks were made of; {wanted}")
    check_ids(votes, set(units.ids))
    if votes.unit == "phrases":
        return replace(_decided(dataset, as_decisions(votes, dataset), settings), votes=votes)
    if votes.form == "decide":
        return _decided(dataset, votes, settings)
    first = first_votes(votes.by_reviewer)
    if votes.form == "rank":
        if task := task_of(dataset):
            check_ranks(votes, task)
        return _taken(votes, first, rows=_ranks(first))
    items = units.make(list(first))
    if votes.form == "order":
        return _ordered(dataset, votes, first, items, settings.scores)
    return _written(dataset, votes, first, items, settings)


def _check_settings(votes: Votes, settings: TakeSettings) -> None:
    """Checks that no setting is given that has no effect."""
    decides = votes.form == "decide" or votes.unit == "phrases"
    is_listed = any(field.listed for field in votes.fields)
    given = {
        "--earlier": settings.earlier is not None and not decides,
        "--rule": settings.rule != "majority" and not decides,
        "--scores": bool(settings.scores) and votes.form != "order",
        "--answer-list": settings.answers is not None and not is_listed,
    }
    for option, is_wrong in given.items():
        if is_wrong:
            raise InputError(f"{option}: has no effect on votes by the protocol {votes.protocol}")


def _decided(dataset: Dataset, votes: Votes, settings: TakeSettings) -> Taken:
    first = first_votes(votes.by_reviewer)
    before = () if settings.earlier is None else read_decisions(settings.earlier)
    ids = {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])}
    if lost := [each.id for each in before if each.id not in ids]:
        raise InputError(
            f"--earlier {settings.earlier}: {shown(lost[0])} is no sample of {dataset.folder}"
        )
    reviewers = reviewers_of(votes.by_reviewer, votes.tasks)
    decisions = decide(first, settings.rule, reviewers, votes.overlap)
    counts = Counter(each.decision for each in decisions)
    together = with_earlier(decisions, before)
    outcome = ReviewOutcome(
        protocol=votes.protocol,
        form=votes.form,
        reviewers=reviewers,
        agreement=agreement(first),
        rule=settings.rule,
        decisions={answer: counts[answer] for answer in VERDICTS},
        earlier=len(set(together) - set(decisions)),
        broken={},
        written=len(together),
    )
    return Taken(outcome=outcome, decisions=together, votes=votes)


def _ranks(first: First) -> list[dict[str, Any]]:
    """Returns the ranks that people gave the captions of each sample."""
    return [
        {
            "sample_id": item,
            "ranks": {name: vote.ranks for name, vote in sorted(own.items()) if vote.is_given},
        }
        for item, own in first.items()
    ]


def _ordered(
    dataset: Dataset,
    votes: Votes,
    first: First,
    items: Mapping[str, Item],
    scores: Sequence[Path],
) -> Taken:
    queries = ranked_by(first, items)
    if scores and not queries:
        raise InputError("--scores: nobody has ranked a picture")
    models = [Scores(path, dataset) for path in scores]
    names = model_names([model.name for model in models], scores)
    return _taken(
        votes,
        first,
        rows=list(ranking_lines(queries)),
        people=tuple(among_people(queries)),
        models=tuple(
            with_model(queries, name, model) for name, model in zip(names, models, strict=True)
        ),
    )


def _written(
    dataset: Dataset,
    votes: Votes,
    first: First,
    items: Mapping[str, Item],
    settings: TakeSettings,
) -> Taken:
    panes = {
        name: tuple(pane.image_id for pane in item.panes if pane.image_id is not None)
        for name, item in items.items()
    }
    given, wrong = given_of(first, votes.fields, panes, settings.answers)
    source = source_of(dataset, panes, settings.of)
    counts = Counter(rule for _, _, rule in wrong)
    return _taken(
        votes,
        first,
        rows=list(rows_of(votes.protocol, votes.form, given, source)),
        broken={rule: counts[rule] for rule in TEXT_RULES if counts[rule]},
    )


def _taken(
    votes: Votes,
    first: First,
    *,
    rows: Sequence[Mapping[str, Any]],
    people: tuple[Correlation, ...] = (),
    models: tuple[Correlation, ...] = (),
    broken: dict[str, int] | None = None,
) -> Taken:
    outcome = ReviewOutcome(
        protocol=votes.protocol,
        form=votes.form,
        reviewers=reviewers_of(votes.by_reviewer, votes.tasks, votes.form),
        agreement=agreement(first, votes.form),
        decisions={},
        people=people,
        models=models,
        broken=broken or {},
        written=len(rows),
    )
    return Taken(outcome=outcome, rows=rows, votes=votes)
