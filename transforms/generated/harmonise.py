"""Harmonises rendered pairs: both pictures look like photographs, and differ where they did.

The first picture is drawn anew as a whole. The second one is drawn with the same noise, and its
pixels are taken only where the renderings differ: everywhere else it is the first one, bit for bit.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import derive_seed
from eqforge.core.late import numpy as np
from eqforge.generators.editors.lock import composite, grow
from eqforge.generators.harmonise.settings import HarmoniseSettings
from eqforge.models.pretrained import device_here
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.generated.flagged import FLAGGED, flagged
from eqforge.transforms.generated.masks import read_numbers
from eqforge.transforms.generated.scene_renderer import Render

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.generators.harmonise.harmoniser import Harmoniser
    from eqforge.schemas.records.scenes import ScenePair

VERSION: Final = 1
UNFIT: Final = "unfit_request"
HARMONISE_REASONS: Final = {
    **FLAGGED,
    UNFIT: "The caption does not fit the model that draws the rendering anew.",
}
DIFFERENT: Final = 10
"""Difference of a channel, in [0, 255], from which on the renderings differ in a pixel: a shadow of
what changed does, the noise of the renderer does not."""

MARGIN_SHARE: Final = 0.02
"""How far around what differs the second picture may change, in picture widths."""

FEATHER_PX: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Harmonise:
    """How renderings are harmonised; sent to workers, which load the model.

    Attributes:
      settings: the model and what it is held to.
      fingerprint: of the model and all else that decides a picture; None where none is asked for.
    """

    settings: HarmoniseSettings
    fingerprint: str | None = None

    @property
    def basis(self) -> list[object]:
        """What the pictures depend on besides the renderings; nothing where they stay."""
        return [] if self.fingerprint is None else [VERSION, self.fingerprint]


def prepare_harmonise(settings: HarmoniseSettings) -> Harmonise:
    """Returns how renderings are harmonised; a model is loaded once, as a check.

    The machine that launches a job need not have the workers' device.

    Raises:
      InputError: the model or its ControlNet cannot be loaded.
      MissingExtra: torch, diffusers or transformers is not installed.
    """
    if settings.harmonise is None:
        return Harmonise(settings=settings)
    here = device_here(settings.harmonise_device)
    device = None if here == settings.harmonise_device else here
    return Harmonise(settings=settings, fingerprint=shared_harmoniser(settings, device).fingerprint)


_loading = threading.Lock()


def shared_harmoniser(settings: HarmoniseSettings, device: str | None = None) -> Harmoniser:
    """Returns the model of this process, loaded on first use.

    Args:
      settings: name it.
      device: another one to load it onto.

    Raises:
      InputError, MissingExtra: see prepare_harmonise.
    """
    with _loading:
        return _load(settings, device)


@functools.lru_cache(maxsize=1)
def _load(settings: HarmoniseSettings, device: str | None) -> Harmoniser:
    from eqforge.generators.harmonise.harmoniser import load_harmoniser

    return load_harmoniser(settings, device)


def harmonised(
    pair: ScenePair, renders: tuple[Render, Render], harmonise: Harmonise
) -> tuple[Render, Render] | Rejection:
    """Returns the renders of a pair with pictures that the model drew.

    Masks, boxes and overlaps stay those of the scenes: they are what the model is held to. A
    picture that the model's own checker flags is a reason to refuse the pair, as is a caption
    that is longer than the model reads.

    Raises:
      InputError: the model cannot be loaded.
      BuildError: the model changed since the run began.
    """
    if harmonise.fingerprint is None:
        return renders
    from eqforge.generators.scenes.render_child import encode_png

    model = shared_harmoniser(harmonise.settings)
    if model.fingerprint != harmonise.fingerprint:
        raise BuildError(f"the model {model.identity.name} changed since the run began")
    seed = derive_seed(pair.scenes[0].seed, pair.captions[0], "harmonise", VERSION) % 2**31
    first, second = (read_pixels(render.image_png) for render in renders)
    try:
        one, two = (
            model.draw(pixels, _control(render, pixels, harmonise.settings), caption, seed)
            for pixels, render, caption in zip((first, second), renders, pair.captions, strict=True)
        )
    except InputError as error:
        return Rejection(reason=UNFIT, detail=str(error)[:500])
    refused = flagged((one is None, two is None))
    if refused is not None:
        return refused
    assert one is not None
    assert two is not None
    where = changing(renders, (first, second))
    feather = FEATHER_PX if min(where.shape) > 20 * FEATHER_PX else 0
    locked = composite(one, two, where, feather)
    return (
        replace(renders[0], image_png=encode_png(one)),
        replace(renders[1], image_png=encode_png(locked)),
    )


def changing(
    renders: tuple[Render, Render], pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]]
) -> NDArray[np.bool_]:
    """Returns where two renderings differ, with a margin: in an object, or in a shadow.

    Returns:
      bool of shape (height, width).
    """
    first, second = (read_numbers(render.mask_png) for render in renders)
    apart = np.abs(pictures[0].astype(np.int16) - pictures[1]).max(axis=-1) >= DIFFERENT
    # Copies that one scene lacks are the last: all other objects have one number in both.
    found: NDArray[np.bool_] = (first != second) | apart
    return grow(found, round(MARGIN_SHARE * found.shape[1]))


def _control(
    render: Render, pixels: NDArray[np.uint8], settings: HarmoniseSettings
) -> NDArray[np.uint8]:
    from eqforge.generators.harmonise.harmoniser import edges

    if not settings.reads_depth:
        return edges(pixels)
    assert render.depth_png is not None
    near: Any = read_numbers(render.depth_png).astype(np.uint8)
    return np.repeat(near[..., None], 3, axis=2)
