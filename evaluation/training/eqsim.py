"""EqSim, a loss that makes the scores of two matched pairs change equally with image and text.

Given matched pairs (caption 0, image 0) and (caption 1, image 1), let s_ab be the score of
caption a with image b. The text side requires s00 - s10 = s11 - s01, the image side
s00 - s01 = s11 - s10. Both hold iff s00 = s11 and s01 = s10 (Wang et al. 2023, equation 6).

Caption j is close to pair i if it matches image i well. Image j is close to pair i if it matches
caption i well. No gradient flows through the choice of close pairs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from torch import Generator, Tensor

Side = Literal["text", "image"]
SIDES: tuple[Side, ...] = get_args(Side)
MarginMode = Literal["after-mean", "per-pair"]
Activation = Literal["none", "sigmoid", "softmax", "linear"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Quadruples:
    """The four scores s00, s01, s10, s11 of each couple of matched pairs, float [couples]."""

    s00: Any
    s01: Any
    s10: Any
    s11: Any


def quadruples(scores: "Tensor", couples: "Tensor") -> Quadruples:
    """Gather the couples' scores from a dual encoder's matrix [n, n], images (rows) with texts.

    `couples`, int64 [couples, 2], contains the indices of two pairs of the batch.
    """
    first, second = couples[:, 0], couples[:, 1]
    return Quadruples(
        s00=scores[first, first],
        s01=scores[second, first],
        s10=scores[first, second],
        s11=scores[second, second],
    )


def fusion_quadruples(logits: "Tensor", activation: Activation = "sigmoid") -> Quadruples:
    """Convert a fusion encoder's matching logits of couples to scores.

    Args:
      logits: float [couples, 4], in the order s00, s01, s10, s11.
      activation: `sigmoid`, as in the paper for METER, `softmax` over the four scores, `linear`,
        which scales the lowest of all scores to 0 and the highest to 1, or `none`.

    Source: Wang et al. 2023, appendix C; the published `get_pairloss_itm`.
    """
    if activation == "sigmoid":
        logits = logits.sigmoid()
    elif activation == "softmax":
        logits = logits.softmax(dim=1)
    elif activation == "linear":
        logits = (logits - logits.min()) / (logits.max() - logits.min())
    s00, s01, s10, s11 = logits.unbind(dim=1)
    return Quadruples(s00=s00, s01=s01, s10=s10, s11=s11)


def deviation(found: Quadruples, side: Side) -> "Tensor":
    """Return each couple's signed deviation from equivariance on one side [couples]."""
    if side == "text":
        return (found.s00 - found.s10) - (found.s11 - found.s01)
    return (found.s00 - found.s01) - (found.s11 - found.s10)


def eqsim_close(
    found: Quadruples,
    *,
    sides: tuple[Side, ...] = SIDES,
    margin: float = 0.0,
    margin_mode: MarginMode = "after-mean",
) -> "Tensor":
    """Return EqSim v2, for semantically close pairs: mean squared deviations summed over sides.

    The result is a scalar of at least 0. It is 0 without couples.

    Args:
      margin_mode: `after-mean` subtracts the margin from the mean over couples, as in the published
        code. `per-pair` subtracts it from each couple, so that good couples cannot hide a bad
        couple.

    Source: Wang et al. 2023, section 3; the published `pairloss_criterion` (after the mean) and its
    unused `pairloss_criterion_v2` (per pair).
    """
    total = found.s00.sum() * 0
    if found.s00.shape[0] == 0:
        return total
    for side in sides:
        squared = deviation(found, side) ** 2
        if margin_mode == "after-mean":
            total = total + (squared.mean() - margin).clamp(min=0)
        else:
            total = total + (squared - margin).clamp(min=0).mean()
    return total


def eqsim_distant(scores: "Tensor", close: "Tensor", *, margin: float = 0.0) -> "Tensor":
    """Return EqSim v1, for distant pairs: mean squared difference of the two crossed scores.

    Args:
      scores: float [n, n], images (rows) with texts (columns).
      close: bool [n, n], symmetric; close couples count as 0 in the mean, like the diagonal.

    Source: Wang et al. 2023, section 3; the published `get_pairloss_v1_itc_hard`. This loss is the
    cross-modal consistency of CyCLIP (Goel et al. 2022).
    """
    squared = ((scores - scores.T) ** 2).masked_fill(close, 0)
    return (squared.mean() - margin).clamp(min=0)


def eqsim_swapped(found: Quadruples, *, margin: float = 0.0) -> "Tensor":
    """Return EqSim v1 of couples: the mean of (s01 - s10)^2 minus the margin, at least 0.

    The result is 0 without couples. `eqsim_distant` is the mean over a whole matrix.

    Source: Wang et al. 2023, equation 6, for the couples that a fusion encoder scores.
    """
    if found.s01.shape[0] == 0:
        return found.s01.sum()
    return (((found.s01 - found.s10) ** 2).mean() - margin).clamp(min=0)


def known_couples(partners: "Tensor") -> "Tensor":
    """Return the couples of a dataset of pairs, int64 [couples, 2], each once, lower index first.

    `partners`, int64 [n], contains the index of each pair's partner in the batch, or -1.
    """
    import torch

    places = torch.arange(partners.shape[0], device=partners.device)
    first = places[partners > places]
    return torch.stack([first, partners[first]], dim=1)


def top_k_couples(
    logits: "Tensor", count: int, excluded: "Tensor", *, texts_only: bool = False
) -> "Tensor":
    """Couple each pair with the top `count` texts for its image and images for its text.

    Couples are int64 [couples, 2]. A couple that several sides choose is repeated.

    Args:
      logits: float [n, n], images (rows) with texts (columns).
      excluded: bool [n, n]; forbidden couples, such as pairs that share an image.
      texts_only: whether to choose no images for texts.

    Source: Wang et al. 2023, section 3: the k most similar pairs are close.
    """
    import torch

    allowed = logits.detach().masked_fill(excluded, -torch.inf).fill_diagonal_(-torch.inf)
    count = min(count, logits.shape[0])
    chosen = [matrix.topk(count, dim=1) for matrix in _directions(allowed, texts_only)]
    return _listed([(found.indices, found.values > -torch.inf) for found in chosen])


def drawn_couples(
    logits: "Tensor",
    count: int,
    excluded: "Tensor",
    generator: "Generator",
    *,
    texts_only: bool = False,
) -> "Tensor":
    """Couple each pair with `count` texts and images, drawn by their logits without replacement.

    The arguments and the result are the same as for `top_k_couples`. The random generator is on the
    CPU, so that all devices draw the same couples.

    Source: `compute_itm_hardneg` in the published code of Wang et al. 2023. It calls
    torch.multinomial with the weights softmax(logits), images for texts first. The paper says
    top-k.
    """
    import torch

    found = []
    blocked = excluded.cpu().clone().fill_diagonal_(True)
    for matrix in _directions(logits.detach(), texts_only):
        weights = matrix.float().softmax(dim=1).cpu()
        # Texts whose weight softmax rounds to zero can still be drawn, after all others.
        weights = weights.clamp(min=torch.finfo(torch.float32).tiny).masked_fill(blocked, 0)
        possible = weights > 0
        weights[~possible.any(dim=1)] = 1  # torch rejects a row of zeros; its draws are dropped
        # Without replacement, by the order of exponential variates.
        waits = torch.empty_like(weights).exponential_(generator=generator)
        draws = (weights.log() - waits.log()).topk(min(count, len(weights)), dim=1).indices
        found.append((draws, possible.gather(1, draws)))
    return _listed(found).to(logits.device)


def _directions(logits: "Tensor", texts_only: bool) -> "tuple[Tensor, ...]":
    """Return the matrices whose rows choose: texts an image, then images a text."""
    return (logits,) if texts_only else (logits.T, logits)


def close_mask(couples: "Tensor", count: int) -> "Tensor":
    import torch

    mask = torch.zeros((count, count), dtype=torch.bool, device=couples.device)
    mask[couples[:, 0], couples[:, 1]] = True
    return mask | mask.T


def _listed(chosen: "list[tuple[Tensor, Tensor]]") -> "Tensor":
    import torch

    places, valid = (torch.cat(parts, dim=1) for parts in zip(*chosen, strict=True))
    first = torch.arange(places.shape[0], device=places.device)[:, None].expand_as(places)
    return torch.stack([first[valid], places[valid]], dim=1)
