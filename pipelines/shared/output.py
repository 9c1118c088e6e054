"""The folder that a dataset is built into: what may be there before, and whose it is then."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import shown
from eqforge.pipelines.shared.header import identity
from eqforge.pipelines.shared.settings import RunSettings
from eqforge.schemas.dataset.manifest import (
    FILE_NAME,
    IDENTITY,
    NEXT,
    WORK,
    Manifest,
    load_manifest,
)
from eqforge.transforms.dataset.finish import delete_parts

SHOWN_DIFFERENCES = 10
# Folders below the output in which a killed run may leave large half-written files; those among
# plans, finished work and media are small.
_WRITTEN = ("data", WORK, f"{WORK}/shards", NEXT, f"{NEXT}/data")


def check_output(run: RunSettings, header: Manifest) -> Manifest | None:
    """Refuses an output folder that holds something else.

    Returns:
      The manifest of the finished dataset in the folder, which has the same settings, inputs and
      versions unless it may be replaced; None if there is none.

    Raises:
      InputError: the message says which folder and why.
    """
    if not run.output:
        raise InputError("--output is empty; expected a folder or URL")
    manifest = storage.join(run.output, FILE_NAME)
    started = storage.join(run.output, WORK, IDENTITY)
    storage.check_reachable(manifest)
    if storage.exists(manifest):
        there = load_manifest(run.output)
        others = list(_other_versions(there.versions, header.versions))
        _check_same(run, "holds", there.dataset, identity(there), header, others)
        return there
    elif storage.exists(started):
        known = _read_identity(run, started)
        if known is not None:
            _check_same(run, "holds an unfinished build of", known[0], known, header)
    else:
        _check_free(run.output)
    return None


def _read_identity(run: RunSettings, url: str) -> list[Any] | None:
    """Returns the identity of an unfinished build; None if it is damaged and may be overwritten."""
    try:
        form = tuple[str, str, dict[str, Any], list[dict[str, Any]]]
        return list(msgspec.json.decode(storage.read_bytes(url), type=form))
    except msgspec.DecodeError as error:
        if run.overwrite:
            return None
        raise InputError(
            f"--output {run.output}: holds an unfinished build, and {url} is damaged; "
            "name another folder, or add --overwrite to go on whatever it was"
        ) from error


def _check_same(
    run: RunSettings,
    what: str,
    dataset: str,
    there: list[Any],
    header: Manifest,
    others: Iterable[str] = (),
) -> None:
    if dataset != header.dataset:
        raise InputError(f"--output {run.output}: {what} {dataset}; name another folder")
    found = [*_differences(there, identity(header)), *others]
    if run.only and (run.overwrite or any(each.startswith("--only ") for each in found)):
        raise InputError(
            f"--output {run.output}: {what} {dataset}; --only builds a part: name another folder"
        )
    refuse(run, f"{what} {dataset}", found)


def refuse(run: RunSettings, what: str, differences: Sequence[str]) -> None:
    """Refuses to replace a dataset made from something else, unless `overwrite` is set.

    Raises:
      InputError: there are differences; the message names them.
    """
    if differences and not run.overwrite:
        number = len(differences) - SHOWN_DIFFERENCES
        more = [f"and {number} more"] * (number > 0)
        raise InputError(
            f"--output {run.output}: {what} made with other settings, inputs or versions: "
            f"{'; '.join([*differences[:SHOWN_DIFFERENCES], *more])}; "
            "name another folder, or add --overwrite to replace it"
        )


def _other_versions(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    """Yields the versions that differ, such as `numpy 2.4.1 there, 2.4.2 here`."""
    for name in dict.fromkeys((*there, *here)):
        if there.get(name) != here.get(name):
            yield f"{name} {there.get(name, 'none')} there, {here.get(name, 'none')} here"


def _differences(there: list[Any], here: list[Any]) -> Iterator[str]:
    """Yields the differences of two identities, such as `--max-side 512 there, 256 here`."""
    _, mode_there, config_there, inputs_there = there
    _, mode_here, config_here, inputs_here = here
    old = {"mode": mode_there, **_flat(config_there)}
    new = {"mode": mode_here, **_flat(config_here)}
    for name in [*old, *(name for name in new if name not in old)]:
        before, now = (_value(found, name) for found in (old, new))
        if name not in old or name not in new or old[name] != new[name]:
            yield f"--{name.replace('_', '-')} {before} there, {now} here"
    if inputs_there != inputs_here:
        names = [file["name"] for file in inputs_here if file not in inputs_there]
        yield f"the input {', '.join(names) or 'files'}: different content"


def _value(config: dict[str, Any], name: str) -> str:
    if name not in config:
        return "unknown"
    return "none" if config[name] == [] else shown(config[name])


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Returns settings by the name of their flag, which does not name their group."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        found |= _flat(value) if isinstance(value, dict) else {name: value}
    return found


def _check_free(output: str) -> None:
    if storage.is_local(output):
        folder = Path(storage.locate(output)[1])
        if folder.exists() and not folder.is_dir():
            raise InputError(f"--output {output}: is a file, expected a folder")
    names = [name for name in storage.list_names(output) if not is_half_written(name)]
    # A run that was refused, or killed early, may have left an empty work folder.
    if foreign := [name for name in names if name != WORK]:
        raise InputError(
            f"--output {output}: holds other files ({foreign[0]}); name another folder"
        )


def is_half_written(name: str) -> bool:
    """Tells whether a file is one that a killed run left half-written."""
    return name.startswith(storage.TEMPORARY_PREFIX)


def claim_output(output: str, header: Manifest) -> None:
    """Records the dataset's identity in its folder, and removes half-written files."""
    remove_half_written(output)
    storage.write_bytes(storage.join(output, WORK, IDENTITY), msgspec.json.encode(identity(header)))


def remove_half_written(output: str) -> None:
    """Removes the files that a killed run left half-written; finished ones are kept."""
    for folder in (output, *(storage.join(output, name) for name in _WRITTEN)):
        for name in filter(is_half_written, storage.list_files(folder)):
            storage.delete(storage.join(folder, name))
    delete_parts(output)
