"""Define attention processors with which the first image's attention guides the second's.

The replaced map is immediately multiplied by the second image's values. So its right-hand factors
can be multiplied into the values instead, and `softmax(q k) @ values` stays the ordinary fused
kernel: no map is ever written to memory. For self-attention the second image takes the queries and
keys of the first. To locate words, indicators of their tokens are used as values.

A pair is four rows: two images, each with its prompt and, for guidance, without. Two at a time keep
both images together. Even one at a time, the first guides the second, because its queries and keys
are kept until the second comes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.control import AttentionControl, Row

if TYPE_CHECKING:
    import torch


class ControlledAttention:
    """The processor of one attention layer; `plain` is called while nothing is controlled."""

    def __init__(self, plain: Any, control: AttentionControl, is_cross: bool) -> None:
        self.plain, self.control, self.is_cross = plain, control, is_cross
        # Queries and keys of the first image, for the second if that is in a later batch.
        self._first: tuple[torch.Tensor, torch.Tensor] | None = None

    def __call__(
        self,
        attn: Any,
        hidden_states: "torch.Tensor",
        encoder_hidden_states: "torch.Tensor | None" = None,
        *args: Any,
        **kwargs: Any,
    ) -> "torch.Tensor":
        """Return the layer's output; hidden_states are [rows, pixels, channels]."""
        if not self._acts(hidden_states.shape[1]):
            return self.plain(attn, hidden_states, encoder_hidden_states, *args, **kwargs)
        context = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        query, key, value = (
            layer(states).unflatten(2, (attn.heads, -1)).transpose(1, 2)
            for layer, states in (
                (attn.to_q, hidden_states),
                (attn.to_k, context),
                (attn.to_v, context),
            )
        )
        if self.is_cross:
            attended = self._cross(query, key, value)
        else:
            base, second = self._base(query, key), self._place("second")
            if second is not None:
                query[second], key[second] = base
            attended = _attend(query, key, value)
        merged = attended.transpose(1, 2).flatten(2).to(query.dtype)
        return attn.to_out[1](attn.to_out[0](merged))

    def _acts(self, pixels: int) -> bool:
        control = self.control
        if "first" not in control.rows and "second" not in control.rows:
            return False
        if not self.is_cross:
            return control.number < control.self_calls and pixels <= control.pixels
        return control.call.mapper is not None or self._is_read(pixels)

    def _is_read(self, pixels: int) -> bool:
        return self.control.is_blended and pixels == self.control.pixels

    def _cross(
        self, query: "torch.Tensor", key: "torch.Tensor", value: "torch.Tensor"
    ) -> "torch.Tensor":
        call, second = self.control.call, self._place("second")
        base = self._base(query, key)
        if self._is_read(query.shape[2]):
            self._read_heat(query, key)
        if call.mapper is None or second is None:
            return _attend(query, key, value)
        moved = call.mapper @ value[second]
        if call.own is None:
            query[second], key[second] = base
            value[second] = moved
            return _attend(query, key, value)
        value[second] *= call.own
        attended = _attend(query, key, value)
        attended[second] += _attend(base[0][None], base[1][None], moved[None])[0]
        return attended

    def _place(self, row: Row) -> int | None:
        return self.control.rows.index(row) if row in self.control.rows else None

    def _base(
        self, query: "torch.Tensor", key: "torch.Tensor"
    ) -> tuple["torch.Tensor", "torch.Tensor"]:
        """Return queries and keys of the first image, [heads, pixels or tokens, channels]."""
        first = self._place("first")
        found = self._first if first is None else (query[first], key[first])
        assert found is not None, "the second picture never comes before the first"
        # Kept only if the second image is still to come, to free the layer's memory.
        self._first = found if "second" not in self.control.rows else None
        return found

    def _read_heat(self, query: "torch.Tensor", key: "torch.Tensor") -> None:
        from torch.nn import functional

        # The rows of the images are the last ones of every batch.
        first, second = self._place("first"), self._place("second")
        pictures = slice(first if first is not None else second, None)
        words = self.control.call.words[0 if first is not None else 1 :][: len(query[pictures])]
        # The fused kernels want values as wide as the keys.
        values = functional.pad(words, (0, max(key.shape[3] - words.shape[2], 0)))
        heat = _attend(
            query[pictures], key[pictures], values[:, None].expand(-1, key.shape[1], -1, -1)
        )
        self.control.heat += heat.float().mean(dim=1).sum(dim=0)[:, : words.shape[2]].T


@contextmanager
def controlled(unet: Any, control: AttentionControl) -> Iterator[None]:
    plain = dict(unet.attn_processors)
    modules = dict(unet.named_modules())
    processors = {}
    for name, processor in plain.items():
        layer = name.removesuffix(".processor")
        attn, kind = modules[layer], type(processor).__name__
        # A layer may only project, attend and project.
        special = (attn.group_norm, attn.spatial_norm, attn.norm_q, attn.norm_k, attn.norm_cross)
        if (
            kind not in ("AttnProcessor", "AttnProcessor2_0")
            or not layer.endswith(("attn1", "attn2"))
            or any(part not in (None, False) for part in special)
            or attn.residual_connection
            or attn.rescale_output_factor != 1
        ):
            raise InputError(
                f"the attention of {layer} ({kind}) cannot be controlled; choose a model with the "
                "ordinary attention of Stable Diffusion or SDXL"
            )
        is_cross = layer.endswith("attn2")
        processors[name] = ControlledAttention(processor, control, is_cross)
    unet.set_attn_processor(processors)
    try:
        yield
    finally:
        unet.set_attn_processor(plain)


def _attend(query: "torch.Tensor", key: "torch.Tensor", value: "torch.Tensor") -> "torch.Tensor":
    from torch.nn import functional

    return functional.scaled_dot_product_attention(query, key, value)


_ROWS: dict[int, tuple[Row, ...]] = {
    4: ("plain first", "plain second", "first", "second"),
    2: ("first", "second"),
}


@contextmanager
def limited_rows(unet: Any, rows: int, control: AttentionControl) -> Iterator[None]:
    """Limit the network to `rows` rows (4, 2 or 1) at a time, and record in the control which."""
    plain, replaced = unet.forward, "forward" in vars(unet)

    def forward(sample: "torch.Tensor", *args: Any, **kwargs: Any) -> Any:
        batch = sample.shape[0]
        if batch not in _ROWS:
            raise InputError(
                "expected the pipeline to send 2 or 4 rows for two images through its network, "
                f"found {batch}"
            )
        outputs = []
        for start in range(0, batch, rows):
            part = slice(start, min(start + rows, batch))
            control.rows = _ROWS[batch][part]
            outputs.append(plain(*_cut((sample, *args), batch, part), **_cut(kwargs, batch, part)))
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
