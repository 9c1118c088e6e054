"""The editors by name, and the one that a model runs with."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.load import find_folder, import_libraries, read_index
from eqforge.generators.diffusion.settings import TINY
from eqforge.generators.diffusion.tiny import SIZE_PX, called_tiny, make_tiny_pipeline
from eqforge.generators.editors.editor import (
    Editor,
    FluxKontext,
    Inpaint,
    InstructPix2Pix,
    QwenImageEdit,
)
from eqforge.generators.editors.settings import EditorName, EditorSettings

EDITORS: Final[Mapping[EditorName, type[Editor]]] = {
    editor.name: editor for editor in (Inpaint, InstructPix2Pix, FluxKontext, QwenImageEdit)
}


def editor_of(settings: EditorSettings, pipeline: str) -> EditorName:
    """Return the editor that runs a model saved as a class of diffusers."""
    found = next((name for name, editor in EDITORS.items() if pipeline in editor.runs), None)
    if found is None:
        raise InputError(
            f"{settings.model}: a {pipeline} edits no pictures; those that do: {describe_editors()}"
        )
    if settings.editor not in (None, found):
        raise InputError(
            f"{settings.model}: a {pipeline} cannot run with --editor {settings.editor}, but with "
            f"{found}; {settings.editor} runs with {', '.join(EDITORS[settings.editor].runs)}"
        )
    return found


def describe_editors(with_mask: bool = True) -> str:
    """Return the editors with their pipelines of diffusers, if asked only those without a mask."""
    return "; ".join(
        f"{name} ({', '.join(editor.runs)})"
        for name, editor in EDITORS.items()
        if with_mask or "mask" not in editor.needs
    )


def load_editor(settings: EditorSettings) -> Editor:
    import_libraries()
    if settings.model == TINY:
        pipeline = next(iter(EDITORS[settings.editor or "inpaint"].runs))
        with tempfile.TemporaryDirectory(prefix="eqforge-model-") as temporary:
            made = make_tiny_pipeline(f"{temporary}/{TINY}", pipeline)
            with called_tiny(made):
                size = settings.resolution or SIZE_PX
                return load_editor(replace(settings, model=str(made), resolution=size))
    folder = find_folder(settings)
    index = read_index(folder, settings.model)
    return EDITORS[editor_of(settings, index.pipeline)].load(folder, index, settings)
