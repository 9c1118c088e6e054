"""Measures two rendered scenes: does each image match its claim, and did only one thing change?

Measures use the rendered masks, boxes, depths and pixels. The specs only say which objects the
captions mention and which objects should change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from eqforge.generators.scenes.claims import COMPARED, names_of, side_margin, step_size
from eqforge.schemas.records.scenes import STEP_SIZE, Claim, RenderedObject, ScenePair, SceneSpec
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.values import PixelBox
from eqforge.transforms.filters import lab, minimality
from eqforge.transforms.generated.scene_colours import (
    RenderedView,
    colour_area,
    colour_share,
    core,
    material_contrast,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCORER = "eqforge.scenes"
VERSION = "5"

ROOMS = frozenset({"in", "under"})
"""Relations to a reference that has room for the target."""

BLOCKS = 16

WHITE = 254
"""Minimum of all three channels of a blown-out pixel."""


def score_scenes(pair: ScenePair, views: tuple[RenderedView, RenderedView]) -> tuple[Score, ...]:
    """Measure both images of a pair, and what changed between them.

    Scores of one image end in `_0` or `_1`; lengths are shares of the image's width. "Named"
    objects are those in the caption:
      overlap_m: depth of the deepest overlap of two objects, in metres.
      frame_margin: least distance of a named object to the image's edge; None if none is visible.
      visible_area: least share of the image that any object covers.
      named_area, largest_area: least and greatest share of the image that a named object covers.
      lightness: mean L* of the image, in [0, 100].
      blown_out: share of the image's pixels that are white in all three channels.
      occlusion: greatest hidden share of a named object, in [0, 1].
      copy_gap: least gap between two copies that the caption counts: 0 if they touch; None unless
        two are visible.
      side_margin: for `left` and `right`, the signed distance of the box centres; for `between` and
        a `row`, the least distance of two neighbours. Negative if the claim is false; None for
        other claims.
      depth_margin_m: for `front` and `behind`, the signed distance in depth, in metres.
      crossed_side_margin, crossed_depth_margin_m: the same two for the claim of the other image, if
        that names a different relation: a mug may be both left of a bowl and in front of it.
      near_gap, far_gap: for "next to" and "far from", the gap between the masks.
      near_depth_m: for "next to", the distance in depth, in metres.
      height_margin, crossed_height_margin: if the pair claims "on", the height of the object's
        lowest pixel above its support's, as a share of the image's height.
      within_margin, crossed_within_margin: if the pair claims "in" or "under", the distance to the
        ends of the surrounding box; negative outside.
      named_colour: on the photographic stage, the least share of pixels in the given colour over
        the named objects: see `colour_share` in `scene_colours`; None without a given colour.
      trim_area: for claims about a part's colour, the extra area in that colour compared with the
        other image, as a share of the image.
      step_share: for comparisons, the visible difference in the claimed direction, as a share of
        the step.

    Scores of the pair:
      unchanged_iou: least intersection over union of the masks of an object that should not move,
        where neither image shows a changed object; None without such an object.
      unchanged_ssim: structural similarity outside the changed objects' masks, the least of L*, a*
        and b*; None if nothing is outside.
      unchanged_difference: mean absolute difference of the pixels outside those masks, in [0, 1]:
        detects a new colour of the floor, which has no structure.
      unchanged_block: on the photographic stage, the same mean over the most changed of 16 x 16
        blocks. It includes shadows and reflections.
      change: the same within those masks; None for a step of a ladder, which may be hardly visible,
        and for a part that changes its colour.
      posture_margin: for upright and lying things, how much taller and narrower the upright one is:
        see `posture_margin`.
      step_size: for a step of a ladder, the difference that the captions compare, in the units of
        `step_size` in `generators/scenes/claims`.
      material_contrast: for changes of material on the photographic stage, how clearly both images
        show their own: see `material_contrast` in `scene_colours`.
    """
    found = [
        (f"{name}_{number}", value)
        for number, view in enumerate(views)
        for name, value in _of_one(view, pair.scenes[number], pair.claims[number],
                                   pair.claims[1 - number])
    ]  # fmt: skip
    return tuple(
        Score(
            name=name,
            value=None if value is None else round(float(value), 6),
            scorer=SCORER,
            version=VERSION,
            settings="{}",
        )
        for name, value in (*found, *_of_both(pair, views))
    )


def _of_one(
    view: RenderedView, scene: SceneSpec, claim: Claim, other: Claim
) -> Iterator[tuple[str, float | None]]:
    named = {*names_of(claim), *claim.copies}
    related = set() if claim.relation is not None else {claim.reference}
    spoken_of = [shown for shown in view.objects if shown.name in named - related]
    least = min(shown.visible_px for shown in spoken_of) / view.numbers.size
    # The hull of a basket and the egg in it overlap.
    pair = {claim.target, claim.reference} if claim.relation in ROOMS else set()
    overlaps = (each.depth_m for each in view.overlaps if {each.first, each.second} != pair)
    yield "overlap_m", max(overlaps, default=0.0)
    yield "frame_margin", _frame_margin(view, spoken_of)
    yield "visible_area", min(shown.visible_px for shown in view.objects) / view.numbers.size
    # Many small copies only need to be countable; they may be less visible.
    yield "named_area", None if claim.relation == "more" else least
    yield "largest_area", max(shown.visible_px for shown in spoken_of) / view.numbers.size
    yield "lightness", float(lab.lightness(view.pixels).mean(dtype=np.float64)) * 100 / 255
    yield "blown_out", float((view.pixels >= WHITE).all(axis=-1).mean(dtype=np.float64))
    yield "occlusion", 1 - min(shown.visible_fraction for shown in spoken_of)
    yield "copy_gap", copy_gap(view, claim.copies)
    yield "side_margin", ordered_margin(view, claim)
    yield "depth_margin_m", depth_margin(view, claim)
    if claim.relation == "near":
        yield "near_gap", copy_gap(view, (claim.target, str(claim.reference)))
        yield "near_depth_m", depth_apart(view, claim)
    elif claim.relation == "far":
        yield "far_gap", copy_gap(view, (claim.target, str(claim.reference)))
    elif claim.relation == "on":
        yield "height_margin", height_margin(view, claim)
    elif claim.relation in ROOMS:
        yield "within_margin", within_margin(view, claim)
    is_open = _placed(other) != _placed(claim)
    yield "crossed_side_margin", ordered_margin(view, other) if is_open else None
    yield "crossed_depth_margin_m", depth_margin(view, other) if is_open else None
    if other.relation == "on":
        yield "crossed_height_margin", height_margin(view, other)
    elif other.relation in ROOMS:
        yield "crossed_within_margin", within_margin(view, other)
    if scene.stage == "photo":
        shares = (
            colour_share(view.pixels, view.mask([item.name]), item.colour)
            for item in scene.objects
            if item.name in named and item.colour is not None and item.material is None
        )
        yield "named_colour", min((share for share in shares if share is not None), default=None)
    if claim.relation in COMPARED:
        seen = seen_step(view, claim, scene)
        yield "step_share", None if seen is None else seen / step_size(scene, claim)


def _placed(claim: Claim) -> tuple[object, ...]:
    return claim.relation, claim.target, claim.reference, claim.others


def _frame_margin(view: RenderedView, spoken_of: list[RenderedObject]) -> float | None:
    height, width = view.numbers.shape
    margins = [
        min(box.x, box.y, width - box.x - box.width, height - box.y - box.height)
        for shown in spoken_of
        if (box := shown.box) is not None
    ]
    return min(margins) / width if margins else None


def _of_both(
    pair: ScenePair, views: tuple[RenderedView, RenderedView]
) -> Iterator[tuple[str, float | None]]:
    items_0, items_1 = ({item.name: item for item in scene.objects} for scene in pair.scenes)
    names = items_0 | items_1
    changed_names = {name for name in names if items_0.get(name) != items_1.get(name)}
    changed = views[0].mask(changed_names) | views[1].mask(changed_names)
    unchanged = [shown.name for shown in views[0].objects if shown.name not in changed_names]
    is_photo = pair.scenes[0].stage == "photo"
    overlaps = []
    for name in unchanged:
        first, second = (view.mask([name]) & ~changed for view in views)
        if union := np.count_nonzero(first | second):
            overlaps.append(np.count_nonzero(first & second) / union)
    yield "unchanged_iou", min(overlaps, default=None)
    look_0, look_1 = (minimality.view(view.pixels) for view in views)
    yield "unchanged_ssim", minimality.background_similarity(look_0, look_1, changed)
    difference = np.abs(views[1].pixels.astype(np.int16) - views[0].pixels.astype(np.int16))
    yield "unchanged_difference", _mean(difference[~changed]) / 255
    if is_photo:
        yield "unchanged_block", _largest_block(difference, ~changed) / 255
    is_step = pair.claims[0].relation in COMPARED
    is_small = is_step or pair.change == "trim"
    yield "change", None if is_small else _mean(difference[changed]) / 255
    if pair.change == "posture":
        yield "posture_margin", posture_margin(views, pair.claims)
    if is_step:
        yield STEP_SIZE, step_size(pair.scenes[0], pair.claims[0])
    if pair.change == "material" and is_photo:
        before, after = (
            next(item.material for item in scene.objects if item.name == claim.target)
            for scene, claim in zip(pair.scenes, pair.claims, strict=True)
        )
        if before is not None and after is not None:
            pictures = views[0].pixels, views[1].pixels
            targets = [claim.target for claim in pair.claims]
            masks = views[0].mask([targets[0]]), views[1].mask([targets[1]])
            yield "material_contrast", material_contrast((before, after), pictures, masks)
    for number, claim in enumerate(pair.claims):
        if claim.trim is not None:
            items = {item.name: item for item in pair.scenes[number].objects}
            colours = {colour for _, colour in items[claim.target].trims}
            areas = [
                colour_area(view.pixels, view.mask([claim.target]), colour)
                for view in (views[number], views[1 - number])
                for colour in colours
            ]
            yield f"trim_area_{number}", areas[0] - areas[1] if len(colours) == 1 else None


def _largest_block(difference: NDArray[np.int16], where: NDArray[np.bool_]) -> float:
    """Return the greatest mean of a block within a mask; of a full block if the mask is small."""
    side = where.shape[0]
    edges = [side * number // BLOCKS for number in range(BLOCKS)]
    inside = np.where(where, difference.sum(axis=-1, dtype=np.int64), 0)
    sums = np.add.reduceat(np.add.reduceat(inside, edges, axis=0), edges, axis=1)
    sizes = np.diff([*edges, side])
    return float((sums / (3 * np.outer(sizes, sizes))).max())


def _mean(values: NDArray[np.int16]) -> float:
    return float(values.mean(dtype=np.float64)) if values.size else 0.0


def _boxes(view: RenderedView, claim: Claim) -> tuple[PixelBox, PixelBox] | None:
    assert claim.reference is not None
    target, reference = view.shown(claim.target).box, view.shown(claim.reference).box
    return None if target is None or reference is None else (target, reference)


def within_margin(view: RenderedView, claim: Claim) -> float | None:
    """Return how far a target is inside its reference's box: left, right and lower end.

    For "under" the upper end counts, too.
    """
    if (boxes := _boxes(view, claim)) is None:
        return None
    target, around = boxes
    slack = [
        target.x - around.x,
        around.x + around.width - target.x - target.width,
        around.y + around.height - target.y - target.height,
        *([target.y - around.y] if claim.relation == "under" else []),
    ]
    return min(slack) / view.numbers.shape[1]


def depth_apart(view: RenderedView, claim: Claim) -> float | None:
    if _boxes(view, claim) is None:
        return None
    return abs(view.shown(claim.target).depth_m - view.shown(str(claim.reference)).depth_m)


def height_margin(view: RenderedView, claim: Claim) -> float | None:
    if (boxes := _boxes(view, claim)) is None:
        return None
    target, reference = boxes
    return (reference.y + reference.height - target.y - target.height) / view.numbers.shape[0]


def copy_gap(view: RenderedView, copies: tuple[str, ...]) -> float | None:
    import scipy.ndimage  # type: ignore[import-untyped]

    masks = [mask for name in copies if (mask := view.mask([name])).any()]
    gaps = [
        int(scipy.ndimage.distance_transform_cdt(~first, "chessboard")[second].min()) - 1
        for first, second in combinations(masks, 2)
    ]
    return min(gaps) / view.numbers.shape[1] if gaps else None


def posture_margin(
    views: tuple[RenderedView, RenderedView], claims: tuple[Claim, Claim]
) -> float | None:
    """Return how much taller and narrower an upright thing looks than the same one lying.

    One camera takes both images, so that their boxes can be compared.

    Returns:
      The smaller of the two, as log2 of the ratio of the sides; negative if a claim is false, None
      if either is not visible or not claimed.
    """
    boxes = {
        claim.relation: view.shown(claim.target).box
        for view, claim in zip(views, claims, strict=True)
    }
    upright, lying = boxes.get("upright"), boxes.get("lying")
    if upright is None or lying is None:
        return None
    return math.log2(min(upright.height / lying.height, lying.width / upright.width))


def ordered_margin(view: RenderedView, claim: Claim) -> float | None:
    if claim.relation not in ("left", "right", "between", "row"):
        return None
    boxes = {name: view.shown(name).box for name in names_of(claim)}
    middles = {name: box.x + box.width / 2 for name, box in boxes.items() if box is not None}
    if len(middles) < len(boxes):
        return None
    return side_margin(claim, middles) / view.numbers.shape[1]


def depth_margin(view: RenderedView, claim: Claim) -> float | None:
    if claim.relation not in ("front", "behind") or _boxes(view, claim) is None:
        return None
    shift = view.shown(claim.target).depth_m - view.shown(str(claim.reference)).depth_m
    return shift if claim.relation == "behind" else -shift


COUNTED = 0.3  # share of a copy that has to be visible for it to count


def seen_step(view: RenderedView, claim: Claim, scene: SceneSpec) -> float | None:
    """Return the visible difference of two things, in the units of `step_size`."""
    shown = {each.name: each for each in view.objects}
    if claim.relation == "more":
        sides = claim.copies, (str(claim.reference), *claim.others)
        many, few = (
            sum(shown[name].visible_fraction >= COUNTED for name in side) for side in sides
        )
        return many - few
    target, reference = shown[claim.target], shown[str(claim.reference)]
    if claim.relation == "larger":
        if not reference.full_px:
            return None
        return 100 * (math.sqrt(target.full_px / reference.full_px) - 1)
    if claim.relation == "lighter":
        light, dark = (_mean_lightness(view, each.name) for each in (target, reference))
        return None if light is None or dark is None else light - dark
    here, near, far = (_heading(view, name, scene) for name in names_of(claim))
    if here is None or near is None or far is None:
        return None
    return abs(far - here) - abs(near - here)


def _mean_lightness(view: RenderedView, name: str) -> float | None:
    mask = view.mask([name])
    if not mask.any():
        return None
    return float(lab.lightness(view.pixels)[core(mask)].mean(dtype=np.float64)) * 100 / 255


def _heading(view: RenderedView, name: str, scene: SceneSpec) -> float | None:
    """Return the angle of a thing's centre right of the line of sight, in degrees."""
    box = view.shown(name).box
    if box is None:
        return None
    aside = (box.x + box.width / 2) / view.numbers.shape[1] - 0.5
    lens = scene.camera.sensor_width_mm / scene.camera.focal_length_mm
    return math.degrees(math.atan(aside * lens))
