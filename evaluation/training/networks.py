"""The model that training starts from, its trainable parts, and the trained one; imports torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from eqforge.core.errors import InputError
from eqforge.core.visible import nearest
from eqforge.evaluation.training.command import Train
from eqforge.evaluation.training.fusion import FUSIONS
from eqforge.models.dual_encoders import ARCHITECTURES, Architecture
from eqforge.models.fusion import TrainedFusion
from eqforge.models.pretrained import (
    Preprocessor,
    Weights,
    check_vocabulary,
    load_model,
    load_preprocessor,
)
from eqforge.models.spec import parse_specs
from eqforge.models.stored_vectors import VECTORS, StoredVectors

VISION_TEXT = "vision-text"
"""A kind of model whose encoders were trained apart, so that its projections are its heads."""
SHARED = 512
"""Dimensions of heads on stored vectors. Source: Couairon et al. 2022 (SIMAT), figure 3."""
MLP_LAYERS = 4
MAX_SCALE = 100.0
"""Upper limit of CLIP's logit scale. Source: Radford et al. 2021, section 2.5."""


class DualNetwork(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may be missing
    """A dual encoder of transformers, trained as a whole."""

    fused = ()

    def __init__(self, model: Any, encoder: Architecture) -> None:
        super().__init__()
        self.model, self._encoder = model, encoder

    def forward(self, pixels: Tensor, tokens: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Return float32 unit vectors of images and of texts, the scale and the bias."""
        images = self._encoder.image(self.model, pixels)
        texts = self._encoder.text(self.model, tokens)
        scale = torch.as_tensor(self._encoder.scale(self.model), device=images.device).float()
        bias = getattr(self.model, "logit_bias", None)
        bias = torch.zeros_like(scale) if bias is None else bias.float()
        return _unit(images), _unit(texts), scale.reshape(()), bias.reshape(())

    def train(self, mode: bool = True) -> "DualNetwork":
        """Switch the mode; frozen parts stay in evaluation, without dropout and new statistics."""
        super().train(mode)
        for part in self.model.children():
            if not any(parameter.requires_grad for parameter in part.parameters()):
                part.eval()
        return self

    def after_step(self) -> None:
        if hasattr(self.model, "logit_scale") and not hasattr(self.model, "logit_bias"):
            with torch.no_grad():
                self.model.logit_scale.clamp_(max=torch.tensor(MAX_SCALE).log().item())


def freeze_encoders(model: Any, temperature: float) -> None:
    """Leave only the two projections of a VisionTextDualEncoderModel to train.

    The scale becomes 1 / temperature.

    Source: Couairon et al. 2022 (SIMAT), section 4.3.
    """
    model.requires_grad_(False)
    model.visual_projection.requires_grad_(True)
    model.text_projection.requires_grad_(True)
    model.logit_scale.fill_(torch.tensor(1 / temperature).log().item())


class HeadsNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """Linear layers on an image encoder and on a text encoder, both frozen.

    They start near the identity: 1 on the diagonal, plus a hundredth of torch's default init. An
    image head of four layers with ReLU keeps torch's default init; its width is not published.

    Source: Couairon et al. 2022 (SIMAT), section 4.3; the published `adaptation.py`, `init_head`.
    """

    fused = ()

    def __init__(
        self, image: int, text: int, shared: int, temperature: float, seed: int, mlp: bool = False
    ) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.image: Any = nn.Linear(image, shared)
            self.text = nn.Linear(text, shared)
            layers = [(nn.ReLU(), nn.Linear(shared, shared)) for _ in range(MLP_LAYERS - 1)]
        with torch.no_grad():
            for head in (self.text,) if mlp else (self.image, self.text):
                head.weight.mul_(0.01).add_(torch.eye(*head.weight.shape))
                head.bias.mul_(0.01)
        if mlp:
            self.image = nn.Sequential(self.image, *(part for pair in layers for part in pair))
        self.temperature = temperature

    def forward(self, images: Tensor, texts: Tensor) -> tuple[Tensor, ...]:
        scale = images.new_tensor(1 / self.temperature)
        return _unit(self.image(images)), _unit(self.text(texts)), scale, torch.zeros_like(scale)

    def after_step(self) -> None:
        """No parameter is limited."""


def _unit(vectors: Tensor) -> Tensor:
    return nn.functional.normalize(vectors.float(), dim=-1)


def fold_heads(model: Any, heads: HeadsNetwork) -> None:
    """Fold the heads into a CLIPModel, whose outputs become the heads' vectors.

    A head H with bias b after projection W of y, the output of the last layer norm, equals the
    projection HW of y + d where HW d = b. So d joins the layer norm's bias, and 1 / temperature
    becomes the model's scale.
    """
    check_foldable(model)
    norms = (model.vision_model.post_layernorm, model.text_model.final_layer_norm)
    projections = (model.visual_projection, model.text_projection)
    with torch.no_grad():
        parts = zip(norms, projections, (heads.image, heads.text), strict=True)
        for norm, projection, head in parts:
            weight = head.weight.double().cpu() @ projection.weight.double().cpu()
            shift = torch.linalg.lstsq(weight, head.bias.double().cpu()[:, None]).solution[:, 0]
            projection.weight.copy_(weight)
            norm.bias.add_(shift.to(norm.bias))
        model.logit_scale.fill_(torch.tensor(1 / heads.temperature).log().item())


def check_foldable(model: Any) -> None:
    for name in ("visual_projection", "text_projection"):
        projection = getattr(model, name)
        if projection.in_features < projection.out_features:
            raise InputError(
                f"--train heads: {name} expands {projection.in_features} to "
                f"{projection.out_features} dimensions. Choose a model whose "
                "projections do not add dimensions"
            )


def parameter_groups(
    network: nn.Module, weight_decay: float, fused: Sequence[str], factor: float
) -> list[dict[str, Any]]:
    """Group the trained weights by weight decay and by the factor of their learning rate.

    Only matrices decay, not gains and biases. The factor applies to weights whose names contain
    one of `fused`.

    Source: Radford et al. 2021 (CLIP), section 2.5; METER's `meter_utils.set_schedule`.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, weight in network.named_parameters():
        if weight.requires_grad:
            decay = weight_decay if weight.ndim >= 2 else 0.0
            rate = factor if any(part in name for part in fused) else 1.0
            groups.setdefault((decay, rate), []).append(weight)
    return [
        {"params": weights, "weight_decay": decay, "factor": rate}
        for (decay, rate), weights in groups.items()
    ]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Start:
    """The model that training starts from."""

    kind: str
    encoder: Architecture | TrainedFusion | StoredVectors
    weights: Weights | StoredVectors
    preprocessor: Preprocessor
    model: Any
    tokenizer: Any


def load_start(model: str, train: Train) -> Start:
    specs = parse_specs(model)
    kind, kinds, heads = specs[0].kind, (*ARCHITECTURES, *FUSIONS, VECTORS), train != "all"
    if kind not in kinds or len(specs) != 1 or specs[0].options:
        known = f"expected KIND:FOLDER without options. KIND is one of {', '.join(kinds)}"
        hint = "" if kind in kinds else nearest(kind, kinds)
        raise InputError(f"--model {model}: {known}{hint}")
    if kind == VECTORS:
        if not heads:
            raise InputError("--train all: stored vectors have no encoder; pass --train heads")
        stored = StoredVectors(Path(specs[0].source))
        none = Preprocessor(image=None, tokenizer=None, digest="none")
        parts: dict[str, Any] = {"encoder": stored, "weights": stored, "preprocessor": none}
        return Start(kind=kind, **parts, model=None, tokenizer=None)
    if heads and (kind not in ("clip", VISION_TEXT) or train == "mlp-heads"):
        known = VECTORS if train == "mlp-heads" else f"clip, {VISION_TEXT} or {VECTORS}"
        raise InputError(f"--train {train} works only with models of kind {known}")
    weights = specs[0].weights()
    if kind in FUSIONS:
        fusion = FUSIONS[kind](weights)
        return Start(
            kind=kind,
            encoder=fusion,
            weights=weights,
            preprocessor=fusion.preprocessor,
            model=fusion.model,
            tokenizer=fusion.captions,
        )
    encoder = ARCHITECTURES[kind]
    preprocessor = load_preprocessor(weights)
    loaded = load_model(weights, encoder.model)
    text = loaded.config.text_config
    check_vocabulary(weights.source, len(preprocessor.tokenizer), text.vocab_size)
    if heads and kind == "clip":
        check_foldable(loaded)
    return Start(
        kind=kind,
        encoder=encoder,
        weights=weights,
        preprocessor=preprocessor,
        model=loaded,
        tokenizer=encoder.tokenizer(preprocessor.tokenizer, text),
    )


def save_trained(folder: Path, start: Start, network: Any) -> None:
    """Write model, image processor and tokenizer as transformers does; heads also separately."""
    if isinstance(network, HeadsNetwork):
        heads = {name: part.cpu().contiguous() for name, part in network.state_dict().items()}
        if isinstance(start.weights, StoredVectors):
            save_file(heads, folder / "model.safetensors")
            return
        save_file(heads, folder / "heads.safetensors")
        fold_heads(start.model, network)
    start.model.to("cpu").eval().save_pretrained(folder, safe_serialization=True)
    assert isinstance(start.weights, Weights)
    # Reloaded: a used tokenizer would save the padding and truncation of its last call.
    preprocessor = load_preprocessor(start.weights)
    preprocessor.image.save_pretrained(folder)
    preprocessor.tokenizer.save_pretrained(folder)
