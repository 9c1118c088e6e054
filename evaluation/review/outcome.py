"""What came of a review: who answered what, how far they agree, and what follows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import shown
from eqforge.evaluation.metrics.answers import grounded
from eqforge.evaluation.review.agreement import (
    Agreement,
    Reviewer,
    agreement,
    decide,
    reviewers_of,
)
from eqforge.evaluation.review.forms import Vote
from eqforge.evaluation.review.protocols import TEXT_RULES, Form
from eqforge.evaluation.review.ranking import (
    Correlation,
    among_people,
    ranked_by,
    ranking_lines,
    with_models,
)
from eqforge.evaluation.review.settings import Import, Rule
from eqforge.evaluation.review.units import units_of
from eqforge.evaluation.review.votes import (
    Votes,
    answer_lines,
    check_ids,
    first_votes,
    read_votes,
    row_lines,
)
from eqforge.evaluation.review.written import rows_of
from eqforge.evaluation.tasks.samples import check_ranks, task_of
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.records.reviews import VERDICTS, Decision
from eqforge.sources.decisions import read_decisions, with_earlier, write_decisions
from eqforge.sources.vlue import read_answer_list

_MISSED: Final = "another box was drawn"


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
class Taken:
    """What came of a review, and what is written of it: decisions, or rows in their place."""

    outcome: ReviewOutcome
    decisions: Sequence[Decision] = ()
    rows: Sequence[Mapping[str, Any]] = ()


def import_votes(settings: Import) -> Taken:
    """Takes the votes of reviewers, and writes what follows, and answers.

    Raises:
      InputError: a file of votes or decisions cannot be taken, a setting is not for answers of
        this form, or a file that would be written is there; the message says which and why.
    """
    for option, path in (("output", settings.output), ("answers", settings.answers)):
        if path is not None and path.exists() and not settings.overwrite:
            raise InputError(f"--{option} {path}: exists; add --overwrite to replace it")
    dataset = open_dataset(settings.dataset)
    votes = read_votes(settings.votes, dataset.folder, dataset.sha256)
    _check_settings(votes, settings)
    taken = _taken(dataset, votes, settings)
    if taken.outcome.form == "decide":
        write_decisions(str(settings.output), taken.decisions)
    else:
        storage.write_bytes(str(settings.output), "".join(row_lines(taken.rows)).encode())
    if settings.answers is not None:
        storage.write_bytes(str(settings.answers), "".join(answer_lines(votes)).encode())
    return taken


def _check_settings(votes: Votes, settings: Import) -> None:
    """Checks that no setting is given that has no effect."""
    decides = votes.form == "decide" or votes.unit == "phrases"
    is_listed = any(field.listed for field in votes.fields)
    given = {
        "--earlier": settings.earlier is not None and not decides,
        "--rule": settings.rule != "majority" and not decides,
        "--scores": bool(settings.scores) and votes.form != "order",
        "--answer-list": settings.answer_list is not None and not is_listed,
    }
    for option, is_wrong in given.items():
        if is_wrong:
            raise InputError(f"{option}: has no effect on votes by the protocol {votes.protocol}")


def _taken(dataset: Dataset, votes: Votes, settings: Import) -> Taken:
    units = units_of(dataset, votes.unit, settings.of)
    if units.digest != votes.of:
        named = "" if settings.of is None else f"--of {settings.of}: "
        wanted = "name that one as --of" if votes.of else "leave it out"
        raise InputError(f"{named}not the file that the tasks were made of; {wanted}")
    check_ids(votes, set(units.ids))
    if votes.unit == "phrases":
        votes = _found(votes, dataset)
    first = first_votes(votes.by_reviewer)
    outcome = ReviewOutcome(
        protocol=votes.protocol,
        form=votes.form,
        reviewers=reviewers_of(votes.by_reviewer, votes.tasks, votes.form),
        agreement=agreement(first, votes.form),
        decisions={},
        broken={},
        written=0,
    )
    if votes.form == "decide":
        decisions = decide(first, settings.rule, outcome.reviewers, votes.overlap)
        return _decided(dataset, outcome, decisions, settings)
    rows: Sequence[Mapping[str, Any]]
    if votes.form == "rank":
        if task := task_of(dataset):
            check_ranks(votes, task)
        rows = [
            {
                "sample_id": item,
                "ranks": {name: vote.ranks for name, vote in own.items() if vote.is_given},
            }
            for item, own in first.items()
        ]
    elif votes.form == "order":
        queries = ranked_by(first, units.make(list(first)))
        if settings.scores and not queries:
            raise InputError("--scores: nobody has ranked a picture")
        outcome = replace(
            outcome,
            people=tuple(among_people(queries)),
            models=tuple(with_models(queries, settings.scores, dataset)),
        )
        rows = list(ranking_lines(queries))
    else:
        listed = settings.answer_list
        answers = None if listed is None else read_answer_list(listed)
        items = units.make(list(first))
        rows, wrong = rows_of(dataset, votes, first, items, settings.of, answers)
        counts = Counter(wrong)
        outcome = replace(
            outcome, broken={rule: counts[rule] for rule in TEXT_RULES if counts[rule]}
        )
    return Taken(outcome=replace(outcome, written=len(rows)), rows=rows)


def _decided(
    dataset: Dataset, outcome: ReviewOutcome, decisions: Sequence[Decision], settings: Import
) -> Taken:
    before = () if settings.earlier is None else read_decisions(settings.earlier)
    ids = {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])}
    if lost := [each.id for each in before if each.id not in ids]:
        raise InputError(
            f"--earlier {settings.earlier}: {shown(lost[0])} is no sample of {dataset.folder}"
        )
    counts = Counter(each.decision for each in decisions)
    together = with_earlier(decisions, before)
    outcome = replace(
        outcome,
        rule=settings.rule,
        decisions={answer: counts[answer] for answer in VERDICTS},
        earlier=len(set(together) - set(decisions)),
        written=len(together),
    )
    return Taken(outcome=outcome, decisions=together)


def _found(votes: Votes, dataset: Dataset) -> Votes:
    """Returns boxes that were drawn for phrases as votes to keep what was found and drop the rest.

    A box is found as a model finds it; see `grounded`. What was skipped is dropped. These votes
    have no boxes: two are alike where both keep or both drop.
    """
    sizes = {
        row["image_id"]: (row["width_px"], row["height_px"])
        for row in dataset.rows("images", ["image_id", "width_px", "height_px"])
    }
    boxes = {}
    for row in dataset.rows("grounding", ["sample_id", "image_id", "box"]):
        if row["image_id"] in sizes:
            (width, height), box = sizes[row["image_id"]], row["box"]
            across, down = box["width"] / width, box["height"] / height
            boxes[row["sample_id"]] = (box["x"] / width, box["y"] / height, across, down)

    def decided(vote: Vote) -> Vote:
        if vote.box is None or not vote.is_given:
            return msgspec.structs.replace(vote, answer="drop", box=None)
        if grounded(np.array([vote.box]), np.array([boxes[vote.id]])).all():
            return msgspec.structs.replace(vote, answer="keep", box=None)
        return msgspec.structs.replace(vote, answer="drop", reason=_MISSED, box=None)

    by_reviewer = {name: list(map(decided, some)) for name, some in votes.by_reviewer.items()}
    return replace(votes, by_reviewer=by_reviewer, form="decide")
