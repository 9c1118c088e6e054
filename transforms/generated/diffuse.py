"""Draws pairs of images from pairs of prompts, by prompt-to-prompt, each pair once.

Pairs are never batched, so a pair's pixels do not depend on what else a run draws. A process loads
the model once and draws one pair at a time.

Source: EqBen, section 4.2 and appendix B.5; Hertz et al. 2022 for the attention control.
"""

import functools
import math
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from eqforge.core.errors import BuildError, InputError
from eqforge.core.identity import versions_of
from eqforge.core.ranges import check_range
from eqforge.generators.diffusion.prompts import PromptPair
from eqforge.generators.diffusion.settings import (
    DEFAULT_WORDS,
    TINY,
    DiffusionSettings,
    EditControl,
    LocalBlend,
    PairImages,
    PairRequest,
    Span,
    WordName,
)
from eqforge.schemas.records.books import Stage
from eqforge.schemas.records.frames import FrameSettings, StoredImage
from eqforge.schemas.records.scores import Rejection, Score, compact_json
from eqforge.schemas.tables.generated import Generation
from eqforge.transforms.dataset.books import error_rejection
from eqforge.transforms.dataset.media import encode_image
from eqforge.transforms.generated.draw_work import Drawings, Shared, drawings_of, seed_of, weigh
from eqforge.transforms.generated.pairs import GeneratedRules, make_once, store_image
from eqforge.transforms.generated.work import MadePair, PairProposal, PairWork

if TYPE_CHECKING:
    from eqforge.generators.diffusion.generate import PairGenerator


REASON: Final = "safety_checker"
FLAGGED: Final = {REASON: "The model's own checker flagged a picture, and made it black."}


def flagged(sides: Sequence[bool]) -> Rejection | None:
    """Return why a pair is rejected, given which of its pictures were flagged; None for none."""
    found = ", ".join(str(side) for side, is_flagged in enumerate(sides) if is_flagged)
    return Rejection(reason=REASON, detail=f"image {found}") if found else None


DRAWINGS_STAGE = Stage("drawings", FLAGGED)

DRAWN: Final = "drawn"
"""The progress step that a worker counts for every pair that was drawn, or could not be."""

VERSION = 1
BLEND_AREA = "blend_area"


@dataclass(frozen=True, kw_only=True, slots=True)
class EditSettings:
    """How the first picture of a pair guides the second."""

    cross_replace: float = 0.8
    """Share of the steps, from the first, in which the second picture takes the first one's
    attention to the words that both have."""

    changed_cross_replace: float | None = None
    """The same share for the words that are changed or added; as for the others without it."""

    reweight: float = 1.0
    """Factor on the second picture's attention to the words that are changed or added, in the steps
    in which its attention is replaced: 2 shows them more strongly."""

    self_replace: float = 0.4
    """Share of the steps in which it takes the first one's layout, its self-attention."""

    local_blend: bool = True
    """Take the first picture's pixels wherever neither picture attends to the object or attribute
    that is changed; pairs whose scene changes are never blended."""

    blend_threshold: float = 0.3
    """Share of the greatest attention from which on a place belongs to a word."""

    alignment: Literal["exact", "published"] = "exact"
    """How words of the prompts are matched: word for word, or as the authors' code does, which
    shifts what follows a word of several tokens."""

    def __post_init__(self) -> None:
        for name in ("cross_replace", "changed_cross_replace", "self_replace", "blend_threshold"):
            check_range(name, getattr(self, name), 0, 1)
        if not 0 <= self.reweight < math.inf:
            raise InputError(f"--reweight {self.reweight}: expected 0 or more")


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffuseRules:
    """How prompts become pairs; the model `tiny` is created on the fly."""

    diffusion: DiffusionSettings
    edit: EditSettings
    generated: GeneratedRules


_loading = threading.Lock()


def shared_generator(settings: DiffusionSettings) -> "Shared[PairGenerator]":
    """Return the generator of this process, loaded on first use."""
    with _loading:
        return _load(settings)


@functools.lru_cache(maxsize=1)
def _load(settings: DiffusionSettings) -> "Shared[PairGenerator]":
    from eqforge.generators.diffusion.generate import PairGenerator

    if settings.model != TINY:
        return _shared(PairGenerator(settings))
    from eqforge.generators.diffusion.tiny import called_tiny, make_tiny_pipeline

    with tempfile.TemporaryDirectory(prefix="eqforge-model-") as folder:
        made = make_tiny_pipeline(f"{folder}/{TINY}")
        with called_tiny(made):
            return _shared(PairGenerator(replace(settings, model=str(made))))


def _shared(generator: "PairGenerator") -> "Shared[PairGenerator]":
    return Shared(generator, str(generator.pipeline.device))


def diffuse_pair(pair: PromptPair, rules: DiffuseRules) -> Drawings:
    """Draw a pair from every seed that is asked for; each drawing may be rejected."""

    def draw(work: PairWork, number: int) -> PairWork:
        return _diffuse(work, replace(pair, seed=seed_of(pair.seed, number)), rules)

    planned = weigh(PairWork(proposal=_proposal(pair)), rules.generated)
    return drawings_of(planned, rules.generated.ranking.seeds, draw)


def _diffuse(work: PairWork, pair: PromptPair, rules: DiffuseRules) -> PairWork:
    shared = shared_generator(rules.diffusion)
    control = control_of(pair, rules.edit)
    basis = [VERSION, shared.model.fingerprint, shared.device, versions_of("pillow")]
    try:
        made = make_once(
            [msgspec.to_builtins(pair), _as_json(control)],
            rules.generated.ledger("draw", basis),
            rules.generated.media,
            lambda: _draw(pair, control, shared, rules),
        )
    except Exception as error:
        return work.refused(DRAWINGS_STAGE, error_rejection(error))
    if isinstance(made, Rejection):
        return work.refused(DRAWINGS_STAGE, made)
    return replace(work, made=made).passed(DRAWINGS_STAGE)


def control_of(pair: PromptPair, settings: EditSettings) -> EditControl:
    blend = None
    if settings.local_blend and any(pair.blended):
        blend = LocalBlend(words=pair.blended, threshold=settings.blend_threshold)
    return EditControl(
        method=pair.control,
        cross_replace_steps=_cross_steps(pair, settings),
        self_replace_steps=settings.self_replace,
        reweight={}
        if settings.reweight == 1
        else dict.fromkeys(pair.changed[1], settings.reweight),
        blend=blend,
        alignment=settings.alignment,
        changed=pair.changed,
    )


def _cross_steps(pair: PromptPair, settings: EditSettings) -> Span | dict[WordName, Span]:
    if settings.changed_cross_replace is None:
        return settings.cross_replace
    steps: dict[WordName, Span] = {DEFAULT_WORDS: settings.cross_replace}
    steps.update(dict.fromkeys(pair.changed[1], settings.changed_cross_replace))
    return steps


def _as_json(control: EditControl) -> Any:
    """Return a control as JSON-like values; integer keys become strings."""
    return msgspec.to_builtins(asdict(control), str_keys=True)


def _proposal(pair: PromptPair) -> PairProposal:
    def spec(side: Literal[0, 1]) -> str:
        return compact_json(
            {
                "prompt": pair.prompts[side],
                "group": pair.group,
                "changed_words": pair.changed[side],
                "blended_words": pair.blended[side],
            }
        )

    return PairProposal(
        sample_id=pair.sample_id,
        source_id=f"{pair.group}/{pair.thing}",
        kind=pair.kind,
        change=pair.change,
        captions=pair.captions,
        specs=(spec(0), spec(1)),
    )


def _draw(
    pair: PromptPair, control: EditControl, shared: "Shared[PairGenerator]", rules: DiffuseRules
) -> MadePair | Rejection:
    import torch

    request = PairRequest(prompts=pair.prompts, seed=pair.seed, control=control)
    try:
        with shared.lock:
            drawn = shared.model.generate(request)
    except torch.OutOfMemoryError as error:
        raise BuildError(
            f"{shared.device} has too little memory to draw {pair.sample_id}, even one row at a "
            "time; give it more, or set --precision fp16 or a smaller --size-px"
        ) from error
    refused = flagged(drawn.flagged or ())
    if refused is not None:
        return refused
    return MadePair(
        images=(_store(drawn, 0, rules), _store(drawn, 1, rules)),
        generation=_generation(pair, control, shared, drawn),
        scores=_scores(drawn, control),
    )


def _store(drawn: PairImages, side: Literal[0, 1], rules: DiffuseRules) -> StoredImage:
    image = encode_image(drawn.images[side], FrameSettings(image_format="png"))
    return store_image(rules.generated.media, image.data, image.width_px, image.height_px)


def _generation(
    pair: PromptPair, control: EditControl, shared: "Shared[PairGenerator]", drawn: PairImages
) -> Generation:
    generator = shared.model
    found = generator.parameters
    parameters = {**found, "weights": generator.identity.digest, "control": _as_json(control)}
    return Generation(
        generator="diffusers",
        version=f"{found['diffusers']}, torch {found['torch']}",
        model=generator.identity.name,
        revision=generator.identity.revision,
        device=shared.device,
        seed=pair.seed,
        parameters=compact_json({**parameters, "batch_rows": drawn.batch_rows}),
    )


def _scores(drawn: PairImages, control: EditControl) -> tuple[Score, ...]:
    """Return the share of the picture in which the second may differ, if it was limited."""
    mask = drawn.blend_mask
    if mask is None or control.blend is None:
        return ()
    return (
        Score(
            name=BLEND_AREA,
            value=round(float(mask.mean()), 6),
            scorer="eqforge.diffuse",
            version=str(VERSION),
            settings=compact_json({"threshold": control.blend.threshold}),
        ),
    )
