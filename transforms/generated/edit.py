"""Edits photographs so that they show the negative; pixels outside the mask are locked.

Photographs are never batched, so their pixels do not depend on the rest of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import versions_of
from eqforge.generators.editors.canvas import composite
from eqforge.generators.editors.editor import (
    Edited,
    Editor,
    EditRequest,
    describe_editors,
    load_editor,
)
from eqforge.generators.editors.settings import EditorSettings
from eqforge.models.pretrained import device_here
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.records.scores import Rejection, Score, compact_json
from eqforge.schemas.tables.generated import Generation, MaskRow
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.media import encode_image
from eqforge.transforms.filters.minimality import changed_in_and_out, view
from eqforge.transforms.generated.draw_work import (
    Drawings,
    Shared,
    drawings_of,
    load_once,
    seed_of,
    weigh,
)
from eqforge.transforms.generated.edit_masks import (
    SharedGrounder,
    read_region,
    shared_grounder,
    store_region,
)
from eqforge.transforms.generated.edit_plan import EDITS_STAGE, EditingRules, EditTask, EditWork
from eqforge.transforms.generated.pairs import make_once, store_image
from eqforge.transforms.generated.work import MadePair

if TYPE_CHECKING:
    from numpy.typing import NDArray

EDITED: Final = "edited"

VERSION: Final = 1
CHANGED_OUTSIDE: Final = "changed_outside"
"""The name of a score, and of the reason why it rejects a pair."""


@load_once
def shared_editor(settings: EditorSettings) -> Shared[Editor]:
    return Shared(load_editor(settings), settings.device)


def confirm_editor(rules: EditingRules) -> None:
    """Load the models, and check that masks or a grounder exist if the editor needs a region."""
    # The machine that launches a job need not have the workers' device.
    settings = rules.editor.on(device_here(rules.editor.device))
    editor = shared_editor(settings).model
    shared_grounder(rules.grounding, settings.device)
    if "mask" in editor.needs and not rules.has_masks:
        raise InputError(
            f"the editor {editor.name} needs masks of the areas to change. Pass --masks FOLDER, or "
            "a detector with --grounder. These editors need no mask: "
            f"{describe_editors(with_mask=False)}"
        )


def edit_photograph(work: EditWork, rules: EditingRules) -> Drawings:
    def edit(own: EditWork, number: int) -> EditWork:
        assert own.task is not None
        task = replace(own.task, seed=seed_of(own.task.seed, number))
        return _edit_once(replace(own, task=task), task, rules)

    # The caption describes the photograph; the edit must show the negative.
    planned = weigh(work, rules.generated, sides=(1,))
    return drawings_of(planned, rules.generated.ranking.seeds, edit)


def _edit_once(work: EditWork, task: EditTask, rules: EditingRules) -> EditWork:
    shared = shared_editor(rules.editor)
    grounder = shared_grounder(rules.grounding, rules.editor.device) if task.mask is None else None
    basis = [VERSION, shared.model.fingerprint, shared.device, versions_of("pillow", "scipy")]
    basis += [rules.has_masks, rules.lock.lock, rules.lock.feather_px]
    basis += [None if grounder is None else grounder.basis]
    inputs, ledger = [*task.content, task.seed], rules.generated.ledger("edit", basis)
    make = partial(_make, task, shared, grounder, rules)
    result = guarded(partial(make_once, inputs, ledger, rules.generated.media, make))
    if isinstance(result, Rejection):
        return work.refused(EDITS_STAGE, result)
    outside = {score.name: score.value for score in result.scores}.get(CHANGED_OUTSIDE)
    limit = rules.lock.max_changed_outside
    if outside is not None and limit is not None and outside > limit:
        rejection = Rejection(reason=CHANGED_OUTSIDE, value=outside, threshold=limit)
        return work.refused(EDITS_STAGE, rejection)
    return replace(work, made=result).passed(EDITS_STAGE)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Region:
    mask: MaskRow
    pixels: NDArray[np.bool_]
    source: str
    boxes: list[Any]


def _make(
    task: EditTask, shared: Shared[Editor], grounder: SharedGrounder | None, rules: EditingRules
) -> MadePair | Rejection:
    media = rules.generated.media
    photograph = read_pixels(media.get(task.photograph.image_id, task.photograph.suffix))
    region = _region(task, photograph, grounder, rules)
    if region is None and rules.has_masks:
        return Rejection(reason="no_mask", detail=", ".join(task.things)[:200])
    edited = _edit(task, photograph, region, shared)
    if isinstance(edited, Rejection):
        return edited
    final = edited.image
    if region is not None and rules.lock.lock:
        final = composite(photograph, edited.image, region.pixels, rules.lock.feather_px)
    if np.array_equal(final, photograph):
        return Rejection(reason="unchanged")
    scores = {} if region is None else _scores(photograph, edited.image, final, region.pixels)
    encoded = encode_image(final, FrameSettings(image_format="png"))
    stored = store_image(media, encoded.data, encoded.width_px, encoded.height_px)
    return MadePair(
        images=(task.photograph, stored),
        generation=_generation(task, shared, edited, region, rules),
        masks=None if region is None else (region.mask, region.mask),
        scores=tuple(
            Score(
                name=name, value=value, scorer="eqforge.edit", version=str(VERSION), settings="{}"
            )
            for name, value in scores.items()
        ),
    )


def _region(
    task: EditTask,
    photograph: NDArray[np.uint8],
    grounder: SharedGrounder | None,
    rules: EditingRules,
) -> _Region | None:
    media = rules.generated.media
    if task.mask is not None:
        return _Region(
            mask=task.mask, pixels=read_region(task.mask, media), source="masks", boxes=[]
        )
    found = None if grounder is None else grounder.find(photograph, task.things)
    if found is None:
        return None
    pixels, detections = found
    boxes = [[each.phrase, each.score, list(each.box)] for each in detections]
    return _Region(mask=store_region(pixels, media), pixels=pixels, source="grounder", boxes=boxes)


def _edit(
    task: EditTask, photograph: NDArray[np.uint8], region: _Region | None, shared: Shared[Editor]
) -> Edited | Rejection:
    import torch

    request = EditRequest(
        image=photograph,
        target=task.negative,
        instruction=task.instruction,
        mask=None if region is None else region.pixels,
        seed=task.seed,
    )
    try:
        with shared.lock:
            edited = shared.model.edit(request)
    except InputError as error:
        return Rejection(reason="unfit_request", detail=str(error)[:500])
    except torch.OutOfMemoryError as error:
        raise BuildError(
            f"{shared.device} has too little memory to edit {task.caption.image}. Free some "
            "memory, lower --resolution, or pass --precision fp16 or --offload."
        ) from error
    return Rejection(reason="safety_checker") if edited.flagged else edited


def _scores(
    photograph: NDArray[np.uint8],
    edited: NDArray[np.uint8],
    final: NDArray[np.uint8],
    region: NDArray[np.bool_],
) -> dict[str, float | None]:
    """Measure the editor's changes inside and outside the mask, before pixels are locked.

    `difference_outside` is the largest difference of any channel outside the mask, 0 to 255.
    """
    inside, outside = changed_in_and_out(view(photograph), view(edited), region)
    before, after = (image[~region].astype(np.int16) for image in (photograph, final))
    return {
        "mask_area": round(float(region.mean()), 6),
        "changed_inside": inside,
        CHANGED_OUTSIDE: outside,
        "difference_outside": None if region.all() else float(np.abs(before - after).max()),
    }


def _generation(
    task: EditTask,
    shared: Shared[Editor],
    edited: Edited,
    region: _Region | None,
    rules: EditingRules,
) -> Generation:
    found, identity = edited.parameters, shared.model.identity
    lock = {"lock": rules.lock.lock, "feather_px": rules.lock.feather_px}
    mask = None if region is None else {"from": region.source, "boxes": region.boxes, **lock}
    if region is not None and region.source == "grounder":
        grounder = shared_grounder(rules.grounding, rules.editor.device)
        assert grounder is not None
        mask = {**(mask or {}), "found_by": grounder.basis}
    return Generation(
        generator="diffusers",
        version=f"{found['diffusers']}, torch {found['torch']}",
        model=identity.name,
        revision=identity.revision,
        device=shared.device,
        seed=task.seed,
        parameters=compact_json({**found, "mask": mask}),
    )
