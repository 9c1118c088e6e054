"""Define the findings of a lint and the closed list of their kinds."""

import dataclasses
from typing import Literal, cast

from eqforge.generators.text.words import read_table

Severity = Literal["error", "warning", "note"]
"""error: the record cannot be used; warning: it misleads; note: worth a look."""

KINDS: dict[str, tuple[Severity, str]] = {
    row["kind"]: (cast(Severity, row["severity"]), row["meaning"])
    for row in read_table("findings.tsv")
}

ERRORS = tuple(kind for kind, (severity, _) in KINDS.items() if severity == "error")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A defect in a record.

    Attributes:
      field: caption with the defect: "positive", "negative", "hard_positive", "perturbed", or
        "other_caption" of a second image.
      twin: id of the first record that this record duplicates; empty for other findings.
    """

    record_id: str
    kind: str
    field: str
    detail: str
    twin: str = ""

    severity: Severity = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "severity", KINDS[self.kind][0])
