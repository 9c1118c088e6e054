"""What is fixed before a dataset is built: its identity and its inputs."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import pictures, storage
from eqforge.core.files.source_file import digest_input
from eqforge.core.identity import fingerprint
from eqforge.core.urls import public
from eqforge.core.versions import versions_of
from eqforge.generators.text import words
from eqforge.pipelines.shared.media import MEDIA
from eqforge.pipelines.shared.pipeline import Configured, FileBelow, Input, NamedFile, Pipeline
from eqforge.pipelines.shared.settings import DatasetConfig
from eqforge.schemas.dataset.manifest import InputFile, Manifest, PartManifest
from eqforge.schemas.records.errata import Erratum
from eqforge.schemas.records.scores import Identity
from eqforge.schemas.tables.description import SCHEMA_VERSION
from eqforge.transforms.dataset.errata import errata_of
from eqforge.transforms.filters import minimality
from eqforge.transforms.filters.perceptual import encoders_named
from eqforge.transforms.filters.plausibility import weighers_of
from eqforge.transforms.judges import settings as text_judges
from eqforge.transforms.oracle.judges import judges_of

# Every package whose version can change the bytes of a dataset.
VERSIONED = (
    "eqforge", "apache-beam", "pyarrow", "numpy", "scipy", "pillow", "av", "opencv-python-headless",
    "scikit-image", "imagehash", "dlib-bin", "dlib", "face_recognition",
    "face_recognition_models", "tokenizers", "rapidfuzz", "nltk",
    "spacy", "textblob", "lemminflect", "inflect", "transformers", "diffusers", "torch",
    "kubric-nightly", "bpy", "icu4py", "py3langid",
)  # fmt: skip
# Settings that are a file or folder of this machine, or a public name or URL, which stays as is.
_LOCAL_OR_NAMED = ("model", "assets", "writer", "grounder", "segmenter")
_JUDGING = "judging"
# Groups of settings that are left out where they are off: the dataset is what it was without them.
_OFF: Mapping[str, Mapping[str, Any]] = {
    "perceptual": {"perceptual": None, "max_perceptual": None},
    "plausibility": {"plausibility": None, "max_implausibility": None},
    "ranking": {"seeds": 1, "best_by": "background_ssim"},
}
# Settings that say where and how a run happens, and leave no trace in the rows; the manifests of
# parts are inputs.
NOT_OF_THE_ROWS = (
    "output", "overwrite", "workers", "max_error_rate", "decoder_timeout_s", "render_timeout_s",
    "local_files_only", "cache_gb", "parts", "verify_requests",
    "model_timeout_s", "model_prices", "model_budget", "model_requests", "model_memory",
)  # fmt: skip

# Settings that name models, and what identifies these.
IDENTIFIED: Mapping[str, Callable[[str], tuple[Identity, ...]]] = {
    "oracle": judges_of,
    "perceptual": encoders_named,
    "plausibility": weighers_of,
}


def manifest_header(
    name: str,
    inputs: Iterable[Input],
    config: DatasetConfig,
    warnings: Iterable[str] = (),
    errata: Iterable[Erratum] = (),
    parts: Iterable[PartManifest] = (),
) -> Manifest:
    """Returns the manifest of a configuration before anything is built.

    Args:
      name: name of the dataset.
      inputs: the files that the plan is made from.
      config: the dataset's settings.
      warnings: what a user should know before trusting the numbers.
      errata: what `--errata` says.
      parts: the datasets that it is made of.

    Raises:
      InputError: an input file is missing or cannot be read.
    """
    return Manifest(
        dataset=name,
        mode=config.mode,
        config=_config_json(config),
        inputs=[_input_file(path) for path in inputs],
        versions=_versions(),
        stages={},
        tables={},
        warnings=list(warnings),
        errata=list(errata),
        parts=list(parts),
    )


def header_of(pipeline: Pipeline[Configured], config: Configured) -> Manifest:
    """Returns the manifest of a pipeline's configuration before anything is built.

    Raises:
      InputError: an input file is missing or cannot be read, or an erratum is none.
    """
    inputs, warnings = [*pipeline.inputs(config)], pipeline.warnings(config)
    inputs += [file for file in (config.run.errata, config.run.decisions) if file is not None]
    errata = errata_of(config.run.errata, pipeline.name, config.run.decisions)
    parts = pipeline.parts(config)
    return manifest_header(pipeline.name, inputs, config, warnings, errata, parts)


def _config_json(config: DatasetConfig) -> dict[str, Any]:
    """Returns the settings that shape the rows, with paths cut to their names."""
    return without_places(msgspec.to_builtins(config, enc_hook=_name_of))


def without_places(values: dict[str, Any]) -> dict[str, Any]:
    """Returns settings without those that leave no trace in the rows, and without folders."""
    kept = {name: value for name, value in values.items() if name not in NOT_OF_THE_ROWS}
    if _judges_nothing(kept.get(_JUDGING)):
        del kept[_JUDGING]
    for name in [name for name, off in _OFF.items() if kept.get(name) == off]:
        del kept[name]
    for name, value in kept.items():
        if isinstance(value, dict):
            kept[name] = without_places(value)
        elif name == "annotations" and isinstance(value, list | tuple):
            # One file stands there by its name, whether or not there could be several.
            kept[name] = value[0] if len(value) == 1 else sorted(value)
        elif name in MEDIA:
            # The rows hold what was read from them, the settings only whether one was given.
            kept[name] = value is not None
        elif name in IDENTIFIED and value is not None:
            # The models' identities, including their weights' digests, instead of their paths.
            kept[name] = [asdict(judge) for judge in IDENTIFIED[name](value)]
        elif name == "verify":
            kept[name] = [asdict(judge) for judge in text_judges.judges_of(tuple(value))]
        elif name in _LOCAL_OR_NAMED and value is not None:
            is_local = os.path.exists(value)
            kept[name] = os.path.basename(os.path.normpath(value)) if is_local else public(value)
    return kept


def _judges_nothing(judging: Any) -> bool:
    return (
        isinstance(judging, dict) and not judging["verify"] and judging["probability_min"] is None
    )


def _name_of(value: Any) -> str:
    if isinstance(value, Path):
        return value.name
    raise TypeError(f"no setting can be a {type(value).__name__}")


def _input_file(path: Input) -> InputFile:
    if isinstance(path, NamedFile):
        return replace(_input_file(path.url), name=path.name)
    if isinstance(path, FileBelow):
        name = path.file.relative_to(path.folder).as_posix()
        return replace(_input_file(path.file), name=name)
    url = str(path)
    if not (Path(url).is_file() if storage.is_local(url) else storage.exists(url)):
        found = "is a folder; expected a file" if Path(url).is_dir() else "no such file"
        raise InputError(f"{public(url)}: {found}")
    try:
        return InputFile(name=public(url).rpartition("/")[2], sha256=digest_input(url))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _versions() -> dict[str, str]:
    found = {"schema": SCHEMA_VERSION, "python": ".".join(map(str, sys.version_info[:3]))}
    # What these measure goes into columns, which unlike scores carry no version.
    found |= {"decoder": pictures.VERSION, "minimality": minimality.VERSION, "words": words.VERSION}
    return found | versions_of(*VERSIONED)


def identity(header: Manifest) -> list[Any]:
    """Returns what tells one dataset from another, in the types of a manifest that was read."""
    found = [header.dataset, header.mode, header.config, header.inputs]
    return msgspec.json.decode(msgspec.json.encode(found))


def plan_name(header: Manifest) -> str:
    """Returns the name of the folder, among the plans of a work folder, of a dataset's own plan."""
    return fingerprint(identity(header))[:16]
