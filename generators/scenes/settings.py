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
    """Number and kinds of pairs, and the placement of objects and cameras."""

    pairs: int = 6000
    """Number of pairs, split evenly among the kinds. The paper uses 2,000 per kind."""

    kinds: tuple[Kind, ...] = ("attribute", "counting", "location")
    """Kinds of difference between the two scenes of a pair. `attribute`, `counting` and `location`
    are EqBen's kinds. `beside` compares "next to" with "far from", `between` compares "between"
    with "to the left of" or "to the right of", and `row` changes the order of three objects.
    `support`, `inside` and `under` compare "on", "in" and "under" with "next to". `facing` changes
    the direction that an object faces. `posture` compares "standing upright" with "lying on its
    side". `trim` changes the colour of one part. `graded` changes size, lightness, position or
    number by 1, 2, 4 or 8 just-noticeable differences."""

    attributes: tuple[Attribute, ...] = ("colour", "size")
    """Attributes that change in `attribute` pairs. Pairs cycle through the attributes."""

    max_count: int = 5
    """Largest number of copies of an object in `counting` pairs. The smallest is 1."""

    stage: StageName = "photo"
    """Background of the scenes. `photo` uses a photographed environment and a textured floor, and
    `plain` uses a plain floor."""

    max_distractors: int | None = None
    """Maximum number of objects that no caption mentions (default: 4, or 1 with --stage plain)."""

    elevation_deg: Range | None = None
    """Range of camera elevations in degrees (default: 15 to 32, or 22 to 38 with --stage plain)."""

    distance_m: Range | None = None
    """Range of camera distances in metres (default: determined by --target-area). With --stage
    plain, the default is 4.5 to 6. The camera moves back if the objects do not fit."""

    target_area: Range = (0.04, 0.2)
    """Minimum and maximum fraction of the image covered by the object that captions name first.
    Applies only to --stage photo."""

    hdri: tuple[str, ...] = ()
    """Asset ids of environment images (default: the bundled images, or none with --stage plain)."""

    image_margin: float = 0.03
    """Minimum distance between objects and the edge of the image, in image widths."""

    min_clearance_m: float = 0.08
    """Minimum distance between two objects on the floor, in metres."""

    min_relation_margin_deg: float = 32.0
    """Minimum margin of a spatial relation, in degrees. A relation such as "left of" covers a
    sector of 90 degrees, and the margin is the angle to the edge of this sector."""

    max_hidden: float | None = None
    """Maximum fraction of a captioned object's box that may be hidden (default: 0.45, or 0.35 with
    --stage plain)."""

    min_copy_gap: float = 0.015
    """Minimum distance between two copies of an object, in image widths."""

    tries: int = 100
    """Number of object arrangements to try before rejecting a pair."""

    def __post_init__(self) -> None:
        low, high = self.elevations_deg
        near, far = self.distance_m or DISTANCE_M
        least, most = self.target_area
        for name, is_right, rule in (
            ("pairs", self.pairs >= 0, "0 or more"),
            ("kinds", _are_some(self.kinds), "one or more different values"),
            ("attributes", _are_some(self.attributes), "one or more different values"),
            ("max_count", 2 <= self.max_count <= 10, "2 to 10"),
            ("max_distractors", 0 <= self.bystanders <= 5, "0 to 5"),
            ("elevation_deg", 0 < low <= high < 90, "two angles between 0 and 90, the lower first"),
            (
                "target_area",
                0 < least <= most < 1,
                "two fractions between 0 and 1, the smaller first",
            ),
            (
                "distance_m",
                0 < near <= far < math.inf,
                "two finite distances above 0, the nearer first",
            ),
            ("image_margin", 0 <= self.image_margin < 0.5, "0 to 0.5"),
            (
                "min_clearance_m",
                0 <= self.min_clearance_m < math.inf,
                "a finite number, 0 or more",
            ),
            ("min_relation_margin_deg", 0 <= self.min_relation_margin_deg < 45, "0 to 45"),
            ("max_hidden", 0 <= self.most_hidden <= 1, "0 to 1"),
            ("min_copy_gap", 0 <= self.min_copy_gap < math.inf, "a finite number, 0 or more"),
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
