"""Settings of the proposals of scene pairs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from eqforge.core.ranges import expect
from eqforge.generators.scenes.captions import Mode
from eqforge.schemas.records.scenes import Attribute, Kind, StageName

Range = tuple[float, float]

_BYSTANDERS: Mapping[StageName, int] = {"photo": 4, "plain": 1}
_ELEVATION_DEG: Mapping[StageName, Range] = {"photo": (15.0, 32.0), "plain": (22.0, 38.0)}
_MOST_HIDDEN: Mapping[StageName, float] = {"photo": 0.45, "plain": 0.35}
_CROWD_M: Mapping[StageName, float] = {"photo": 1.45, "plain": 1.12}
DISTANCE_M: Range = (4.5, 6.0)  # of the camera, on the plain stage
MAX_STEP_BACK = 0.5  # how much farther away the camera is in the last try: large objects need room


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneSettings:
    """Which pairs of scenes are proposed, and how their objects are placed."""

    pairs: int = 6000
    """Number of pairs, shared out evenly among the kinds; the paper has 2,000 of each."""

    kinds: tuple[Kind, ...] = ("attribute", "counting", "location")
    """What the two scenes of a pair differ in: `attribute`, `counting`, `location`; by name also
    `beside` (next to or far from), `between` (or beyond), `row` (the order of three), `support`
    (on, or next to), `inside` and `under` (in or under, or next to), `facing` (two of four
    directions), `posture` (upright, or on its side), `trim` (the colour of a part), and `graded`:
    ladders in which two things are compared that differ by 1, 2, 4 and 8 just-noticeable steps in
    size, lightness, place or number."""

    attributes: tuple[Attribute, ...] = ("colour", "size")
    """Attributes that the pairs of the kind `attribute` change, in turn: colour, size, material.
    Material is off: on the plain stage many pictures do not show what the captions say of it."""

    max_count: int = 5
    """Most copies of one object that a counting scene has; the least is 1."""

    stage: StageName = "photo"
    """`photo` stands the objects on a textured floor in a photographed environment, which lights
    them; `plain` on one colour under a sun, as the figures of CLEVR do."""

    max_distractors: int | None = None
    """Most objects that no caption speaks of; each scene draws its number. Without it, 4, or 1 on
    the plain stage."""

    elevation_deg: Range | None = None
    """How high above the horizon the camera is, seen from the scene's middle. Without it, 15 to
    32, and higher where tall objects hide others, or 22 to 38 on the plain stage."""

    distance_m: Range | None = None
    """How far the camera is from the scene's middle; in counting scenes of the plain stage, 1.1
    times as far. Where the objects find no room, up to half as far again. Without it, as far as
    `--target-area` says, or 4.5 to 6 on the plain stage."""

    target_area: Range = (0.04, 0.2)
    """Share of the picture that the object spoken of first covers, on the photographic stage."""

    hdri: tuple[str, ...] = ()
    """Environment pictures, by asset id, of which each pair draws one. Without it, those that
    eqforge brings, or none on the plain stage, where a sun shines."""

    image_margin: float = 0.03
    """Least distance of every object to the picture's edge, in picture widths."""

    min_clearance_m: float = 0.08
    """Least distance between the boxes of two objects on the floor."""

    min_relation_margin_deg: float = 32.0
    """A relation holds in 90 degrees around its direction; how far from their ends a target is. At
    32 it lies within 13 degrees of the direction: left is not also in front."""

    max_hidden: float | None = None
    """Greatest share of the box of an object that is spoken of that other boxes hide. Without it,
    0.45, or 0.35 on the plain stage."""

    min_copy_gap: float = 0.015
    """Least distance between two copies in the picture, in picture widths."""

    tries: int = 100
    """Arrangements tried for a pair before it is refused."""

    def __post_init__(self) -> None:
        low, high = self.elevations_deg
        near, far = self.distance_m or DISTANCE_M
        least, most = self.target_area
        for name, is_right, rule in (
            ("pairs", self.pairs >= 0, "0 or more"),
            ("kinds", _are_some(self.kinds), "one or more, none twice"),
            ("attributes", _are_some(self.attributes), "one or more, none twice"),
            ("max_count", 2 <= self.max_count <= 10, "2 to 10"),
            ("max_distractors", 0 <= self.bystanders <= 5, "0 to 5"),
            ("elevation_deg", 0 < low <= high < 90, "two angles between 0 and 90, the lower first"),
            ("target_area", 0 < least <= most < 1, "two shares between 0 and 1, the smaller first"),
            ("distance_m", 0 < near <= far < math.inf, "above 0, finite, the nearer first"),
            ("image_margin", 0 <= self.image_margin < 0.5, "0 to 0.5"),
            ("min_clearance_m", 0 <= self.min_clearance_m < math.inf, "0 or more, and finite"),
            ("min_relation_margin_deg", 0 <= self.min_relation_margin_deg < 45, "0 to 45"),
            ("max_hidden", 0 <= self.most_hidden <= 1, "0 to 1"),
            ("min_copy_gap", 0 <= self.min_copy_gap < math.inf, "0 or more, and finite"),
            ("tries", self.tries >= 1, "1 or more"),
        ):
            expect(self, name, is_right, rule)

    @property
    def bystanders(self) -> int:
        """Greatest number of objects that no caption names."""
        return _BYSTANDERS[self.stage] if self.max_distractors is None else self.max_distractors

    @property
    def min_bystanders(self) -> int:
        """Least number drawn; where there is no room, some are left out."""
        return max(self.bystanders - 2, 0) if self.stage == "photo" else 0

    @property
    def most_hidden(self) -> float:
        return _MOST_HIDDEN[self.stage] if self.max_hidden is None else self.max_hidden

    @property
    def crowd_m(self) -> float:
        return _CROWD_M[self.stage]

    @property
    def elevations_deg(self) -> Range:
        return self.elevation_deg or _ELEVATION_DEG[self.stage]

    def pairs_of(self, kind: Kind) -> int:
        if kind not in self.kinds:
            return 0
        each, left = divmod(self.pairs, len(self.kinds))
        return each + (self.kinds.index(kind) < left)


def scene_settings(mode: Mode) -> SceneSettings:
    """Return the defaults of a mode.

    The published figures show two objects in a scene, or copies of one, and vary only colour.
    """
    if mode == "paper":
        return SceneSettings(stage="plain", attributes=("colour",), max_distractors=0)
    return SceneSettings()


def _are_some(values: tuple[str, ...]) -> bool:
    return bool(values) and len(set(values)) == len(values)
