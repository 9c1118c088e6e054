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
# Every package whose version can change a byte of a dataset.
VERSIONED = (
    "eqforge", "apache-beam", "pyarrow", "numpy", "scipy", "pillow", "av", "opencv-python-headless",
    "scikit-image", "imagehash", "dlib-bin", "tokenizers", "rapidfuzz",
)  # fmt: skip
# Settings that say where and how a run happens, and leave no trace in the rows.
_NOT_OF_THE_ROWS = ("output", "overwrite", "workers", "max_error_rate", "decoder_timeout_s")
_MEDIA_FOLDERS = ("videos", "images")


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
    return {name: value for name, value in values.items() if name not in _MEDIA_FOLDERS}


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
    if storage.exists(storage.join(run.output, FILE_NAME)):
        _check_same(run, load_manifest(run.output), header)
    elif storage.is_local(run.output):
        _check_own(Path(storage.locate(run.output)[1]))


def _check_same(run: RunSettings, there: Manifest, header: Manifest) -> None:
    if there.dataset != header.dataset:
        raise InputError(f"--output {run.output}: holds {there.dataset}; name another folder")
    if identity(there) != identity(header) and not run.overwrite:
        raise InputError(
            f"--output {run.output}: holds {there.dataset} made with other settings or inputs; "
            "name another folder, or add --overwrite to replace it"
        )


def _check_own(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output {folder}: is a file, expected a folder")
    names = set(os.listdir(folder)) if folder.exists() else set()
    # Anybody may have a folder of that name and a README; the work folder is only ours.
    ours = {WORK, "data", "README.md"} if WORK in names else set()
    if foreign := sorted(names - ours):
        raise InputError(
            f"--output {folder}: holds other files ({foreign[0]}); name another folder"
        )


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
