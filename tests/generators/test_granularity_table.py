import dataclasses
from typing import Any

import numpy as np
import pytest

from eqforge.generators.text.granularity import (
    FEATURES,
    FeatureSummary,
    Granularity,
    summarise_granularity,
)

COUNTS = ("nouns", "adjectives", "complement_phrases", "articles", "quantifiers", "characters")
VALUES: dict[str, Any] = {name: 0 if name in (*COUNTS, "words") else None for name in FEATURES}
BLANK = Granularity(**VALUES)


def captions(images: int, per_image: int) -> list[tuple[str, Granularity]]:
    """Captions whose number of words depends on the image alone, and some without a noun."""
    rng = np.random.default_rng(3)
    words = rng.poisson(10, size=images)
    return [
        (
            f"image-{i:04}",
            dataclasses.replace(
                BLANK, words=int(words[i]), noun_depth=float(i) if (i + j) % 3 else None
            ),
        )
        for i in range(images)
        for j in range(per_image)
    ]


def by_name(summaries: list[FeatureSummary]) -> dict[str, FeatureSummary]:
    return {summary.feature: summary for summary in summaries}


def test_means_are_over_the_captions_that_have_the_feature() -> None:
    measured = captions(images=40, per_image=5)
    found = by_name(summarise_granularity(measured, seed=0))
    assert list(found) == list(FEATURES)
    assert found["words"].mean == pytest.approx(np.mean([g.words for _, g in measured]))
    depths = [g.noun_depth for _, g in measured if g.noun_depth is not None]
    assert found["noun_depth"].captions == len(depths)
    assert found["noun_depth"].mean == pytest.approx(np.mean(depths))
    assert found["concept_depth"] == FeatureSummary(
        feature="concept_depth", captions=0, mean=None, low=None, high=None
    )


def test_the_interval_is_that_of_images_not_of_captions() -> None:
    """The five captions of an image say the same: the interval is as wide as over 400 images."""
    measured = captions(images=400, per_image=5)
    found = by_name(summarise_granularity(measured, seed=0, resamples=4_000))["words"]
    per_image = np.array([g.words for _, g in measured[::5]])
    error = per_image.std() / np.sqrt(400)
    assert found.low == pytest.approx(per_image.mean() - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(per_image.mean() + 1.96 * error, abs=0.15 * error)


def test_the_seed_decides_the_interval_and_not_the_order_of_the_captions() -> None:
    measured = captions(images=30, per_image=2)
    first = summarise_granularity(measured, seed=0)
    assert summarise_granularity(reversed(measured), seed=0) == first
    assert summarise_granularity(measured, seed=1) != first


def test_a_single_image_has_no_interval_and_no_captions_have_an_empty_table() -> None:
    found = by_name(summarise_granularity(captions(images=1, per_image=5), seed=0))["words"]
    assert found.mean is not None
    assert found.low is found.high is None
    assert {summary.mean for summary in summarise_granularity([], seed=0)} == {None}
