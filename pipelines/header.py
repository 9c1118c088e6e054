"""What is fixed before a dataset is built: its identity, its inputs and its folder."""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from eqforge.pipelines.settings import DatasetConfig, RunSettings
from eqforge.schemas import storage
from eqforge.schemas.errors import InputError
from eqforge.schemas.manifest import FILE_NAME, InputFile, Manifest, load_manifest
from eqforge.schemas.tables import SCHEMA_VERSION

WORK = "_work"
IDENTITY = "identity.json"
# Every package whose version can change a byte of a dataset.
VERSIONED = (
    "eqforge", "apache-beam", "pyarrow", "numpy", "scipy", "pillow", "av", "opencv-python-headless",
    "scikit-image", "imagehash", "dlib-bin", "tokenizers", "rapidfuzz", "nltk", "spacy", "textblob",
    "lemminflect", "inflect", "transformers", "torch",
)  # fmt: skip
# Folders of media: the rows hold what was taken from them, the settings only that there was one.
_MEDIA_FOLDERS = ("videos", "images")
# Settings that say where and how a run happens, and leave no trace in the rows.
_NOT_OF_THE_ROWS = ("output", "overwrite", "workers", "max_error_rate", "decoder_timeout_s")


def manifest_header(name: str, inputs: Iterable[Path], config: DatasetConfig) -> Manifest:
    """Returns the manifest of a configuration before anything is built.

    Raises:
      InputError: an input file is not there.
    """
    return Manifest(
        dataset=name,
        mode=config.mode,
        config=_config_json(config),
        inputs=[_input_file(path) for path in inputs],
        versions=_versions(),
        stages={},
        tables={},
    )


def _config_json(config: DatasetConfig) -> dict[str, Any]:
    """Returns the settings that shape the rows; paths lose the folders of this machine."""
    values = msgspec.to_builtins(config, enc_hook=_name_of)
    for name in _NOT_OF_THE_ROWS:
        values["run"].pop(name)
    named = {name: values[name] is not None for name in _MEDIA_FOLDERS if name in values}
    model = values.get("model")
    if model is not None and os.path.isdir(model):
        named["model"] = os.path.basename(os.path.normpath(model))
    return values | named


def _name_of(value: Any) -> str:
    if isinstance(value, Path):
        return value.name
    raise TypeError(f"no setting can be a {type(value).__name__}")


def _input_file(path: Path) -> InputFile:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        return InputFile(name=path.name, sha256=storage.digest(str(path))[1])
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _versions() -> dict[str, str]:
    found = {"schema": SCHEMA_VERSION, "python": ".".join(map(str, sys.version_info[:3]))}
    for package in VERSIONED:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def identity(header: Manifest) -> list[Any]:
    """Returns what tells one dataset from another, as a manifest that was read back has it."""
    found = [header.dataset, header.mode, header.config, header.inputs]
    return msgspec.json.decode(msgspec.json.encode(found))


def check_output(run: RunSettings, header: Manifest) -> None:
    """Refuses an output folder that holds something else.

    Raises:
      InputError: the message says which folder and why.
    """
    if not run.output:
        raise InputError("--output is empty; expected a folder or URL")
    manifest = storage.join(run.output, FILE_NAME)
    started = storage.join(run.output, WORK, IDENTITY)
    if storage.exists(manifest):
        there = load_manifest(run.output)
        _check_same(run, "holds", there.dataset, identity(there), header)
    elif storage.exists(started):
        known = msgspec.json.decode(storage.read_bytes(started))
        _check_same(run, "holds an unfinished build of", known[0], known, header)
    else:
        _check_free(run.output)


def _check_same(
    run: RunSettings, what: str, dataset: str, there: list[Any], header: Manifest
) -> None:
    if dataset != header.dataset:
        raise InputError(f"--output {run.output}: {what} {dataset}; name another folder")
    if run.only and run.overwrite:
        raise InputError(
            f"--output {run.output}: {what} {dataset}; --only builds a part: name another folder"
        )
    if there != identity(header) and not run.overwrite:
        raise InputError(
            f"--output {run.output}: {what} {dataset} made with other settings or inputs; "
            "name another folder, or add --overwrite to replace it"
        )


def _check_free(output: str) -> None:
    if storage.is_local(output):
        folder = Path(storage.locate(output)[1])
        if folder.exists() and not folder.is_dir():
            raise InputError(f"--output {output}: is a file, expected a folder")
    names = [name for name in storage.list_names(output) if not is_half_written(name)]
    # A run that was refused or killed at once may have left its empty work folder.
    if foreign := [name for name in names if name != WORK]:
        raise InputError(
            f"--output {output}: holds other files ({foreign[0]}); name another folder"
        )


def is_half_written(name: str) -> bool:
    """Tells whether a file is what a killed run left of one it was writing."""
    return name.startswith(storage.TEMPORARY_PREFIX)


def claim_output(output: str, header: Manifest) -> None:
    """Writes down whose the output folder is, and removes what a killed run left half-written."""
    for name in filter(is_half_written, storage.list_files(output)):
        storage.delete(storage.join(output, name))
    storage.write_bytes(storage.join(output, WORK, IDENTITY), msgspec.json.encode(identity(header)))


@contextlib.contextmanager
def locked(output: str) -> Iterator[None]:
    """Holds an output folder for one run; the lock ends with the process, however that ends.

    Raises:
      InputError: another run is writing there, or the folder cannot be written.
    """
    if not storage.is_local(output):
        yield
        return
    path = Path(storage.locate(output)[1]) / WORK / "lock"
    with contextlib.ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = held.enter_context(open(path, "w", encoding="utf-8"))
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"--output {output}: another run is writing there") from error
        except OSError as error:
            raise InputError(f"--output {output}: cannot be written: {error.strerror}") from error
        yield
