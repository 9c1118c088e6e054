"""The command that makes a dataset again, from what its manifest says."""

import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from eqforge.pipelines.shared.command import default_config
from eqforge.pipelines.shared.header import without_places
from eqforge.pipelines.shared.media import MEDIA
from eqforge.pipelines.shared.pipeline import Pipeline
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.combined import COMBINED

FOLDER = "path/to"
"""Stands for a folder of the user, which a manifest does not name."""
_ORACLE = "oracle"
_SOURCE = "source"


def command_of(pipeline: Pipeline[Any], manifest: Manifest) -> str:
    """Returns the command line that builds a dataset with the settings of a manifest.

    Only what differs from the defaults of the mode stands in it; files and folders are named below
    `path/to`, as the manifest has their names alone.
    """
    words = ["eqforge", "build", manifest.dataset]
    if manifest.dataset in BENCHMARKS:
        words = ["eqforge", "import", manifest.dataset, f"{FOLDER}/{manifest.config[_SOURCE]}"]
    is_combined = manifest.dataset in COMBINED  # its mode is that of its parts
    if is_combined:
        words = ["eqforge", "combine", *(f"{FOLDER}/{part.name}" for part in manifest.inputs)]
    has_modes = not is_combined and manifest.dataset not in BENCHMARKS
    words += ["--mode", manifest.mode] if manifest.mode == "paper" and has_modes else []
    mode: Any = "paper" if manifest.mode == "paper" else "corrected"
    usual = default_config(pipeline.config, pipeline.defaults, mode)
    plain, given = (
        msgspec.json.decode(msgspec.json.encode(each, enc_hook=repr))
        for each in (usual, manifest.config)
    )
    if manifest.dataset in BENCHMARKS:
        del given[_SOURCE]  # which stands first
    for name, hint, value in _different(pipeline.config, given, without_places(plain)):
        words += _arguments(name, hint, value)
    return shlex.join([*words, "--output", f"{FOLDER}/{manifest.dataset}"])


def _different(
    kind: type, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yields name, type and value of each setting that is not the usual one."""
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name not in given or field.name == "mode":
            continue  # it leaves no trace in the rows, or came with a later version
        hint, value, other = hints[field.name], given[field.name], usual.get(field.name)
        if dataclasses.is_dataclass(hint) and isinstance(value, dict):
            assert isinstance(hint, type)
            yield from _different(hint, value, other if isinstance(other, dict) else {})
        elif field.name in MEDIA or value != other:
            yield field.name, hint, value


def _arguments(name: str, hint: Any, value: Any) -> list[str]:
    """Returns the words that give a setting its value."""
    flag = name.replace("_", "-")
    if name in MEDIA:
        return [f"--{flag}", f"{FOLDER}/{name}"] if value else []
    if name == _ORACLE and value is not None:
        return [f"--{flag}", f"{FOLDER}/{_ORACLE}"]
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    values = [str(each) for each in (value if isinstance(value, list) else [value])]
    if _is_path(hint) and value is not None:
        values = [f"{FOLDER}/{each}" for each in values]
    return [f"--{flag}", *values]


def _is_path(hint: Any) -> bool:
    return hint is Path or any(map(_is_path, get_args(hint)))
