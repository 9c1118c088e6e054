from dataclasses import fields

import numpy as np

from eqforge.transforms.filters.faces import FACES
from eqforge.transforms.filters.images import IMAGE_FILTER_REASONS, ImageFilters
from eqforge.transforms.filters.quality import QualitySettings

BLACK = np.zeros((40, 60, 3), np.uint8)


def test_filters_score_and_refuse_by_their_settings() -> None:
    filters = ImageFilters(faces=FACES.off)
    scored = filters.score(BLACK)

    names = [score.name for score in scored.scores]
    assert {"luminance_mean", "contrast", "sharpness"} <= set(names)
    assert len(set(names)) == len(names)
    rejection = filters.refuse(scored.scores)
    assert rejection is not None
    assert rejection.reason == "black_image"
    assert rejection.reason in IMAGE_FILTER_REASONS


def test_filters_that_are_off_refuse_nothing() -> None:
    filters = ImageFilters.off()
    assert filters.refuse(filters.score(BLACK).scores) is None


def test_one_filter_can_be_left_on() -> None:
    filters = ImageFilters.off(quality=QualitySettings(min_luminance=None, min_sharpness=None))
    rejection = filters.refuse(filters.score(BLACK).scores)
    assert rejection is not None
    assert rejection.reason == "constant_image"


def test_the_scores_depend_on_what_every_filter_says_and_on_no_limit() -> None:
    filters = ImageFilters(faces=FACES.off)
    basis = dict(zip((each.name for each in fields(filters)), filters.basis(), strict=False))
    assert basis["faces"] == FACES.basis(FACES.off)
    assert basis["quality"] == "2"
    assert ImageFilters.off().basis() == filters.basis()
