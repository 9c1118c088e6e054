"""Which pairs of a batch are semantically close, for EqSim.

Closeness is by score: caption j is close to pair i if it matches image i well, and image j if it
matches caption i. No gradient flows through the choice.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor


def known_couples(partners: "Tensor") -> "Tensor":
    """Returns the couples given by a dataset of pairs, each once.

    Args:
      partners: int64 of shape (n,), the index of each pair's partner in the batch; -1 for none.

    Returns:
      int64 of shape (couples, 2), the smaller index first.
    """
    import torch

    places = torch.arange(partners.shape[0], device=partners.device)
    first = places[partners > places]
    return torch.stack([first, partners[first]], dim=1)


def top_k_couples(logits: "Tensor", count: int, excluded: "Tensor") -> "Tensor":
    """Returns each pair with the top `count` texts for its image and images for its text.

    Args:
      logits: float of shape (n, n), images (rows) with texts (columns).
      count: how many texts and how many images a pair is coupled with, at most.
      excluded: bool of shape (n, n); forbidden couples, such as those that share an image.

    Returns:
      int64 of shape (couples, 2); a couple chosen from several sides is repeated.

    Source: Wang et al. 2023, section 3: the most similar k are the close ones.
    """
    import torch

    allowed = logits.detach().masked_fill(_with_diagonal(excluded), -torch.inf)
    count = min(count, logits.shape[0])
    chosen = [matrix.topk(count, dim=1) for matrix in (allowed.T, allowed)]
    return _listed([(found.indices, found.values > -torch.inf) for found in chosen])


def drawn_couples(
    logits: "Tensor", count: int, excluded: "Tensor", generator: "Generator"
) -> "Tensor":
    """Returns each pair with `count` texts and images, drawn with probability by their logits.

    Args:
      logits: as in `top_k_couples`.
      count: how many texts and how many images are drawn without replacement, at most.
      excluded: as in `top_k_couples`.
      generator: random generator on the CPU, so that all devices draw the same.

    Returns:
      int64 of shape (couples, 2), as of `top_k_couples`.

    Source: the published code of Wang et al. 2023, `compute_itm_hardneg`: torch.multinomial with
    the weights softmax(logits), images for texts first; the paper says top-k.
    """
    import torch

    found = []
    blocked = _with_diagonal(excluded).cpu()
    for matrix in (logits.detach().T, logits.detach()):
        weights = matrix.float().softmax(dim=1).cpu()
        # Weights that softmax rounds to zero can still be drawn, after all others.
        weights = weights.clamp(min=torch.finfo(torch.float32).tiny).masked_fill(blocked, 0)
        possible = weights > 0
        weights[~possible.any(dim=1)] = 1  # torch refuses a row of zeros; its draws are dropped
        drawn = _draw(weights, min(count, logits.shape[0]), generator)
        found.append((drawn, possible.gather(1, drawn)))
    return _listed(found).to(logits.device)


def close_mask(couples: "Tensor", count: int) -> "Tensor":
    """Returns a symmetric bool matrix of shape (count, count) that is true at couples."""
    import torch

    mask = torch.zeros((count, count), dtype=torch.bool, device=couples.device)
    mask[couples[:, 0], couples[:, 1]] = True
    return mask | mask.T


def _draw(weights: "Tensor", count: int, generator: "Generator") -> "Tensor":
    """Draws indices in each row without replacement, by the order of exponential variates."""
    import torch

    waits = torch.empty_like(weights).exponential_(generator=generator)
    return (weights.log() - waits.log()).topk(count, dim=1).indices


def _with_diagonal(excluded: "Tensor") -> "Tensor":
    import torch

    own = torch.eye(excluded.shape[0], dtype=torch.bool, device=excluded.device)
    return excluded | own


def _listed(chosen: "list[tuple[Tensor, Tensor]]") -> "Tensor":
    import torch

    places, valid = (torch.cat(parts, dim=1) for parts in zip(*chosen, strict=True))
    first = torch.arange(places.shape[0], device=places.device)[:, None].expand_as(places)
    return torch.stack([first[valid], places[valid]], dim=1)
