"""Read and check vote files, saved by pages or exported by Label Studio."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from eqforge.core.errors import InputError, readable
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.visible import escaped_json, series
from eqforge.evaluation.review.assign import Task, hidden_id, is_turned, shuffled
from eqforge.evaluation.review.forms import FORMS, Vote
from eqforge.evaluation.review.label_studio import is_export, votes_of
from eqforge.evaluation.review.protocols import Field, Form, Text, Unit, protocols, unit_of

_MOST_BYTES: Final = 64 << 20

_ITEMS: Final[Mapping[Unit, str]] = {
    "captions": "sample",
    "picture pairs": "sample",
    "queries": "query",
}


class VoteFile(msgspec.Struct, frozen=True, kw_only=True):
    """The votes of a reviewer.

    Attributes:
      sha256: of the dataset's manifest.
      plan: digest of all tasks of all reviewers.
      overlap: number of reviewers per item; 0 if the file does not say.
      of: digest of the file of queries or boxes; empty for none.
    """

    format: Literal["eqforge votes"]
    format_version: Literal[1, 2]
    dataset: str
    sha256: str
    protocol: str
    plan: str
    reviewer: Text
    tasks: Annotated[int, msgspec.Meta(ge=1)]
    votes: list[Vote]
    form: Form = "decide"
    overlap: Annotated[int, msgspec.Meta(ge=0)] = 0
    of: str = ""
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Votes:
    """The votes of all reviewers by name, each in the order of the tasks; see VoteFile."""

    protocol: str
    by_reviewer: dict[str, list[Vote]]
    tasks: dict[str, int]
    paths: dict[str, Path]
    form: Form
    overlap: int
    of: str
    fields: tuple[Field, ...]

    @property
    def unit(self) -> Unit:
        return unit_of(self.protocol, self.form)


def read_votes(paths: Sequence[Path], dataset: str, sha256: str) -> Votes:
    files: dict[str, VoteFile] = {}
    places: dict[str, Path] = {}
    for path in paths:
        file = _read(path)
        first_path, first = next(zip(places.values(), files.values(), strict=True), (path, file))
        if file.sha256 != sha256:
            raise InputError(
                f"{path} contains votes on {shown(file.dataset)} (manifest {file.sha256[:12]}), "
                f"but the manifest of {dataset} is {sha256[:12]}; review this dataset again"
            )
        if (file.protocol, file.form) != (first.protocol, first.form):
            raise InputError(
                f"{path}: its votes use the protocol {shown(file.protocol)}, but {first_path} uses "
                f"{shown(first.protocol)}; pass only files of one protocol"
            )
        of_plan = ("plan", "overlap", "of", "fields")
        if any(getattr(file, name) != getattr(first, name) for name in of_plan):
            raise InputError(
                f"{path} and {first_path} belong to different plans. Import the votes of one plan "
                "first, then pass its decisions with --earlier."
            )
        if file.reviewer in files:
            raise InputError(
                f"{path} and {places[file.reviewer]} both contain votes of "
                f"{shown(file.reviewer)}; pass only one of the two files"
            )
        file.votes.sort(key=lambda vote: vote.task)
        _check_votes(path, file)
        if file.form == "rank" and file.format_version == 2:
            file.votes[:] = [_in_columns(vote, file.reviewer) for vote in file.votes]
        files[file.reviewer], places[file.reviewer] = file, path
    if not files:
        raise InputError("pass the vote files after the dataset")
    first = next(iter(files.values()))
    return Votes(
        protocol=first.protocol,
        by_reviewer={name: files[name].votes for name in sorted(files)},
        tasks={name: files[name].tasks for name in sorted(files)},
        paths=places,
        form=first.form,
        overlap=first.overlap,
        of=first.of,
        fields=first.fields,
    )


def _in_columns(vote: Vote, reviewer: str) -> Vote:
    """Reorder ranks from the order shown to the order of the sample's columns."""
    task = Task(number=vote.task, id=vote.id, is_repeat=vote.is_repeat)
    ranks = [[0] * len(row) for row in vote.ranks]
    places = range(len(ranks))[:: -1 if is_turned(task, reviewer) else 1]
    for place, row in zip(places, vote.ranks, strict=True):
        for column, value in zip(shuffled("caption", task, reviewer, len(row)), row, strict=True):
            ranks[place][column] = value
    return msgspec.structs.replace(vote, ranks=tuple(map(tuple, ranks)))


def with_ids(votes: Votes, ids: Collection[str]) -> Votes:
    """Restore the dataset's ids, which pages may hide; check that all exist."""
    hidden = {hidden_id(name): name for name in ids}
    by_reviewer = {
        name: [
            msgspec.structs.replace(vote, id=hidden.get(vote.id, vote.id))
            for vote in reviewer_votes
        ]
        for name, reviewer_votes in votes.by_reviewer.items()
    }
    for name, reviewer_votes in by_reviewer.items():
        if lost := [vote for vote in reviewer_votes if vote.id not in ids]:
            item = _ITEMS.get(votes.unit, votes.unit.removesuffix("s"))
            raise InputError(
                f"{votes.paths[name]}: task {lost[0].task}: {shown(lost[0].id)} is not a {item} "
                "of the dataset"
            )
    return replace(votes, by_reviewer=by_reviewer)


def _read(path: Path) -> VoteFile:
    with readable(path):
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} is larger than {_MOST_BYTES:,} bytes")
    data = read_bytes(path)
    file = decode(votes_of(data, str(path)) if is_export(data) else data, VoteFile, str(path))
    known = protocols().get(file.protocol)
    if known is not None and file.form != known.form:
        raise InputError(
            f"{path}: form: expected {known.form!r} for the protocol {known.name}, found "
            f"{file.form!r}"
        )
    if known is not None and file.fields != known.fields:
        raise InputError(f"{path}: its fields differ from the fields of the {known.name} protocol")
    if known is None and file.form in ("write", "box") and not file.fields:
        raise InputError(
            f"{path}: the fields of the protocol {shown(file.protocol)} are missing; pass the file "
            "that the page saved"
        )
    return file


def _check_votes(path: Path, file: VoteFile) -> None:
    form = FORMS[file.form]
    seen: dict[tuple[str, bool], int] = {}
    last = 0
    for vote in file.votes:
        wrong = ""
        if not 1 <= vote.task <= file.tasks:
            wrong = f"expected a task number from 1 to {file.tasks:,}"
        elif (vote.id, vote.is_repeat) in seen:
            before = seen[vote.id, vote.is_repeat]
            wrong = f"{shown(vote.id)} already has a vote in task {before}"
        elif vote.task == last:
            wrong = "expected one vote, found two"
        elif vote.is_repeat and (vote.id, False) not in seen:
            wrong = f"the repeated item {shown(vote.id)} has no vote in an earlier task"
        elif vote.answer not in form.answers:
            expected = f"{series(map(repr, form.answers), 'or')} for the form {file.form!r}"
            wrong = f"answer: expected {expected}; found {vote.answer!r}"
        elif vote.is_given:
            wrong = form.wrong(vote)
        if wrong:
            raise InputError(f"{path}: task {vote.task}: {wrong}")
        seen[vote.id, vote.is_repeat] = last = vote.task


def first_votes(votes: Mapping[str, Sequence[Vote]]) -> dict[str, dict[str, Vote]]:
    found: dict[str, dict[str, Vote]] = {}
    for reviewer, reviewer_votes in votes.items():
        for vote in reviewer_votes:
            if not vote.is_repeat:
                found.setdefault(vote.id, {})[reviewer] = vote
    return {name: found[name] for name in sorted(found)}


def json_line(row: Mapping[str, object]) -> str:
    return escaped_json(msgspec.json.encode(row).decode()) + "\n"


def answer_lines(votes: Votes) -> Iterator[str]:
    """Yield every answer as a line of JSON, by item, then reviewer; repeats come last."""
    fields = ("answer", "reason", "note", "seconds", "is_repeat")
    named_votes = (
        (vote, name)
        for name, reviewer_votes in votes.by_reviewer.items()
        for vote in reviewer_votes
    )
    for vote, name in sorted(
        named_votes, key=lambda each: (each[0].id, each[1], each[0].is_repeat)
    ):
        gives = FORMS[votes.form].gives if vote.is_given else ()
        answer = {field: getattr(vote, field) for field in (*fields, *gives)}
        yield json_line({"item": vote.id, "reviewer": name, **answer})
