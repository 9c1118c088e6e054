"""Scenes that are wrong on purpose are rendered small, and each is refused for its own fault."""

import io
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.generators.scenes.assets import BUILTIN, BUILTIN_MANIFEST
from eqforge.generators.scenes.kubric_import import PACKAGES
from eqforge.generators.scenes.palette import PALETTE
from eqforge.schemas.records.scenes import (
    Backdrop,
    Claim,
    Environment,
    FloorTexture,
    RenderSettings,
    SceneCamera,
    SceneLight,
    SceneObject,
    ScenePair,
    SceneSpec,
    Sun,
)
from eqforge.transforms.generated.pairs import coloured
from eqforge.transforms.generated.render import RenderRules, render_pair, scene_pair_of
from eqforge.transforms.generated.scene_gates import SCENE_REASONS, SceneGates
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from eqforge.transforms.generated.work import samples_of
from tests.handmade import rules as generated_rules

needs_blender = pytest.mark.skipif(
    any(find_spec(package) is None for package in PACKAGES),
    reason="the extra `render` is not installed",
)
RED, BLUE, GREEN = (0.8, 0.03, 0.03), (0.03, 0.03, 0.8), (0.02, 0.5, 0.02)

TARGET = SceneObject(
    name="target", asset="kubric:cube", position=(-1.3, 0, 0), scale=0.5, colour=RED
)
OTHER = SceneObject(
    name="other", asset="kubric:sphere", position=(1.3, 0, 0), scale=0.6, colour=GREEN
)
SCENE = SceneSpec(
    objects=(TARGET, OTHER),
    camera=SceneCamera(position=(0, -8, 4), look_at=(0, 0, 0.4)),
    light=SceneLight(sun_position=(2, -3, 5)),
    backdrop=Backdrop(),
    seed=7,
)
LEFT = Claim(target="target", copies=("target",), relation="left", reference="other")


def render_rules(folder: Path, **changes: Any) -> RenderRules:
    usual = RenderRules(
        render=RenderSettings(resolution=64, samples=4),
        assets=BUILTIN,
        assets_sha256=storage.digest(BUILTIN_MANIFEST)[1],
        cache=str(folder / "cache"),
        timeout_s=120.0,
        gates=SceneGates(),
        generated=generated_rules(folder),
    )
    return replace(usual, **changes)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> RenderRules:
    return render_rules(tmp_path_factory.mktemp("render"))


@pytest.fixture(scope="module")
def renderer(rules: RenderRules) -> Iterator[SceneRenderer]:
    renderer = rules.renderer()
    yield renderer
    renderer.close()


def scene(*objects: SceneObject, **changes: Any) -> SceneSpec:
    return replace(SCENE, objects=objects, **changes)


def pair(first: SceneSpec, second: SceneSpec, *claims: Claim) -> ScenePair:
    return ScenePair(
        sample_id="d/1",
        kind="attribute",
        change="colour",
        scenes=(first, second),
        captions=("a red cube", "a blue cube"),
        claims=(claims[0], claims[-1]),
    )


def recoloured(first: SceneSpec, **changes: Any) -> SceneSpec:
    """The same scene with a blue target, and whatever else is asked for."""
    target, *others = first.objects
    return replace(first, objects=(replace(target, colour=BLUE), *others), **changes)


def recoloured_pair(*objects: SceneObject, claim: Claim = LEFT) -> ScenePair:
    return pair(scene(*objects), recoloured(scene(*objects)), claim)


TWINS = (
    replace(TARGET, position=(-0.3, -1, 0), scale=0.3),
    replace(TARGET, name="twin", position=(0.05, 0.6, 0), scale=0.3),
)
BOTH = Claim(target="target", copies=("target", "twin"))
ONE = Claim(target="target", copies=("target",))
FRONT = replace(LEFT, relation="front")


def lit_pair(sun_intensity: float, ambient: float) -> ScenePair:
    light = replace(SCENE.light, sun_intensity=sun_intensity, ambient=ambient)
    shone = replace(SCENE, light=light)
    return pair(shone, recoloured(shone), LEFT)


SKY = Environment(asset="stage_sunrise", turn_deg=0.0, exposure=1.0, clamp=8.0)


def photographed(sky: Environment) -> SceneSpec:
    ground = FloorTexture(
        asset="stage_concrete", tile_m=2.0, turn_deg=0.0, tint=(1.0, 1.0, 1.0), radius_m=8.0
    )
    return replace(SCENE, backdrop=Backdrop(environment=sky, floor=ground))


def blue_in_red_light() -> ScenePair:
    """A pair on the photographic stage whose blue cube looks black."""
    red = Sun(direction=(0.0, -0.6, 0.8), strength=(6.0, 0.0, 0.0), angle_deg=4.0)
    on_stage = photographed(replace(SKY, exposure=0.001, sun=red))
    first, second = (
        replace(on_stage, objects=(replace(TARGET, colour=PALETTE[name]), OTHER))
        for name in ("red", "blue")
    )
    return pair(first, second, LEFT)


def black_metal_and_white_rubber() -> ScenePair:
    """A pair on the photographic stage whose rubber is bright, as no rubber is."""
    on_stage = photographed(SKY)
    metal = replace(TARGET, colour=(0.02, 0.02, 0.02), material="metal")
    rubber = replace(TARGET, colour=(0.9, 0.9, 0.9), material="rubber")
    first, second = (replace(on_stage, objects=(item, OTHER)) for item in (metal, rubber))
    return replace(pair(first, second, LEFT), change="material")


ROOF = Claim(target="target", copies=("target",), trim="roof")
LIES = Claim(target="target", copies=("target",), relation="lying")


def tipped_cube() -> ScenePair:
    """A cube in two colours that is said to lie: it looks the same."""
    first, second = (replace(TARGET, position=(0, 0, 0), colour=each) for each in (RED, BLUE))
    upright = replace(LIES, relation="upright")
    tipped = scene(replace(second, posture="lying"))
    return replace(pair(scene(first), tipped, upright, LIES), change="posture")


def house_with_one_roof() -> ScenePair:
    """A house that is said to have a roof in two colours, and only its walls do."""
    house = replace(TARGET, asset="toy_house", position=(0, 0, 0), scale=2.0)
    first, second = (
        scene(replace(house, colour=each, trims=(("roof", PALETTE["yellow"]),)))
        for each in (RED, BLUE)
    )
    return replace(pair(first, second, ROOF), change="trim")


WRONG = {
    "overlap": recoloured_pair(TARGET, replace(OTHER, position=(-0.6, 0.3, 0)), claim=ONE),
    "too_few_pixels": recoloured_pair(replace(TARGET, scale=0.05), OTHER),
    "too_small": recoloured_pair(replace(TARGET, scale=0.16), OTHER),
    "too_large": recoloured_pair(
        replace(TARGET, position=(-0.5, -2.5, 0), scale=1.6), replace(OTHER, position=(2.2, 0, 0))
    ),
    "too_dark": lit_pair(sun_intensity=0.0, ambient=0.001),
    "blown_out": lit_pair(sun_intensity=60.0, ambient=1.0),
    "out_of_frame": recoloured_pair(replace(TARGET, position=(-3.4, 0, 0)), OTHER),
    "occluded": recoloured_pair(
        replace(TARGET, position=(0.0, 2.0, 0.0)),
        replace(OTHER, position=(0.15, 0.2, 0), scale=0.7),
        claim=replace(LEFT, relation="behind"),
    ),
    "merged_copies": pair(scene(TWINS[0]), scene(*TWINS), ONE, BOTH),
    "relation_not_seen": recoloured_pair(TARGET, OTHER, claim=replace(LEFT, relation="right")),
    "other_caption_true": pair(
        scene(replace(TARGET, position=(-1.3, -1.0, 0)), replace(OTHER, position=(0.6, 0.4, 0))),
        scene(replace(TARGET, position=(0.5, -2.2, 0)), replace(OTHER, position=(0.6, 0.4, 0))),
        LEFT,
        FRONT,
    ),
    "unchanged_moved": pair(
        SCENE, recoloured(SCENE, camera=replace(SCENE.camera, position=(1.5, -8, 4))), LEFT
    ),
    "background_changed": pair(
        SCENE,
        recoloured(SCENE, backdrop=replace(SCENE.backdrop, floor_colour=(0.8, 0.5, 0.2))),
        LEFT,
    ),
    "step_not_seen": recoloured_pair(
        replace(TARGET, position=(-1.0, 2.5, 0), scale=0.62),
        replace(OTHER, asset="kubric:cube", position=(0.8, -0.5, 0)),
        claim=replace(LEFT, relation="larger"),
    ),
    "posture_not_seen": tipped_cube(),
    "part_not_seen": house_with_one_roof(),
    "change_not_seen": pair(SCENE, scene(replace(TARGET, colour=(0.75, 0.03, 0.03)), OTHER), LEFT),
    "colour_not_seen": blue_in_red_light(),
    "material_not_seen": black_metal_and_white_rubber(),
}


@needs_blender
def test_a_sound_pair_passes_and_its_row_says_what_was_rendered(
    rules: RenderRules, renderer: SceneRenderer
) -> None:
    sound = pair(SCENE, recoloured(SCENE), LEFT)

    work = render_pair(sound, rules, renderer)

    assert work.rejects == ()
    assert work.made is not None
    assert [shown.name for shown in work.made.objects[0]] == ["target", "other"]
    assert work.made.generation.seed == 7
    assert work.proposal is not None
    first, second = work.proposal.specs
    row = {"sample_id": "d/1", "kind": "attribute", "change": "colour", "caption_0": "a red cube"}
    row |= {"caption_1": "a blue cube", "spec_0": first, "spec_1": second}
    assert scene_pair_of(row) == sound


@needs_blender
@pytest.mark.parametrize("reason", WRONG)
def test_a_wrong_pair_is_refused_for_its_fault(
    rules: RenderRules, renderer: SceneRenderer, reason: str
) -> None:
    work = render_pair(WRONG[reason], rules, renderer)

    assert [(reject.stage, reject.reason) for reject in work.rejects] == [("renders", reason)]
    assert work.tallies[-1].kept == 0
    assert not list(samples_of(work, "d"))


@needs_blender
def test_a_bottle_that_lies_is_seen_to_lie_and_a_roof_has_its_colour(
    rules: RenderRules, renderer: SceneRenderer
) -> None:
    """And not where the captions are exchanged."""
    bottle = replace(TARGET, asset="bottle", position=(0, 0, 0), scale=1.8)
    upright = replace(LIES, relation="upright")
    tipped = pair(scene(bottle), scene(replace(bottle, posture="lying")), upright, LIES)
    tipped = replace(tipped, change="posture")
    house = replace(bottle, asset="toy_house", scale=2.0)
    red, blue = (replace(house, trims=(("roof", PALETTE[each]),)) for each in ("red", "yellow"))
    roofs = replace(pair(scene(red), scene(blue), ROOF), change="trim")

    for sound, scores in ((tipped, ["posture_margin"]), (roofs, ["trim_area_0", "trim_area_1"])):
        work = render_pair(sound, rules, renderer)
        assert work.rejects == ()
        assert work.made is not None
        kept = {score.name: score.value or 0.0 for score in work.made.scores}
        assert min(kept[name] for name in scores) > 0.01
    work = render_pair(replace(tipped, claims=tipped.claims[::-1]), rules, renderer)
    assert [reject.reason for reject in work.rejects] == ["posture_not_seen"]


def test_every_gate_has_a_pair_that_is_wrong() -> None:
    assert set(WRONG) == set(SCENE_REASONS)


@needs_blender
def test_a_relation_in_depth_is_checked_by_the_depths(
    rules: RenderRules, renderer: SceneRenderer
) -> None:
    beside = recoloured_pair(TARGET, OTHER, claim=FRONT)
    before = recoloured_pair(replace(TARGET, position=(-0.3, -2.0, 0)), OTHER, claim=FRONT)

    assert [r.reason for r in render_pair(beside, rules, renderer).rejects] == ["relation_not_seen"]
    assert render_pair(before, rules, renderer).rejects == ()


@needs_blender
def test_a_part_that_the_mesh_lacks_is_said(rules: RenderRules, renderer: SceneRenderer) -> None:
    house = replace(TARGET, asset="toy_house", trims=(("rooff", RED),))
    with pytest.raises(InputError, match="asset 'toy_house': its words list 'rooff' under"):
        render_pair(pair(scene(house), recoloured(scene(house)), ROOF), rules, renderer)


@needs_blender
def test_a_renderer_that_gives_no_sign_of_life_is_a_reject(tmp_path: Path) -> None:
    hasty = render_rules(tmp_path, timeout_s=0.001)
    renderer = hasty.renderer()
    try:
        work = render_pair(pair(SCENE, recoloured(SCENE), LEFT), hasty, renderer)
    finally:
        renderer.close()

    assert [reject.reason for reject in work.rejects] == ["error:ChildTimeout"]


@needs_blender
def test_a_scene_that_raises_is_a_reject_that_says_why(
    rules: RenderRules, renderer: SceneRenderer
) -> None:
    dark = replace(SCENE, light=replace(SCENE.light, sun_position=(0.0, 0.0, 0.0)))

    work = render_pair(pair(dark, recoloured(dark), LEFT), rules, renderer)

    (reject,) = work.rejects
    assert reject.reason == "error:ChildFailed"
    assert reject.detail == "ValueError: Expected non-zero vector."


def test_a_mask_keeps_its_numbers_and_shows_each_in_a_colour() -> None:
    numbers = np.arange(256, dtype=np.uint8).reshape(16, 16)
    stream = io.BytesIO()
    Image.fromarray(numbers).save(stream, "png")

    with Image.open(io.BytesIO(coloured(stream.getvalue()))) as mask:
        assert np.array_equal(np.asarray(mask), numbers)
        colours = np.asarray(mask.convert("RGB")).reshape(-1, 3).astype(int)

    assert colours[0].tolist() == [0, 0, 0]
    assert colours[1:].max(axis=1).min() == 255
    first = colours[:9]
    apart = np.abs(first[:, None] - first[None]).sum(axis=-1) + 999 * np.eye(9, dtype=int)
    assert apart.min() > 60


def test_a_mask_of_many_objects_stays_as_it_is() -> None:
    stream = io.BytesIO()
    Image.fromarray(np.full((4, 4), 300, np.uint16)).save(stream, "png")

    assert coloured(stream.getvalue()) == stream.getvalue()
