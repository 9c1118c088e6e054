"""Stages of a build with their reasons, rejected candidates, and the counts of a stage."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from eqforge.core.files.objects import DOWNLOAD_FAILED
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.values import Finite, Sha256, Text

ERROR_PREFIX = "error:"
"""The prefix of the reason if an exception ended the work on a record: `error:<Type>`."""


def is_failure(reason: str) -> bool:
    """Return True if a reason says nothing of the candidate, which may pass in the next run."""
    return reason.startswith(ERROR_PREFIX) or reason == DOWNLOAD_FAILED


@dataclass(frozen=True, kw_only=True, slots=True)
class Reject:
    """A candidate that did not become a sample.

    Attributes:
      candidate_id: id of the annotation record, frame or pair.
      stage: stage of the build that rejected the candidate.
      reason: one of the stage's reasons, or `error:<Type>`.
      value, threshold: score that led to the rejection, and its limit, or None without a score.
      detail: human-readable explanation.
      source_id, source_path, source_sha256: source of the candidate, if known.
    """

    candidate_id: str
    stage: Text
    reason: Text
    value: Finite | None = None
    threshold: Finite | None = None
    detail: str = ""
    source_id: str = ""
    source_path: str | None = None
    source_sha256: Sha256 | None = None

    def __post_init__(self) -> None:
        """Convert numbers and text to what a column can hold, so that rows read back equal.

        A detail may quote a caption with half of a surrogate pair, which is escaped.
        """
        for name in ("value", "threshold"):
            number = getattr(self, name)
            object.__setattr__(self, name, None if number is None else float(number))
        detail = self.detail.encode("utf-8", "backslashreplace").decode()
        object.__setattr__(self, "detail", detail)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """How many candidates entered a stage and how many left it; the others are rejects."""

    stage: str
    candidates: int
    kept: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a pipeline that rejects candidates.

    Attributes:
      name: its name in manifests and rejects.
      reasons: every reason that it may give, with one sentence of meaning.
      note: what else a reader of its reasons should know.
    """

    name: str
    reasons: Mapping[str, str] = field(default_factory=dict)
    note: str = field(default="", kw_only=True)

    def may_reject_for(self, reason: str) -> bool:
        """Return True if the stage may give a reason; every stage may fail with an exception."""
        return reason.startswith(ERROR_PREFIX) or reason in self.reasons

    def tally(self, candidates: int, kept: int) -> Tally:
        return Tally(stage=self.name, candidates=candidates, kept=kept)

    def reject(self, candidate_id: str, rejection: Rejection, **lineage: str | None) -> Reject:
        """Return the reject of a candidate, with its `source_…` fields as far as they are known."""
        found: dict[str, Any] = asdict(rejection) | lineage
        return Reject(candidate_id=candidate_id, stage=self.name, **found)
