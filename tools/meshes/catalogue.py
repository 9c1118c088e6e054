"""eqforge's own objects: their models, materials and the words for them."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from eqforge.generators.scenes.manifest import AssetWords, Room, Trim
from eqforge.generators.scenes.palette import PALETTE
from eqforge.schemas.records.scenes import SurfaceMaterial
from tools.meshes import household, textured, things
from tools.meshes.household import Model
from tools.meshes.wavefront import Surface

PAINT = "paint"
"""The material that a scene's colour replaces."""

FRONT_DEG = -90.0
"""All models that have a front face the negative y axis."""

SURFACES: Mapping[str, Surface] = {
    "white": Surface(colour=PALETTE["white"]),
    "black": Surface(colour=PALETTE["black"], roughness=0.7),
    "red": Surface(colour=PALETTE["red"]),
    "green": Surface(colour=(0.02, 0.13, 0.02)),
    "orange": Surface(colour=PALETTE["orange"]),
    "metal": Surface(colour=(0.6, 0.6, 0.62), roughness=0.3, metallic=1.0),
    "gold": Surface(colour=(0.8, 0.55, 0.1)),
    "wood": Surface(colour=(0.35, 0.17, 0.07), roughness=0.6),
    "leather": Surface(colour=(0.08, 0.03, 0.015), roughness=0.6),
    "earth": Surface(colour=(0.04, 0.02, 0.01), roughness=0.9),
    "brick": Surface(colour=(0.3, 0.07, 0.04), roughness=0.9),
    "roof": Surface(colour=(0.2, 0.03, 0.02), roughness=0.8),
    "window": Surface(colour=(0.1, 0.2, 0.3), roughness=0.15),
    "page": Surface(colour=(0.8, 0.75, 0.6), roughness=0.9),
    "flame": Surface(colour=(1.0, 0.45, 0.05)),
    "stem": Surface(colour=(0.12, 0.13, 0.03), roughness=0.8),
    **{
        name: Surface(colour=(0.5, 0.5, 0.5), roughness=roughness, texture=texture)
        for name, texture, roughness in (
            ("rind", "watermelon", 0.35),
            ("skin", "pumpkin", 0.45),
            ("map", "globe", 0.3),
            ("card", "cardboard", 0.85),
            ("top", "cardboard_top", 0.75),
            ("bark", "bark", 0.9),
            ("rings", "rings", 0.8),
            ("stone", "granite", 0.85),
        )
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """An object: how it is modelled, and what the manifest says about it."""

    model: Callable[[], Model]
    category: str
    words: AssetWords
    texture: str | None = None
    surfaces: Mapping[str, Surface] = field(init=False)

    def __post_init__(self) -> None:
        """Gives the painted parts the object's own colour, and the texture that has it."""
        rough = 0.5 if self.texture is None else ROUGHNESS.get(self.texture, 0.8)
        paint = Surface(
            colour=PALETTE[self.words.colour or "grey"], roughness=rough, texture=self.texture
        )
        object.__setattr__(self, "surfaces", {**SURFACES, PAINT: paint})


ROUGHNESS = {"soccer_ball": 0.45, "basketball": 0.6, "easter_egg": 0.3, "label": 0.4}
"""Of textures that are not matt."""


def _textured(
    model: Callable[[], Model], category: str, colour: str | None, paint: str | None = None,
    **words: Any,
) -> Entry:  # fmt: skip
    """Returns an object with a texture, which may be recoloured where its paint has one."""
    noun = words.pop("noun", model.__name__.replace("_", " "))
    said = AssetWords(
        noun=noun,
        plural=words.pop("plural", noun + "s"),
        colour=colour,
        parts=() if paint is None else (PAINT,),
        stages=("photo",),
        holds=HOLDS.get(model.__name__),
        lies=model.__name__ in LIES,
        **words,
    )
    return Entry(model=model, category=category, words=said, texture=paint)


def _entry(model: Callable[[], Model], category: str, colour: str, **words: Any) -> Entry:
    noun = words.pop("noun", model.__name__.replace("_", " "))
    plural = noun if words.get("is_plural") else words.pop("plural", noun + "s")
    front = None if model in ROUND else FRONT_DEG
    said = AssetWords(
        noun=noun,
        plural=plural,
        colour=colour,
        parts=(PAINT,),
        front_deg=front,
        materials=MADE_OF.get(model.__name__, ()),
        holds=HOLDS.get(model.__name__),
        shelters=SHELTERS.get(model.__name__),
        faces=model.__name__ in FACES,
        lies=model.__name__ in LIES,
        trims=TRIMS.get(model.__name__, {}),
        **words,
    )
    return Entry(model=model, category=category, words=said)


ROUND = (household.bowl, household.vase, household.table, things.cube, things.cylinder)
"""Models that look the same from more than one side, or from all."""


HOLDS = {
    "bowl": Room(radius=0.24, height=1.0, floor=0.065, rim=0.414),
    "bucket": Room(radius=0.235, height=0.85, floor=0.03, rim=0.66),
    "basket": Room(radius=0.3, height=0.75, floor=0.055, rim=0.49),
}
"""The room in things, by model."""

SHELTERS = {
    "table": Room(radius=0.34, height=0.48),
    "chair": Room(radius=0.16, height=0.42),
}
"""The room under things, by model."""

FACES = frozenset({"chair", "duck", "toy_car", "boots"})
"""Models whose front shows where they face."""

LIES = frozenset({"bottle", "chair", "stool", "barrel", "cylinder", "tin_can"})
"""Models that rest on their side: half of them at least is on the floor when they are tipped."""

TRIMS: Mapping[str, Mapping[str, Trim]] = {
    "toy_house": {"roof": Trim(noun="roof")},
    "hat": {"red": Trim(noun="band")},
    "ball": {"white": Trim(noun="stripes", is_plural=True)},
    "traffic_cone": {"white": Trim(noun="bands", is_plural=True)},
    "suitcase": {"leather": Trim(noun="straps", is_plural=True)},
    "barrel": {"metal": Trim(noun="hoops", is_plural=True)},
    "boots": {"black": Trim(noun="soles", is_plural=True)},
    "toy_car": {"black": Trim(noun="wheels", is_plural=True)},
    "duck": {"orange": Trim(noun="beak")},
    "lamp": {"metal": Trim(noun="base")},
}
"""Parts of models that captions may name by their colour."""

FLAT = ("object", "stand")
"""Roles of what has a flat top, on which another thing may stand."""

MADE_OF: Mapping[str, tuple[SurfaceMaterial, ...]] = {
    "mug": ("metal", "glass", "wooden"),
    "bowl": ("metal", "glass", "wooden"),
    "vase": ("metal", "glass", "wooden"),
    "teapot": ("metal", "glass"),
    "bucket": ("rubber", "metal", "wooden"),
    "chair": ("metal", "wooden"),
    "stool": ("metal", "wooden"),
    "table": ("metal", "wooden"),
    "ladder": ("metal", "wooden"),
    "stairs": ("metal", "wooden"),
    "barrel": ("metal", "wooden"),
    "cube": ("rubber", "metal", "glass", "wooden"),
    "cylinder": ("rubber", "metal", "glass", "wooden"),
}
"""What things may be made of, by model: what one sees in shops, and looks like it in a rendering. A
hat of metal and a candle of rubber do not exist; too little of a toy car or a labelled bottle would
change."""


CATALOGUE: Mapping[str, Entry] = {
    entry.model.__name__: entry
    for entry in (
        _entry(household.mug, "kitchen", "blue", size=0.75),
        _entry(household.bowl, "kitchen", "yellow", size=0.9),
        _entry(household.bottle, "kitchen", "green", size=1.0, clashes=("white",)),
        _entry(household.vase, "decoration", "purple", size=1.0),
        _entry(household.teapot, "kitchen", "pink", size=0.95),
        _entry(household.bucket, "household", "blue", size=1.0),
        _entry(household.lamp, "furniture", "yellow", size=1.1),
        _entry(household.candle, "decoration", "white", size=0.95),
        _entry(household.chair, "furniture", "brown", size=1.3),
        _entry(household.stool, "furniture", "white", size=1.05, roles=FLAT),
        _entry(household.table, "furniture", "brown", size=1.3, roles=(*FLAT, "support")),
        _entry(household.ladder, "household", "orange", size=1.4),
        _entry(
            things.gift_box,
            "household",
            "white",
            plural="gift boxes",
            detail="with red straps",
            size=0.95,
            clashes=("red", "orange", "pink", "brown"),
        ),
        _entry(things.ball, "toys", "red", noun="beach ball", size=0.85, clashes=("white",)),
        _entry(things.book, "household", "green", size=0.9),
        _entry(things.plant_pot, "decoration", "orange", size=1.0, clashes=("green",)),
        _entry(things.traffic_cone, "street", "orange", size=1.0, clashes=("white",)),
        _entry(things.hat, "clothes", "black", noun="top hat", size=0.9, clashes=("red",)),
        _entry(things.boots, "clothes", "yellow", is_plural=True, size=0.9, clashes=("black",)),
        _entry(things.stairs, "household", "grey", is_plural=True, size=1.1),
        _entry(things.duck, "toys", "yellow", noun="rubber duck", size=0.85, clashes=("orange",)),
        _entry(things.toy_car, "toys", "red", size=1.0, clashes=("black",)),
        _entry(things.toy_house, "toys", "white", size=1.1, clashes=("red", "brown")),
        _entry(things.mushroom, "garden", "red", size=0.9, clashes=("white",)),
        _entry(
            things.suitcase, "household", "green", size=1.0, clashes=("brown", "black")
        ),
        _entry(things.barrel, "household", "brown", size=1.0, clashes=("grey",), roles=FLAT),
        _entry(things.drum, "toys", "blue", size=0.95, clashes=("white",)),
        _entry(things.parasol, "garden", "green", size=1.15),
        _entry(things.cube, "shapes", "red", size=0.75, roles=FLAT),
        _entry(things.cylinder, "shapes", "green", size=0.85, roles=FLAT),
        _entry(things.platform, "shapes", "grey", roles=("support",)),
        _textured(textured.watermelon, "food", "green", size=0.95),
        _textured(textured.pumpkin, "food", "orange", size=0.95),
        _textured(
            textured.easter_egg, "decoration", "purple", "easter_egg",
            noun="Easter egg", size=0.85, clashes=("white",),
        ),
        _textured(
            textured.soccer_ball, "toys", "white", "soccer_ball", size=0.8, clashes=("black",)
        ),
        _textured(
            textured.basketball, "toys", "orange", "basketball", size=0.85, clashes=("black",)
        ),
        _textured(
            textured.yarn, "household", "red", "yarn",
            noun="ball of yarn", plural="balls of yarn", size=0.8,
        ),
        _textured(textured.globe, "household", None, size=1.0),
        _textured(textured.basket, "household", "brown", "wicker", size=1.0),
        _textured(textured.crate, "household", "brown", "crate", size=0.95, roles=FLAT),
        _textured(
            textured.cardboard_box, "household", "brown",
            plural="cardboard boxes", size=0.95, roles=FLAT,
        ),
        _textured(textured.cushion, "furniture", "blue", "cushion", plural="cushions", size=0.95),
        _textured(textured.tin_can, "food", "red", "label", size=0.85, clashes=("white", "grey")),
        _textured(textured.tree_stump, "garden", "brown", size=1.1, roles=FLAT),
        _textured(textured.rock, "garden", "grey", size=0.9),
    )
}  # fmt: skip


def words_entry(words: AssetWords) -> dict[str, Any]:
    """Returns the words for a manifest's entry: only what differs from the defaults."""
    default = asdict(AssetWords(noun="", plural=""))
    return {key: value for key, value in asdict(words).items() if value != default[key]}
