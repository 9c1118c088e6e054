"""Draws pairs of images from pairs of prompts, by prompt-to-prompt, each pair once.

Pairs are never batched, so a pair's pixels do not depend on the rest of a run.

Source: EqBen, section 4.2 and appendix B.5; Hertz et al. 2022 for the attention control.
"""

import tempfile
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from eqforge.core.errors import BuildError
from eqforge.core.identity import versions_of
from eqforge.generators.diffusion.prompts import PromptPair
from eqforge.generators.diffusion.settings import TINY, DiffusionSettings, EditSettings, PairImages
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.records.scores import Rejection, Score, compact_json
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.generated import Generation
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.media import encode_image
from eqforge.transforms.generated.draw_work import (
    Drawings,
    Shared,
    drawings_of,
    load_once,
    seed_of,
    weigh,
)
from eqforge.transforms.generated.pairs import GeneratedRules, make_once, store_image
from eqforge.transforms.generated.work import MadePair, PairProposal, PairWork

if TYPE_CHECKING:
    from eqforge.generators.diffusion.generate import PairGenerator

REASON: Final = "safety_checker"
DRAWINGS_STAGE = Stage("drawings", {REASON: "The model's safety checker flagged an image."})

DRAWN: Final = "drawn"

VERSION = 1
BLEND_AREA = "blend_area"


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffuseRules:
    """How prompts become pairs; the model `tiny` is created on the fly."""

    diffusion: DiffusionSettings
    edit: EditSettings
    generated: GeneratedRules


@load_once
def shared_generator(settings: DiffusionSettings) -> "Shared[PairGenerator]":
    from eqforge.generators.diffusion.generate import PairGenerator
    from eqforge.generators.diffusion.tiny import make_tiny_pipeline, naming_folder

    if settings.model == TINY:
        with tempfile.TemporaryDirectory(prefix="eqforge-model-") as folder:
            pipeline_folder = make_tiny_pipeline(f"{folder}/{TINY}")
            with naming_folder(pipeline_folder):
                generator = PairGenerator(replace(settings, model=str(pipeline_folder)))
    else:
        generator = PairGenerator(settings)
    return Shared(generator, str(generator.pipeline.device))


def diffuse_pair(pair: PromptPair, rules: DiffuseRules) -> Drawings:
    def draw(work: PairWork, number: int) -> PairWork:
        return _diffuse(work, replace(pair, seed=seed_of(pair.seed, number)), rules)

    planned = weigh(PairWork(proposal=_proposal(pair)), rules.generated)
    return drawings_of(planned, rules.generated.ranking.seeds, draw)


def _diffuse(work: PairWork, pair: PromptPair, rules: DiffuseRules) -> PairWork:
    shared = shared_generator(rules.diffusion)
    basis = [VERSION, shared.model.fingerprint, shared.device, versions_of("pillow")]
    inputs = [msgspec.to_builtins(pair), _control_json(pair, rules.edit)]
    ledger, make = rules.generated.ledger("draw", basis), partial(_draw, pair, shared, rules)
    result = guarded(partial(make_once, inputs, ledger, rules.generated.media, make))
    if isinstance(result, Rejection):
        return work.refused(DRAWINGS_STAGE, result)
    return replace(work, made=result).passed(DRAWINGS_STAGE)


def _control_json(pair: PromptPair, edit: EditSettings) -> dict[str, Any]:
    """Return the attention settings, as in rows and the ledger.

    Words are keys as strings. Earlier versions could choose the constant values.
    """
    changed = list(map(str, pair.changed[1]))
    cross: Any = edit.cross_replace
    if edit.changed_cross_replace is not None:
        cross = {"default_": cross, **dict.fromkeys(changed, edit.changed_cross_replace)}
    blend = {"words": pair.blended, "threshold": edit.blend_threshold, "start": 0.0}
    return {
        "method": pair.control,
        "cross_replace_steps": cross,
        "self_replace_steps": edit.self_replace,
        "self_replace_side": None,
        "reweight": {} if edit.reweight == 1 else dict.fromkeys(changed, edit.reweight),
        "heat_side": None,
        "blend": blend if edit.local_blend and any(pair.blended) else None,
        "alignment": edit.alignment,
        "changed": pair.changed,
    }


def _proposal(pair: PromptPair) -> PairProposal:
    first, second = (
        compact_json(
            {
                "prompt": pair.prompts[side],
                "group": pair.group,
                "changed_words": pair.changed[side],
                "blended_words": pair.blended[side],
            }
        )
        for side in (0, 1)
    )
    return PairProposal(
        sample_id=pair.sample_id,
        source_id=f"{pair.group}/{pair.thing}",
        kind=pair.kind,
        change=pair.change,
        captions=pair.captions,
        specs=(first, second),
    )


def _draw(
    pair: PromptPair, shared: "Shared[PairGenerator]", rules: DiffuseRules
) -> MadePair | Rejection:
    import torch

    try:
        with shared.lock:
            drawing = shared.model.generate(pair, rules.edit)
    except torch.OutOfMemoryError as error:
        raise BuildError(
            f"{shared.device} has too little memory to draw {pair.sample_id}, even with the "
            "smallest batch. Free some memory, lower --size-px, or pass --precision fp16."
        ) from error
    if drawing.flagged is not None and any(drawing.flagged):
        sides = [str(side) for side, is_flagged in enumerate(drawing.flagged) if is_flagged]
        return Rejection(reason=REASON, detail=f"image {', '.join(sides)}")
    encoded = [encode_image(image, FrameSettings(image_format="png")) for image in drawing.images]
    first, second = (
        store_image(rules.generated.media, image.data, image.width_px, image.height_px)
        for image in encoded
    )
    return MadePair(
        images=(first, second),
        generation=_generation(pair, shared, drawing, rules.edit),
        scores=_scores(drawing, rules.edit),
    )


def _generation(
    pair: PromptPair, shared: "Shared[PairGenerator]", drawing: PairImages, edit: EditSettings
) -> Generation:
    found, identity = shared.model.parameters, shared.model.identity
    decided = {
        **found,
        "weights": identity.digest,
        "control": _control_json(pair, edit),
        "batch_rows": drawing.batch_rows,
    }
    return Generation(
        generator="diffusers",
        version=f"{found['diffusers']}, torch {found['torch']}",
        model=identity.name,
        revision=identity.revision,
        device=shared.device,
        seed=pair.seed,
        parameters=compact_json(decided),
    )


def _scores(drawing: PairImages, edit: EditSettings) -> tuple[Score, ...]:
    """Return the share of the image in which the second may differ, if it was limited."""
    if drawing.blend_mask is None:
        return ()
    return (
        Score(
            name=BLEND_AREA,
            value=round(float(drawing.blend_mask.mean()), 6),
            scorer="eqforge.diffuse",
            version=str(VERSION),
            settings=compact_json({"threshold": edit.blend_threshold}),
        ),
    )
