"""The files of votes, saved by pages or exported by Label Studio, and whether they can be taken."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import escaped_json
from eqforge.evaluation.review.fields import Field
from eqforge.evaluation.review.label_studio import is_export, votes_of
from eqforge.evaluation.review.protocols import PROTOCOLS, Form, Unit, unit_of
from eqforge.schemas.records.reviews import VERDICTS, Verdict

FORMAT: Final = "eqforge votes"
VERSION: Final = 1
_MOST_BYTES: Final = 64 << 20
_MOST_SECONDS: Final = 86_400

ANSWER: Final = ("item", "reviewer", "answer", "reason", "note", "seconds", "is_repeat")
"""The fields of an answer in a file of all answers."""

GIVES: Final[Mapping[Form, tuple[str, ...]]] = {
    "decide": (),
    "rank": ("ranks",),
    "order": ("order",),
    "write": ("texts",),
    "box": ("box", "texts"),
}
"""The fields beside these, by the form."""

_ITEMS: Final[Mapping[Unit, str]] = {
    "captions": "sample",
    "picture pairs": "sample",
    "queries": "query",
}
"""What one of some units is, where that is not the word itself."""

Given = Literal["given", "skipped"]
Answer = Verdict | Given
GIVEN: Final[tuple[Given, ...]] = get_args(Given)
_OF_PLAN: Final = ("plan", "overlap", "of", "fields")
"""What all files of votes of a plan have in common."""

_SLACK: Final = 1e-6
_LEAST: Final = 0.001
"""The least share of a picture that a box has across and down, as `box.js` has it too."""


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer answered.

    Attributes:
      task: number of the task.
      id: of the item.
      answer: keep, drop or unsure; where something else is asked for, given or skipped.
      reason: why it is dropped or skipped; empty where nothing was chosen.
      note: what the reviewer wrote beside it.
      is_repeat: whether they had seen the item before.
      seconds: how long the item was before them.
      ranks: of each caption for each picture, 1 for the best, in the order of the sample's columns.
      order: ids of the pictures, the best first.
      texts: what was written, by the names of the fields.
      box: x, y, width and height, as shares of the picture's width and height.
    """

    task: int
    id: str
    answer: Answer
    reason: str = ""
    note: str = ""
    is_repeat: bool = False
    seconds: float = 0.0
    ranks: tuple[tuple[int, ...], ...] = ()
    order: tuple[str, ...] = ()
    texts: dict[str, str] = {}
    box: tuple[float, float, float, float] | None = None

    @property
    def verdict(self) -> Verdict:
        """What is decided; unsure where something else is asked for."""
        return "unsure" if self.answer == "given" or self.answer == "skipped" else self.answer

    @property
    def is_given(self) -> bool:
        """Whether there is an answer, where something else than a decision is asked for."""
        return self.answer == "given"

    @property
    def said(self) -> tuple[object, ...]:
        """What two answers that are alike have in common."""
        return self.answer, self.ranks, self.order, tuple(sorted(self.texts.items())), self.box


class VoteFile(msgspec.Struct, frozen=True, kw_only=True):
    """The votes of a reviewer.

    Attributes:
      dataset, sha256: the dataset, and its manifest's digest.
      protocol: what was asked.
      plan: digest of all tasks of all reviewers, as `plan_digest` of `plan.py` makes it.
      reviewer: who answered.
      tasks: how many there were.
      votes: the answers.
      form: how they answered.
      overlap: how many reviewers were asked about each item; 0 where the file does not say.
      of: digest of the file that the tasks are about; empty for none.
      fields: the texts to write.
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
    """The votes of all reviewers.

    Attributes:
      protocol: what they were asked.
      form: how they answered.
      by_reviewer: the votes by reviewer, in the order of their tasks.
      tasks: how many tasks each had.
      paths: each one's file.
      overlap: how many were asked about each item; 0 where the files do not say.
      of: digest of the file that the tasks are about; empty for none.
      fields: the texts to write, with the rules that these keep.
    """

    protocol: str
    by_reviewer: dict[str, list[Vote]]
    tasks: dict[str, int]
    paths: dict[str, Path]
    form: Form = "decide"
    overlap: int = 0
    of: str = ""
    fields: tuple[Field, ...] = ()

    @property
    def unit(self) -> Unit:
        """What the items are."""
        return unit_of(self.protocol, self.form)


def read_votes(paths: Sequence[Path], dataset: str, sha256: str) -> Votes:
    """Reads the votes of some reviewers; `check_ids` checks what they are on.

    Args:
      paths: their files.
      dataset: name of the dataset.
      sha256: of its manifest.

    Raises:
      InputError: a file is malformed, of another dataset or version of it, of another plan than
        the others, votes twice, or on what no task was.
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
        _check_votes(path, own, file)
        found[file.reviewer] = own
        tasks[file.reviewer] = file.tasks
    named = sorted(found)
    return Votes(
        protocol=first.protocol,
        by_reviewer={name: found[name] for name in named},
        tasks={name: tasks[name] for name in named},
        paths={name: seen[name] for name in named},
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
    said = votes_of(data, str(path)) if is_export(data) else data
    file = decode(said, VoteFile, str(path))
    if (file.format, file.format_version) != (FORMAT, VERSION):
        raise InputError(f"{path}: expected the format {FORMAT} {VERSION}")
    known = PROTOCOLS.get(file.protocol)
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


def _check_of(path: Path, file: VoteFile, dataset: str, sha256: str) -> None:
    if file.sha256 != sha256:
        raise InputError(
            f"{path}: votes on {shown(file.dataset)} whose manifest is {file.sha256[:12]}; that of "
            f"{dataset} is {sha256[:12]}: these are other samples, so review it again"
        )


def _check_plan(path: Path, file: VoteFile, first_path: Path, first: VoteFile) -> None:
    if (file.protocol, file.form) != (first.protocol, first.form):
        raise InputError(
            f"{path}: votes by the protocol {shown(file.protocol)}; those of {first_path} are "
            f"by {shown(first.protocol)}"
        )
    if any(getattr(file, name) != getattr(first, name) for name in _OF_PLAN):
        raise InputError(
            f"{path}: is of another plan than {first_path}; take the votes of one plan at a time, "
            "and name what was decided by the other as --earlier"
        )


def _check_votes(path: Path, votes: Iterable[Vote], file: VoteFile) -> None:
    """Checks votes in the order of their tasks."""
    seen: dict[tuple[str, bool], int] = {}
    numbers: set[int] = set()
    for vote in votes:
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
        if wrong := _wrong(vote, file.form):
            raise InputError(f"{where}: {wrong}")
        seen[key] = vote.task
        numbers.add(vote.task)


def answers_of(form: Form) -> tuple[Answer, ...]:
    """Returns the answers that there are, by the form."""
    return VERDICTS if form == "decide" else GIVEN


def _wrong(vote: Vote, form: Form) -> str:
    """Returns what is wrong with an answer; empty for nothing."""
    expected = answers_of(form)
    if vote.answer not in expected:
        return f"answer: expected {', '.join(expected)} where the form is {form}"
    return _CHECKS[form](vote) if vote.is_given else ""


def _wrong_ranks(vote: Vote) -> str:
    """Ranks are 1, and of k captions k at most."""
    right = vote.ranks and all(
        own and all(1 <= each <= len(own) for each in own) for own in vote.ranks
    )
    return "" if right else "ranks: expected one of each caption, from 1 to how many there are"


def _wrong_order(vote: Vote) -> str:
    right = len(vote.order) > 1 and len(set(vote.order)) == len(vote.order)
    return "" if right else "order: expected the ids of two pictures or more, each once"


def _wrong_texts(vote: Vote) -> str:
    return "" if vote.texts else "texts: expected what was written"


def _wrong_box(vote: Vote) -> str:
    if vote.box is None:
        return "box: expected x, y, width and height"
    x, y, width, height = vote.box
    inside = min(x, y) >= 0 and x + width <= 1 + _SLACK and y + height <= 1 + _SLACK
    right = inside and min(width, height) >= _LEAST - _SLACK
    return "" if right else "box: expected shares of the picture, with an area, inside it"


_CHECKS: Final[Mapping[Form, Callable[[Vote], str]]] = {
    "rank": _wrong_ranks,
    "order": _wrong_order,
    "write": _wrong_texts,
    "box": _wrong_box,
}
"""What has to stand in an answer that is given, by its form."""


def row_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yields rows as lines of JSON."""
    for row in rows:
        yield escaped_json(msgspec.json.encode(row).decode()) + "\n"


def answer_lines(votes: Votes) -> Iterator[str]:
    """Yields every answer as a line of JSON, by item, then reviewer, the first answer first."""
    own = ((vote, name) for name, some in votes.by_reviewer.items() for vote in some)
    for vote, name in sorted(own, key=lambda each: (each[0].id, each[1], each[0].is_repeat)):
        known = {"item": vote.id, "reviewer": name, **msgspec.to_builtins(vote)}
        fields = (*ANSWER, *(GIVES[votes.form] if vote.is_given else ()))
        yield from row_lines([{field: known[field] for field in fields}])
