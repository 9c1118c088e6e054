"""The heads of models that read image and caption together, computed in float32.

bfloat16 keeps 8 significant bits, so between 4 and 8 there are 128 numbers, 0.03 apart, and the
scores of a minimal pair often round to the same one. A head is cheap, so it computes in float32
whatever the type of the rest of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eqforge.core.late import numpy as np
from eqforge.models.pretrained import import_torch
from eqforge.models.scorer import Matches, sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray


def run_head(head: Any, states: Any) -> Any:
    """Applies a head in float32, whatever the type of the states and within any autocast.

    Args:
      head: a torch module; its weights become float32 and stay so.
      states: a tensor of the shape that the head takes.
    """
    with import_torch().autocast(states.device.type, enabled=False):
        return head.float()(states.float())


def match_classes(classes: Any) -> Matches:
    """Returns the difference of two classes, and P(match), the softmax over them.

    Args:
      classes: a head's float32 tensor of shape (pairs, 2): no match, match.
    """
    logits: NDArray[np.float32] = (classes[:, 1] - classes[:, 0]).cpu().numpy()
    return Matches(logits=logits, probabilities=sigmoid(logits))
