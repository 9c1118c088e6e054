"""EqSim: scores of two matched pairs have to change equally with the image and with the text.

Of two matched pairs (caption 0, image 0) and (caption 1, image 1), let s_ab be the score of
caption a with image b. The text side requires s00 - s10 = s11 - s01, the image side
s00 - s01 = s11 - s10; both hold exactly if s00 = s11 and s01 = s10 (Wang et al. 2023, equation 6).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from torch import Tensor

Side = Literal["text", "image"]
SIDES: tuple[Side, ...] = get_args(Side)
MarginMode = Literal["after-mean", "per-pair"]
Activation = Literal["none", "sigmoid", "softmax", "linear"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Quadruples:
    """The four scores of each of some couples of matched pairs, float of shape (couples,).

    Attributes:
      s00, s11: of the captions with their own images.
      s01: of caption 0 with image 1.
      s10: of caption 1 with image 0.
    """

    s00: Any
    s01: Any
    s10: Any
    s11: Any


def quadruples(scores: "Tensor", couples: "Tensor") -> Quadruples:
    """Gathers the couples' scores from the matrix of a dual encoder.

    Args:
      scores: float of shape (n, n), images (rows) with texts (columns); pair i on the diagonal.
      couples: int64 of shape (couples, 2), the indices of two pairs of the batch.
    """
    first, second = couples[:, 0], couples[:, 1]
    return Quadruples(
        s00=scores[first, first],
        s01=scores[second, first],
        s10=scores[first, second],
        s11=scores[second, second],
    )


def fusion_quadruples(logits: "Tensor", activation: Activation = "sigmoid") -> Quadruples:
    """Takes the matching scores of a fusion encoder, computed only for these couples.

    Args:
      logits: float of shape (couples, 4), image-text-matching logits in the order s00, s01, s10,
        s11.
      activation: `sigmoid`, the paper's for METER; `softmax` over the four; `linear`, scaled
        so that the smallest score of all is 0 and the largest 1; or `none`.

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
    """Returns each couple's signed deviation from equivariance on one side; 0 is equivariant.

    Returns:
      Float of shape (couples,): (s00 - s10) - (s11 - s01) on the text side, (s00 - s01) -
      (s11 - s10) on the image side.
    """
    if side == "text":
        return (found.s00 - found.s10) - (found.s11 - found.s01)
    return (found.s00 - found.s01) - (found.s11 - found.s10)


def equivariance_score(found: Quadruples) -> "Tensor":
    """Returns the sum of both squared deviations of each couple; the smaller, the better.

    Returns:
      Float of shape (couples,), equal to 2 (s00 - s11)^2 + 2 (s01 - s10)^2, hence 0 exactly if
      s00 = s11 and s01 = s10.

    Source: Wang et al. 2023, section 5.4: the deviation from EqSim. Its mean is `eqsim_close`
    of both sides without a margin.
    """
    return deviation(found, "text") ** 2 + deviation(found, "image") ** 2


def eqsim_close(
    found: Quadruples,
    *,
    sides: tuple[Side, ...] = SIDES,
    margin: float = 0.0,
    margin_mode: MarginMode = "after-mean",
) -> "Tensor":
    """Returns EqSim v2, for semantically close pairs: mean squared deviations summed over sides.

    Args:
      found: the scores of the close couples.
      sides: the sides to sum over.
      margin: squared deviation that costs nothing.
      margin_mode: `after-mean` subtracts the margin from the mean over couples, as the published
        code does; `per-pair` from each couple, so that one bad couple cannot hide among good ones.

    Returns:
      A scalar of at least 0; 0 if there are no couples.

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
    """Returns EqSim v1, for semantically distant pairs: caption i with image j scores as j with i.

    Args:
      scores: float of shape (n, n), images (rows) with texts (columns).
      close: bool of shape (n, n), symmetric; couples to leave out.
      margin: subtracted from the mean, which is over all n * n entries: those left out and the
        diagonal count as 0.

    Source: Wang et al. 2023, section 3; the published `get_pairloss_v1_itc_hard`. It is the
    cross-modal consistency of CyCLIP (Goel et al. 2022).
    """
    squared = ((scores - scores.T) ** 2).masked_fill(close, 0)
    return (squared.mean() - margin).clamp(min=0)
