"""Contrastive losses on matrices of logits: InfoNCE, the pairwise sigmoid, hard texts.

A matrix of logits has a row for each of n images and a column for each text; column i < n is the
text of image i. Every function is pure, returns a scalar, and is differentiable in its logits.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def infonce_loss(logits: "Tensor", excluded: "Tensor | None" = None) -> "Tensor":
    """Returns the mean of the cross-entropies from images to texts and from texts to images.

    Args:
      logits: float of shape (n, n + extra). Columns after the n-th are texts of no image, such as
        hard negatives: images choose among them too, but they choose no image.
      excluded: bool of shape (n, n + extra); where true, text and image are left out of each
        other's choices, because they match though they are not a pair. False on the diagonal.

    Source: Radford et al. 2021 (CLIP), figure 3; Couairon et al. 2022 (SIMAT), equation 3, which
    omits the logarithm in print. The extra columns are NegCLIP's
    (Yuksekgonul et al. 2023) and the default of TSVLC's code.
    """
    import torch
    from torch.nn.functional import cross_entropy

    if excluded is not None:
        logits = logits.masked_fill(excluded, -torch.inf)
    count = logits.shape[0]
    own = torch.arange(count, device=logits.device)
    return (cross_entropy(logits, own) + cross_entropy(logits[:, :count].T, own)) / 2


def sigmoid_loss(logits: "Tensor", excluded: "Tensor | None" = None) -> "Tensor":
    """Returns SigLIP's loss: binary classification of every image-text pair.

    Args:
      logits: float of shape (n, n), scale * cosine + bias.
      excluded: bool of shape (n, n); pairs to leave out.

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


def hard_negative_loss(own: "Tensor", negatives: "Tensor") -> "Tensor":
    """Returns the cross-entropy of choosing an image's caption against its hard negatives.

    Args:
      own: float of shape (n,), the logit of each image with its caption.
      negatives: float of shape (n, k), the logits of each image with its hard negatives.

    Returns:
      The mean over images; zero if there are none.

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
    images: "Tensor", texts: "Tensor", excluded: "Tensor | None" = None, symmetric: bool = False
) -> "Tensor":
    """Returns the analogy loss: image and caption each choose their hard positive in the batch.

    Args:
      images: float of shape (n, n), logits of images (rows) with hard positives (columns).
      texts: float of shape (n, n), the same scale times the cosines of captions (rows) with hard
        positives (columns).
      excluded: bool of shape (n, n); left out of the choices, as in `infonce_loss`.
      symmetric: average with the losses of hard positives choosing image and caption.

    Returns:
      The mean of the two cross-entropies; zero if there is no hard positive.

    Source: Doveh et al. 2023 (SVLC), analogy loss; TSVLC `src/open_clip/loss.py`,
    `get_loss_pos_only`, whose `symmetric` is off by default; Kamath et al. 2024, appendix D.1.
    """
    if images.shape[0] == 0:
        return images.sum()
    if symmetric:
        return (infonce_loss(images, excluded) + infonce_loss(texts, excluded)) / 2
    return (_choose(images, excluded) + _choose(texts, excluded)) / 2


def _choose(logits: "Tensor", excluded: "Tensor | None") -> "Tensor":
    import torch
    from torch.nn.functional import cross_entropy

    if excluded is not None:
        logits = logits.masked_fill(excluded, -torch.inf)
    return cross_entropy(logits, torch.arange(logits.shape[0], device=logits.device))
