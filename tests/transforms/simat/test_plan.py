"""Plans of SIMAT: which region is shown, what is asked of it, and why another is not."""

from collections.abc import Iterable
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.simat.triplets import TripletSettings
from eqforge.generators.simat.wording import load_synonyms
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.simat import PublishedQuery, Region, Triplet
from eqforge.sources.visual_genome import ImageData
from eqforge.transforms.dataset.plan import Selection
from eqforge.transforms.simat.plan import PlanRules, plan_images, select_planned
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


def rejects(images: list[PlannedImage]) -> dict[str, str]:
    return {reject.candidate_id: reject.reason for image in images for reject in image.rejects}


def queries(images: list[PlannedImage]) -> dict[str, str | None]:
    """The reason, or None, of every query that is planned."""
    return {
        query.sample_id: None if query.rejection is None else query.rejection.reason
        for image in images
        for each in image.regions
        for query in each.queries
    }


def test_images_come_in_the_order_of_the_source_with_captions_of_all_that_is_asked() -> None:
    images = plan()
    assert [image.image_id for image in images] == ["i0", "i1", "i2", "i3"]
    assert images[0].paths == ("i0.jpg", "VG_100K/i0.jpg", "VG_100K_2/i0.jpg")
    assert len(queries(images)) == 8 * 2
    for image in images:
        named = {row.caption_id for row in image.captions}
        assert {
            query.change.target.triplet_id for r in image.regions for query in r.queries
        } <= named


def test_an_id_that_stands_twice_is_a_reject_of_its_own() -> None:
    others = [region("3", "i9", WORDS[0]), region("3", "i9", WORDS[0]), region("3", "i8", WORDS[0])]
    found = []
    for source in ([*REGIONS, *others], [*others, *REGIONS], [*others[::-1], *REGIONS[::-1]]):
        images = plan(source)
        shown = {each.region.region_id: each.region for image in images for each in image.regions}
        assert sorted(shown) == list("01234567")
        assert set(rejects(images).values()) == {"region_twice"}
        found.append((shown["3"], sorted(rejects(images))))
    assert found[0] == found[1] == found[2]
    assert len(found[0][1]) == 3


def test_synonyms_are_refused_where_asked_for() -> None:
    kept, refused = plan(), plan(synonyms=load_synonyms())
    assert set(queries(kept).values()) == {None}
    assert {name for name, reason in queries(refused).items() if reason == "synonym"} == {
        f"simat/{n}/object/{('couch', 'sofa')[n % 2]}" for n in range(8)
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


def test_published_queries_of_what_is_not_shown_are_rejects() -> None:
    chosen = {r.region_id: r.triplet for r in REGIONS if r.region_id != "0"}
    found = [asked("0", "sofa", "couch"), asked("4", "sofa", "moon")]
    images = plan(chosen=chosen, queries=found)
    assert rejects(images) == {"simat/0": "not_chosen", "simat/0/object/couch": "region_refused"}
    assert queries(images) == {"simat/4/object/moon": "target_without_crop"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queries": [asked("77", "sofa", "couch")]}, "of the region 77, but the source"),
        ({"queries": [asked("0", "bed", "couch")]}, "changes the object 'bed' of the region 0"),
        ({"queries": [asked("0", "sofa", "couch")] * 2}, "the query 0 object couch appears twice"),
        ({"chosen": {"77": REGIONS[0].triplet}}, "found no region with that id"),
        ({"chosen": {"1": REGIONS[0].triplet}}, "found 'man/touching/couch'"),
    ],
)
def test_files_that_do_not_fit_the_source_are_refused(changes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(**changes)


def test_image_data_gives_path_and_size_and_a_users_captions_come_first() -> None:
    triplet = REGIONS[0].triplet
    images = plan(
        images={"i0": ImageData(width_px=4, height_px=3, path="VG_100K_2/i0.jpg")},
        captions={triplet: "He pats it."},
    )
    assert images[0].size == (4, 3)
    assert images[0].paths[0] == "VG_100K_2/i0.jpg"
    assert images[1].size is None
    captions = {row.caption_id: (row.caption, row.origin) for row in images[0].captions}
    assert captions[triplet.triplet_id] == ("He pats it.", "file")
    assert captions["man/licking/couch"] == ("A man licking a couch.", "template")


def test_a_selection_takes_whole_images_and_knows_every_name() -> None:
    images = list(select_planned(plan(), Selection()))
    assert list(select_planned(images, Selection(limit=3))) == images[:2]
    assert list(select_planned(images, Selection(limit=0))) == []
    wanted = Selection(only=("simat/5/object/sofa", "simat/1"))
    assert list(select_planned(images, wanted)) == images, "weights are counted over all"
    with pytest.raises(InputError, match="has no region or query 'simat/9'"):
        list(select_planned(images, Selection(only=("simat/9", "simat/1"))))


def test_a_triplet_is_counted_with_the_first_selected_image_that_shows_it() -> None:
    images = list(select_planned(plan(), Selection()))
    shown = {each.region.triplet for image in images for each in image.regions}
    assert sum(image.new_triplets for image in images) == len(shown)
