"""Pictures and masks drawn by hand: each gate fires on its own fault, and not on a sound pair."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.ndimage  # type: ignore[import-untyped]
import skimage.color
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.schemas.records.scenes import (
    Backdrop,
    Claim,
    Environment,
    Overlap,
    Relation,
    RenderedObject,
    SceneCamera,
    SceneLight,
    SceneObject,
    ScenePair,
    SceneSpec,
    SurfaceMaterial,
)
from eqforge.schemas.records.scores import value_of
from eqforge.schemas.records.values import PixelBox
from eqforge.transforms.generated.scene_colours import RenderedView
from eqforge.transforms.generated.scene_gates import OFF, SCENE_REASONS, SceneGates, gate_scenes
from eqforge.transforms.generated.scene_scores import score_scenes

SIDE = 100
GREY, RED, BLUE = (120, 120, 120), (200, 30, 30), (30, 30, 200)
Drawn = Mapping[str, tuple[PixelBox, tuple[int, int, int]]]
MUG, BOWL = PixelBox(x=20, y=40, width=15, height=15), PixelBox(x=60, y=40, width=20, height=15)
SOUND: Drawn = {"mug": (MUG, RED), "bowl": (BOWL, (0, 90, 0))}
ALONE = Claim(target="mug", copies=("mug",))


def drawn(
    objects: Drawn, depths: Mapping[str, float] | None = None, overlaps: tuple[Overlap, ...] = ()
) -> RenderedView:
    """Boxes on a noisy floor, later ones over earlier ones."""
    noise = np.random.default_rng(1).integers(-9, 10, (SIDE, SIDE, 3))
    pixels, numbers = np.clip(noise + GREY, 0, 255).astype(np.uint8), np.zeros((SIDE, SIDE), int)
    for number, (box, colour) in enumerate(objects.values(), 1):
        place = np.s_[box.y : box.y + box.height, box.x : box.x + box.width]
        pixels[place], numbers[place] = colour, number
    shown = []
    for number, (name, (box, _)) in enumerate(objects.items(), 1):
        mask = numbers == number
        visible, full = int(mask.sum()), box.width * box.height
        shown.append(
            RenderedObject(
                name=name,
                asset=name,
                box=around(mask),
                visible_px=visible,
                full_px=full,
                visible_fraction=visible / full,
                depth_m=(depths or {}).get(name, 5.0),
            )
        )
    return RenderedView(
        pixels=pixels, numbers=numbers.astype(np.uint8), objects=tuple(shown), overlaps=overlaps
    )


def around(mask: NDArray[np.bool_]) -> PixelBox | None:
    """The box around the pixels of a mask."""
    if not mask.any():
        return None
    y, x = np.nonzero(mask)
    left, top = int(x.min()), int(y.min())
    return PixelBox(x=left, y=top, width=int(x.max()) - left + 1, height=int(y.max()) - top + 1)


def scene(objects: Drawn) -> SceneSpec:
    """A scene with as much of what was drawn as makes a change of it a change of the scene."""
    return SceneSpec(
        objects=tuple(
            SceneObject(name=name, asset=name, position=(box.x, box.y, 0.0), colour=colour)
            for name, (box, colour) in objects.items()
        ),
        camera=SceneCamera(position=(0, -5, 2), look_at=(0, 0, 0)),
        light=SceneLight(sun_position=(1, 1, 1)),
        backdrop=Backdrop(),
        seed=1,
    )


def pair(
    first: Drawn = SOUND, second: Drawn | None = None, claims: tuple[Claim, Claim] = (ALONE, ALONE)
) -> ScenePair:
    other = {**first, "mug": (MUG, BLUE)} if second is None else second
    return ScenePair(
        sample_id="d/1",
        kind="attribute",
        change="colour",
        scenes=(scene(first), scene(other)),
        captions=("", ""),
        claims=claims,
    )


def refused(asked: ScenePair, views: tuple[RenderedView, RenderedView], **gates: Any) -> str | None:
    rejection = gate_scenes(score_scenes(asked, views), replace(SceneGates(), **gates))
    return None if rejection is None else rejection.reason


def test_a_sound_pair_passes_and_its_scores_are_what_was_drawn() -> None:
    second = {**SOUND, "mug": (MUG, BLUE)}
    scores = score_scenes(pair(), (drawn(SOUND), drawn(second)))

    assert gate_scenes(scores, SceneGates()) is None
    assert value_of(scores, "visible_area_1") == 15 * 15 / SIDE**2
    assert value_of(scores, "frame_margin_0") == 0.2
    assert value_of(scores, "occlusion_0") == 0.0
    assert value_of(scores, "copy_gap_0") is None
    assert value_of(scores, "unchanged_iou") == 1.0
    assert value_of(scores, "unchanged_ssim") == 1.0
    assert value_of(scores, "unchanged_difference") == 0.0
    assert value_of(scores, "change") == round((170 + 0 + 170) / 3 / 255, 6)
    assert len({score.name for score in scores}) == len(scores)


def test_an_object_at_the_edge_is_refused_only_if_it_is_spoken_of() -> None:
    edge = PixelBox(x=85, y=40, width=15, height=15)
    first, second = {**SOUND, "bowl": (edge, RED)}, {"mug": (MUG, BLUE), "bowl": (edge, RED)}
    views = drawn(first), drawn(second)
    beside = Claim(target="mug", copies=("mug",), relation="left", reference="bowl")

    assert refused(pair(first, second), views) is None
    assert refused(pair(first, second, (beside, beside)), views) == "out_of_frame"


def test_an_object_that_is_hardly_or_not_visible_is_refused() -> None:
    small = PixelBox(x=60, y=40, width=4, height=4)
    hidden = {"bowl": (MUG, RED), "mug": (MUG, RED)}

    assert refused(pair(), (drawn(SOUND), drawn({**SOUND, "bowl": (small, RED)}))) == (
        "too_few_pixels"
    )
    assert refused(pair(), (drawn(SOUND), drawn(hidden))) == "too_few_pixels"


@pytest.mark.parametrize(
    ("side", "reason"), [(5, "too_small"), (6, None), (63, None), (64, "too_large")]
)
def test_an_object_that_is_spoken_of_is_neither_a_speck_nor_the_whole_picture(
    side: int, reason: str | None
) -> None:
    place: Drawn = {"mug": (PixelBox(x=10, y=10, width=side, height=side), RED)}
    views = drawn(place), drawn({"mug": (place["mug"][0], BLUE)})

    scores = score_scenes(pair(place), views)

    assert value_of(scores, "named_area_0") == side**2 / SIDE**2
    assert value_of(scores, "largest_area_1") == side**2 / SIDE**2
    assert refused(pair(place), views, min_visible_area=None) == reason


@pytest.mark.parametrize(
    ("floor", "share", "reason"),
    [
        ((255, 255, 255), 0.2, None),
        ((254, 254, 254), 0.4, "blown_out"),
        ((255, 255, 0), 0.4, None),  # yellow is no white
        ((3, 3, 3), 1.0, "too_dark"),
        ((60, 0, 120), 1.0, None),  # a dark colour is none, at L* 17
    ],
)
def test_pictures_that_are_black_or_blown_out_are_refused(
    floor: tuple[int, int, int], share: float, reason: str | None
) -> None:
    rows = round(SIDE * share)
    views = []
    for view in (drawn(SOUND), drawn({**SOUND, "mug": (MUG, BLUE)})):
        pixels = view.pixels.copy()
        pixels[:rows][view.numbers[:rows] == 0] = floor
        views.append(replace(view, pixels=pixels))

    scores = score_scenes(pair(), (views[0], views[1]))

    white = (views[0].pixels >= 254).all(axis=-1).mean()
    assert value_of(scores, "blown_out_0") == pytest.approx(white, abs=1e-6)
    grey = skimage.color.rgb2lab(views[0].pixels)[..., 0].mean()
    assert value_of(scores, "lightness_0") == pytest.approx(grey, abs=0.3)
    assert refused(pair(), (views[0], views[1])) == reason


def test_a_hidden_object_is_refused() -> None:
    cover = PixelBox(x=20, y=40, width=10, height=15)  # two thirds of the mug
    first = {"mug": (MUG, RED), "bowl": (cover, GREY)}
    second = {"mug": (MUG, BLUE), "bowl": (cover, GREY)}
    views = drawn(first), drawn(second)

    assert refused(pair(first, second), views) == "occluded"
    assert refused(pair(first, second), views, max_occlusion=0.7) is None


@pytest.mark.parametrize(("apart", "reason"), [(0, "merged_copies"), (1, None), (10, None)])
def test_copies_that_touch_are_refused(apart: int, reason: str | None) -> None:
    twin = PixelBox(x=MUG.x + MUG.width + apart, y=MUG.y, width=15, height=15)
    one = {"mug": (MUG, RED)}
    two = {"mug": (MUG, RED), "mug 2": (twin, RED)}
    claims = ALONE, Claim(target="mug", copies=("mug", "mug 2"))

    views = drawn(one), drawn(two)

    assert refused(pair(one, two, claims), views) == reason
    assert value_of(score_scenes(pair(one, two, claims), views), "copy_gap_1") == apart / SIDE


def test_copies_that_touch_at_a_corner_are_one_blob() -> None:
    """As connected components with 8 neighbours say."""
    twin = PixelBox(x=MUG.x + MUG.width, y=MUG.y + MUG.height, width=15, height=15)
    two = {"mug": (MUG, RED), "mug 2": (twin, RED)}
    view = drawn(two)
    assert scipy.ndimage.label(view.numbers > 0, np.ones((3, 3)))[1] == 1
    claims = ALONE, Claim(target="mug", copies=("mug", "mug 2"))

    assert refused(pair({"mug": (MUG, RED)}, two, claims), (drawn({"mug": (MUG, RED)}), view)) == (
        "merged_copies"
    )


@pytest.mark.parametrize(("relation", "reason"), [("left", None), ("right", "relation_not_seen")])
def test_a_side_that_the_boxes_do_not_show_is_refused(relation: Any, reason: str | None) -> None:
    claim = Claim(target="mug", copies=("mug",), relation=relation, reference="bowl")
    views = drawn(SOUND), drawn({**SOUND, "mug": (MUG, BLUE)})

    scores = score_scenes(pair(claims=(claim, claim)), views)

    middles = (60 + 20 / 2) - (20 + 15 / 2)
    sign = 1 if relation == "left" else -1
    assert value_of(scores, "side_margin_0") == pytest.approx(sign * middles / SIDE)
    assert refused(pair(claims=(claim, claim)), views) == reason


@pytest.mark.parametrize(
    ("relation", "depth_m", "reason"),
    [
        ("front", 4.0, None),
        ("front", 4.8, "relation_not_seen"),
        ("behind", 4.0, "relation_not_seen"),
        ("behind", 6.0, None),
    ],
)
def test_a_depth_that_the_camera_does_not_see_is_refused(
    relation: Any, depth_m: float, reason: str | None
) -> None:
    claim = Claim(target="mug", copies=("mug",), relation=relation, reference="bowl")
    depths = {"mug": depth_m, "bowl": 5.0}
    views = drawn(SOUND, depths), drawn({**SOUND, "mug": (MUG, BLUE)}, depths)

    assert refused(pair(claims=(claim, claim)), views) == reason


@pytest.mark.parametrize(
    ("depth_m", "reason"), [(5.0, None), (4.7, None), (4.5, "other_caption_true")]
)
def test_a_picture_of_which_the_other_caption_holds_too_is_refused(
    depth_m: float, reason: str | None
) -> None:
    """The mug of the first picture is left of the bowl, and the second caption says in front."""
    left = Claim(target="mug", copies=("mug",), relation="left", reference="bowl")
    front = replace(left, relation="front")
    before = drawn(SOUND, {"mug": depth_m, "bowl": 5.0})
    near: Drawn = {"bowl": SOUND["bowl"], "mug": (PixelBox(x=62, y=60, width=15, height=15), RED)}
    after = drawn(near, {"mug": 4.0, "bowl": 5.0})
    asked = pair(second=near, claims=(left, front))

    scores = score_scenes(asked, (before, after))

    assert value_of(scores, "crossed_depth_margin_m_0") == pytest.approx(5.0 - depth_m)
    assert value_of(scores, "crossed_side_margin_1") == pytest.approx((70 - 69.5) / SIDE)
    gates = {"min_unchanged_iou": None, "min_unchanged_ssim": None}
    assert refused(asked, (before, after), **gates) == reason


def test_an_object_that_only_the_first_picture_shows_is_no_background() -> None:
    """Of two copies the second scene has one: the other's pixels are what changed."""
    second_mug = PixelBox(x=40, y=70, width=15, height=15)
    two: Drawn = {"mug": (MUG, RED), "mug-2": (second_mug, RED)}
    one: Drawn = {"mug": (MUG, RED)}
    counted = Claim(target="mug", copies=("mug", "mug-2"))
    views = drawn(two), drawn(one)

    scores = score_scenes(pair(two, one, (counted, ALONE)), views)

    assert value_of(scores, "unchanged_difference") == 0.0
    changed = np.abs(views[0].pixels.astype(int) - views[1].pixels)[70:85, 40:55]
    assert value_of(scores, "change") == pytest.approx(changed.mean() / 255, abs=1e-6)
    back = score_scenes(pair(one, two, (ALONE, counted)), (views[1], views[0]))
    assert value_of(back, "change") == value_of(scores, "change")


@pytest.mark.parametrize(("x", "y"), [(1, 40), (84, 40), (40, 1), (40, 84)])
def test_every_edge_of_the_picture_counts(x: int, y: int) -> None:
    """A box of 15 pixels, 1 pixel away from one of the four edges."""
    place: Drawn = {"mug": (PixelBox(x=x, y=y, width=15, height=15), RED)}
    views = drawn(place), drawn({"mug": (place["mug"][0], BLUE)})

    scores = score_scenes(pair(place), views)

    assert value_of(scores, "frame_margin_0") == 0.01
    assert refused(pair(place), views, min_frame_margin=0.02) == "out_of_frame"


def test_an_unchanged_object_that_moved_is_refused() -> None:
    """The spec says the bowl stays; the picture shows it 2 of its 20 pixels further right."""
    moved = replace(BOWL, x=BOWL.x + 2)
    views = drawn(SOUND), drawn({"mug": (MUG, BLUE), "bowl": (moved, (0, 90, 0))})

    assert value_of(score_scenes(pair(), views), "unchanged_iou") == round(18 / 22, 6)
    assert refused(pair(), views) == "unchanged_moved"


def test_an_unchanged_object_may_be_covered_by_the_changed_one() -> None:
    before, after = (
        PixelBox(x=20, y=40, width=15, height=15),
        PixelBox(x=50, y=40, width=15, height=15),
    )
    first = {"bowl": (BOWL, (0, 90, 0)), "mug": (before, RED)}
    second = {"bowl": (BOWL, (0, 90, 0)), "mug": (after, RED)}
    views = drawn(first), drawn(second)

    assert value_of(score_scenes(pair(first, second), views), "unchanged_iou") == 1.0
    assert refused(pair(first, second), views) is None


def test_another_colour_of_a_plain_floor_is_refused() -> None:
    """Of the same luma: no structure tells of it."""
    plain = drawn(SOUND)
    floor = (plain.numbers == 0)[..., None]
    views = [
        replace(view, pixels=np.where(floor, np.array(colour, np.uint8), view.pixels))
        for view, colour in ((plain, GREY), (drawn({**SOUND, "mug": (MUG, BLUE)}), (140, 109, 124)))
    ]
    scores = score_scenes(pair(), (views[0], views[1]))

    assert value_of(scores, "unchanged_ssim") == pytest.approx(1.0, abs=0.01)
    floor_share = (SIDE**2 - 15 * 15 - 20 * 15) / (SIDE**2 - 15 * 15)
    expected = floor_share * (20 + 11 + 4) / 3 / 255
    assert value_of(scores, "unchanged_difference") == pytest.approx(expected, abs=1e-6)
    assert refused(pair(), (views[0], views[1])) == "background_changed"


def test_without_gates_everything_passes() -> None:
    claim = Claim(target="mug", copies=("mug",), relation="right", reference="bowl")
    views = drawn(SOUND, overlaps=(Overlap(first="mug", second="bowl", depth_m=1.0),)), drawn(SOUND)

    assert gate_scenes(score_scenes(pair(claims=(claim, claim)), views), OFF) is None


def test_a_limit_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match=r"--max-occlusion 1\.5: expected 0 to 1"):
        SceneGates(max_occlusion=1.5)
    assert set(SCENE_REASONS) >= {"overlap", "merged_copies"}


WOOD, STEEL = (150, 105, 70), (150, 151, 153)


def of_materials(environment: Environment | None) -> ScenePair:
    """A pair in which the mug is first of wood, then of metal."""
    asked = pair()
    made_of: tuple[SurfaceMaterial, SurfaceMaterial] = ("wooden", "metal")
    first, second = (
        replace(
            one,
            backdrop=Backdrop(environment=environment),
            objects=tuple(
                replace(item, colour=None, material=made if item.name == "mug" else None)
                for item in one.objects
            ),
        )
        for one, made in zip(asked.scenes, made_of, strict=True)
    )
    return replace(asked, change="material", scenes=(first, second))


def test_materials_that_the_pictures_do_not_show_as_named_are_refused() -> None:
    sky = Environment(asset="sky", turn_deg=0.0, exposure=1.0, clamp=1.0)
    asked = of_materials(sky)
    wood, steel = (drawn({**SOUND, "mug": (MUG, colour)}) for colour in (WOOD, STEEL))
    assert refused(asked, (wood, steel)) is None
    assert refused(asked, (steel, wood)) == "material_not_seen"
    assert refused(asked, (steel, wood), min_material_contrast=None) is None


def test_a_patch_that_differs_is_seen_where_the_mean_of_all_hides_it() -> None:
    """By hand: one of 16 x 16 blocks, of 6 or 7 pixels, is grey in one picture and white in one."""
    sky = Environment(asset="sky", turn_deg=0.0, exposure=1.0, clamp=1.0)
    first, second = pair().scenes
    asked = replace(pair(), scenes=(on_stage(first, sky), on_stage(second, sky)))
    before, after = drawn(SOUND), drawn({**SOUND, "mug": (MUG, BLUE)})
    pixels = after.pixels.copy()
    pixels[:6, :6] = 255
    patched = replace(after, pixels=pixels)
    grey = before.pixels[:6, :6].astype(float)

    scores = score_scenes(asked, (before, patched))
    assert value_of(scores, "unchanged_block") == pytest.approx((255 - grey).mean() / 255, abs=1e-6)
    assert 0 < (value_of(scores, "unchanged_difference") or 0) < 0.003
    assert value_of(score_scenes(asked, (before, after)), "unchanged_block") == 0
    assert refused(asked, (before, patched), max_unchanged_block=0.5) == "background_changed"
    assert refused(asked, (before, patched), max_unchanged_block=0.6) is None
    assert "unchanged_block" not in {each.name for each in score_scenes(pair(), (before, after))}


def on_stage(plain: SceneSpec, sky: Environment) -> SceneSpec:
    return replace(plain, backdrop=replace(plain.backdrop, environment=sky))


def test_materials_are_judged_only_on_the_photographic_stage() -> None:
    wood, steel = (drawn({**SOUND, "mug": (MUG, colour)}) for colour in (WOOD, STEEL))
    names = {score.name for score in score_scenes(of_materials(None), (steel, wood))}
    assert "material_contrast" not in names
    assert refused(of_materials(None), (steel, wood)) is None


def at(x: int, y: int = 40, side: int = 15) -> PixelBox:
    return PixelBox(x=x, y=y, width=side, height=side)


def placed(mug: PixelBox, cup: PixelBox | None = None) -> Drawn:
    """A mug, a bowl from 60 to 80, and perhaps a cup."""
    more = {} if cup is None else {"cup": (cup, (90, 0, 90))}
    return {"mug": (mug, RED), "bowl": (BOWL, (0, 90, 0)), **more}


def related(relation: Relation, *others: str, target: str = "mug") -> Claim:
    return Claim(
        target=target, copies=(target,), relation=relation, reference="bowl", others=others
    )


@pytest.mark.parametrize(
    ("claims", "first", "second", "expected"),
    [
        (("near", "far"), placed(at(40)), placed(at(5)), None),
        (("near", "far"), placed(at(25)), placed(at(5)), "relation_not_seen"),
        (("near", "far"), placed(at(40)), placed(at(25)), "relation_not_seen"),
        (("on", "near"), placed(at(62, 18)), placed(at(40)), None),
        (("on", "near"), placed(at(62, 26)), placed(at(40)), "relation_not_seen"),
        (("on", "near"), placed(at(62, 18)), placed(at(40, 24)), "other_caption_true"),
        (("near", "on"), placed(at(40)), placed(at(62, 18)), None),
    ],
)
def test_next_to_far_from_and_on_are_measured(
    claims: tuple[Relation, Relation], first: Drawn, second: Drawn, expected: str | None
) -> None:
    asked = pair(first, second, (related(claims[0]), related(claims[1])))
    assert refused(asked, (drawn(first), drawn(second))) == expected


def test_what_is_next_to_a_thing_is_not_far_behind_it() -> None:
    near, far = placed(at(40)), placed(at(5))
    asked = pair(near, far, (related("near"), related("far")))
    deep = drawn(near, {"mug": 6.0})
    assert refused(asked, (deep, drawn(far))) == "relation_not_seen"
    assert refused(asked, (deep, drawn(far)), max_near_depth_m=None) is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (placed(at(35), at(10)), placed(at(83), at(10)), None),
        (placed(at(15, 70), at(10)), placed(at(83), at(10)), "relation_not_seen"),
        (placed(at(35), at(10)), placed(at(66, 70), at(10)), "relation_not_seen"),
    ],
)
def test_between_two_and_beyond_both_are_measured(
    first: Drawn, second: Drawn, expected: str | None
) -> None:
    claims = (related("between", "cup"), related("right", "cup"))
    views = drawn(first), drawn(second)
    assert refused(pair(first, second, claims), views) == expected


def test_the_order_of_a_row_is_measured_and_the_other_one_is_false() -> None:
    first, second = placed(at(35), at(10)), placed(at(10), at(35))
    orders = related("row", "cup"), replace(related("row", "cup"), target="cup", copies=("cup",))
    cup_first = Claim(
        target="cup", copies=("cup",), relation="row", reference="mug", others=("bowl",)
    )
    mug_first = replace(cup_first, target="mug", copies=("mug",), reference="cup")
    views = drawn(first), drawn(second)

    assert refused(pair(first, second, (cup_first, mug_first)), views) is None
    assert refused(pair(first, second, (mug_first, cup_first)), views) == "relation_not_seen"
    assert refused(pair(first, second, (orders[0], orders[1])), views) == "relation_not_seen"
    scores = score_scenes(pair(first, second, (cup_first, mug_first)), views)
    assert value_of(scores, "side_margin_0") == pytest.approx(0.25)
    assert value_of(scores, "crossed_side_margin_0") == pytest.approx(-0.25)


SMALL = 6


@pytest.mark.parametrize(
    ("relation", "within", "beside", "expected"),
    [
        ("in", at(66, 38, SMALL), at(40, 48, SMALL), None),  # above the rim, between the sides
        ("in", at(58, 44, SMALL), at(40, 48, SMALL), "relation_not_seen"),  # over the left side
        ("in", at(66, 50, SMALL), at(40, 48, SMALL), "relation_not_seen"),  # below the lower end
        ("in", at(66, 38, SMALL), at(70, 46, SMALL), "other_caption_true"),
        ("under", at(66, 46, SMALL), at(50, 48, SMALL), None),
        ("under", at(66, 38, SMALL), at(50, 48, SMALL), "relation_not_seen"),  # above the upper end
    ],
)
def test_in_and_under_are_measured(
    relation: Relation, within: PixelBox, beside: PixelBox, expected: str | None
) -> None:
    # Drawn last, it is in front of what it is in.
    first, second = ({"bowl": (BOWL, (0, 90, 0)), "mug": (box, RED)} for box in (within, beside))
    asked = pair(first, second, (related(relation), related("near")))
    off = {"min_visible_area": None, "min_named_area": None, "max_near_gap": None}
    hull = Overlap(first="mug", second="bowl", depth_m=0.3)
    views = drawn(first, overlaps=(hull,)), drawn(second)
    assert refused(asked, views, **off) == expected
    # The hull of a basket holds what is in it; what is next to it is not in it.
    assert refused(asked, (drawn(first), drawn(second, overlaps=(hull,))), **off) == "overlap"


def test_what_is_compared_has_to_differ_in_the_picture_as_in_the_scene() -> None:
    larger = related("larger")
    first = {"mug": (at(10, 30, 20), RED), "bowl": (at(60, 30, 16), (0, 90, 0))}
    asked = pair(first, first, (larger, larger))
    grown = replace(
        asked,
        scenes=tuple(  # type: ignore[arg-type]
            replace(
                each,
                objects=tuple(
                    replace(item, scale=1.25 if item.name == "mug" else 1.0)
                    for item in each.objects
                ),
            )
            for each in asked.scenes
        ),
    )
    view = drawn(first)
    scores = score_scenes(grown, (view, view))
    assert value_of(scores, "step_size") == pytest.approx(25)
    assert value_of(scores, "step_share_0") == pytest.approx(1)
    assert value_of(scores, "change") is None  # a step may be hardly seen
    assert refused(grown, (view, view)) is None
    alike = {"mug": (at(10, 30, 17), RED), "bowl": (at(60, 30, 16), (0, 90, 0))}
    assert refused(grown, (drawn(alike), drawn(alike))) == "step_not_seen"
