"""Refuses rendered pairs whose images do not show what was asked: limits on `scene_scores`."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from eqforge.core.ranges import check_range
from eqforge.schemas.records.scores import Rejection, Score
from eqforge.transforms.generated import scene_scores


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneGates:
    """Limits on what was measured on the two renderings; None switches one off.

    Shares of the picture do not depend on the resolution: 0.002 of 256 x 256 pixels are 131 of
    them, and 0.01 of their width are 2.6.
    """

    max_overlap_m: float | None = 0.01
    """Greatest depth to which two objects may be in each other, in metres."""

    min_frame_margin: float | None = 0.004
    """Least distance of an object that is spoken of to the picture's edge, in picture widths."""

    min_visible_area: float | None = 0.002
    """Least share of the picture that every object covers."""

    min_named_area: float | None = 0.003
    """Least share of the picture that an object that is spoken of covers."""

    max_named_area: float | None = 0.4
    """Greatest share of the picture that an object that is spoken of covers."""

    min_lightness: float | None = 12.0
    """Least mean lightness (L*) of a picture, in [0, 100]: below it, it is black."""

    max_blown_out: float | None = 0.3
    """Greatest share of a picture's pixels that are plain white; a bright sky takes some."""

    max_occlusion: float | None = 0.5
    """Greatest share of an object that is spoken of that others, or the picture's edge, hide."""

    min_blob_gap: float | None = 0.004
    """Least distance between two copies that are counted, in picture widths: nearer ones look
    like one thing."""

    min_side_margin: float | None = 0.08
    """How far left or right of the other an object has to be to be called so, in picture widths
    between the middles of their boxes."""

    min_depth_margin_m: float | None = 0.4
    """How much nearer or farther than the other an object has to be to be called in front of or
    behind it, in metres along the view."""

    max_crossed_side_margin: float | None = 0.08
    """How far left or right of the other an object may be, in picture widths, where only the
    caption of the other picture says so."""

    max_crossed_depth_margin_m: float | None = 0.4
    """How much nearer or farther than the other an object may be, in metres along the view, where
    only the caption of the other picture says so."""

    max_near_gap: float | None = 0.15
    """Greatest gap between things that are next to each other, in picture widths."""

    max_near_depth_m: float | None = 0.8
    """How much nearer than the other one of them may be, in metres along the view."""

    min_far_gap: float | None = 0.25
    """Least gap between things that are far from each other, in picture widths."""

    min_height_margin: float | None = 0.18
    """How much higher than the lowest pixel of what it is on that of a thing is, as a share of the
    picture's height."""

    max_crossed_height_margin: float | None = 0.14
    """How much higher it may be where only the other caption says that it is on it."""

    min_within_margin: float | None = 0.0
    """How far a thing is inside the box of what it is in or under, in picture widths."""

    max_crossed_within_margin: float | None = 0.0
    """How far it may be inside where only the other caption says so."""

    min_named_colour: float | None = 0.1
    """Least share of a coloured object's pixels that look like its colour, on the photographic
    stage: of a purple toy house with its red roof it is a fifth, of most things nearly all."""

    min_unchanged_iou: float | None = 0.95
    """Least intersection over union of the masks of an object that was to stay as it is."""

    min_unchanged_ssim: float | None = 0.9
    """Least structural similarity, in lightness and colour, outside the changed objects, where
    shadows change: a parasol's give 0.96."""

    max_unchanged_difference: float | None = 0.03
    """Greatest mean difference of the pixels outside the changed objects, in [0, 1]: a parasol's
    shadow gives 0.018."""

    max_unchanged_block: float | None = 0.45
    """Greatest mean difference of a block outside the changed objects, a sixteenth of the picture
    wide, in [0, 1]: the shadow of a thing that moves gives up to 0.37. Only pairs on the
    photographic stage are judged."""

    min_change: float | None = 0.06
    """Least mean difference of the pixels where objects changed, in [0, 1]: black rubber and black
    metal differ by 0.04, a red and a blue mug by 0.3."""

    min_material_contrast: float | None = 1.0
    """Least difference of what the two pictures show of the materials that captions name, in
    multiples of what is plain; only pairs of materials on the photographic stage are judged."""

    min_step_share: float | None = 0.5
    """Least difference that a picture shows of two things which are compared, as a share of the
    step that the ladder is at."""

    min_posture_margin: float | None = 0.1
    """How much taller and narrower a thing looks upright than lying, as log2 of the ratio."""

    min_trim_area: float | None = 0.0015
    """Least share of the picture on which a thing looks like the colour that its caption gives to a
    part of it, beyond that of the other picture."""

    def __post_init__(self) -> None:
        """Reject limits that no measure can reach."""
        for name, highest in _HIGHEST.items():
            check_range(name, getattr(self, name), 0, highest)


_HIGHEST = {
    "max_overlap_m": math.inf,
    "min_frame_margin": 0.5,
    "min_visible_area": 1.0,
    "min_named_area": 1.0,
    "max_named_area": 1.0,
    "min_lightness": 100.0,
    "max_blown_out": 1.0,
    "max_occlusion": 1.0,
    "min_blob_gap": 1.0,
    "min_side_margin": 1.0,
    "min_depth_margin_m": math.inf,
    "max_crossed_side_margin": 1.0,
    "max_crossed_depth_margin_m": math.inf,
    "max_near_gap": 1.0,
    "max_near_depth_m": math.inf,
    "min_far_gap": 1.0,
    "min_height_margin": 1.0,
    "max_crossed_height_margin": 1.0,
    "min_within_margin": 1.0,
    "max_crossed_within_margin": 1.0,
    "min_named_colour": 1.0,
    "min_unchanged_iou": 1.0,
    "min_unchanged_ssim": 1.0,
    "max_unchanged_difference": 1.0,
    "max_unchanged_block": 1.0,
    "min_change": 1.0,
    "min_material_contrast": math.inf,
    "min_step_share": math.inf,
    "min_posture_margin": math.inf,
    "min_trim_area": 1.0,
}
"""The maximum of each limit; the minimum is 0."""

OFF = SceneGates(**dict.fromkeys(_HIGHEST))
"""No gates: the paper describes none for its renderings."""

SCENE_REASONS = {
    "overlap": "Two objects stand in each other.",
    "out_of_frame": "An object that is spoken of reaches the picture's edge.",
    "too_few_pixels": "An object covers less of the picture than it has to.",
    "too_small": "An object that is spoken of covers too little of the picture to be looked at.",
    "too_large": "An object that is spoken of fills the picture.",
    "too_dark": "The picture is too dark to see what is in it.",
    "blown_out": "Too much of the picture is plain white.",
    "occluded": "Too much of an object that is spoken of is hidden.",
    "merged_copies": "Two of the copies that are counted look like one thing.",
    "relation_not_seen": "What the caption says of where an object is is not plain.",
    "other_caption_true": "What the other caption says of where an object is holds too.",
    "colour_not_seen": "An object that is spoken of does not look like the colour it was given.",
    "unchanged_moved": "An object that was to stay as it is does not cover the same pixels.",
    "background_changed": "Outside the changed objects the images differ more than allowed.",
    "change_not_seen": "The objects that were to change look too much as before.",
    "posture_not_seen": "It is not plain that a thing stands in one picture and lies in the other.",
    "part_not_seen": "A part does not plainly have the colour that the caption gives it.",
    "step_not_seen": "Two things that are compared differ by less in the picture than they should.",
    "material_not_seen": "The pictures do not plainly show the materials that the captions name.",
}

_BOTH = ("_0", "_1")
_GATES = (
    ("max_overlap_m", scene_scores.OVERLAP, _BOTH, "overlap"),
    ("min_visible_area", scene_scores.VISIBLE_AREA, _BOTH, "too_few_pixels"),
    ("min_named_area", scene_scores.NAMED_AREA, _BOTH, "too_small"),
    ("max_named_area", scene_scores.LARGEST_AREA, _BOTH, "too_large"),
    ("min_lightness", scene_scores.LIGHTNESS, _BOTH, "too_dark"),
    ("max_blown_out", scene_scores.BLOWN_OUT, _BOTH, "blown_out"),
    ("min_frame_margin", scene_scores.FRAME_MARGIN, _BOTH, "out_of_frame"),
    ("max_occlusion", scene_scores.OCCLUSION, _BOTH, "occluded"),
    ("min_blob_gap", scene_scores.COPY_GAP, _BOTH, "merged_copies"),
    ("min_side_margin", scene_scores.SIDE_MARGIN, _BOTH, "relation_not_seen"),
    ("min_depth_margin_m", scene_scores.DEPTH_MARGIN, _BOTH, "relation_not_seen"),
    ("max_crossed_side_margin", scene_scores.CROSSED_SIDE_MARGIN, _BOTH, "other_caption_true"),
    ("max_crossed_depth_margin_m", scene_scores.CROSSED_DEPTH_MARGIN, _BOTH, "other_caption_true"),
    ("max_near_gap", scene_scores.NEAR_GAP, _BOTH, "relation_not_seen"),
    ("max_near_depth_m", scene_scores.NEAR_DEPTH, _BOTH, "relation_not_seen"),
    ("min_far_gap", scene_scores.FAR_GAP, _BOTH, "relation_not_seen"),
    ("min_height_margin", scene_scores.HEIGHT_MARGIN, _BOTH, "relation_not_seen"),
    ("max_crossed_height_margin", scene_scores.CROSSED_HEIGHT_MARGIN, _BOTH, "other_caption_true"),
    ("min_within_margin", scene_scores.WITHIN_MARGIN, _BOTH, "relation_not_seen"),
    ("max_crossed_within_margin", scene_scores.CROSSED_WITHIN_MARGIN, _BOTH, "other_caption_true"),
    ("min_named_colour", scene_scores.NAMED_COLOUR, _BOTH, "colour_not_seen"),
    ("min_unchanged_iou", scene_scores.UNCHANGED_IOU, ("",), "unchanged_moved"),
    ("min_unchanged_ssim", scene_scores.UNCHANGED_SSIM, ("",), "background_changed"),
    (
        "max_unchanged_difference",
        scene_scores.UNCHANGED_DIFFERENCE,
        ("",),
        "background_changed",
    ),
    ("max_unchanged_block", scene_scores.UNCHANGED_BLOCK, ("",), "background_changed"),
    ("min_change", scene_scores.CHANGE, ("",), "change_not_seen"),
    ("min_material_contrast", scene_scores.MATERIAL_CONTRAST, ("",), "material_not_seen"),
    ("min_step_share", scene_scores.STEP_SHARE, _BOTH, "step_not_seen"),
    ("min_posture_margin", scene_scores.POSTURE_MARGIN, ("",), "posture_not_seen"),
    ("min_trim_area", scene_scores.TRIM_AREA, _BOTH, "part_not_seen"),
)
"""Setting, score, the score's endings and reason, in the order in which they are checked."""

_OF_SOME = frozenset(
    {
        *(
            scene_scores.NAMED_COLOUR,
            scene_scores.MATERIAL_CONTRAST,
            scene_scores.NEAR_GAP,
            scene_scores.NEAR_DEPTH,
        ),
        *(scene_scores.STEP_SHARE, scene_scores.WITHIN_MARGIN, scene_scores.CROSSED_WITHIN_MARGIN),
        *(scene_scores.UNCHANGED_BLOCK, scene_scores.POSTURE_MARGIN, scene_scores.TRIM_AREA),
        *(scene_scores.FAR_GAP, scene_scores.HEIGHT_MARGIN, scene_scores.CROSSED_HEIGHT_MARGIN),
    }
)
"""Scores that not every pair has."""


def gate_scenes(scores: Iterable[Score], gates: SceneGates) -> Rejection | None:
    """Reject a pair with a score beyond a limit that is set; the first in _GATES is reported.

    A score of None, such as that of a relation that is not claimed, never rejects.

    Raises:
      KeyError: a score is missing: another version measured them.
    """
    values = {score.name: score.value for score in scores}
    for setting, name, endings, reason in _GATES:
        limit = getattr(gates, setting)
        for ending in endings if limit is not None else ():
            key = name + ending
            value = values.get(key) if name in _OF_SOME else values[key]
            if value is not None and not _is_within(value, limit, setting):
                return Rejection(reason=reason, value=value, threshold=limit, detail=name + ending)
    return None


def _is_within(value: float, limit: float, setting: str) -> bool:
    return value >= limit if setting.startswith("min_") else value <= limit
