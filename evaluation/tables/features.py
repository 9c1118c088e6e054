"""Means of how detailed a dataset's captions are, over all of its captions."""

import dataclasses
from dataclasses import dataclass
from typing import Final

import numpy as np

from eqforge.core.identity import picture_key
from eqforge.evaluation.statistics.bootstrap import resample_means
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.texts import MeasuredCaption

_COLUMNS = [field.name for field in dataclasses.fields(MeasuredCaption)]
FEATURES: Final = tuple(_COLUMNS[_COLUMNS.index("tagger") + 1 :])


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """The mean of a feature over the captions that have it, NaN if none has; and its interval."""

    name: str
    captions: int
    mean: float
    low: float
    high: float


def feature_means(dataset: Dataset) -> list[Feature]:
    """Return the features' means, with 95% bootstrap intervals over images."""
    images, values = [], []
    for row in dataset.rows("captions", ["image", "caption_id", *FEATURES]):
        images.append(picture_key(row["image"], row["caption_id"]))
        values.append([row[name] for name in FEATURES])
    columns = np.array(values, dtype=np.float64).reshape(-1, len(FEATURES))
    is_known = ~np.isnan(columns)
    found = resample_means(
        np.where(is_known, columns, 0.0), np.array(images, dtype=object), weights=is_known
    )
    return [
        Feature(
            name=name,
            captions=int(is_known[:, place].sum()),
            mean=float(found.values[place]),
            low=found.interval(place)[0],
            high=found.interval(place)[1],
        )
        for place, name in enumerate(FEATURES)
    ]
