"""Every reason for which a stage may refuse a candidate: a closed list."""

from collections.abc import Mapping
from typing import Final

from eqforge.generators.scenes.propose import PROPOSAL_REASONS
from eqforge.generators.simat.crops import CROP_REASONS
from eqforge.generators.simat.triplets import TRIPLET_REASONS
from eqforge.generators.text.coordination.conjuncts import SWAP_REFUSALS
from eqforge.generators.text.hard_positives.records import REFUSALS
from eqforge.generators.text.llm.validate import REWRITE_REFUSALS
from eqforge.schemas.records.frames import FRAME_REASONS
from eqforge.schemas.records.scores import CAPTION_REASONS, IMAGE_REASONS, PAIR_REASONS
from eqforge.transforms.generated.scene_gates import SCENE_REASONS

_LINTS = {name: text for name, text in CAPTION_REASONS.items() if name != "equal_captions"}

_FILE_REASONS = ("source_changed", "undecodable_image", "too_many_pixels")

_UNUSABLE = ("empty_caption", "control_characters", "caption_too_long_chars")

_EDITS = {
    "no_lexicon_word": "The caption has no word of the lexicon whose sense is plain.",
    "no_hard_negative": "No kind of hard negative fits the caption.",
    **{reason: text for reason, text in SWAP_REFUSALS.items() if reason != "no_and"},
    **REWRITE_REFUSALS,
}

STAGE_REASONS: Final[Mapping[str, Mapping[str, str]]] = {
    "segments": {
        "bad_segment": "The record is no captioned moment, or ends before it starts.",
        "duplicate_moment": "Another record of the video has the same id, or time and caption.",
        "too_few_moments": "The video has no second usable moment, and a pair needs two.",
        **_LINTS,
    },
    "boundaries": {
        "other_annotator": "Another annotator's record of the same boundary was used.",
        "no_next_boundary": "The boundary has no annotated next one to skip to.",
        "too_few_moments": "Nothing of the video is annotated, and a pair needs two moments.",
        "bad_order": "The boundary does not lie between its neighbours in time.",
        **CAPTION_REASONS,
    },
    "objects": {
        "object_invisible": "The object is not visible in the frame, so it has no relations.",
        "unknown_class": "The class is none of Action Genome's.",
        "unknown_relation": "A relation is none of Action Genome's.",
        "object_twice": "The frame has several objects of the class; which one is meant is open.",
        "too_few_moments": "Nothing of the video is annotated, and a pair needs two moments.",
        "no_caption": "The relations give no caption.",
        "near_chosen_frame": "A frame chosen for a pair lies just before it.",
        "no_partner": "No other frame differs in enough of the three kinds of relation.",
    },
    "captions": {
        "image_missing": "No file of that name lies in the images folder.",
        **{name: IMAGE_REASONS[name] for name in _FILE_REASONS},
        "outside_root": "The name leads out of the images folder, or round in a circle of links.",
        "bad_box": CROP_REASONS["bad_box"],
        "not_english": "The caption is in another language than that of the rules that edit it.",
        **_LINTS,
    },
    "perturbations": {},
    "annotations": {
        "image_missing": "No file of that name lies in the images folder.",
        **{name: IMAGE_REASONS[name] for name in _FILE_REASONS},
        "outside_root": "The name leads out of the images folder, or round in a circle of links.",
        **{name: text for name, text in _LINTS.items() if name in _UNUSABLE},
    },
    "hard_positives": {
        "not_selected": "The published rule selects no word of the record.",
        **_EDITS,
        **SWAP_REFUSALS,
        **REFUSALS,
    },
    "training_texts": {**_EDITS},
    "frames": {**IMAGE_REASONS, **FRAME_REASONS},
    "scenes": PROPOSAL_REASONS,
    "renders": SCENE_REASONS,
    "drawings": {
        "safety_checker": "The model's own checker flagged a picture, and made it black.",
    },
    "images": {
        name: IMAGE_REASONS[name]
        for name in ("face_found", "black_image", "constant_image", "blurred_image")
    },
    "pairs": {
        "frame_rejected": "One of the two frames could not be had or was dropped.",
        "image_rejected": "One of the two generated images was dropped.",
        "over_pair_limit": "The video already has as many pairs as the limit allows.",
        "same_image": "Both frames are the same picture, byte for byte.",
        "equal_captions": CAPTION_REASONS["equal_captions"],
        **PAIR_REASONS,
    },
    "relations": {
        "region_twice": "Another region has the same id.",
        "not_chosen": "The file of triplets does not list the region.",
        **TRIPLET_REASONS,
        "image_missing": "No file of that image lies in the images folder.",
        "outside_root": "The name leads out of the images folder, or round in a circle of links.",
        **{name: IMAGE_REASONS[name] for name in _FILE_REASONS},
        "other_size": "The image is not of the size for which its boxes were annotated.",
        **CROP_REASONS,
    },
    "queries": {
        "region_refused": "The crop that would be queried could not be had.",
        "synonym": "The two words mean the same, or are one and many of a thing.",
        "target_without_crop": "No crop of the gallery shows what the query asks for.",
        "not_scored": "The oracle has no scores of the crop or of a caption.",
        "own_caption_mismatch": "By the oracle the crop does not match its own caption well.",
        "target_caption_match": "By the oracle the crop shows already what the query asks for.",
        "oracle_disagreement": "Of two oracles one speaks against the query, the other does not.",
    },
}
ERROR_PREFIX = "error:"


def is_known(stage: str, reason: str) -> bool:
    """Tells whether a stage may give a reason; an exception on one record is `error:<Type>`."""
    return reason.startswith(ERROR_PREFIX) or reason in STAGE_REASONS.get(stage, {})
