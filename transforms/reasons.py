"""Every reason for which a stage may refuse a candidate: a closed list."""

from collections.abc import Mapping
from typing import Final

from eqforge.generators.text.coordination.conjuncts import SWAP_REFUSALS
from eqforge.generators.text.hard_positives.records import REFUSALS
from eqforge.generators.text.llm.validate import REWRITE_REFUSALS
from eqforge.schemas.frames import FRAME_REASONS
from eqforge.schemas.scores import CAPTION_REASONS, IMAGE_REASONS, PAIR_REASONS

_LINTS = {name: text for name, text in CAPTION_REASONS.items() if name != "equal_captions"}

_EDITS = {
    "no_lexicon_word": "The caption has no word of the lexicon whose sense is plain.",
    "no_hard_negative": "No kind of hard negative fits the caption.",
    **{reason: text for reason, text in SWAP_REFUSALS.items() if reason != "no_and"},
    **REWRITE_REFUSALS,
}

STAGE_REASONS: Final[Mapping[str, Mapping[str, str]]] = {
    "segments": {
        "bad_segment": "The segment ends before it starts, or starts before the video.",
        **_LINTS,
    },
    "boundaries": {
        "other_annotator": "Another annotator's record of the same boundary was used.",
        "no_next_boundary": "The boundary has no annotated next one to skip to.",
        "bad_order": "The boundary does not lie between its neighbours in time.",
        **CAPTION_REASONS,
    },
    "objects": {
        "object_invisible": "The object is not visible in the frame, so it has no relations.",
        "unknown_class": "The class is none of Action Genome's.",
        "unknown_relation": "A relation is none of Action Genome's.",
        "object_twice": "The frame has several objects of the class; which one is meant is open.",
        "no_caption": "The relations give no caption.",
        "near_chosen_frame": "A frame chosen for a pair lies just before it.",
        "no_partner": "No other frame differs in enough of the three kinds of relation.",
    },
    "captions": {
        "image_missing": "No file of that name lies in the images folder.",
        **{name: IMAGE_REASONS[name] for name in ("undecodable_image", "too_many_pixels")},
        "outside_root": "The name leads out of the images folder, or round in a circle of links.",
        **_LINTS,
    },
    "perturbations": {},
    "hard_positives": {
        "not_selected": "The published rule selects no word of the record.",
        **_EDITS,
        **SWAP_REFUSALS,
        **REFUSALS,
    },
    "training_texts": {**_EDITS},
    "frames": {**FRAME_REASONS, **IMAGE_REASONS},
    "pairs": {
        "frame_rejected": "One of the two frames could not be had or was dropped.",
        "over_pair_limit": "The video already has as many pairs as the limit allows.",
        "same_image": "Both frames are the same picture, byte for byte.",
        "equal_captions": CAPTION_REASONS["equal_captions"],
        **PAIR_REASONS,
    },
}
ERROR_PREFIX = "error:"


def is_known(stage: str, reason: str) -> bool:
    """Tells whether a stage may give a reason; an exception on one record is `error:<Type>`."""
    return reason.startswith(ERROR_PREFIX) or reason in STAGE_REASONS.get(stage, {})
