import math
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.scenes.claims import difference, differs_as_declared, relation_margin_deg
from eqforge.schemas.records.scenes import (
    Backdrop,
    Claim,
    Relation,
    SceneCamera,
    SceneLight,
    SceneObject,
    ScenePair,
    SceneSpec,
)

RELATIONS: tuple[Relation, ...] = ("left", "right", "front", "behind")


def item(name: str, x: float, y: float) -> SceneObject:
    return SceneObject(name=name, asset="mug", position=(x, y, 0.0))


def scene(*objects: SceneObject, eye: tuple[float, float] = (0.0, -6.0)) -> SceneSpec:
    return SceneSpec(
        objects=objects,
        camera=SceneCamera(position=(*eye, 3.0), look_at=(0.0, 0.0, 0.0)),
        light=SceneLight(sun_position=(1.0, 2.0, 3.0)),
        backdrop=Backdrop(),
        seed=7,
    )


def claim(relation: Relation | None) -> Claim:
    return Claim(target="target", copies=("target",), relation=relation, reference="reference")


@pytest.mark.parametrize(
    ("place", "relation"),
    [((-1, 0), "left"), ((1, 0), "right"), ((0, -1), "front"), ((0, 1), "behind")],
)
def test_each_direction_from_the_camera_is_one_relation(
    place: tuple[float, float], relation: Relation
) -> None:
    spec = scene(item("reference", 0, 0), item("target", *place))
    margins = {name: relation_margin_deg(spec, claim(name)) for name in RELATIONS}
    assert margins.pop(relation) == pytest.approx(45)
    assert sorted(round(margin) for margin in margins.values()) == [-135, -45, -45]


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 2 * math.pi), st.floats(0.3, 3))
def test_relations_are_those_of_the_point_of_view(
    x: float, y: float, around: float, distance: float
) -> None:
    """Against the angle at the reference between the camera and the target."""
    eye = (x + 6 * math.cos(around), y + 6 * math.sin(around))
    angle = 0.7
    place = (x + distance * math.cos(around + angle), y + distance * math.sin(around + angle))
    spec = scene(item("reference", x, y), item("target", *place), eye=eye)
    # From the reference the target is 0.7 rad to the left of the camera, as the reference looks
    # back: to the right for the camera, and in front.
    assert relation_margin_deg(spec, claim("front")) == pytest.approx(45 - math.degrees(angle))
    assert relation_margin_deg(spec, claim("right")) == pytest.approx(
        45 - (90 - math.degrees(angle))
    )


def test_a_claim_without_a_relation_has_no_margin() -> None:
    spec = scene(item("target", 0, 0))
    with pytest.raises(ValueError, match="has no relation"):
        relation_margin_deg(spec, claim(None))


def pair(first: SceneSpec, second: SceneSpec, change: str = "colour") -> ScenePair:
    copies = [
        tuple(each.name for each in spec.objects if each.name.startswith("copy"))
        for spec in (first, second)
    ]
    is_count = change == "count"
    claims = [Claim(target=names[0], copies=names) for names in copies] if is_count else None
    return ScenePair(
        sample_id="a",
        kind="counting" if is_count else "attribute",
        change=change,
        scenes=(first, second),
        captions=("a", "b"),
        claims=(claims[0], claims[1]) if claims else (claim("left"), claim("left")),
    )


BASE = scene(item("reference", 0, 0), item("target", -1, 0))
OTHER: dict[str, Any] = {
    "asset": "bowl",
    "position": (5.0, 5.0, 0.0),
    "yaw_deg": 33.0,
    "scale": 2.0,
    "colour": (0.1, 0.2, 0.3),
    "material": "metal",
}


def changed(spec: SceneSpec, name: str, field: str) -> SceneSpec:
    return replace(
        spec,
        objects=tuple(
            replace(each, **{field: OTHER[field]}) if each.name == name else each
            for each in spec.objects
        ),
    )


@pytest.mark.parametrize("field", OTHER)
@pytest.mark.parametrize("name", ["target", "reference"])
def test_only_the_declared_field_of_the_target_may_differ(name: str, field: str) -> None:
    second = changed(BASE, name, field)
    assert difference(BASE, second) == (f"{name}.{field}",)
    declared = {"colour": "colour", "scale": "size", "material": "material", "position": "position"}
    for change in declared.values():
        is_exchange = (field, change) == ("asset", "colour")  # of one scan for another
        is_right = name == "target" and (declared.get(field) == change or is_exchange)
        assert differs_as_declared(pair(BASE, second, change)) == is_right


def test_a_scan_may_be_exchanged_for_another_of_its_size_and_no_more() -> None:
    second = changed(changed(BASE, "target", "asset"), "target", "scale")
    assert differs_as_declared(pair(BASE, second, "colour"))
    assert not differs_as_declared(pair(BASE, second, "size"))
    assert not differs_as_declared(pair(BASE, changed(second, "target", "yaw_deg"), "colour"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("camera", SceneCamera(position=(1.0, 1.0, 1.0), look_at=(0.0, 0.0, 0.0))),
        ("light", SceneLight(sun_position=(9.0, 9.0, 9.0))),
        ("backdrop", Backdrop(floor_size=1.0)),
        ("seed", 8),
    ],
)
def test_nothing_around_the_objects_may_differ(field: str, value: object) -> None:
    assert field in {each.name for each in fields(SceneSpec)}
    second = replace(changed(BASE, "target", "colour"), **{field: value})  # type: ignore[arg-type]
    assert set(difference(BASE, second)) == {field, "target.colour"}
    assert not differs_as_declared(pair(BASE, second))


def test_another_order_is_a_difference() -> None:
    second = replace(BASE, objects=BASE.objects[::-1])
    assert difference(BASE, second) == ("order",)


COPIES = tuple(item(f"copy{number}", number, 0) for number in range(1, 5))
FEW, MANY = scene(item("support", 0, 0), *COPIES[:2]), scene(item("support", 0, 0), *COPIES)


def test_copies_may_be_added_and_taken_away_at_the_end() -> None:
    assert difference(FEW, MANY) == ("+copy3", "+copy4")
    assert difference(MANY, FEW) == ("-copy3", "-copy4")
    assert differs_as_declared(pair(FEW, MANY, "count"))
    assert differs_as_declared(pair(MANY, FEW, "count"))


def test_copies_that_moved_or_other_objects_that_came_are_no_count() -> None:
    moved = scene(item("support", 0, 0), item("copy1", 9, 9), *COPIES[1:])
    assert not differs_as_declared(pair(FEW, moved, "count"))
    stranger = replace(FEW, objects=(*FEW.objects, item("bowl", 3, 3)))
    assert not differs_as_declared(pair(FEW, stranger, "count"))
    between = scene(item("support", 0, 0), COPIES[0], COPIES[2], COPIES[1])
    assert not differs_as_declared(pair(FEW, between, "count"))
    assert not differs_as_declared(pair(FEW, replace(MANY, seed=8), "count"))
