"""Plans of SIMAT: which region is shown, what is asked of it, and why another is not."""

from collections.abc import Iterable
from typing import Any

import pytest

from eqforge.generators.simat.triplets import TripletSettings
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.simat import PublishedQuery, Region, Triplet
from eqforge.transforms.simat.plan import PlanRules, plan_images
from eqforge.transforms.simat.planned import PlannedImage

WORDS = [("man", "touching", "sofa"), ("man", "touching", "couch"), ("man", "licking", "sofa"),
         ("man", "licking", "couch")]  # fmt: skip


def region(region_id: str, image_id: str, words: tuple[str, str, str]) -> Region:
    box = CornerBox(x0=0, y0=0, x1=90, y1=90)
    return Region(
        region_id=region_id,
        image_id=image_id,
        triplet=Triplet(subject=words[0], relation=words[1], object=words[2]),
        subject_box=box,
        object_box=box,
    )


# Regions 0 to 7: two of each triplet, two in each image.
REGIONS = [region(str(n), f"i{n // 2}", WORDS[n % 4]) for n in range(8)]


def plan(regions: Iterable[Region] = REGIONS, **changes: Any) -> list[PlannedImage]:
    plain: dict[str, Any] = {"triplets": TripletSettings(), "published": False, "captions": {}}
    plain |= {"synonyms": None, "seed": 0}
    return list(plan_images(regions, PlanRules(**(plain | changes))))


def queries(images: list[PlannedImage]) -> dict[str, str | None]:
    """The reason, or None, of every query that is planned."""
    return {
        query.sample_id: None if query.rejection is None else query.rejection.reason
        for image in images
        for each in image.regions
        for query in each.queries
    }


@pytest.mark.parametrize("published", [True, False])
def test_the_split_is_by_image_or_as_published_by_region(published: bool) -> None:
    many = [region(str(n), f"i{n // 2}", WORDS[n % 4]) for n in range(400)]
    images = plan(many, published=published)
    splits = [{query.split for each in image.regions for query in each.queries} for image in images]
    assert sum(len(split) == 2 for split in splits) == pytest.approx(
        100 if published else 0, abs=25
    )
    dev = sum(query.split == "dev" for i in images for r in i.regions for query in r.queries)
    assert dev == pytest.approx(400, abs=80)
    other = plan(many, published=published, seed=1)
    assert other != images
    assert queries(other) == queries(images)


def asked(region_id: str, source: str, target: str, norm2: int = 9) -> PublishedQuery:
    return PublishedQuery(
        region_id=region_id, part="object", source=source, target=target, norm2=norm2, split="test"
    )


def test_published_queries_keep_split_and_frequency_in_paper_mode_alone() -> None:
    found = [asked("0", "sofa", "couch")]
    (query,) = [
        q for i in plan(queries=found, published=True) for r in i.regions for q in r.queries
    ]
    assert (query.split, query.frequency) == ("test", 9)
    (query,) = [q for i in plan(queries=found) for r in i.regions for q in r.queries]
    assert query.frequency is None
