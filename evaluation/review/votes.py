"""The files in which reviewers save their votes, and whether these can be taken."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import shown
from eqforge.schemas.io.typed_json import decode
from eqforge.schemas.records.reviews import Verdict
from eqforge.schemas.visible import escaped_json

FORMAT: Final = "eqforge votes"
VERSION: Final = 1
_MOST_BYTES: Final = 64 << 20
_MOST_SECONDS: Final = 86_400

ANSWER: Final = ("item", "reviewer", "answer", "reason", "note", "seconds", "is_repeat")
"""The fields of an answer in a file of all answers."""


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer answered.

    Attributes:
      task: number of the task.
      id: of the item.
      answer: keep, drop or unsure.
      reason: why it is dropped; empty where nothing was chosen.
      note: what the reviewer wrote beside it.
      is_repeat: whether they had seen the item before.
      seconds: how long the item was before them.
    """

    task: int
    id: str
    answer: Verdict
    reason: str = ""
    note: str = ""
    is_repeat: bool = False
    seconds: float = 0.0


class VoteFile(msgspec.Struct, frozen=True, kw_only=True):
    """The votes of a reviewer.

    Attributes:
      dataset, sha256: the dataset, and its manifest's digest.
      protocol: what was asked.
      plan: digest of all tasks of all reviewers, as `plan_digest` of `plan.py` makes it.
      reviewer: who answered.
      tasks: how many there were.
      votes: the answers.
      overlap: how many reviewers were asked about each item; 0 where the file does not say.
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
    overlap: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Votes:
    """The votes of all reviewers.

    Attributes:
      protocol: what they were asked.
      by_reviewer: the votes by reviewer, in the order of their tasks.
      tasks: how many tasks each had.
      overlap: how many were asked about each item; 0 where the files do not say.
    """

    protocol: str
    by_reviewer: dict[str, list[Vote]]
    tasks: dict[str, int]
    overlap: int = 0


def read_votes(paths: Sequence[Path], dataset: str, sha256: str, ids: Collection[str]) -> Votes:
    """Reads the votes of some reviewers.

    Args:
      paths: their files.
      dataset: name of the dataset.
      sha256: of its manifest.
      ids: of its samples, and of what they have in common.

    Raises:
      InputError: a file is malformed, of another dataset or version of it, of another plan than
        the others, votes twice, on what the dataset does not have, or on what no task was.
    """
    files = [(path, _read(path)) for path in paths]
    if not files:
        raise InputError("name the files of votes after the dataset")
    first_path, first = files[0]
    found: dict[str, list[Vote]] = {}
    tasks: dict[str, int] = {}
    seen: dict[str, Path] = {}
    for path, file in files:
        _check_of(path, file, dataset, sha256)
        _check_plan(path, file, first_path, first)
        if file.reviewer in seen:
            raise InputError(
                f"{path}: has votes of {shown(file.reviewer)}, and so has {seen[file.reviewer]}"
            )
        seen[file.reviewer] = path
        own = sorted(file.votes, key=lambda vote: vote.task)
        _check_votes(path, own, file.tasks, ids)
        found[file.reviewer] = own
        tasks[file.reviewer] = file.tasks
    named = sorted(found)
    return Votes(
        protocol=first.protocol,
        by_reviewer={name: found[name] for name in named},
        tasks={name: tasks[name] for name in named},
        overlap=first.overlap,
    )


def _read(path: Path) -> VoteFile:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: has more than {_MOST_BYTES:,} bytes")
        file = decode(path.read_bytes(), VoteFile, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if (file.format, file.format_version) != (FORMAT, VERSION):
        raise InputError(f"{path}: expected the format {FORMAT} {VERSION}")
    if file.tasks < 1:
        raise InputError(f"{path}: tasks: expected 1 or more, found {file.tasks:,}")
    if file.overlap < 0:
        raise InputError(f"{path}: overlap: expected 0 or more, found {file.overlap:,}")
    if not file.reviewer.strip():
        raise InputError(f"{path}: reviewer: expected a name, found none")
    return file


def _check_of(path: Path, file: VoteFile, dataset: str, sha256: str) -> None:
    if file.sha256 != sha256:
        raise InputError(
            f"{path}: votes on {shown(file.dataset)} whose manifest is {file.sha256[:12]}; that of "
            f"{dataset} is {sha256[:12]}: these are other samples, so review it again"
        )


def _check_plan(path: Path, file: VoteFile, first_path: Path, first: VoteFile) -> None:
    if file.protocol != first.protocol:
        raise InputError(
            f"{path}: votes by the protocol {shown(file.protocol)}; those of {first_path} are "
            f"by {shown(first.protocol)}"
        )
    if (file.plan, file.overlap) != (first.plan, first.overlap):
        raise InputError(
            f"{path}: is of another plan than {first_path}; take the votes of one plan at a time, "
            "and name what was decided by the other as --earlier"
        )


def _check_votes(path: Path, votes: Iterable[Vote], tasks: int, ids: Collection[str]) -> None:
    """Checks votes in the order of their tasks."""
    seen: dict[tuple[str, bool], int] = {}
    numbers: set[int] = set()
    for vote in votes:
        where = f"{path}: task {vote.task}"
        if not 1 <= vote.task <= tasks:
            raise InputError(f"{where}: expected a number from 1 to {tasks:,}, the number of tasks")
        if vote.id not in ids:
            raise InputError(f"{where}: {shown(vote.id)} is no sample of the dataset")
        key = vote.id, vote.is_repeat
        if key in seen:
            raise InputError(f"{where}: {shown(vote.id)} was voted on in task {seen[key]} already")
        if vote.task in numbers:
            raise InputError(f"{where}: has two votes")
        if vote.is_repeat and (vote.id, False) not in seen:
            raise InputError(f"{where}: repeats {shown(vote.id)}, on which no task before votes")
        if not 0 <= vote.seconds < _MOST_SECONDS:
            raise InputError(f"{where}: seconds: expected 0 to a day, found {vote.seconds:g}")
        seen[key] = vote.task
        numbers.add(vote.task)


def answer_lines(votes: Votes) -> Iterator[str]:
    """Yields every answer as a line of JSON, by item, then reviewer, the first answer first."""
    own = ((vote, name) for name, some in votes.by_reviewer.items() for vote in some)
    for vote, name in sorted(own, key=lambda each: (each[0].id, each[1], each[0].is_repeat)):
        known = {"item": vote.id, "reviewer": name, **msgspec.to_builtins(vote)}
        said = msgspec.json.encode({field: known[field] for field in ANSWER})
        yield escaped_json(said.decode()) + "\n"
