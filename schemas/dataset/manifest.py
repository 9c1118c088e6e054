"""The manifest of a dataset: contents, origin, and the counts of each stage.

`dataset.json` is written last; without it a dataset is not finished. It contains no folder of the
build machine and no time, so the same inputs give the same manifest.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import clipped, shown
from eqforge.core.files.typed_json import decode
from eqforge.core.identity import sha256_hex
from eqforge.core.visible import escaped_json
from eqforge.schemas.records.judgements import Erratum
from eqforge.schemas.records.values import Sha256

FILE_NAME = "dataset.json"
WORK = "_work"
"""Folder of temporary files that are not part of a finished dataset: notes, parts, media."""
IDENTITY = "identity.json"
"""File in WORK that identifies the dataset being built."""
NEXT = "_next"
"""Folder in which the replacement of a finished dataset is built."""
EXPORT_NOTE = "eqforge-export.json"
"""File that lists the files of an export."""
FORMAT = "eqforge dataset"
FORMAT_VERSION = 1
MAX_BYTES: Final = 16 << 20
"""Maximum size of a manifest; for ten thousand files it has 2 MB."""

REMOVED: Final = frozenset({"graded-captions"})
"""Datasets that earlier versions built, and that no command reads any more."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number of things; every JSON reader represents it exactly."""

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
FILE_PATH: Final = rf"\A({_NAME}/)*{_NAME}\Z"
FilePath = Annotated[str, msgspec.Meta(pattern=FILE_PATH, max_length=300)]
"""A path below the dataset's folder, of names that mean the same on every disk and in every URL."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StageCounts:
    """Counts for a stage: candidates = kept + rejected, and rejected = sum over all reasons."""

    candidates: Count
    kept: Count
    rejected: Count
    reasons: dict[str, Count] = field(default_factory=dict)

    def is_balanced(self) -> bool:
        by_reason = sum(self.reasons.values())
        return self.candidates == self.kept + self.rejected and self.rejected == by_reason


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFile:
    """A file: its path in the dataset folder, number of rows, size and SHA-256 digest."""

    path: FilePath
    rows: Count
    num_bytes: Count
    sha256: Sha256


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """An input file: its name or path, and its SHA-256 digest."""

    name: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PartManifest:
    """A part of a combined dataset. The other fields are copied from the part's manifest.

    Attributes:
      name: prefix of the part's stage names, such as `eq-ag` or, for nested datasets,
        `combined-pairs: eq-ag`.
      sha256: SHA-256 of the part's manifest.
    """

    name: str
    sha256: Sha256
    dataset: str
    mode: str
    config: dict[str, Any]
    inputs: list[InputFile]
    versions: dict[str, str]
    errata: list[Erratum] = field(default_factory=list)
    max_error_rate: float | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, kw_only=True, slots=True)
class BlindProbe:
    """How often a probe that sees no images answers correctly.

    Attributes:
      question: question that the probe answers, such as which of two captions is true.
      probe: name of the probe; `eqforge audit` explains each probe.
      accuracy: fraction of correct answers, in [0, 1]. Chance is 0.5.
      low, high: 95% confidence interval.
    """

    question: str
    probe: str
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Certificate:
    """How well the text alone predicts the answers, measured by `eqforge audit`.

    Attributes:
      version: version of the method.
      rows: number of rows that the probes judged.
      folds: number of folds that the images are split into.
      probes: result of each probe.
      best: most informative probe, or None if no probe ran. Its answers are inverted if most are
        wrong. Its interval is corrected for the number of probes (Bonferroni).
      unasked: probes that could not run, and why.
    """

    version: int
    rows: Count
    folds: int
    probes: list[BlindProbe]
    best: BlindProbe | None
    unasked: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The manifest of a dataset.

    Attributes:
      dataset: name of the dataset, such as `eq-youcook2`.
      mode: mode of the build: `paper` or `corrected`.
      config: settings that affect the rows, excluding the paths of local folders.
      inputs: annotation files. The rows list the videos.
      versions: versions of eqforge and of the libraries that can affect the dataset's bytes.
      stages: counts for each stage, in build order.
      tables: files of each table.
      warnings: warnings to read before you use the dataset.
      findings: number of rows in the table `findings`, by task and rule.
      unchanged: number of samples whose `words_changed` is false, or None if unknown.
      errata: samples that errata dropped, corrected or commented on.
      parts: datasets that were combined. Nested datasets come first.
      certificate: how well the text alone predicts the answers, if the build balanced the texts.
      max_error_rate: `--max-error-rate` of the build, if it differs from the default.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    dataset: str
    mode: str
    config: dict[str, Any]
    inputs: list[InputFile]
    versions: dict[str, str]
    stages: dict[str, StageCounts]
    tables: dict[str, list[DataFile]]
    warnings: list[str] = field(default_factory=list)
    findings: dict[str, dict[str, Count]] = field(default_factory=dict)
    unchanged: Count | None = None
    errata: list[Erratum] = field(default_factory=list)
    parts: list[PartManifest] = field(default_factory=list)
    certificate: Certificate | msgspec.UnsetType = msgspec.UNSET
    max_error_rate: float | msgspec.UnsetType = msgspec.UNSET

    def num_rows(self, table: str) -> int:
        return sum(file.rows for file in self.tables.get(table, []))


def run_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the run; none if another tool's manifest has something else there."""
    run = config.get("run")
    return run if isinstance(run, dict) else {}


def to_json(manifest: object) -> bytes:
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode()
    return escaped_json(text).encode() + b"\n"


def load_manifest(folder: str) -> Manifest:
    return read_manifest(folder)[0]


def read_manifest(folder: str) -> tuple[Manifest, str]:
    """Read the manifest of a finished dataset; return it and the SHA-256 of its file.

    While a dataset is moved into place, both are the final ones.
    """
    url = storage.join(folder, FILE_NAME)
    storage.check_reachable(url)
    try:
        with storage.open_below(folder, FILE_NAME) as stream:
            data = stream.read(MAX_BYTES + 1)
    except NotADirectoryError as error:
        raise InputError(f"{folder} is a file; expected a dataset folder") from error
    except FileNotFoundError as error:
        if storage.is_local(folder) and not storage.exists(folder):
            raise InputError(f"{folder}: no such folder") from error
        if storage.exists(storage.join(folder, EXPORT_NOTE)):
            raise InputError(
                f"{folder} is an export for other programs, not a dataset. Pass the dataset that "
                "you exported, or convert the export with eqforge import."
            ) from error
        raise InputError(
            f"{folder} is not a finished dataset: it contains no {FILE_NAME}. To finish a build, "
            "run the same command again. To convert published files, use eqforge import."
        ) from error
    except OSError as error:
        raise InputError(f"{url}: cannot be read: {error.strerror or error}") from error
    manifest = manifest_of(data, url)
    in_place = with_final_paths(manifest)
    return manifest, sha256_hex(data if manifest == in_place else to_json(in_place))


def manifest_of(
    data: bytes, url: str, form: str = FORMAT, kind: str = "a dataset manifest"
) -> Manifest:
    """Decode a manifest, or another file with its fields.

    Args:
      data: the file, or more than MAX_BYTES of it.
      form: the name of its format.
      kind: what the file is, for messages.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{url}: not {kind}: it has more than {MAX_BYTES:,} bytes")
    manifest = decode(data, Manifest, f"{url}: not {kind}")
    if (manifest.format, manifest.format_version) != (form, FORMAT_VERSION):
        raise InputError(
            f"{url}: expected the format '{form} {FORMAT_VERSION}', found '{manifest.format} "
            f"{manifest.format_version}'"
        )
    _check(manifest, f"{url}: not {kind}")
    if manifest.dataset in REMOVED:
        raise InputError(
            f"{url}: eqforge no longer supports the dataset {manifest.dataset}; other programs "
            "can still read its Parquet files"
        )
    return manifest


def as_parts(manifest: Manifest, sha256: str, name: str) -> list[PartManifest]:
    """Return a dataset as a part of another, after its own parts."""
    own = PartManifest(
        name=name,
        sha256=sha256,
        dataset=manifest.dataset,
        mode=manifest.mode,
        config=manifest.config,
        inputs=manifest.inputs,
        versions=manifest.versions,
        errata=manifest.errata,
        max_error_rate=manifest.max_error_rate,
    )
    return [*(replace(part, name=f"{name}: {part.name}") for part in manifest.parts), own]


def moving(manifest: Manifest) -> Manifest:
    return _with_paths(manifest, lambda path: f"{NEXT}/{path}")


def with_final_paths(manifest: Manifest) -> Manifest:
    """Return the manifest of a dataset after its files are moved into place."""
    return _with_paths(manifest, lambda path: path.removeprefix(f"{NEXT}/"))


def _with_paths(manifest: Manifest, path: Callable[[str], str]) -> Manifest:
    tables = {
        name: [replace(file, path=path(file.path)) for file in files]
        for name, files in manifest.tables.items()
    }
    return replace(manifest, tables=tables)


def _check(manifest: Manifest, problem: str) -> None:
    for name in _names(manifest):
        if not name or clipped(name) != name:
            raise InputError(f"{problem}: expected a printable name, found {shown(name)}")
    paths = Counter(file.path for files in manifest.tables.values() for file in files)
    for path, count in paths.items():
        if count > 1:
            raise InputError(f"{problem}: the file {path} appears twice")


def _names(manifest: Manifest) -> Iterator[str]:
    yield from (manifest.dataset, manifest.mode, *manifest.tables)
    for part in manifest.parts:
        yield from (part.name, part.dataset, part.mode)
    for stage, counts in manifest.stages.items():
        yield from (stage, *counts.reasons)
    for task, rules in manifest.findings.items():
        yield from (task, *rules)


def count_stages(
    stages: Iterable[str],
    entered: Mapping[str, tuple[int, int]],
    reasons: Mapping[str, Mapping[str, int]],
) -> dict[str, StageCounts]:
    """Return the counts of every stage, in order.

    Args:
      entered: candidates and kept, counted where the stage decides.
      reasons: reject rows by reason, counted where they were written.
    """
    return {
        stage: StageCounts(
            candidates=entered.get(stage, (0, 0))[0],
            kept=entered.get(stage, (0, 0))[1],
            rejected=sum(reasons.get(stage, {}).values()),
            reasons=dict(sorted(reasons.get(stage, {}).items())),
        )
        for stage in stages
    }
