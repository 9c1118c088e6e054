"""The training objective: a weighted sum of losses on one encoded batch.

A matrix of logits has a row for each of n images and a column for each text; column i < n is the
text of image i. Every loss is pure, returns a scalar, and is differentiable in its logits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from eqforge.core.errors import InputError
from eqforge.core.visible import nearest
from eqforge.evaluation.training.eqsim import (
    SIDES,
    close_mask,
    drawn_couples,
    eqsim_close,
    eqsim_distant,
    known_couples,
    quadruples,
    top_k_couples,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from eqforge.evaluation.training.command import FinetuneSettings

LossName = Literal[
    "infonce",
    "sigmoid",
    "eqsim-v1",
    "eqsim-v2",
    "hard-negative",
    "hard-positive",
    "itm",
    "ranking",
    "in-modal",
]
LOSSES: tuple[LossName, ...] = get_args(LossName)
ClosePairs = Literal["known", "top-k", "multinomial"]
EqsimScores = Literal["cosine", "logit", "softmax"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Encoded:
    """One encoded batch of n image-caption pairs; pair i is row i of all arrays.

    Attributes:
      images, captions: unit vectors, float [n, dimensions].
      negatives, positives: unit vectors of the hard texts; None if no loss needs them.
      has_negative, has_positive: bool [n], which rows of the hard texts count.
      excluded: bool [n, n], pairs that share an image or a caption; false on the diagonal.
      partners: int64 [n], the index of the pair that the dataset calls close; or -1.
    """

    images: Any
    captions: Any
    negatives: Any
    positives: Any
    has_negative: Any
    has_positive: Any
    excluded: Any
    partners: Any
    scale: Any
    bias: Any


def parse_weights(texts: Sequence[str]) -> dict[LossName, float]:
    """Parse `NAME=WEIGHT` or `NAME` (weight 1), one per loss."""
    weights: dict[LossName, float] = {}
    for text in texts:
        found, _, number = text.partition("=")
        name = next((name for name in LOSSES if name == found), None)
        if name is None:
            known = f"expected one of {', '.join(LOSSES)}, with or without =WEIGHT"
            known += nearest(found, LOSSES)
            raise InputError(f"--loss {text}: {known}")
        if name in weights:
            raise InputError(f"--loss {text}: {name} appears twice")
        try:
            weights[name] = float(number or "1")
        except ValueError:
            weights[name] = math.nan
        if not 0 < weights[name] < math.inf:
            raise InputError(f"--loss {text}: expected a weight above 0, found {number!r}")
    return weights


def compute_losses(
    encoded: Encoded, settings: "FinetuneSettings", generator: "Generator"
) -> "dict[LossName, Tensor]":
    import torch

    cosines, excluded = encoded.images @ encoded.captions.T, encoded.excluded
    logits = encoded.scale * cosines + encoded.bias
    found: dict[LossName, Tensor] = {}
    for name in settings.weights():
        if name == "infonce":
            choices, left_out = logits, excluded
            if settings.negatives_in_contrast:
                more = encoded.scale * (encoded.images @ encoded.negatives.T) + encoded.bias
                choices = torch.cat([logits, more], dim=1)
                missing = ~encoded.has_negative[None, :].expand(more.shape)
                left_out = torch.cat([excluded, missing], dim=1)
            found[name] = infonce_loss(choices, left_out)
        elif name == "sigmoid":
            found[name] = sigmoid_loss(logits, excluded)
        elif name == "in-modal":
            found[name] = in_modal_loss(encoded.images, encoded.captions)
        elif name == "hard-negative":
            rows = encoded.has_negative
            against = (encoded.images * encoded.negatives).sum(dim=1) * encoded.scale + encoded.bias
            found[name] = hard_negative_loss(logits.diagonal()[rows], against[rows][:, None])
        elif name == "hard-positive":
            rows = encoded.has_positive
            positives = encoded.positives[rows].T
            images = encoded.scale * (encoded.images[rows] @ positives) + encoded.bias
            texts = encoded.scale * (encoded.captions[rows] @ positives)
            found[name] = hard_positive_loss(images, texts, excluded[rows][:, rows])
    if any(name.startswith("eqsim") for name in settings.weights()):
        found |= _eqsim(encoded, cosines, logits, settings, generator)
    return found


def _eqsim(
    encoded: Encoded,
    cosines: "Tensor",
    logits: "Tensor",
    settings: "FinetuneSettings",
    generator: "Generator",
) -> "dict[LossName, Tensor]":
    count, excluded = settings.close_count, encoded.excluded
    if settings.close == "known":
        couples = known_couples(encoded.partners)
    elif settings.close == "top-k":
        couples = top_k_couples(logits, count, excluded)
    else:
        couples = drawn_couples(logits, count, excluded, generator)
    scores = cosines
    if settings.eqsim_scores != "cosine":
        scores = logits if settings.eqsim_scores == "logit" else logits.softmax(dim=1)
    found: dict[LossName, Tensor] = {}
    if "eqsim-v2" in settings.weights():
        found["eqsim-v2"] = eqsim_close(
            quadruples(scores, couples),
            sides=SIDES if settings.eqsim_side == "both" else (settings.eqsim_side,),
            margin=settings.margin,
            margin_mode=settings.margin_mode,
        )
    if "eqsim-v1" in settings.weights():
        close = close_mask(couples, len(scores)) | excluded
        found["eqsim-v1"] = eqsim_distant(scores, close, margin=settings.distant_margin)
    return found


def infonce_loss(logits: "Tensor", excluded: "Tensor | None" = None) -> "Tensor":
    """Return the mean of the cross-entropies from images to texts and from texts to images.

    Args:
      logits: float [n, n + extra]. Columns after the n-th are texts without an image, such as hard
        negatives: images choose among them too, but they choose no image.
      excluded: bool [n, n + extra]; texts and images that match without being a pair, and are
        not offered to each other. False on the diagonal.

    Source: Radford et al. 2021 (CLIP), figure 3; Couairon et al. 2022 (SIMAT), equation 3, which
    omits the logarithm in print. The extra columns are NegCLIP's (Yuksekgonul et al. 2023) and the
    default of TSVLC's code.
    """
    if excluded is not None:
        logits = logits.masked_fill(excluded, -math.inf)
    return (_choose(logits) + _choose(logits[:, : len(logits)].T)) / 2


def sigmoid_loss(logits: "Tensor", excluded: "Tensor | None" = None) -> "Tensor":
    """Return SigLIP's loss: binary classification of every image-text pair [n, n], if not excluded.

    Source: Zhai et al. 2023, algorithm 1: the sum over all pairs, divided by the number of images.
    """
    import torch
    from torch.nn.functional import logsigmoid

    count = logits.shape[0]
    signs = 2 * torch.eye(count, dtype=logits.dtype, device=logits.device) - 1
    answers = logsigmoid(signs * logits)
    if excluded is not None:
        answers = answers.masked_fill(excluded, 0)
    return -answers.sum() / count


def in_modal_loss(images: "Tensor", captions: "Tensor") -> "Tensor":
    """Return CyCLIP's in-modal consistency: two images are as similar as their captions.

    It is the sum over all pairs of the squared difference of cosines, divided by n.

    Args:
      images, captions: unit vectors, float [n, dimensions].

    Source: Goel et al. 2022 (CyCLIP), section 2.3, with a weight of 0.25 in its experiments; Wang
    et al. 2023, appendix A.9.
    """
    return (images @ images.T - captions @ captions.T).square().sum() / len(images)


def itm_loss(logits: "Tensor", scored: "Tensor") -> "Tensor":
    """Return the matching loss: does a caption belong to an image?

    It is a third of the matches' mean binary cross-entropy, and two thirds of the negatives'. With
    one negative caption per image and one negative image per caption, it is the mean of all three.

    Args:
      logits: float [n, n], images (rows) with captions. For a head of two classes, the logit of
        "match" minus the logit of "no match".
      scored: bool [n, n], the logits that count; true on the diagonal.

    Source: Li et al. 2021 (ALBEF), section 3.2; Li et al. 2022 (BLIP), `loss_itm`; FIBER's
    `compute_itm_hardneg`.
    """
    import torch
    from torch.nn.functional import softplus

    diagonal = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    matches, negatives = softplus(-logits[diagonal]).mean(), softplus(logits[scored & ~diagonal])
    return matches if len(negatives) == 0 else (matches + 2 * negatives.mean()) / 3


def ranking_loss(logits: "Tensor", scored: "Tensor") -> "Tensor":
    """Return the mean cross-entropy of an image's caption among the captions scored for it.

    It takes the same arguments as `itm_loss`.

    Source: Kim et al. 2021 (ViLT), section 4.3; `compute_irtr` of ViLT and METER: 15 random
    captions per image.
    """
    return _choose(logits.masked_fill(~scored, -math.inf))


def hard_negative_loss(own: "Tensor", negatives: "Tensor") -> "Tensor":
    """Return the mean cross-entropy of choosing an image's caption against its hard negatives.

    Args:
      own: float [n], the logit of each image with its caption.
      negatives: float [n, k], the logits of each image with its hard negatives.

    Source: Doveh et al. 2023 (SVLC), negatives loss; TSVLC `src/open_clip/loss.py`,
    `get_loss_neg_only`; Kamath et al. 2024, appendix D.1, with k = 1.
    """
    import torch
    from torch.nn.functional import cross_entropy

    if own.shape[0] == 0:
        return own.sum()
    choices = torch.cat([own[:, None], negatives], dim=1)
    first = torch.zeros(own.shape[0], dtype=torch.long, device=own.device)
    return cross_entropy(choices, first)


def hard_positive_loss(
    images: "Tensor", texts: "Tensor", excluded: "Tensor | None" = None
) -> "Tensor":
    """Return the analogy loss: image and caption each choose their hard positive in the batch.

    Args:
      images: float [n, n], logits of images (rows) with hard positives (columns).
      texts: float [n, n], the same scale times the cosines of captions (rows) with hard positives.
      excluded: bool [n, n]; left out of the choices, as in `infonce_loss`.

    Source: Doveh et al. 2023 (SVLC), analogy loss; TSVLC `src/open_clip/loss.py`,
    `get_loss_pos_only`, without `symmetric`, its default; Kamath et al. 2024, appendix D.1.
    """
    if images.shape[0] == 0:
        return images.sum()
    if excluded is not None:
        images, texts = (each.masked_fill(excluded, -math.inf) for each in (images, texts))
    return (_choose(images) + _choose(texts)) / 2


def _choose(logits: "Tensor") -> "Tensor":
    import torch
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits, torch.arange(logits.shape[0], device=logits.device))
