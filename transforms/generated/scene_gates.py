"""Refuses rendered pairs whose images do not show what was asked: limits on `scene_scores`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from eqforge.core.ranges import check_range
from eqforge.schemas.records.scores import Rejection, Score


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
        for name, gate in GATES.items():
            check_range(name, getattr(self, name), 0, gate.highest)


class Gate(NamedTuple):
    """What a limit is on.

    Attributes:
      score: a score of each of the two pictures.
      reason: of rejects beyond the limit.
      highest: what the limit may be at most; the least is 0.
      of_pair: whether it is one score of the pair instead.
      of_some: whether not every pair has the score.
    """

    score: str
    reason: str
    highest: float = 1.0
    of_pair: bool = False
    of_some: bool = False


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
    "max_near_gap": Gate("near_gap", "relation_not_seen", of_some=True),
    "max_near_depth_m": Gate("near_depth_m", "relation_not_seen", math.inf, of_some=True),
    "min_far_gap": Gate("far_gap", "relation_not_seen", of_some=True),
    "min_height_margin": Gate("height_margin", "relation_not_seen", of_some=True),
    "max_crossed_height_margin": Gate("crossed_height_margin", "other_caption_true", of_some=True),
    "min_within_margin": Gate("within_margin", "relation_not_seen", of_some=True),
    "max_crossed_within_margin": Gate("crossed_within_margin", "other_caption_true", of_some=True),
    "min_named_colour": Gate("named_colour", "colour_not_seen", of_some=True),
    "min_unchanged_iou": Gate("unchanged_iou", "unchanged_moved", of_pair=True),
    "min_unchanged_ssim": Gate("unchanged_ssim", "background_changed", of_pair=True),
    "max_unchanged_difference": Gate("unchanged_difference", "background_changed", of_pair=True),
    "max_unchanged_block": Gate(
        "unchanged_block", "background_changed", of_pair=True, of_some=True
    ),
    "min_change": Gate("change", "change_not_seen", of_pair=True),
    "min_material_contrast": Gate(
        "material_contrast", "material_not_seen", math.inf, of_pair=True, of_some=True
    ),
    "min_step_share": Gate("step_share", "step_not_seen", math.inf, of_some=True),
    "min_posture_margin": Gate(
        "posture_margin", "posture_not_seen", math.inf, of_pair=True, of_some=True
    ),
    "min_trim_area": Gate("trim_area", "part_not_seen", of_some=True),
}
"""By setting, in the order in which they are checked."""

OFF = SceneGates(**dict.fromkeys(GATES))
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


def gate_scenes(scores: Iterable[Score], gates: SceneGates) -> Rejection | None:
    """Reject a pair with a score beyond a limit that is set; the first in GATES is reported.

    A score of None, such as that of a relation that is not claimed, never rejects.

    Raises:
      KeyError: a score is missing: another version measured them.
    """
    values = {score.name: score.value for score in scores}
    for setting, gate in GATES.items():
        limit = getattr(gates, setting)
        if limit is None:
            continue
        for name in (gate.score,) if gate.of_pair else (f"{gate.score}_0", f"{gate.score}_1"):
            value = values.get(name) if gate.of_some else values[name]
            if value is None or (value >= limit if setting.startswith("min_") else value <= limit):
                continue
            return Rejection(reason=gate.reason, value=value, threshold=limit, detail=name)
    return None
