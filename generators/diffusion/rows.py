"""Sends the rows of a pair through the network together, or fewer at a time.

A pair is four rows: two images, each with its prompt and, for guidance, without. Two at a time
keep both images together. Even one at a time, the first guides the second, because queries and
keys of the first are kept until the second comes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.control_state import AttentionControl, Row

if TYPE_CHECKING:
    import torch

_ROWS: dict[int, tuple[Row, ...]] = {
    4: ("plain first", "plain second", "first", "second"),
    2: ("first", "second"),
}


@contextmanager
def limited_rows(unet: Any, rows: int, control: AttentionControl | None) -> Iterator[None]:
    """Limits the network to `rows` rows at a time for the block, and tells the control which.

    Args:
      unet: the network; its `forward` is restored afterwards.
      rows: 4, 2 or 1.
      control: control of the pair; None for none.

    Raises:
      InputError: at the first call, if the pipeline batches differently.
    """
    plain, replaced = unet.forward, "forward" in vars(unet)

    def forward(sample: "torch.Tensor", *args: Any, **kwargs: Any) -> Any:
        batch = sample.shape[0]
        if batch not in _ROWS:
            raise InputError(
                f"the pipeline sends {batch} rows through its network for two pictures, not 4 or 2"
            )
        outputs = []
        for start in range(0, batch, rows):
            part = slice(start, min(start + rows, batch))
            if control is not None:
                control.rows = _ROWS[batch][part]
            outputs.append(plain(*_cut((sample, *args), batch, part), **_cut(kwargs, batch, part)))
        if control is not None:
            control.number += 1
        return outputs[0] if len(outputs) == 1 else _joined(outputs)

    unet.forward = forward
    try:
        yield
    finally:
        if replaced:
            unet.forward = plain
        else:
            del unet.forward


def _cut(value: Any, batch: int, part: slice) -> Any:
    """Returns the rows of every tensor that has the batch's rows."""
    import torch

    if isinstance(value, dict):
        return {key: _cut(item, batch, part) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_cut(item, batch, part) for item in value)
    if isinstance(value, torch.Tensor) and value.ndim > 0 and value.shape[0] == batch:
        return value[part]
    return value


def _joined(outputs: list[Any]) -> Any:
    import torch

    samples = torch.cat([output[0] for output in outputs])
    return (samples,) if isinstance(outputs[0], tuple) else type(outputs[0])(sample=samples)
