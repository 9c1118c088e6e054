"""Of the pipeline that edits photographs: its captions in batches, and whether an editor fits."""

from collections.abc import Iterator
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.generators.editors.registry import describe_editors
from eqforge.generators.editors.settings import EditorSettings
from eqforge.models.pretrained import device_here
from eqforge.pipelines.shared.settings import RunSettings
from eqforge.pipelines.shared.text import select_images
from eqforge.sources.caption_forms import Source
from eqforge.sources.edit_captions import EditCaption, read_edit_captions
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.generated.edit import shared_editor
from eqforge.transforms.generated.edit_masks import GroundingSettings, shared_grounder
from eqforge.transforms.generated.edit_plan import PhotographBatch

BATCH = 32


def batches_of(
    captions: Path, source: Source | None, has_folder: bool, run: RunSettings
) -> Iterator[PhotographBatch]:
    """Yields captions in batches of whole images.

    Args:
      captions: the file or folder.
      source: its format; None tells it by the file.
      has_folder: whether there is a folder of masks.
      run: which are selected.

    Raises:
      InputError: a caption is wrong, or names a mask where there is no folder of masks.
    """
    batch: list[EditCaption] = []
    for some in select_images(_captions(captions, source, has_folder), run):
        batch += some
        if len(batch) >= BATCH:
            yield PhotographBatch(captions=tuple(batch))
            batch = []
    if batch:
        yield PhotographBatch(captions=tuple(batch))


def _captions(captions: Path, source: Source | None, has_folder: bool) -> Iterator[EditCaption]:
    for caption in read_edit_captions(captions, source):
        if caption.mask is not None and not has_folder:
            raise InputError(
                f"{captions.name}: {caption.caption_id} names a mask, {caption.mask!r}; say "
                "with --masks in which folder it lies"
            )
        yield caption


def captions_of(plan: PlanFiles) -> Iterator[EditCaption]:
    """Yields the captions of a plan."""
    for batch in read_plan(PhotographBatch, plan.files):
        yield from batch.captions


def confirm_editor(editing: EditorSettings, grounding: GroundingSettings, has_masks: bool) -> None:
    """Load an editor and a grounder, and check that the editor can do what is asked of it.

    Args:
      editing: the model that edits.
      grounding: the models that find where a photograph may change.
      has_masks: whether somebody says where that is.

    Raises:
      InputError: a model cannot be loaded, or the editor needs masks that nobody gives; the message
        says what would do.
    """
    # The machine that launches a job need not have the workers' device.
    here = editing.on(device_here(editing.device))
    editor = shared_editor(here).editor
    shared_grounder(grounding, here.device)
    if "mask" in editor.needs and not has_masks:
        raise InputError(
            f"the editor {editor.name} changes a photograph where a mask says: name a folder of "
            "masks with --masks, or a detector that finds what changes with --grounder; or a model "
            f"of an editor that needs none: {describe_editors(with_mask=False)}"
        )
