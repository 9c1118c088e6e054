"""The certificate of a dataset of hard negatives: how well its text alone tells true from false."""

import heapq
from typing import Final

from eqforge.evaluation.shortcuts.audit import CONTRASTS, VERSION, Contrast, audit_pairs
from eqforge.evaluation.shortcuts.judges import blind_judges, unasked
from eqforge.schemas.dataset.manifest import BlindProbe, Certificate
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.identity import sample_rank
from eqforge.schemas.sources.text_pairs import TextPair

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
    found = len({pair.image for pair in pairs})
    if found < FOLDS:
        return Certificate(
            version=VERSION,
            rows=len(pairs),
            folds=FOLDS,
            probes=[],
            unasked=[f"all: the rows are of {found} images, and it takes {FOLDS}"],
        )
    audit = audit_pairs(pairs, blind_judges(FOLDS), folds=FOLDS, contrasts=_QUESTIONS)
    return Certificate(
        version=VERSION,
        rows=len(pairs),
        folds=FOLDS,
        probes=[
            BlindProbe(
                question=CONTRASTS[result.contrast][2],
                probe=result.probe,
                accuracy=round(result.accuracy, 4),
                low=round(result.low, 4),
                high=round(result.high, 4),
            )
            for result in audit.results
        ],
        unasked=list(unasked()),
    )
