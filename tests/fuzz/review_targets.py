"""What is fuzzed of reviews: votes, decisions, protocols and errata, all of which people write."""

import atexit
import functools
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from eqforge.commands.review import outcome_lines
from eqforge.core.visible import in_lines, visible
from eqforge.evaluation.review.outcome import import_votes
from eqforge.evaluation.review.plan import write_plan
from eqforge.evaluation.review.protocols import protocol_of
from eqforge.evaluation.review.settings import Import, Plan
from eqforge.sources.errata import (
    disagreed,
    dropped,
    lines_of,
    read_decisions,
    read_errata,
    write_lines,
)
from tests.evaluation.review.reviews import decided
from tests.fuzz import mutate
from tests.fuzz.takes import Outcome, file_of
from tests.made_datasets import write_squares

REVIEWERS = ("ada", "ben")


@functools.cache
def _reviewed() -> Path:
    """Returns a folder with a dataset, `d`, and the votes of each reviewer."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    dataset, plan = write_squares(folder / "d", seeds=1), folder / "plan"
    protocol, reviewers = "eq-sd-filter", REVIEWERS
    write_plan(Plan(dataset=str(dataset), protocol=protocol, reviewers=reviewers, output=plan))
    for name, bad in zip(REVIEWERS, (set(), {"red-0"}), strict=True):
        decided(plan, name, folder / f"{name}.json", bad)
    return folder


def _votes(data: bytes, folder: Path) -> Outcome:
    """Takes the votes of one reviewer beside the good ones of the other."""
    of_ada = file_of(data, folder, "ada.json")
    output, answers = folder / "decisions.jsonl", folder / "answers.jsonl"
    taken = import_votes(
        Import(
            dataset=str(_reviewed() / "d"),
            votes=(of_ada, _reviewed() / "ben.json"),
            output=output,
            answers=answers,
            overwrite=True,
        )
    )
    told = in_lines(outcome_lines(taken))
    assert all(visible(line) == line for line in told.splitlines())
    assert len(read_decisions(output)) == taken.written
    assert all(json.loads(line) for line in answers.read_text("utf-8").splitlines())
    return "records"


def _decisions(data: bytes, folder: Path) -> Outcome:
    path = file_of(data, folder, "decisions.jsonl")
    found = read_decisions(path)
    dropped(path)
    disagreed(found)
    again = file_of("".join(lines_of(found)).encode(), folder, "again.jsonl")
    assert read_decisions(again) == found, "decisions are others after writing"
    return "records" if found else "rejects"


def _errata(data: bytes, folder: Path) -> Outcome:
    found = read_errata(file_of(data, folder, "errata.jsonl"))
    write_lines(str(folder / "again.jsonl"), found)
    assert read_errata(folder / "again.jsonl") == found, "errata are others after writing"
    return "records" if found else "rejects"


def _protocol(data: bytes, folder: Path) -> Outcome:
    protocol_of(str(file_of(data, folder, "protocol.toml")))
    return "records"


_DECISIONS = b"""\
{"id": "a/1", "decision": "drop", "reason": "ugly", "who": "majority of 3", "asked": 3}
{"id": "a/2", "decision": "keep", "votes": {"keep": 2, "drop": 1, "unsure": 0}}
{"id": "a/3", "decision": "unsure"}
"""
_ERRATA = b"""\
{"id": "a/1", "action": "drop", "reason": "wrong", "who": "Ada", "when": "2026-11-23"}
{"id": "a/2", "action": "correct", "column": "caption", "text": "a", "reason": "r", "who": "Ada"}
{"id": "a/3", "action": "note", "reason": "see there", "who": "Ada"}
"""
_PROTOCOL = b"""\
name = "own"
question = "Is it legible?"
guide = "Look at the letters."
reasons = ["blurred", "too small"]
seconds = 3.5
source = "a paper"
"""

Take = Callable[[bytes, Path], Outcome]

REVIEW_TARGETS: dict[str, tuple[Take, Callable[[], tuple[bytes, ...]], mutate.Mutator]] = {
    "review-votes": (_votes, lambda: ((_reviewed() / "ada.json").read_bytes(),), mutate.json_text),
    "review-decisions": (_decisions, lambda: (_DECISIONS,), mutate.json_lines),
    "review-protocol": (_protocol, lambda: (_PROTOCOL,), mutate.damage),
    "errata": (_errata, lambda: (_ERRATA,), mutate.json_lines),
}
