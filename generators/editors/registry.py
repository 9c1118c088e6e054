"""The editors by name, and which of them a model can run with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.load import (
    find_folder,
    import_libraries,
    read_index,
)
from eqforge.generators.editors.inpaint import Inpaint
from eqforge.generators.editors.instruct import InstructPix2Pix
from eqforge.generators.editors.kontext import FluxKontext
from eqforge.generators.editors.pipeline_editor import PipelineEditor
from eqforge.generators.editors.prompt_to_prompt import PromptToPrompt
from eqforge.generators.editors.qwen import QwenImageEdit
from eqforge.generators.editors.records import Editor, EditorName
from eqforge.generators.editors.settings import TINY, EditorSettings

EDITORS: Final[Mapping[EditorName, type[PipelineEditor]]] = {
    editor.name: editor
    for editor in (PromptToPrompt, Inpaint, InstructPix2Pix, FluxKontext, QwenImageEdit)
}
"""Editors by name; of those that a model can run with, the first is its own."""


def editor_names() -> tuple[EditorName, ...]:
    """Returns the names of all editors."""
    return tuple(EDITORS)


def editors_of(pipeline: str) -> tuple[EditorName, ...]:
    """Returns the editors that a model can run with, its own first.

    Args:
      pipeline: class of diffusers that the model was saved as.
    """
    return tuple(name for name, editor in EDITORS.items() if pipeline in editor.runs)


def editor_of(settings: EditorSettings, pipeline: str) -> EditorName:
    """Returns the editor that is asked for, or else the model's own.

    Args:
      settings: name the editor and the model.
      pipeline: class of diffusers that the model was saved as.

    Raises:
      InputError: the model cannot run with it, or with any.
    """
    found = editors_of(pipeline)
    if settings.editor in found:
        return settings.editor
    if not found:
        raise InputError(
            f"{settings.model}: a {pipeline} edits no pictures; those that do: {describe_editors()}"
        )
    if settings.editor is None:
        return found[0]
    raise InputError(
        f"{settings.model}: a {pipeline} cannot run with --editor {settings.editor}, but with "
        f"{' or '.join(found)}; {settings.editor} runs with "
        f"{', '.join(EDITORS[settings.editor].runs)}"
    )


def describe_editors() -> str:
    """Returns all editors with the pipelines of diffusers that they run with."""
    return "; ".join(f"{name} ({', '.join(each.runs)})" for name, each in EDITORS.items())


def describe_others(
    settings: EditorSettings, is_fit: Callable[[type[PipelineEditor]], bool]
) -> str:
    """Returns which editors are fit for something: those of a model, and those of other models.

    Args:
      settings: name the model; it can be loaded.
      is_fit: tells whether an editor is.
    """
    fit = [name for name, editor in EDITORS.items() if is_fit(editor)]
    own = (
        fit if settings.model == TINY else [each for each in _own_editors(settings) if each in fit]
    )
    others = [f"{name} ({', '.join(EDITORS[name].runs)})" for name in fit if name not in own]
    told = [f"with {settings.model}, --editor {' or '.join(own)}"] if own else []
    told += [f"with other models, {'; '.join(others)}"] if others else []
    return "; ".join(told) or "none is"


def _own_editors(settings: EditorSettings) -> tuple[EditorName, ...]:
    return editors_of(read_index(find_folder(settings), settings.model).pipeline)


def load_editor(settings: EditorSettings) -> Editor:
    """Loads a model as an editor.

    Raises:
      InputError: the model cannot be found or loaded, it does not run with the editor, or a setting
        does not fit it; the message says what would.
      MissingExtra: torch, diffusers or transformers is not installed.
    """
    import_libraries()
    if settings.model == TINY:
        return _load_tiny(settings)
    folder = find_folder(settings)
    index = read_index(folder, settings.model)
    return EDITORS[editor_of(settings, index.pipeline)].load(folder, index, settings)


def _load_tiny(settings: EditorSettings) -> Editor:
    from eqforge.generators.diffusion.tiny import called_tiny
    from eqforge.generators.editors.tiny import TINY_SIZE_PX, make_tiny_editor

    name = settings.editor or editor_names()[0]
    with tempfile.TemporaryDirectory(prefix="eqforge-model-") as folder:
        made = make_tiny_editor(f"{folder}/{TINY}", next(iter(EDITORS[name].runs)))
        size = settings.resolution or TINY_SIZE_PX
        with called_tiny(made):
            return load_editor(replace(settings, model=str(made), editor=name, resolution=size))
