"""Reads and writes files of decisions: JSON lines, in any order, one for each sample.

{"id": "eq-gebc/a/1", "decision": "drop", "reason": "captions do not fit", "who": "majority of 3"}
{"id": "eq-gebc/a/2", "decision": "keep", "votes": {"keep": 2, "drop": 1, "unsure": 0}}
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import listed, shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.core.visible import escaped_json
from eqforge.schemas.records.errata import Erratum
from eqforge.schemas.records.reviews import Decision, Tally

MAX_DROPPED: Final = 20_000
"""The most samples that a file drops: the manifest names them all."""

_NOBODY: Final = "people"


def read_decisions(path: str | Path) -> tuple[Decision, ...]:
    """Reads a file of decisions; returns them sorted, so that their order in the file is nothing.

    Raises:
      InputError: a line is no decision, or two lines are of one sample; the message says which.
    """
    found: dict[str, tuple[int, Decision]] = {}
    for number, line in read_lines(path):
        where = f"line {number}"
        decision = decode(line, Decision, str(path), where)
        if not decision.id.strip():
            raise InputError(f"{path}: {where}: id: expected a text, found none")
        if decision.id in found:
            before = found[decision.id][0]
            raise InputError(
                f"{path}: lines {before} and {number}: {shown(decision.id)} is decided twice"
            )
        found[decision.id] = number, decision
    return tuple(sorted(decision for _, decision in found.values()))


def dropped(path: str | Path | None) -> tuple[Erratum, ...]:
    """Returns the samples that a file of decisions drops; none if no file is named.

    Raises:
      InputError: see read_decisions; or the file drops more than 20,000 samples.
    """
    if path is None:
        return ()
    drops = [each for each in read_decisions(path) if each.decision == "drop"]
    if len(drops) > MAX_DROPPED:
        raise InputError(f"{path}: drops {len(drops):,} samples; expected {MAX_DROPPED:,} at most")
    return tuple(
        Erratum(
            id=each.id,
            action="drop",
            reason=each.reason or "dropped",
            who=each.who or _NOBODY,
            stage="review",
        )
        for each in drops
    )


def left(path: str | Path | None) -> tuple[str, ...]:
    """Returns the ids of samples that a file of decisions does not drop; none without a file."""
    decisions = () if path is None else read_decisions(path)
    return tuple(each.id for each in decisions if each.decision != "drop")


def told_decisions(ids: Sequence[str]) -> str:
    """Returns what is said of decisions that are on no sample, with the first few."""
    verb = "is a decision on no sample" if len(ids) == 1 else "are decisions on no sample"
    return f"{len(ids):,} {verb}: {listed([shown(each) for each in ids])}"


def disagreed(decisions: Iterable[Decision]) -> tuple[str, ...]:
    """Returns the ids of samples that need another look, as `Decision.is_open` says."""
    return tuple(each.id for each in decisions if each.is_open)


def with_earlier(decisions: Iterable[Decision], earlier: Iterable[Decision]) -> list[Decision]:
    """Returns decisions of two rounds: the later one's, and of the earlier what these leave.

    Where the later round is unsure, what was decided before stays.
    """
    found = {each.id: each for each in earlier}
    for each in decisions:
        if each.decision != "unsure" or each.id not in found:
            found[each.id] = each
    return sorted(found.values())


def decision_lines(decisions: Iterable[Decision]) -> Iterator[str]:
    """Yields the lines of a file of decisions, sorted; fields that say nothing are left out."""
    for decision in sorted(set(decisions)):
        said = {name: value for name, value in msgspec.to_builtins(decision).items() if value}
        if decision.votes == Tally():
            del said["votes"]
        yield escaped_json(msgspec.json.encode(said).decode()) + "\n"


def write_decisions(url: str, decisions: Iterable[Decision]) -> int:
    """Writes a file of decisions; returns how many there are."""
    lines = list(decision_lines(decisions))
    storage.write_bytes(url, "".join(lines).encode())
    return len(lines)
