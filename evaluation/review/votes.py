"""The files of votes, saved by pages or exported by Label Studio, and whether they can be taken."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import escaped_json
from eqforge.evaluation.review.forms import FORMS, Vote
from eqforge.evaluation.review.label_studio import is_export, votes_of
from eqforge.evaluation.review.protocols import Field, Form, Unit, protocols, unit_of

FORMAT: Final = "eqforge votes"
VERSION: Final = 1
_MOST_BYTES: Final = 64 << 20
_MOST_SECONDS: Final = 86_400

_ITEMS: Final[Mapping[Unit, str]] = {
    "captions": "sample",
    "picture pairs": "sample",
    "queries": "query",
}
"""What one of some units is, where that is not the word itself."""


class VoteFile(msgspec.Struct, frozen=True, kw_only=True):
    """The votes of a reviewer.

    Attributes:
      sha256: of the dataset's manifest.
      plan: digest of all tasks of all reviewers.
      tasks: how many there were.
      overlap: how many reviewers were asked about each item; 0 where the file does not say.
      of: digest of the file that the tasks are about; empty for none.
    """

    format: str
    format_version: int
    dataset: str
    sha256: str
    protocol: str
    plan: str
    reviewer: str
    tasks: int
    votes: list[Vote]
    form: Form = "decide"
    overlap: int = 0
    of: str = ""
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Votes:
    """The votes of all reviewers by their names, each in the order of the tasks; see VoteFile."""

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
        """What the items are."""
        return unit_of(self.protocol, self.form)


def read_votes(paths: Sequence[Path], dataset: str, sha256: str) -> Votes:
    """Reads the votes of some reviewers on a dataset with the SHA-256 of its manifest.

    `check_ids` checks what they are on.

    Raises:
      InputError: a file is malformed, of another dataset or version of it, of another plan than
        the others, votes twice, or on what no task was.
    """
    found: dict[str, tuple[Path, VoteFile]] = {}
    first_path, first = None, None
    for path in paths:
        file = _read(path)
        first_path, first = first_path or path, first or file
        if file.sha256 != sha256:
            raise InputError(
                f"{path}: votes on {shown(file.dataset)} whose manifest is {file.sha256[:12]}; "
                f"that of {dataset} is {sha256[:12]}: these are other samples, so review it again"
            )
        if (file.protocol, file.form) != (first.protocol, first.form):
            raise InputError(
                f"{path}: votes by the protocol {shown(file.protocol)}; those of {first_path} are "
                f"by {shown(first.protocol)}"
            )
        of_plan = ("plan", "overlap", "of", "fields")
        if any(getattr(file, name) != getattr(first, name) for name in of_plan):
            raise InputError(
                f"{path}: is of another plan than {first_path}; take the votes of one plan at a "
                "time, and name what was decided by the other as --earlier"
            )
        if file.reviewer in found:
            raise InputError(
                f"{path}: has votes of {shown(file.reviewer)}, and so has {found[file.reviewer][0]}"
            )
        file.votes.sort(key=lambda vote: vote.task)
        _check_votes(path, file)
        found[file.reviewer] = path, file
    if first is None:
        raise InputError("name the files of votes after the dataset")
    named = sorted(found.items())
    return Votes(
        protocol=first.protocol,
        by_reviewer={name: file.votes for name, (_, file) in named},
        tasks={name: file.tasks for name, (_, file) in named},
        paths={name: path for name, (path, _) in named},
        form=first.form,
        overlap=first.overlap,
        of=first.of,
        fields=first.fields,
    )


def check_ids(votes: Votes, ids: Collection[str]) -> None:
    """Checks that all votes are on what there is.

    Raises:
      InputError: one is not.
    """
    for name, some in votes.by_reviewer.items():
        for vote in some:
            if vote.id not in ids:
                where = f"{votes.paths[name]}: task {vote.task}"
                what = _ITEMS.get(votes.unit, votes.unit.removesuffix("s"))
                raise InputError(f"{where}: {shown(vote.id)} is no {what} of the dataset")


def _read(path: Path) -> VoteFile:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: has more than {_MOST_BYTES:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    file = decode(votes_of(data, str(path)) if is_export(data) else data, VoteFile, str(path))
    if (file.format, file.format_version) != (FORMAT, VERSION):
        raise InputError(f"{path}: expected the format {FORMAT} {VERSION}")
    known = protocols().get(file.protocol)
    if known is not None and file.form != known.form:
        raise InputError(f"{path}: form: expected {known.form}, as {known.name} has it")
    if known is not None and file.fields != known.fields:
        raise InputError(f"{path}: fields: expected those that {known.name} has")
    if known is None and file.form in ("write", "box") and not file.fields:
        raise InputError(
            f"{path}: fields: expected the texts that {shown(file.protocol)} asks for, as the page "
            "saves them, found none"
        )
    if file.tasks < 1:
        raise InputError(f"{path}: tasks: expected 1 or more, found {file.tasks:,}")
    if file.overlap < 0:
        raise InputError(f"{path}: overlap: expected 0 or more, found {file.overlap:,}")
    if not file.reviewer.strip():
        raise InputError(f"{path}: reviewer: expected a name, found none")
    return file


def _check_votes(path: Path, file: VoteFile) -> None:
    """Checks votes in the order of their tasks."""
    form = FORMS[file.form]
    seen: dict[tuple[str, bool], int] = {}
    numbers: set[int] = set()
    for vote in file.votes:
        where = f"{path}: task {vote.task}"
        if not 1 <= vote.task <= file.tasks:
            raise InputError(
                f"{where}: expected a number from 1 to {file.tasks:,}, the number of tasks"
            )
        key = vote.id, vote.is_repeat
        if key in seen:
            raise InputError(f"{where}: {shown(vote.id)} was voted on in task {seen[key]} already")
        if vote.task in numbers:
            raise InputError(f"{where}: has two votes")
        if vote.is_repeat and (vote.id, False) not in seen:
            raise InputError(f"{where}: repeats {shown(vote.id)}, on which no task before votes")
        if not 0 <= vote.seconds < _MOST_SECONDS:
            raise InputError(f"{where}: seconds: expected 0 to a day, found {vote.seconds:g}")
        if vote.answer not in form.answers:
            expected = ", ".join(form.answers)
            raise InputError(f"{where}: answer: expected {expected} where the form is {file.form}")
        if vote.is_given and (wrong := form.wrong(vote)):
            raise InputError(f"{where}: {wrong}")
        seen[key] = vote.task
        numbers.add(vote.task)


def first_votes(votes: Mapping[str, Sequence[Vote]]) -> dict[str, dict[str, Vote]]:
    """Returns each reviewer's first vote on each item, by item and reviewer."""
    found: dict[str, dict[str, Vote]] = {}
    for reviewer, some in votes.items():
        for vote in some:
            if not vote.is_repeat:
                found.setdefault(vote.id, {})[reviewer] = vote
    return {name: found[name] for name in sorted(found)}


def row_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yields rows as lines of JSON."""
    for row in rows:
        yield escaped_json(msgspec.json.encode(row).decode()) + "\n"


def answer_lines(votes: Votes) -> Iterator[str]:
    """Yields every answer as a line of JSON, by item, then reviewer, the first answer first."""
    fields = ("answer", "reason", "note", "seconds", "is_repeat")
    own = ((vote, name) for name, some in votes.by_reviewer.items() for vote in some)
    for vote, name in sorted(own, key=lambda each: (each[0].id, each[1], each[0].is_repeat)):
        gives = FORMS[votes.form].gives if vote.is_given else ()
        said = {field: getattr(vote, field) for field in (*fields, *gives)}
        yield from row_lines([{"item": vote.id, "reviewer": name, **said}])
