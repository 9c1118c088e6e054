"""Training fusion encoders, which score an image only together with a caption.

A batch of n matched pairs has n x n possible scores. Each is a pass of the whole fusion encoder, so
only some are computed with gradients: the n matches, and the scores of chosen couples of matches in
both directions (caption a with image b, caption b with image a). The couples are the hard negatives
and EqSim's quadruples. Source: Wang et al. 2023, appendix C (METER).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn

from eqforge.core.errors import InputError
from eqforge.evaluation.training.eqsim import (
    SIDES,
    Activation,
    drawn_couples,
    eqsim_close,
    eqsim_swapped,
    fusion_quadruples,
    known_couples,
    top_k_couples,
)
from eqforge.evaluation.training.losses import LossName, infonce_loss, itm_loss, ranking_loss
from eqforge.models.dual_encoders import ARCHITECTURES
from eqforge.models.fusion import BlipItmScorer, TrainedFusion, ViltScorer
from eqforge.models.pretrained import Weights

if TYPE_CHECKING:
    from eqforge.evaluation.training.command import FinetuneSettings

FUSIONS: Mapping[str, Callable[[Weights], TrainedFusion]] = {
    "blip-itm": BlipItmScorer,
    "vilt": ViltScorer,
}
MATCHING: tuple[LossName, ...] = ("itm", "ranking")
_LOSSES: Mapping[str, tuple[LossName, ...]] = {
    "blip-itm": (*MATCHING, "eqsim-v1", "eqsim-v2", "infonce"),
    "vilt": (*MATCHING, "eqsim-v1", "eqsim-v2"),
}
_ACTIVATIONS: Mapping[str, Activation] = {"logit": "none", "softmax": "softmax"}
_CONTRASTIVE = ARCHITECTURES["blip-itc"]


def check_fusion(settings: "FinetuneSettings", kind: str) -> None:
    """Check that a kind of fusion encoder can be trained with the settings."""
    origin = "" if settings.preset == "none" else f"--preset {settings.preset} sets "
    for name in settings.weights():
        if name not in _LOSSES[kind]:
            raise InputError(
                f"{origin}--loss {name}{', which' * bool(origin)} cannot be used with {kind} "
                f"models. Supported losses: {', '.join(_LOSSES[kind])}"
            )
    if not any(name in settings.weights() for name in MATCHING):
        raise InputError(
            f"--model {kind}: add --loss itm or --loss ranking to train its matching head"
        )
    if settings.negatives_in_contrast:
        raise InputError(f"--negatives-in-contrast cannot be used with {kind} models; omit it")
    if "eqsim-v1" in settings.weights() and settings.distant_count == 0:
        raise InputError("--loss eqsim-v1 needs a --distant-count of at least 1")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Couples:
    """Couples of a batch's matches by index, int64 [couples, 2]: (image's match, caption's)."""

    close: Tensor
    distant: Tensor

    def pairs(self, count: int) -> Tensor:
        """Return all (image, caption) to score, int64 [pairs, 2], sorted and each once."""
        matches = torch.arange(count, device=self.close.device)[:, None].expand(count, 2)
        both = torch.cat([self.close, self.distant])
        return torch.unique(torch.cat([matches, both, both.flip(1)]), dim=0)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Matched:
    """The scores of one batch.

    Attributes:
      logits: float32 [n, n], images (rows) with captions; 0 where `scored` is false.
      scored: bool [n, n].
      contrastive: float32 [n, n], the logits of BLIP's contrastive vectors; None for ViLT.
    """

    couples: Couples
    logits: Tensor
    scored: Tensor
    contrastive: Tensor | None


class FusionNetwork(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may be missing
    """A fusion encoder of transformers, trained as a whole."""

    def __init__(self, scorer: TrainedFusion) -> None:
        super().__init__()
        self.model, self._scorer, self.fused = scorer.model, scorer, scorer.fused

    def forward(
        self,
        pixels: Sequence[Tensor],
        tokens: Mapping[str, Tensor],
        choose: Callable[[Callable[[], Tensor]], Couples],
    ) -> Matched:
        """Score a batch; `choose` gets a function that returns scores [n, n] without gradients."""
        images, count = self._scorer.states(pixels), len(pixels)
        contrastive = self._contrast(images, tokens)

        def coarse() -> Tensor:
            if contrastive is not None:
                return contrastive.detach()
            with torch.no_grad():
                rows = [self._scorer.logits([image] * count, tokens) for image in images]
            return torch.stack(rows)

        couples = choose(coarse)
        pairs = couples.pairs(count)
        rows, columns = pairs[:, 0], pairs[:, 1]
        read = {name: tensor[columns] for name, tensor in tokens.items()}
        found = self._scorer.logits([images[row] for row in rows.tolist()], read)
        scored = torch.zeros((count, count), dtype=torch.bool, device=found.device)
        scored[rows, columns] = True
        logits = found.new_zeros((count, count)).index_put((rows, columns), found)
        return Matched(couples=couples, logits=logits, scored=scored, contrastive=contrastive)

    def _contrast(self, images: Sequence[Tensor], tokens: Mapping[str, Tensor]) -> Tensor | None:
        if not isinstance(self._scorer, BlipItmScorer):
            return None
        # As BLIP's contrastive scores, without encoding the images again.
        vectors = self.model.vision_proj(torch.stack([states[0] for states in images]))
        texts = _CONTRASTIVE.text(self.model, tokens)
        units = (nn.functional.normalize(each.float(), dim=-1) for each in (vectors, texts))
        image_units, text_units = units
        return float(_CONTRASTIVE.scale(self.model)) * (image_units @ text_units.T)

    def after_step(self) -> None:
        """No parameter is limited."""


def choose_couples(
    coarse: Callable[[], Tensor],
    *,
    settings: "FinetuneSettings",
    partners: Tensor,
    excluded: Tensor,
    generator: Generator,
) -> Couples:
    """Couple each image with close captions, and with `distant_count` random other captions.

    Source: Wang et al. 2023, appendix C: of the captions drawn for an image, some are hard
    negatives, and EqSim also draws the captions' own images.
    """
    count, close_count = len(partners), settings.close_count
    if settings.close == "known":
        close = known_couples(partners)
    elif settings.close == "top-k":
        close = top_k_couples(coarse(), close_count, excluded, texts_only=True)
    else:
        close = drawn_couples(coarse(), close_count, excluded, generator, texts_only=True)
    mask = excluded.clone()
    mask[close[:, 0], close[:, 1]] = True
    mask[close[:, 1], close[:, 0]] = True
    equal = torch.zeros((count, count), device=partners.device)
    distant = drawn_couples(equal, settings.distant_count, mask, generator, texts_only=True)
    return Couples(close=close, distant=distant)


def fusion_losses(
    network: Any,
    inputs: Mapping[str, Any],
    settings: "FinetuneSettings",
    *,
    partners: Tensor,
    excluded: Tensor,
    generator: Generator,
) -> dict[LossName, Tensor]:
    """Score a batch and return its losses by name."""
    choose = partial(
        choose_couples,
        settings=settings,
        partners=partners,
        excluded=excluded,
        generator=generator,
    )
    found: Matched = network(**inputs, choose=choose)
    return matching_losses(found, settings, excluded)


def matching_losses(
    found: Matched, settings: "FinetuneSettings", excluded: Tensor
) -> dict[LossName, Tensor]:
    weights = settings.weights()
    usable = found.scored & ~excluded
    losses: dict[LossName, Tensor] = {}
    if "itm" in weights:
        losses["itm"] = itm_loss(found.logits, usable)
    if "ranking" in weights:
        losses["ranking"] = ranking_loss(found.logits, usable)
    if "infonce" in weights and found.contrastive is not None:
        losses["infonce"] = infonce_loss(found.contrastive, excluded)
    activation = _ACTIVATIONS.get(settings.eqsim_scores, "sigmoid")
    close, distant = (
        fusion_quadruples(_quadruple_logits(found.logits, couples), activation)
        for couples in (found.couples.close, found.couples.distant)
    )
    if "eqsim-v1" in weights:
        losses["eqsim-v1"] = eqsim_swapped(distant, margin=settings.distant_margin)
    if "eqsim-v2" in weights:
        losses["eqsim-v2"] = eqsim_close(
            close,
            sides=SIDES if settings.eqsim_side == "both" else (settings.eqsim_side,),
            margin=settings.margin,
            margin_mode=settings.margin_mode,
        )
    return losses


def _quadruple_logits(logits: Tensor, couples: Tensor) -> Tensor:
    """Return the logits s00, s01, s10, s11 of couples, [couples, 4]; s_ab: caption a, image b."""
    first, second = couples[:, 0], couples[:, 1]
    rows = torch.stack([first, second, first, second], dim=1)
    columns = torch.stack([first, first, second, second], dim=1)
    return logits[rows, columns]
