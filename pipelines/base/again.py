"""The commands that make a dataset again, from what its manifest says."""

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import msgspec

from eqforge.pipelines.base.command import default_config
from eqforge.pipelines.base.identity import IDENTIFIED, without_places
from eqforge.pipelines.base.pipeline import MEDIA
from eqforge.pipelines.base.registry import pipeline_of
from eqforge.schemas.dataset.manifest import InputFile, Manifest, PartManifest, run_of
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.combined import COMBINED
from eqforge.schemas.tables.datasets import TYPES

FOLDER = "path/to"
"""Stands for a folder of the user, which a manifest does not name."""
DIGITS: Final = 12
"""So many digits of a manifest's digest tell datasets of one name apart."""
_VERIFY = "verify"
_SOURCE = "source"


def commands_of(manifest: Manifest) -> Iterator[str]:
    """Yields the command lines that make a dataset again: those of its parts, then its own.

    A line that installs eqforge stands before each that another version ran. Nothing is yielded of
    a dataset that eqforge does not know.
    """
    folders = _folders(manifest)
    steps: list[tuple[Manifest | PartManifest, str]] = []
    steps += ((part, folders[part.sha256]) for part in manifest.parts)
    installed = ""
    for made, output in (*steps, (manifest, manifest.dataset)):
        if made.dataset not in TYPES:
            continue
        version = made.versions.get("eqforge", "")
        if version != installed and re.fullmatch(r"[\w.+-]+", version):
            yield f"pip install eqforge=={version}"
            installed = version
        yield command_of(made, output, folders)


def _folders(manifest: Manifest) -> dict[str, str]:
    """Returns what the folders of a dataset's parts are called, by the digests of the parts."""
    names = [manifest.dataset, *(part.dataset for part in manifest.parts)]
    return {
        part.sha256: part.dataset
        if names.count(part.dataset) == 1
        else f"{part.dataset}@{part.sha256[:DIGITS]}"
        for part in manifest.parts
    }


def command_of(
    manifest: Manifest | PartManifest, output: str = "", folders: Mapping[str, str] | None = None
) -> str:
    """Returns the command line that makes a dataset with the settings of a manifest.

    Only what differs from the defaults of the mode stands in it; files and folders are named below
    `path/to`, as the manifest has their names alone.

    Args:
      manifest: of the dataset, which eqforge has to know.
      output: what its folder is called; empty for its name.
      folders: what those of its parts are called, by their digests; else as the inputs name them.
    """
    pipeline = pipeline_of(manifest.dataset)
    words = ["eqforge", "build", manifest.dataset]
    if manifest.dataset in BENCHMARKS:
        words = ["eqforge", "import", manifest.dataset, f"{FOLDER}/{manifest.config.get(_SOURCE)}"]
    is_combined = manifest.dataset in COMBINED  # its mode is that of its parts
    if is_combined:
        run = run_of(manifest.config)
        others = sum(bool(run.get(name)) for name in ("errata", "decisions"))  # which stand last
        parts = manifest.inputs[: len(manifest.inputs) - others]
        words = ["eqforge", "combine", *(_part(part, folders or {}) for part in parts)]
    has_modes = not is_combined and manifest.dataset not in BENCHMARKS
    words += ["--mode", manifest.mode] if manifest.mode == "paper" and has_modes else []
    mode: Any = "paper" if manifest.mode == "paper" else "corrected"
    usual = default_config(pipeline, mode)
    plain, given = (
        msgspec.json.decode(msgspec.json.encode(each, enc_hook=repr))
        for each in (usual, manifest.config)
    )
    if manifest.dataset in BENCHMARKS:
        given.pop(_SOURCE, None)  # which stands first
    for name, hint, value in _different(pipeline.Config, given, without_places(plain)):
        words += _arguments(name, hint, value)
    return shlex.join([*words, "--output", f"{FOLDER}/{output or manifest.dataset}"])


def _part(part: InputFile, folders: Mapping[str, str]) -> str:
    """Returns a part as a command line names it, with the name that its user gave it."""
    folder = folders.get(part.sha256, part.name)
    is_named = part.name.partition("@")[0] != folder.partition("@")[0]
    return f"{part.name}={FOLDER}/{folder}" if is_named else f"{FOLDER}/{folder}"


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
            # Where the usual settings judge nothing, they stand nowhere.
            yield from _different(hint, value, other or msgspec.to_builtins(hint()))
        elif field.name in MEDIA or value != other:
            yield field.name, hint, value


def _arguments(name: str, hint: Any, value: Any) -> list[str]:
    """Returns the words that give a setting its value."""
    flag = name.replace("_", "-")
    if name in MEDIA:
        return [f"--{flag}", f"{FOLDER}/{name}"] if value else []
    if name in IDENTIFIED and value is not None:
        return [f"--{flag}", f"{FOLDER}/{name}"]
    if name == _VERIFY:
        judges = (f"{each['kind']}:{FOLDER}/{each['model']}" for each in value)
        return [word for judge in judges for word in (f"--{flag}", judge)]
    if isinstance(value, bool) and hint is bool:
        return [f"--{flag}" if value else f"--no-{flag}"]
    values = [str(each) for each in (value if isinstance(value, list) else [value])]
    if _is_path(hint) and value is not None:
        values = [f"{FOLDER}/{each}" for each in values]
    return [f"--{flag}", *values]


def _is_path(hint: Any) -> bool:
    return hint is Path or any(map(_is_path, get_args(hint)))
