"""The outcome of a review: answers, agreement, and the rows to write.

`build vlue` reads the rows of VLUE's protocols; see `eqforge.sources.vlue`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import shown
from eqforge.core.files.owned import check_outputs
from eqforge.core.identity import short_digest
from eqforge.core.visible import counted
from eqforge.evaluation.metrics.answers import grounded
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.review.agreement import (
    Agreement,
    ClaimsAgreed,
    First,
    Reviewer,
    agreement,
    claims_agreed,
    decide,
    decided,
    reviewers_of,
)
from eqforge.evaluation.review.assign import Task
from eqforge.evaluation.review.forms import TRUTHS, Vote
from eqforge.evaluation.review.protocols import TEXT_RULES, Form, broken
from eqforge.evaluation.review.ranking import (
    Correlation,
    among_people,
    ranked_by,
    ranking_lines,
    with_models,
)
from eqforge.evaluation.review.settings import Import, Rule
from eqforge.evaluation.review.units import (
    Claim,
    DrawnBox,
    Units,
    boxes_of,
    claim_key,
    claims_of,
    claims_shown,
    picture_names,
    places_shown,
    units_of,
)
from eqforge.evaluation.review.votes import (
    Votes,
    answer_lines,
    first_votes,
    json_line,
    read_votes,
    with_ids,
)
from eqforge.evaluation.tasks.samples import check_ranks, task_of
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.records.judgements import VERDICTS, Decision
from eqforge.sources.errata import read_decisions, with_earlier, write_lines
from eqforge.sources.vlue import read_answer_list

Row = dict[str, Any]
_MISSED: Final = "another box was drawn"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewOutcome:
    """The result of a review.

    Attributes:
      rule: rule for combining the votes, or None if there are no decisions.
      decisions: number of items with each decision.
      claims: how often reviewers agree with the rows' labels, by kind of text.
      earlier: number of decisions kept from an earlier round.
      broken: number of texts that break each rule.
      written: number of lines written to the output file.
    """

    protocol: str
    form: Form
    reviewers: tuple[Reviewer, ...]
    agreement: Agreement
    rule: Rule | None = None
    decisions: dict[str, int]
    claims: tuple[ClaimsAgreed, ...] = ()
    earlier: int = 0
    people: tuple[Correlation, ...] = ()
    models: tuple[Correlation, ...] = ()
    broken: dict[str, int]
    written: int


def import_votes(settings: Import) -> ReviewOutcome:
    check_outputs(settings, ("answers",))
    for option, path in (("output", settings.output), ("answers", settings.answers)):
        if path is not None and path.exists() and not settings.overwrite:
            raise InputError(f"--{option} {path} already exists; add --overwrite to replace it")
    dataset = open_dataset(settings.dataset)
    file_votes = read_votes(settings.votes, dataset.folder, dataset.sha256)
    _check_settings(file_votes, settings)
    units = units_of(dataset, file_votes.unit, settings.of)
    if units.digest != file_votes.of:
        named = "" if settings.of is None else f"--of {settings.of}: "
        wanted = (
            "with a different file; pass that file with --of"
            if file_votes.of
            else "without --of; omit --of"
        )
        raise InputError(f"{named}the review was planned {wanted}")
    votes = file_votes = with_ids(file_votes, set(units.ids))
    if file_votes.unit == "phrases":
        votes = _found(file_votes, dataset)
    claims: dict[str, list[Claim]] = {}
    if file_votes.form == "judge":
        items = units.make(
            [
                vote.id
                for reviewer_votes in file_votes.by_reviewer.values()
                for vote in reviewer_votes
            ]
        )
        claims = {name: claims_of(item) for name, item in items.items()}
        votes = file_votes = _named(file_votes, items)
    first = first_votes(votes.by_reviewer)
    outcome = ReviewOutcome(
        protocol=votes.protocol,
        form=votes.form,
        reviewers=reviewers_of(votes.by_reviewer, votes.tasks, votes.form),
        agreement=agreement(first, votes.form),
        decisions={},
        claims=claims_agreed(first, claims),
        broken={},
        written=0,
    )
    if votes.form in ("decide", "judge"):
        first = {
            item: {name: decided(vote, claims.get(item, ())) for name, vote in item_votes.items()}
            for item, item_votes in first.items()
        }
        outcome, decisions = _decided(dataset, votes, first, outcome, settings)
        write_lines(str(settings.output), decisions)
    else:
        outcome, rows = _rows(dataset, votes, first, outcome, settings, units)
        storage.write_bytes(str(settings.output), "".join(map(json_line, rows)).encode())
        outcome = replace(outcome, written=len(rows))
    if settings.answers is not None:
        storage.write_bytes(str(settings.answers), "".join(answer_lines(file_votes)).encode())
    return outcome


def _check_settings(votes: Votes, settings: Import) -> None:
    decides = votes.form in ("decide", "judge") or votes.unit == "phrases"
    is_listed = any(field.listed for field in votes.fields)
    without_effect = {
        "--earlier": settings.earlier is not None and not decides,
        "--rule": settings.rule != "majority" and not decides,
        "--scores": bool(settings.scores) and votes.form != "order",
        "--answer-list": settings.answer_list is not None and not is_listed,
    }
    for option in (name for name, is_wrong in without_effect.items() if is_wrong):
        raise InputError(
            f"{option} cannot be used with the protocol {votes.protocol}; omit {option}"
        )


def _decided(
    dataset: Dataset, votes: Votes, first: First, outcome: ReviewOutcome, settings: Import
) -> tuple[ReviewOutcome, Sequence[Decision]]:
    decisions = decide(first, settings.rule, outcome.reviewers, votes.overlap)
    before = () if settings.earlier is None else read_decisions(settings.earlier)
    ids = {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])}
    if lost := [each.id for each in before if each.id not in ids]:
        raise InputError(
            f"--earlier {settings.earlier}: {shown(lost[0])} is not a sample of {dataset.folder}"
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
    return outcome, together


def _rows(
    dataset: Dataset,
    votes: Votes,
    first: First,
    outcome: ReviewOutcome,
    settings: Import,
    units: Units,
) -> tuple[ReviewOutcome, Sequence[Mapping[str, Any]]]:
    if votes.form == "rank":
        if task := task_of(dataset):
            check_ranks(votes, task)
        return outcome, [
            {
                "sample_id": item,
                "ranks": {name: vote.ranks for name, vote in item_votes.items() if vote.is_given},
            }
            for item, item_votes in first.items()
        ]
    if votes.form == "order":
        queries = ranked_by(first, units.make(list(first)))
        if settings.scores and not queries:
            raise InputError(
                "--scores: no reviewer has ranked any images, so there is nothing to compare"
            )
        people = tuple(among_people(queries))
        models = tuple(with_models(queries, settings.scores, dataset))
        return replace(outcome, people=people, models=models), list(ranking_lines(queries))
    texts, breaches = _written(votes, first, units, settings)
    counts = {rule: breaches[rule] for rule in TEXT_RULES if breaches[rule]}
    if votes.protocol == "vlue-expressions" and settings.of is not None:
        rows = _phrases(texts, boxes_of(settings.of))
    else:
        make = _MAKERS.get(votes.protocol, _boxes if votes.form == "box" else _plain)
        rows = make(texts, dict(picture_names(dataset)), dataset)
    return replace(outcome, broken=counts), list(rows)


def _found(votes: Votes, dataset: Dataset) -> Votes:
    """Turn boxes drawn for phrases into keep or drop votes, by `grounded`; drop skipped boxes.

    The votes lose their boxes, so that two equal decisions compare equal.
    """
    sizes, boxes = _sizes(dataset), {}
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

    by_reviewer = {
        name: list(map(decided, reviewer_votes))
        for name, reviewer_votes in votes.by_reviewer.items()
    }
    return replace(votes, by_reviewer=by_reviewer, form="decide")


def _named(votes: Votes, items: Mapping[str, Item]) -> Votes:
    """Key votes on texts by text; files list them in the order of the page."""

    def named(vote: Vote, reviewer: str) -> Vote:
        if not vote.is_given:
            return vote
        task, item = Task(number=vote.task, id=vote.id, is_repeat=vote.is_repeat), items[vote.id]
        shown = claims_shown(item, task, reviewer)
        rows = len(shown[0].tones) if shown else 0
        if [len(row) for row in vote.ranks] != [len(shown)] * rows:
            raise InputError(
                f"{votes.paths[reviewer]}: task {vote.task}: expected {len(shown)} ranks per "
                f"image ({counted(rows, 'images')})"
            )
        places = places_shown(item, "judge", "samples", task, reviewer)[:rows] if rows > 1 else [0]
        texts = {
            claim_key(claim, place): TRUTHS[number - 1]
            for place, row in zip(places, vote.ranks, strict=True)
            for claim, number in zip(shown, row, strict=True)
        }
        return msgspec.structs.replace(vote, texts=texts, ranks=())

    by_reviewer = {
        name: [named(vote, name) for vote in reviewer_votes]
        for name, reviewer_votes in votes.by_reviewer.items()
    }
    return replace(votes, by_reviewer=by_reviewer)


def _sizes(dataset: Dataset) -> dict[str, tuple[int, int]]:
    rows = dataset.rows("images", ["image_id", "width_px", "height_px"])
    return {row["image_id"]: (row["width_px"], row["height_px"]) for row in rows}


class _Written(NamedTuple):
    """A given answer, with white space around its texts removed."""

    item: str
    vote: Vote
    texts: Mapping[str, str]
    panes: tuple[str, ...]


def _written(
    votes: Votes, first: First, units: Units, settings: Import
) -> tuple[list[_Written], Counter[str]]:
    listed = settings.answer_list
    answers = None if listed is None else read_answer_list(listed)
    found: list[_Written] = []
    wrong: Counter[str] = Counter()
    for name, item in units.make(list(first)).items():
        panes = tuple(pane.image_id for pane in item.panes if pane.image_id is not None)
        names = [each for field in votes.fields for each in field.names(len(panes))]
        for vote in (vote for vote in first[name].values() if vote.is_given):
            breaches = [rule for _, rule in broken(vote.texts, votes.fields, len(panes), answers)]
            wrong.update(breaches)
            if not breaches:
                texts = {each: " ".join(vote.texts[each].split()) for each in names}
                found.append(_Written(name, vote, texts, panes))
    return sorted(found, key=lambda each: each.item), wrong


def _captions(written: list[_Written], names: dict[str, str], _: Dataset) -> Iterator[Row]:
    for item, item_texts in groupby(written, key=lambda each: each.item):
        yield {
            "image": names[item],
            "caption": list(dict.fromkeys(each.texts["caption"] for each in item_texts)),
        }


def _statements(written: list[_Written], _: dict[str, str], dataset: Dataset) -> Iterator[Row]:
    statements = {row["sample_id"]: row for row in dataset.rows("nlvr2")}
    for item, item_texts in groupby(written, key=lambda each: each.item):
        row = statements[item]
        name = row["source_id"] or item
        for number, each in enumerate(item_texts, start=1):
            yield {
                "identifier": name if number == 1 else f"{name}-{number}",
                "sentence": each.texts["sentence"],
                "images": [row["image_0"], row["image_1"]],
                "label": str(row["label"]),
            }


def _questions(written: list[_Written], names: dict[str, str], _: Dataset) -> Iterator[Row]:
    rows = [
        {
            "question": each.texts["question"],
            "image": names[image_id],
            "answer": each.texts[f"answer_{place}"],
        }
        for each in written
        for place, image_id in enumerate(each.panes)
    ]
    yield from _once({"question_id": short_digest(row), **row} for row in rows)


def _boxes(written: list[_Written], names: dict[str, str], dataset: Dataset) -> Iterator[Row]:
    """Yield each box once, whoever drew it: the next round asks about it by id."""
    sizes = _sizes(dataset)

    def box_of(each: _Written) -> DrawnBox:
        assert each.vote.box is not None
        x, y, across, down = each.vote.box
        width, height = sizes[each.item]
        corner = round(x * width, 2), round(y * height, 2)
        bbox = (*corner, round(across * width, 2), round(down * height, 2))
        name_of_object = " ".join(each.texts[name] for name in sorted(each.texts))
        return DrawnBox(
            id=f"{each.item[:12]}/{short_digest([each.item, name_of_object, bbox])}",
            image_id=each.item,
            image=names[each.item],
            object=name_of_object,
            bbox=bbox,
            width=width,
            height=height,
        )

    yield from _once(msgspec.to_builtins(box_of(each)) for each in written)


def _phrases(written: list[_Written], boxes: Mapping[str, DrawnBox]) -> Iterator[Row]:
    for each in written:
        box = boxes[each.item]
        yield {
            "ref_id": box.id,
            "image": box.image,
            "text": each.texts["text"],
            "bbox": list(box.bbox),
            "width": box.width,
            "height": box.height,
        }


def _plain(written: list[_Written], names: dict[str, str], _: Dataset) -> Iterator[Row]:
    for each in written:
        images = [names.get(image_id) for image_id in each.panes]
        yield {"item": each.item, "images": images, **each.texts}


def _once(rows: Iterable[Row]) -> Iterator[Row]:
    seen: set[Any] = set()
    for row in rows:
        name = next(iter(row.values()))
        if name not in seen:
            seen.add(name)
            yield row


_Maker = Callable[[list[_Written], dict[str, str], Dataset], Iterator[Row]]
_MAKERS: Final[Mapping[str, _Maker]] = {
    "vlue-captions": _captions,
    "vlue-translation": _statements,
    "vlue-questions": _questions,
    "vlue-boxes": _boxes,
}
