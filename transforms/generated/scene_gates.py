"""Rejects rendered pairs whose images do not show their captions: limits on `scene_scores`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from eqforge.core.ranges import check_range
from eqforge.schemas.records.scores import Rejection, Score


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneGates:
    """Limits on measurements of the two rendered images (None turns a limit off)."""

    max_overlap_m: float | None = 0.01
    """Maximum depth to which one object may cut into another, in metres."""

    min_frame_margin: float | None = 0.004
    """Minimum distance between a captioned object and the image's edge, in image widths."""

    min_visible_area: float | None = 0.002
    """Minimum fraction of the image that each object covers."""

    min_named_area: float | None = 0.003
    """Minimum fraction of the image that each captioned object covers."""

    max_named_area: float | None = 0.4
    """Maximum fraction of the image that a captioned object covers."""

    min_lightness: float | None = 12.0
    """Minimum mean lightness (L*), in [0, 100]. Darker images are rejected."""

    max_blown_out: float | None = 0.3
    """Maximum fraction of pure white pixels. A bright sky contains some white pixels."""

    max_occlusion: float | None = 0.5
    """Maximum fraction of a captioned object that is hidden or outside the image."""

    min_blob_gap: float | None = 0.004
    """Minimum gap between two copies of a counted object, in image widths."""

    min_side_margin: float | None = 0.08
    """Minimum distance between box centres for "left of" and "right of", in image widths."""

    min_depth_margin_m: float | None = 0.4
    """Minimum distance in depth for "in front of" and "behind", in metres."""

    max_crossed_side_margin: float | None = 0.08
    """Maximum distance by which "left of" or "right of" in the other image's caption may hold. The
    distance between box centres is measured in image widths."""

    max_crossed_depth_margin_m: float | None = 0.4
    """Maximum distance in depth by which "in front of" or "behind" in the other image's caption may
    hold, in metres."""

    max_near_gap: float | None = 0.15
    """Maximum gap between objects that are "next to" each other, in image widths."""

    max_near_depth_m: float | None = 0.8
    """Maximum distance in depth between objects that are "next to" each other, in metres."""

    min_far_gap: float | None = 0.25
    """Minimum gap between objects that are "far from" each other, in image widths."""

    min_height_margin: float | None = 0.18
    """Minimum height of an object above its support for "on", in image heights. The height is
    measured between the lowest pixels of the two objects."""

    max_crossed_height_margin: float | None = 0.14
    """Maximum height by which "on" in the other image's caption may hold, in image heights. The
    height is measured between the lowest pixels of the two objects."""

    min_within_margin: float | None = 0.0
    """Minimum distance to the edges of the surrounding box for "in" and "under", in image
    widths."""

    max_crossed_within_margin: float | None = 0.0
    """Maximum distance by which "in" or "under" in the other image's caption may hold, in image
    widths. The distance is measured to the edges of the surrounding box."""

    min_named_colour: float | None = 0.1
    """Minimum fraction of an object's pixels that have its captioned colour. Applies only to
    --stage photo."""

    min_unchanged_iou: float | None = 0.95
    """Minimum overlap (IoU) of the two masks of an object that should not move."""

    min_unchanged_ssim: float | None = 0.9
    """Minimum SSIM outside the changed objects. For example, the shadow of a parasol lowers the
    SSIM to 0.96."""

    max_unchanged_difference: float | None = 0.03
    """Maximum mean pixel difference outside the changed objects, in [0, 1]."""

    max_unchanged_block: float | None = 0.45
    """Maximum mean pixel difference of any block outside the changed objects. The width of a block
    is 1/16 of the image's width."""

    min_change: float | None = 0.06
    """Minimum mean pixel difference where objects changed. For example, a red and a blue mug differ
    by 0.3."""

    min_material_contrast: float | None = 1.0
    """Minimum visible contrast between two captioned materials. A contrast of 1 is clearly
    visible."""

    min_step_share: float | None = 0.5
    """Minimum visible difference, as a fraction of the intended step. Applies only to `graded`
    pairs."""

    min_posture_margin: float | None = 0.1
    """Minimum log2 of the factors by which an object looks taller and narrower upright than lying.
    Applies only to `posture` pairs."""

    min_trim_area: float | None = 0.0015
    """Minimum extra area in the captioned colour, compared with the other image. The area is a
    fraction of the image. Applies only to `trim` pairs."""

    def __post_init__(self) -> None:
        for name, gate in GATES.items():
            check_range(name, getattr(self, name), 0, gate.highest)


class Gate(NamedTuple):
    """The measure that a limit applies to.

    Attributes:
      score: a score of each of the two images.
      reason: of rejects beyond the limit.
      highest: maximum value of the limit; the minimum is 0.
      of_pair: whether it is one score of the pair instead.
    """

    score: str
    reason: str
    highest: float = 1.0
    of_pair: bool = False


GATES: Mapping[str, Gate] = {
    "max_overlap_m": Gate("overlap_m", "overlap", math.inf),
    "min_visible_area": Gate("visible_area", "too_few_pixels"),
    "min_named_area": Gate("named_area", "too_small"),
    "max_named_area": Gate("largest_area", "too_large"),
    "min_lightness": Gate("lightness", "too_dark", 100.0),
    "max_blown_out": Gate("blown_out", "blown_out"),
    "min_frame_margin": Gate("frame_margin", "out_of_frame", 0.5),
    "max_occlusion": Gate("occlusion", "occluded"),
    "min_blob_gap": Gate("copy_gap", "merged_copies"),
    "min_side_margin": Gate("side_margin", "relation_not_seen"),
    "min_depth_margin_m": Gate("depth_margin_m", "relation_not_seen", math.inf),
    "max_crossed_side_margin": Gate("crossed_side_margin", "other_caption_true"),
    "max_crossed_depth_margin_m": Gate("crossed_depth_margin_m", "other_caption_true", math.inf),
    "max_near_gap": Gate("near_gap", "relation_not_seen"),
    "max_near_depth_m": Gate("near_depth_m", "relation_not_seen", math.inf),
    "min_far_gap": Gate("far_gap", "relation_not_seen"),
    "min_height_margin": Gate("height_margin", "relation_not_seen"),
    "max_crossed_height_margin": Gate("crossed_height_margin", "other_caption_true"),
    "min_within_margin": Gate("within_margin", "relation_not_seen"),
    "max_crossed_within_margin": Gate("crossed_within_margin", "other_caption_true"),
    "min_named_colour": Gate("named_colour", "colour_not_seen"),
    "min_unchanged_iou": Gate("unchanged_iou", "unchanged_moved", of_pair=True),
    "min_unchanged_ssim": Gate("unchanged_ssim", "background_changed", of_pair=True),
    "max_unchanged_difference": Gate("unchanged_difference", "background_changed", of_pair=True),
    "max_unchanged_block": Gate("unchanged_block", "background_changed", of_pair=True),
    "min_change": Gate("change", "change_not_seen", of_pair=True),
    "min_material_contrast": Gate("material_contrast", "material_not_seen", math.inf, of_pair=True),
    "min_step_share": Gate("step_share", "step_not_seen", math.inf),
    "min_posture_margin": Gate("posture_margin", "posture_not_seen", math.inf, of_pair=True),
    "min_trim_area": Gate("trim_area", "part_not_seen"),
}
"""The gates by setting, in the order of the checks."""

OFF = SceneGates(**dict.fromkeys(GATES))
"""No gates: the paper describes none for its renderings."""

SCENE_REASONS = {
    "overlap": "Two objects in the scene intersect.",
    "out_of_frame": "An object in the caption is too close to the edge of the image.",
    "too_few_pixels": "An object covers too few pixels.",
    "too_small": "An object in the caption is too small to see clearly.",
    "too_large": "An object in the caption covers too much of the image.",
    "too_dark": "The image is too dark.",
    "blown_out": "Too much of the image is pure white.",
    "occluded": "Too much of an object in the caption is hidden.",
    "merged_copies": "Two of the counted objects look like a single object.",
    "relation_not_seen": "The image does not clearly show the position named in the caption.",
    "other_caption_true": "The other image's caption also fits this image.",
    "colour_not_seen": "An object's colour does not clearly match the caption.",
    "unchanged_moved": "An object that should stay in place covers different pixels in the two "
    "images.",
    "background_changed": "Outside the changed objects, the images differ more than "
    "--min-unchanged-ssim, --max-unchanged-difference or --max-unchanged-block allows.",
    "change_not_seen": "The objects that should change look too similar in the two images.",
    "posture_not_seen": "The two images do not clearly show the postures named in the captions.",
    "part_not_seen": "A part's colour does not clearly match the caption.",
    "step_not_seen": "The two compared objects differ too little.",
    "material_not_seen": "The two images do not clearly show the materials named in the captions.",
}


def gate_scenes(scores: Iterable[Score], gates: SceneGates) -> Rejection | None:
    """Reject a pair with a score beyond a limit that is set; the first in GATES is reported.

    Missing scores and None, such as those of relations that are not claimed, never reject.
    """
    values = {score.name: score.value for score in scores}
    for setting, gate in GATES.items():
        limit = getattr(gates, setting)
        if limit is None:
            continue
        for name in (gate.score,) if gate.of_pair else (f"{gate.score}_0", f"{gate.score}_1"):
            value = values.get(name)
            if value is None or (value >= limit if setting.startswith("min_") else value <= limit):
                continue
            return Rejection(reason=gate.reason, value=value, threshold=limit, detail=name)
    return None
