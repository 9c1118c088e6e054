"""The certificate of a dataset of hard negatives: how well its text alone tells true from false."""

import heapq
from typing import Final

from eqforge.core.identity import picture_key, sample_rank
from eqforge.evaluation.shortcuts.audit import (
    CONTRASTS,
    VERSION,
    Contrast,
    ProbeResult,
    audit_pairs,
)
from eqforge.evaluation.shortcuts.judges import blind_judges, unasked
from eqforge.schemas.dataset.manifest import BlindProbe, Certificate
from eqforge.schemas.dataset.reader import Dataset
from eqforge.sources.text_pairs import TextPair

MOST_ROWS = 10_000
"""How many rows are judged, those with the least numbers of their ids where there are more."""
FOLDS = 5
_QUESTIONS: Final[tuple[Contrast, ...]] = ("negative", "hard_positive_or_negative")
_COLUMNS = ("sample_id", "image", "caption", "hard_positive", "hard_negative")


def certify(dataset: Dataset) -> Certificate:
    """Returns the certificate of a dataset of captions, hard positives and hard negatives.

    Args:
      dataset: its tables; rows of few images cannot be judged.

    Raises:
      MissingExtra: scikit-learn is not installed.
    """
    rows = dataset.rows("samples", _COLUMNS)
    chosen = heapq.nsmallest(
        MOST_ROWS, rows, key=lambda row: (sample_rank(row["sample_id"]), row["sample_id"])
    )
    pairs = [
        TextPair(
            pair_id=row["sample_id"],
            image=row["image"],
            positive=row["caption"],
            negative=row["hard_negative"],
            hard_positive=row["hard_positive"],
        )
        for row in chosen
    ]
    found = len({picture_key(pair.image, pair.pair_id) for pair in pairs})
    if found < FOLDS:
        return Certificate(
            version=VERSION,
            rows=len(pairs),
            folds=FOLDS,
            probes=[],
            best=None,
            unasked=[f"all: it takes rows of {FOLDS} images, and found {found}"],
        )
    audit = audit_pairs(pairs, blind_judges(FOLDS), folds=FOLDS, contrasts=_QUESTIONS)
    best = max(audit.results, key=lambda result: result.told)
    return Certificate(
        version=VERSION,
        rows=len(pairs),
        folds=FOLDS,
        probes=[_stated(each, each.accuracy, (each.low, each.high)) for each in audit.results],
        best=_stated(best, best.told, best.told_between),
        unasked=list(unasked()),
    )


def _stated(result: ProbeResult, right: float, interval: tuple[float, float]) -> BlindProbe:
    low, high = interval
    return BlindProbe(
        question=CONTRASTS[result.contrast][2],
        probe=result.probe,
        accuracy=round(right, 4),
        low=round(low, 4),
        high=round(high, 4),
    )
