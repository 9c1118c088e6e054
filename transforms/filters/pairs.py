"""Checks every pair of images, whatever made it."""

from eqforge.generators.text.caption_lint import CAPTION_PAIR_REASONS, lint_pair
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Stage
from eqforge.transforms.filters import cuts, minimality, minimality_score, perceptual

ORACLE_REASONS = {
    "own_caption_mismatch": "The oracle finds that an image does not match its own caption.",
    "crossed_caption_match": "The oracle finds that an image matches the other image's caption "
    "too well.",
    "oracle_disagreement": "Only one of the two oracles rejects the candidate.",
}

PAIRS_STAGE = Stage(
    "pairs",
    {
        "frame_rejected": "One of the two frames is missing or rejected.",
        "image_rejected": "One of the two generated images was rejected.",
        "over_pair_limit": "The video already has the maximum number of pairs "
        "(--max-pairs-per-video).",
        "same_image": "Both images have the same bytes.",
        **CAPTION_PAIR_REASONS,
        **cuts.REASONS,
        **minimality.REASONS,
        **minimality_score.REASONS,
        **perceptual.REASONS,
        **ORACLE_REASONS,
    },
)


def refuse_unmeasured(
    image_ids: tuple[str, str], captions: tuple[str, str], distinct_captions: bool
) -> Rejection | None:
    if image_ids[0] == image_ids[1]:
        return Rejection(reason="same_image", detail=image_ids[0])
    return lint_pair(*captions) if distinct_captions else None
