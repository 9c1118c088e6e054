"""The manifest of a dataset: what it holds, what it was made from, and whether its books balance.

`dataset.json` is written last; without it a dataset is not finished. It names no folder of the
machine it was made on and no time, so the same inputs give the same manifest.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import clipped, shown
from eqforge.core.identity import sha256_hex
from eqforge.core.visible import escaped_json
from eqforge.schemas.records.judgements import Erratum
from eqforge.schemas.records.ranges import Sha256

FILE_NAME = "dataset.json"
WORK = "_work"
"""The folder of what is not part of a finished dataset: notes, parts, media."""
IDENTITY = "identity.json"
"""The file of that folder that says what is built."""
NEXT = "_next"
"""The folder in which the replacement of a finished dataset is built."""
EXPORT_NOTE = "eqforge-export.json"
"""The file that lists what an export wrote."""
FORMAT = "eqforge dataset"
FORMAT_VERSION = 1
MAX_BYTES: Final = 16 << 20
"""The most bytes of a manifest; one of ten thousand files has 2 MB."""

REMOVED: Final = frozenset({"graded-captions"})
"""Datasets that earlier versions built, and that no command reads any more."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number of things; every JSON reader represents it exactly."""

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
FILE_PATH: Final = rf"\A({_NAME}/)*{_NAME}\Z"
FilePath = Annotated[str, msgspec.Meta(pattern=FILE_PATH, max_length=300)]
"""A path below the dataset's folder, of names that mean the same on every disk and in every URL."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StageBooks:
    """The books of one stage: candidates = kept + rejected, rejected = the sum of its reasons."""

    candidates: Count
    kept: Count
    rejected: Count
    reasons: dict[str, Count] = field(default_factory=dict)

    def is_balanced(self) -> bool:
        by_reason = sum(self.reasons.values())
        return self.candidates == self.kept + self.rejected and self.rejected == by_reason


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFile:
    """One Parquet file: its path below the dataset's folder, rows, length and SHA-256."""

    path: FilePath
    rows: Count
    num_bytes: Count
    sha256: Sha256


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """An input the plan was made from: its name, or path below a folder, and SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PartManifest:
    """A dataset that another was made of: what its manifest says of how it was made.

    Attributes:
      name: the beginning of its stages' names, such as `eq-ag`; of a part of a part
        `combined-pairs: eq-ag`.
      sha256: of its manifest, by which the inputs of what was made of it name it.
      dataset, mode, config, inputs, versions, errata: as in its manifest.
    """

    name: str
    sha256: Sha256
    dataset: str
    mode: str
    config: dict[str, Any]
    inputs: list[InputFile]
    versions: dict[str, str]
    errata: list[Erratum] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class BlindProbe:
    """How often a probe that sees no picture answered a question right.

    Attributes:
      question: such as which of two captions is true.
      probe: what was asked; `eqforge audit` says what each sees.
      accuracy: share of right answers in [0, 1]; chance is one half.
      low, high: its 95 % confidence interval.
    """

    question: str
    probe: str
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Certificate:
    """What the text alone tells of a dataset, as `eqforge audit` measured it on its rows.

    Attributes:
      version: of how it is measured.
      rows: how many rows were judged.
      folds: how many folds their images were dealt into.
      probes: each answer.
      best: the probe that tells most, of either question: how often it is right, or where it is
        wrong more often than that, turned round; its interval holds 95 % for all together
        (Bonferroni's). Null where there is no answer.
      unasked: the probes that could not be asked where the dataset was built, with the reason.
    """

    version: int
    rows: Count
    folds: int
    probes: list[BlindProbe]
    best: BlindProbe | None
    unasked: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """Everything a reader has to know of a dataset.

    Attributes:
      dataset: name of the dataset, such as `eq-youcook2`.
      mode: `paper` or `corrected`.
      config: the settings that shaped the rows, without folders of a machine.
      inputs: the annotation files; videos stand in the rows.
      versions: of eqforge and of every library that can change a byte.
      stages: the books, by stage, in the order of the stages.
      tables: the files of every table.
      warnings: what a user should know before trusting the numbers.
      findings: rows of the table `findings` by task and rule, where the dataset has that table.
      unchanged: rows of the table `samples` whose `words_changed` is false, which are no tests;
        null where there is no such column, or an earlier version did not count them.
      errata: what was dropped and corrected by `--errata`, and what it notes.
      parts: the datasets that it combines; the parts of a part come before it.
      certificate: what the text alone tells; only where the texts were balanced.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    dataset: str
    mode: str
    config: dict[str, Any]
    inputs: list[InputFile]
    versions: dict[str, str]
    stages: dict[str, StageBooks]
    tables: dict[str, list[DataFile]]
    warnings: list[str] = field(default_factory=list)
    findings: dict[str, dict[str, Count]] = field(default_factory=dict)
    unchanged: Count | None = None
    errata: list[Erratum] = field(default_factory=list)
    parts: list[PartManifest] = field(default_factory=list)
    certificate: Certificate | msgspec.UnsetType = msgspec.UNSET

    def num_rows(self, table: str) -> int:
        """Return the number of rows of a table; 0 where it is not there."""
        return sum(file.rows for file in self.tables.get(table, []))


def run_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the run; none where a manifest of others has something else there."""
    run = config.get("run")
    return run if isinstance(run, dict) else {}


def to_json(manifest: object) -> bytes:
    """Encode a manifest, of a dataset or of scores, as it is written."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode()
    return escaped_json(text).encode() + b"\n"


def load_manifest(folder: str) -> Manifest:
    return read_manifest(folder)[0]


def read_manifest(folder: str) -> tuple[Manifest, str]:
    """Read the manifest of a finished dataset; return it and the SHA-256 of its file.

    While a dataset is moved into place, both are those that it will have there.

    Raises:
      InputError: there is none, or it is malformed or of another version.
    """
    url = storage.join(folder, FILE_NAME)
    storage.check_reachable(url)
    try:
        with storage.open_below(folder, FILE_NAME) as stream:
            data = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if storage.is_local(folder) and not storage.exists(folder):
            raise InputError(f"{folder}: no such folder") from error
        if storage.exists(storage.join(folder, EXPORT_NOTE)):
            raise InputError(
                f"{folder} is an export, which other programs read: name the dataset that it was "
                "made of, or make one of it with eqforge import"
            ) from error
        raise InputError(
            f"{folder} holds no {FILE_NAME}: it is no dataset, or its build has not finished "
            "(run the same build again to finish it); eqforge import makes one of published files"
        ) from error
    except OSError as error:
        raise InputError(f"{url}: cannot be read: {error.strerror or error}") from error
    manifest = manifest_of(data, url)
    in_place = with_final_paths(manifest)
    return manifest, sha256_hex(data if manifest == in_place else to_json(in_place))


def manifest_of(
    data: bytes, url: str, form: str = FORMAT, what: str = "a dataset manifest"
) -> Manifest:
    """Decode a manifest, or another file of its fields.

    Args:
      data: the file, or more than MAX_BYTES of it.
      form: the name of its format.
      what: what it is, for messages.

    Raises:
      InputError: it is malformed, too long, of another version or of a removed dataset.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{url}: not {what}: it has more than {MAX_BYTES:,} bytes")
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        said = clipped(" ".join(str(error).split()))
        raise InputError(f"{url}: not {what}: {said}") from error
    if (manifest.format, manifest.format_version) != (form, FORMAT_VERSION):
        raise InputError(f"{url}: expected format {form} {FORMAT_VERSION}")
    _check(manifest, f"{url}: not {what}")
    if manifest.dataset in REMOVED:
        raise InputError(
            f"{url}: eqforge no longer has the dataset {manifest.dataset}; other programs can "
            "still read its Parquet files"
        )
    return manifest


def as_parts(manifest: Manifest, sha256: str, name: str) -> list[PartManifest]:
    """Return a dataset as a part of another, behind the parts that it was combined of itself."""
    own = PartManifest(
        name=name,
        sha256=sha256,
        dataset=manifest.dataset,
        mode=manifest.mode,
        config=manifest.config,
        inputs=manifest.inputs,
        versions=manifest.versions,
        errata=manifest.errata,
    )
    return [*(replace(part, name=f"{name}: {part.name}") for part in manifest.parts), own]


def moving(manifest: Manifest) -> Manifest:
    """Return the manifest of a dataset whose files are still where it was built."""
    return _with_paths(manifest, lambda path: f"{NEXT}/{path}")


def with_final_paths(manifest: Manifest) -> Manifest:
    """Return the manifest of a dataset once each of its files is in place."""
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
            raise InputError(f"{problem}: expected a name, found {shown(name)}")
    paths = Counter(file.path for files in manifest.tables.values() for file in files)
    for path, count in paths.items():
        if count > 1:
            raise InputError(f"{problem}: the file {path} appears twice in it")


def _names(manifest: Manifest) -> Iterator[str]:
    yield from (manifest.dataset, manifest.mode, *manifest.tables)
    for part in manifest.parts:
        yield from (part.name, part.dataset, part.mode)
    for stage, books in manifest.stages.items():
        yield from (stage, *books.reasons)
    for task, rules in manifest.findings.items():
        yield from (task, *rules)


def close_books(
    stages: Iterable[str],
    entered: Mapping[str, tuple[int, int]],
    reasons: Mapping[str, Mapping[str, int]],
) -> dict[str, StageBooks]:
    """Return the counts of every stage, in their order.

    Args:
      entered: candidates and kept, counted where the stage decides.
      reasons: reject rows by reason, counted where they were written.
    """
    return {
        stage: StageBooks(
            candidates=entered.get(stage, (0, 0))[0],
            kept=entered.get(stage, (0, 0))[1],
            rejected=sum(reasons.get(stage, {}).values()),
            reasons=dict(sorted(reasons.get(stage, {}).items())),
        )
        for stage in stages
    }
