"""The findings of a lint and the closed list of their kinds."""

import dataclasses
from typing import Literal, cast

from eqforge.generators.text.words import read_table

Severity = Literal["error", "warning", "note"]
"""error: the record cannot be used; warning: it misleads; note: worth a look."""

KINDS: dict[str, tuple[Severity, str]] = {
    row["kind"]: (cast(Severity, row["severity"]), row["meaning"])
    for row in read_table("findings.tsv")
}
"""Severity and meaning of every kind of finding."""

ERRORS = tuple(kind for kind, (severity, _) in KINDS.items() if severity == "error")
"""The kinds whose records cannot be used."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One defect of one record, of a kind in KINDS.

    Attributes:
      field: the caption at fault: "positive", "negative", "hard_positive" or "perturbed";
        "other_caption" if the caption of a second image stands in place of a negative.
      twin: the id of the first record that a duplicate repeats; empty for other kinds.
    """

    record_id: str
    kind: str
    field: str
    detail: str
    twin: str = ""

    severity: Severity = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "severity", KINDS[self.kind][0])
