"""Read and write files of errata and of decisions: JSON lines, in any order.

Errata have one line for each error in a sample:

{"id": "hard-positives/1", "action": "drop", "reason": "says the same", "who": "Ada"}
{"id": "hard-positives/2", "action": "correct", "column": "caption", "text": "A red cup.",
"reason": "typing error", "who": "Ada", "when": "2026-11-23"}

Decisions have one line for each sample that people looked at:

{"id": "eq-gebc/a/1", "decision": "drop", "reason": "captions do not fit", "who": "majority of 3"}
{"id": "eq-gebc/a/2", "decision": "keep", "votes": {"keep": 2, "drop": 1, "unsure": 0}}
"""

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import listed, shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.core.visible import escaped_json, series
from eqforge.schemas.records.judgements import Decision, Erratum, Tally

Line = TypeVar("Line", Erratum, Decision)

MAX_ERRATA: Final = 20_000
"""Maximum number of errata in a file; the manifest holds them all."""


def read_errata(path: str | Path) -> tuple[Erratum, ...]:
    found: dict[Erratum, int] = {}
    for number, line in read_lines(path):
        erratum = decode(line, Erratum, str(path), f"line {number}")
        _check(erratum, f"{path}: line {number}")
        if erratum in found:
            raise InputError(
                f"{path}: line {number} repeats line {found[erratum]}; remove one of the two lines"
            )
        found[erratum] = number
        if len(found) > MAX_ERRATA:
            raise InputError(
                f"{path} has more than {MAX_ERRATA:,} errata; correct the annotations instead"
            )
    _check_together(found, str(path))
    return tuple(sorted(found))


def _check(erratum: Erratum, where: str) -> None:
    for name in ("id", "reason", "who"):
        if not getattr(erratum, name).strip():
            raise InputError(f"{where}: {name}: expected a string that is not blank")
    if erratum.stage != "errata":
        raise InputError(
            f"{where}: stage: expected 'errata'; if the file contains decisions, use --decisions"
        )
    is_correction = erratum.action == "correct"
    for name in ("column", "text"):
        if bool(getattr(erratum, name).strip()) != is_correction:
            rule = "needs" if is_correction else "does not allow"
            raise InputError(f"{where}: the action {erratum.action!r} {rule} the field {name!r}")
    if erratum.when:
        try:
            datetime.date.fromisoformat(erratum.when)
        except ValueError as error:
            raise InputError(
                f"{where}: when: expected a date such as 2026-11-23, found {shown(erratum.when)}"
            ) from error


def _check_together(found: dict[Erratum, int], path: str) -> None:
    """Check that a sample is either dropped once or corrected, and each of its texts once."""
    seen: dict[tuple[str, str], Erratum] = {}
    dropped = {erratum.id for erratum in found if erratum.action == "drop"}
    for erratum, number in found.items():
        if erratum.action == "correct" and erratum.id in dropped:
            raise InputError(
                f"{path}: line {number} corrects {shown(erratum.id)}, but another line drops it; "
                "remove one of the two lines"
            )
        if erratum.action == "note":
            continue
        other = seen.setdefault((erratum.id, erratum.column), erratum)
        if other is not erratum:
            raise InputError(
                f"{path}: lines {found[other]} and {number} both {erratum.action} "
                f"{shown(erratum.id)}; remove one of the two lines"
            )


def check_columns(errata: Iterable[Erratum], columns: Collection[str]) -> None:
    """Check that errata correct only these columns of the samples."""
    for erratum in errata:
        if erratum.column and erratum.column not in columns:
            known = series(map(shown, columns)) if columns else "no columns"
            raise InputError(
                f"--errata: {shown(erratum.id)}: the column {shown(erratum.column)} cannot be "
                f"corrected; you can correct {known}"
            )


def unknown(errata: Iterable[Erratum], known: Collection[str]) -> list[str]:
    return sorted({erratum.id for erratum in errata} - set(known))


def unmatched(ids: Sequence[str]) -> str:
    verb = "id matches no sample" if len(ids) == 1 else "ids match no sample"
    return f"{len(ids):,} {verb}: {listed([shown(each) for each in ids])}"


def by_reason(errata: Iterable[Erratum]) -> Counter[tuple[str, str]]:
    return Counter(sorted((erratum.action, erratum.reason) for erratum in errata))


MAX_DROPPED: Final = 20_000
"""Maximum number of samples that a file drops; the manifest names them all."""


def read_decisions(path: str | Path) -> tuple[Decision, ...]:
    found: dict[str, tuple[int, Decision]] = {}
    for number, line in read_lines(path):
        where = f"line {number}"
        decision = decode(line, Decision, str(path), where)
        if not decision.id.strip():
            raise InputError(f"{path}: {where}: id: expected a string that is not blank")
        if decision.id in found:
            before = found[decision.id][0]
            raise InputError(
                f"{path}: lines {before} and {number} both decide about {shown(decision.id)}; "
                "remove one of the two lines"
            )
        found[decision.id] = number, decision
    return tuple(sorted(decision for _, decision in found.values()))


def dropped(path: str | Path | None) -> tuple[Erratum, ...]:
    """Return the samples that a file of decisions drops; none without a file."""
    if path is None:
        return ()
    drops = [each for each in read_decisions(path) if each.decision == "drop"]
    if len(drops) > MAX_DROPPED:
        raise InputError(f"{path} drops {len(drops):,} samples; the limit is {MAX_DROPPED:,}")
    return tuple(
        Erratum(
            id=each.id,
            action="drop",
            reason=each.reason or "dropped",
            who=each.who or "people",
            stage="review",
        )
        for each in drops
    )


def kept_samples(path: str | Path | None) -> tuple[str, ...]:
    decisions = () if path is None else read_decisions(path)
    return tuple(each.id for each in decisions if each.decision != "drop")


def disagreed(decisions: Iterable[Decision]) -> tuple[str, ...]:
    return tuple(each.id for each in decisions if each.is_open)


def with_earlier(decisions: Iterable[Decision], earlier: Iterable[Decision]) -> list[Decision]:
    """Merge two rounds of decisions; the later one wins unless it is unsure."""
    found = {each.id: each for each in earlier}
    for each in decisions:
        if each.decision != "unsure" or each.id not in found:
            found[each.id] = each
    return sorted(found.values())


def lines_of(found: Iterable[Line]) -> Iterator[str]:
    for each in sorted(set(found)):
        entry = {name: value for name, value in msgspec.to_builtins(each).items() if value}
        if entry.get("votes") == msgspec.to_builtins(Tally()):
            del entry["votes"]
        yield escaped_json(msgspec.json.encode(entry).decode()) + "\n"


def write_lines(url: str, found: Iterable[Line]) -> int:
    lines = list(lines_of(found))
    storage.write_bytes(url, "".join(lines).encode())
    return len(lines)
