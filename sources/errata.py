"""Reads and writes files of errata: JSON lines, in any order, one for each thing that is wrong.

{"id": "hard-positives/1", "action": "drop", "reason": "says the same", "who": "Ada"}
{"id": "hard-positives/2", "action": "correct", "column": "caption", "text": "A red cup.",
"reason": "typing error", "who": "Ada", "when": "2026-11-23"}
"""

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import listed, shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.core.visible import escaped_json
from eqforge.schemas.records.errata import Erratum

MAX_ERRATA: Final = 20_000
"""The most errata of a file: the manifest holds them all."""


def read_errata(path: str | Path) -> tuple[Erratum, ...]:
    """Reads a file of errata; returns them sorted, so that their order in the file is nothing.

    Raises:
      InputError: a line is no erratum, or two lines contradict each other; the message says which.
    """
    found: dict[Erratum, int] = {}
    for number, line in read_lines(path):
        erratum = decode(line, Erratum, str(path), f"line {number}")
        _check(erratum, f"{path}: line {number}")
        if erratum in found:
            raise InputError(f"{path}: line {number}: says what line {found[erratum]} says")
        found[erratum] = number
        if len(found) > MAX_ERRATA:
            raise InputError(
                f"{path}: has more than {MAX_ERRATA:,} errata; correct the annotations instead"
            )
    _check_together(found, str(path))
    return tuple(sorted(found))


def _check(erratum: Erratum, where: str) -> None:
    """Checks what the types of the fields do not say.

    Raises:
      InputError: something is missing, or is given where it means nothing.
    """
    for name in ("id", "reason", "who"):
        if not getattr(erratum, name).strip():
            raise InputError(f"{where}: {name}: expected a text, found none")
    if erratum.stage != "errata":
        raise InputError(f"{where}: stage: what people decided is for --decisions")
    is_correction = erratum.action == "correct"
    for name in ("column", "text"):
        if bool(getattr(erratum, name).strip()) != is_correction:
            rule = "needs one" if is_correction else "has none"
            raise InputError(f"{where}: {name}: the action {erratum.action!r} {rule}")
    if erratum.when:
        try:
            datetime.date.fromisoformat(erratum.when)
        except ValueError as error:
            raise InputError(
                f"{where}: when: expected a day such as 2026-11-23, found {shown(erratum.when)}"
            ) from error


def _check_together(found: dict[Erratum, int], path: str) -> None:
    """Checks that a sample is dropped once or corrected, and each of its texts once.

    Raises:
      InputError: two lines contradict each other.
    """
    seen: dict[tuple[str, str], Erratum] = {}
    dropped = {erratum.id for erratum in found if erratum.action == "drop"}
    for erratum, number in found.items():
        if erratum.action == "correct" and erratum.id in dropped:
            raise InputError(f"{path}: line {number}: {shown(erratum.id)} is dropped, too")
        if erratum.action == "note":
            continue
        other = seen.setdefault((erratum.id, erratum.column), erratum)
        if other is not erratum:
            raise InputError(
                f"{path}: lines {found[other]} and {number}: {shown(erratum.id)} appears twice "
                f"with the action {erratum.action!r}"
            )


def check_columns(errata: Iterable[Erratum], columns: Collection[str]) -> None:
    """Checks that texts are corrected where there are any.

    Args:
      errata: the errata.
      columns: the columns of the samples that may be corrected.

    Raises:
      InputError: another one is to be.
    """
    for erratum in errata:
        if erratum.column and erratum.column not in columns:
            raise InputError(
                f"--errata: {shown(erratum.id)}: the column {shown(erratum.column)} cannot be "
                f"corrected; the samples have {', '.join(columns) or 'no texts'}"
            )


def unknown(errata: Iterable[Erratum], known: Collection[str]) -> list[str]:
    """Returns the ids of errata that are of no sample, sorted."""
    return sorted({erratum.id for erratum in errata} - set(known))


def told(ids: Sequence[str]) -> str:
    """Returns what is said of ids that are of no sample, with the first few."""
    verb = "is an erratum of no sample" if len(ids) == 1 else "are errata of no sample"
    return f"{len(ids):,} {verb}: {listed([shown(each) for each in ids])}"


def errata_lines(errata: Iterable[Erratum]) -> Iterator[str]:
    """Yields the lines of a file of errata, sorted; fields that say nothing are left out."""
    for erratum in sorted(set(errata)):
        said = {name: value for name, value in msgspec.to_builtins(erratum).items() if value}
        yield escaped_json(msgspec.json.encode(said).decode()) + "\n"


def write_errata(url: str, errata: Iterable[Erratum]) -> int:
    """Writes a file of errata; returns how many there are."""
    lines = list(errata_lines(errata))
    storage.write_bytes(url, "".join(lines).encode())
    return len(lines)


def by_reason(errata: Iterable[Erratum]) -> Counter[tuple[str, str]]:
    """Returns how many errata there are by action and reason."""
    return Counter(sorted((erratum.action, erratum.reason) for erratum in errata))
