"""Arrange the objects of a draft: one attempt at both scenes of a pair."""

import math
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from eqforge.generators.scenes.claims import HALF_SECTOR_DEG, HEADING_DEG, relation_margin_deg
from eqforge.generators.scenes.compose import (
    PIVOT_M,
    add_bystanders,
    camera_before,
    compose_counted,
    compose_related,
    draw_standpoint,
)
from eqforge.generators.scenes.legible import is_shown
from eqforge.generators.scenes.pieces import CountedDraft, Piece, RelatedDraft, Spots, StagedDraft
from eqforge.generators.scenes.placement import (
    BOTH,
    Ground,
    Layout,
    Moves,
    beside,
    draw_camera,
    put,
    turn_deg,
)
from eqforge.generators.scenes.settings import MAX_STEP_BACK, SceneSettings
from eqforge.generators.scenes.surroundings import MUTED, draw_backdrop, draw_light, draw_muted
from eqforge.generators.scenes.view import DECIMALS, Subjects, corners, frame
from eqforge.schemas.records.scenes import (
    Claim,
    Relation,
    SceneCamera,
    SceneObject,
    SceneSpec,
    Vector,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arranged:
    """Two scenes, and what their captions claim."""

    scenes: tuple[SceneSpec, SceneSpec]
    claims: tuple[Claim, Claim]


def arrange_related(
    draft: RelatedDraft, settings: SceneSettings, progress: float, seed: int, rng: Random
) -> Arranged | None:
    place = compose_related if settings.stage == "photo" else scatter_related
    layout = place(draft, settings, progress, rng)
    if layout is None:
        return None
    floor = draw_muted(rng, draft.colours)
    scenes = _scenes(layout, floor, seed, rng)
    one, two = (
        Claim(target="target", copies=("target",), relation=relation, reference="reference")
        for relation in draft.relations
    )
    margin = settings.min_relation_margin_deg
    is_plain = layout.is_plain(("target", "reference")) and all(
        relation_margin_deg(scene, claim) >= margin
        for scene, claim in zip(scenes, (one, two), strict=True)
    )
    return Arranged(scenes=scenes, claims=(one, two)) if is_plain else None


def arrange_counted(
    draft: CountedDraft, settings: SceneSettings, progress: float, seed: int, rng: Random
) -> Arranged | None:
    floor = draw_muted(rng, draft.colours)
    paint = MUTED[draw_muted(rng, draft.colours, avoid=floor)][0]
    place = compose_counted if settings.stage == "photo" else scatter_counted
    layout = place(draft, paint, settings, progress, rng)
    if layout is None or not layout.is_plain([piece.variants[0].name for piece in draft.copies]):
        return None
    names = [piece.name for piece in draft.copies]
    one, two = (Claim(target=names[0], copies=tuple(names[:count])) for count in draft.counts)
    return Arranged(scenes=_scenes(layout, floor, seed, rng), claims=(one, two))


def arrange_staged(
    draft: StagedDraft,
    spots: tuple[Spots, Spots],
    settings: SceneSettings,
    progress: float,
    seed: int,
    rng: Random,
) -> Arranged | None:
    layout = compose_staged(draft, spots, settings, progress, rng)
    if layout is None:
        return None
    floor = draw_muted(rng, draft.colours)
    return Arranged(scenes=_scenes(layout, floor, seed, rng), claims=draft.claims)


def _scenes(layout: Layout, floor: str, seed: int, rng: Random) -> tuple[SceneSpec, SceneSpec]:
    backdrop = draw_backdrop(layout.settings, rng, floor)
    light = draw_light(rng, layout.camera, backdrop)
    first, second = (
        SceneSpec(
            objects=layout.objects(scene),
            camera=layout.camera,
            light=light,
            backdrop=backdrop,
            seed=seed,
        )
        for scene in BOTH
    )
    return first, second


FARTHER = 1.1  # how much farther the camera is from a support with copies than from two objects
SPOTS = 25  # places tried for one object before an attempt is given up
REACH_M = 2.0  # how far from the middle distractors may stand, along each axis


def scatter_related(
    draft: RelatedDraft, settings: SceneSettings, progress: float, rng: Random
) -> Layout | None:
    farther = 1 + MAX_STEP_BACK * progress
    layout = Layout(camera=draw_camera(settings, rng, 0.35, farther), settings=settings)
    target, reference = draft.target, draft.reference
    moves = _draw_moves(draft, settings, rng)
    # Place the reference so that both objects are near the image centre.
    x = y = 0.0
    for heading, distance in moves:
        offset = beside(layout.camera, (0.0, 0.0, 0.0), heading, distance)
        x, y = x - 0.25 * offset[0], y - 0.25 * offset[1]
    x, y = x + rng.uniform(-0.4, 0.4), y + rng.uniform(-0.4, 0.4)
    middle = (round(x, DECIMALS), round(y, DECIMALS), 0.0)
    if not layout.add(put(layout.camera, reference, middle, rng), reference.asset):
        return None
    yaw = turn_deg(layout.camera, middle, target.front_deg, rng)
    for scene, (heading, distance) in enumerate(moves):
        place = beside(layout.camera, middle, heading, distance)
        item = replace(target.variants[scene], position=place, yaw_deg=yaw)
        if not layout.add(item, target.asset_in(scene), (scene,)):
            return None
    for piece in draft.distractors:
        for _ in range(SPOTS):
            x, y = (round(rng.uniform(-REACH_M, REACH_M), DECIMALS) for _ in range(2))
            if layout.add(put(layout.camera, piece, (x, y, 0.0), rng), piece.asset):
                break
        else:
            return None
    return layout


def scatter_counted(
    draft: CountedDraft, paint: Vector, settings: SceneSettings, progress: float, rng: Random
) -> Layout | None:
    yaw = round(rng.uniform(0.0, 360.0), 2)
    stand = replace(draft.support.painted(paint), yaw_deg=yaw)
    ground = Ground(support=draft.support, yaw_deg=yaw)
    farther = FARTHER * (1 + MAX_STEP_BACK * progress)
    camera = draw_camera(settings, rng, ground.top_m, farther)
    layout = Layout(camera=camera, settings=settings)
    if not layout.add_support(stand, draft.support.asset):
        return None
    # Copies in only one scene come last, so all others keep their numbers in the mask.
    both = [each for each in draft.by_scene if len(each[1]) == 2]
    others = [(piece, (0, 1)) for piece in draft.distractors]
    ordered = [*both, *others, *draft.by_scene[len(both) :]]
    for piece, where in ordered:
        for _ in range(SPOTS):
            item = put(layout.camera, piece, ground.draw_place(piece.radius, rng), rng)
            if layout.add(item, piece.asset, where, layout.settings.min_copy_gap):
                break
        else:
            return None
    return layout


def _draw_moves(draft: RelatedDraft, settings: SceneSettings, rng: Random) -> Moves:
    target, reference = draft.target, draft.reference
    reach = reference.radius + target.radius
    # The taller the nearer object is, the more it hides of the one behind.
    apart = {
        "left": 0.15,
        "right": 0.15,
        "front": 0.3 + 0.4 * target.height,
        "behind": 0.3 + 0.4 * reference.height,
    }

    def move(relation: Relation) -> tuple[float, float]:
        half = HALF_SECTOR_DEG - settings.min_relation_margin_deg
        distance = 0.8 * reach + apart[relation] + rng.uniform(0.0, 0.9)
        return HEADING_DEG[relation] + rng.uniform(-half, half), distance

    first = move(draft.relations[0])
    return first, first if draft.change != "position" else move(draft.relations[1])


ASKEW_DEG = 9.0  # how far things that are all turned alike are turned from the camera at most
InPlace = tuple[Piece, tuple[SceneObject, SceneObject]]  # in both scenes


def compose_staged(
    draft: StagedDraft,
    spots: tuple[Spots, Spots],
    settings: SceneSettings,
    progress: float,
    rng: Random,
) -> Layout | None:
    standpoint = replace(
        draw_standpoint(settings, draft.raised, progress, rng), pivot=(0.0, 0.0, PIVOT_M)
    )
    placed = _in_places(draft, spots, camera_before(standpoint), rng)
    boxes = [
        corners(item, asset.bounds)
        for piece, items in placed
        for item, asset in {each: piece.asset_in(scene) for scene, each in enumerate(items)}.items()
    ]
    subjects = Subjects(points=np.concatenate(boxes), boxes=boxes, is_centred=draft.is_even)
    layout = Layout(camera=frame(subjects, standpoint, settings, progress, rng), settings=settings)
    if not all(_add_piece(layout, draft, each) for each in placed):
        return None
    if not is_shown(layout, draft, progress):
        return None
    return layout if add_bystanders(layout, draft.distractors, None, progress, rng) else None


def _in_places(
    draft: StagedDraft, spots: tuple[Spots, Spots], camera: SceneCamera, rng: Random
) -> list[InPlace]:
    every = [spot for each in spots for spot in each.values()]
    right, away = (sum(spot[axis] for spot in every) / len(every) for axis in (0, 1))
    placed: list[InPlace] = []
    askew = rng.uniform(-ASKEW_DEG, ASKEW_DEG) if draft.is_even else 0.0
    x, y, _ = np.subtract(camera.position, camera.look_at).tolist()
    towards = math.degrees(math.atan2(y, x))
    for piece in draft.pieces:
        if draft.is_even:
            yaw = round((towards - (piece.front_deg or 0.0) + askew) % 360.0, 2)
        else:
            yaw = turn_deg(camera, (0.0, 0.0, 0.0), piece.front_deg, rng)
        places = []
        for aside, ahead, up in (each[piece.name] for each in spots):
            heading = math.degrees(math.atan2(aside - right, ahead - away))
            far = math.hypot(aside - right, ahead - away)
            places.append(beside(camera, (0.0, 0.0, up), heading, far))
        first, second = (
            replace(variant, position=place, yaw_deg=round((yaw + variant.yaw_deg) % 360.0, 2))
            for variant, place in zip(piece.variants, places, strict=True)
        )
        placed.append((piece, (first, second)))
    return sorted(placed, key=lambda each: each[1][0] != each[1][1])


def _add_piece(layout: Layout, draft: StagedDraft, placed: InPlace) -> bool:
    piece, (first, second) = placed
    if piece is draft.stand:
        return layout.add_support(first, piece.asset)
    if first == second:
        return layout.add(first, piece.asset)
    return layout.add(first, piece.asset_in(0), (0,)) and layout.add(
        second, piece.asset_in(1), (1,)
    )
