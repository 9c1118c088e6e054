"""Applies errata to the samples of a dataset and to the rows that refer to them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from eqforge.core.errors import BuildError
from eqforge.core.files.checked import shown
from eqforge.core.visible import counted
from eqforge.schemas.dataset.manifest import Manifest, run_of
from eqforge.schemas.records.judgements import Erratum
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.records.values import spans_of
from eqforge.schemas.tables.benchmark_rows import CombinedPair
from eqforge.schemas.tables.datasets import dataset_type, table_type
from eqforge.schemas.tables.description import TableType
from eqforge.schemas.tables.texts import Judgement
from eqforge.sources.errata import (
    check_columns,
    dropped,
    read_errata,
    unknown,
    unmatched,
)

ERRATA_STAGE: Final = Stage("errata", {"erratum": "The --errata file says to drop the sample."})
"""The last stage of a build with errata; its candidates are the samples before errata apply."""
NEEDLESS: Final = "of --errata had no effect, because another stage rejects the samples"

REVIEW_STAGE: Final = Stage(
    "review", {"human": "Reviewers decided to drop the sample (--decisions)."}
)
"""The stage that applies reviewers' decisions, before the errata."""

_TEXTS: Final = frozenset(
    (
        *("caption", "caption_0", "caption_1", "hard_positive", "hard_negative"),
        *("perturbed_caption", "question", "answer", "text"),
    )
)

# Columns of spans that follow from two texts: their own, and the other caption's.
EDITS: Final = (
    ("caption_0", "caption_1", "edited_spans_0", "edited_spans_1"),
    ("caption", "hard_positive", "caption_spans", "hard_positive_spans"),
    ("caption", "hard_negative", "foil_spans", "hard_negative_spans"),
    ("caption", "perturbed_caption", "spans", "perturbed_spans"),
)
_DISTANCE: Final = "word_edit_distance"
_KNOWN_TEXTS: Final = (("caption_0", "captions_0"), ("caption_1", "captions_1"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Errata:
    """Errata of a dataset by sample id; `corrected` maps each id's columns to texts."""

    dropped: Mapping[str, Erratum]
    corrected: Mapping[str, Mapping[str, str]]
    stages: tuple[str, ...]


def by_sample(errata: Sequence[Erratum]) -> Errata:
    """Index errata by sample id; notes change nothing, and decisions of reviewers come first."""
    dropped: dict[str, Erratum] = {}
    corrected: dict[str, dict[str, str]] = {}
    for erratum in errata:
        if erratum.action == "drop" and (erratum.stage == "review" or erratum.id not in dropped):
            dropped[erratum.id] = erratum
        elif erratum.action == "correct":
            corrected.setdefault(erratum.id, {})[erratum.column] = erratum.text
    stages = tuple(stage.name for stage in stages_for(errata))
    return Errata(dropped=dropped, corrected=corrected, stages=stages)


def stages_for(errata: Iterable[Erratum]) -> tuple[Stage, ...]:
    named = {erratum.stage for erratum in errata}
    return tuple(stage for stage in (REVIEW_STAGE, ERRATA_STAGE) if stage.name in named)


def tally(record: Any, errata: Errata) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the counts of one sample: one candidate per stage that it reaches, kept or not."""
    found = errata.dropped.get(record.sample_id)
    for stage in errata.stages:
        is_kept = found is None or found.stage != stage
        yield stage, (1, int(is_kept))
        if not is_kept:
            return


def rejected(record: Any, errata: Errata) -> Iterator[Reject]:
    if (erratum := errata.dropped.get(record.sample_id)) is not None:
        detail = f"{erratum.reason} ({', '.join(filter(None, (erratum.who, erratum.when)))})"
        source = getattr(record, "source_id", None) or getattr(record, "image", None) or ""
        stage = REVIEW_STAGE if erratum.stage == REVIEW_STAGE.name else ERRATA_STAGE
        (reason,) = stage.reasons
        rejection = Rejection(reason=reason, detail=detail)
        yield stage.reject(erratum.id, rejection, source_id=source)


def kept(record: Any, errata: Errata) -> Iterator[Any]:
    """Yield the corrected row unless its sample is dropped; a correction clears its judgement."""
    if record.sample_id not in errata.dropped:
        changes = errata.corrected.get(record.sample_id, {})
        if changes and isinstance(record, Judgement):
            nothing: dict[str, Any] = {"probability": None, "low": None, "high": None, "basis": ""}
            record = replace(record, **nothing, answers=())
        yield with_texts(record, changes) if changes.keys() & names_of(record) else record


def names_of(record: Any) -> set[str]:
    return {field.name for field in fields(record)}


def with_texts(record: Any, texts: Mapping[str, str]) -> Any:
    """Replace texts of a record, and measure again everything that depends on them."""
    from eqforge.generators.text.words import word_edit

    names = names_of(record)
    changes: dict[str, Any] = {name: text for name, text in texts.items() if name in names}
    for column, known in _KNOWN_TEXTS:
        if column in changes and known in names:
            before = getattr(record, column)
            other_texts = (each for each in getattr(record, known) if each != before)
            changes[known] = tuple(dict.fromkeys((changes[column], *other_texts)))
    found = replace(record, **changes)
    for first, second, spans_0, spans_1 in EDITS:
        if {first, second, spans_0, spans_1} <= names and {first, second} & texts.keys():
            edit = word_edit(getattr(found, first), getattr(found, second))
            measured: dict[str, Any] = {
                spans_0: spans_of(edit.spans_0),
                spans_1: spans_of(edit.spans_1),
            }
            measured |= {_DISTANCE: edit.distance} if _DISTANCE in names else {}
            found = replace(found, **measured)
    if isinstance(record, CombinedPair):
        return replace(found, annotation=_annotation(found, record))
    return found


def _annotation(pair: CombinedPair, before: CombinedPair) -> str:
    """Return a pair's annotation (other columns of its part, as JSON) for replaced texts.

    Values that depend on the texts are measured again; an annotation that is no object is kept.
    """
    from eqforge.generators.text.words import word_edit

    try:
        values: Any = msgspec.json.decode(before.annotation)
    except (msgspec.DecodeError, RecursionError):
        return before.annotation
    if not isinstance(values, dict) or _DISTANCE not in values:
        return before.annotation
    for column, known in _KNOWN_TEXTS:
        if isinstance(values.get(known), list):
            other_texts = [text for text in values[known] if text != getattr(before, column)]
            values[known] = list(dict.fromkeys((getattr(pair, column), *other_texts)))
    edit = word_edit(pair.caption_0, pair.caption_1)
    measured = {"edited_spans_0": spans_of(edit.spans_0), "edited_spans_1": spans_of(edit.spans_1)}
    values |= {**measured, _DISTANCE: edit.distance}
    return msgspec.json.encode(values, order="deterministic").decode()


def kinds_of(dataset: str, tables: Iterable[str]) -> tuple[TableType, ...]:
    return tuple(dataset_type(dataset).table(name) for name in tables)


@dataclass(frozen=True, kw_only=True, slots=True)
class RestOfWork:
    """A finished work without some of its rows."""

    by_table: Mapping[str, tuple[Any, ...]]
    tallies: tuple[Any, ...]

    def rows(self, table: str, _dataset: str) -> tuple[Any, ...]:
        return self.by_table[table]


def used_work(work: Any, header: Manifest, tables: tuple[str, ...]) -> RestOfWork:
    kinds, dropped = kinds_of(header.dataset, tables), by_sample(header.errata).dropped
    rows = {name: tuple(work.rows(name, header.dataset)) for name in tables}
    if any(row.sample_id in dropped for row in rows["samples"]):
        rows = _used_rows(rows, kinds, dropped)
    return RestOfWork(by_table=rows, tallies=tuple(work.tallies))


def _used_rows(
    rows: Mapping[str, tuple[Any, ...]], kinds: Iterable[TableType], dropped: Mapping[str, Erratum]
) -> dict[str, tuple[Any, ...]]:
    used: dict[str, set[str]] = {}
    for kind in kinds:
        left = [row for row in rows[kind.name] if getattr(row, "sample_id", None) not in dropped]
        for column, other in kind.references.items():
            used.setdefault(other, set()).update(getattr(row, column) or "" for row in left)
    return {
        kind.name: tuple(
            row for row in rows[kind.name] if kind.key_of(row) in used.get(kind.name, ())
        )
        if kind.holds_pictures
        else rows[kind.name]
        for kind in kinds
    }


def errata_of(
    path: str | Path | None, dataset: str, decisions: str | Path | None = None
) -> tuple[Erratum, ...]:
    """Read the errata of a dataset and reviewers' drop decisions; none if no file is named."""
    reviewed = dropped(decisions)
    if path is None:
        return reviewed
    errata, samples = read_errata(path), table_type(dataset, "samples")
    names = samples.schema.names if samples else ()
    check_columns(errata, [name for name in names if name in _TEXTS])
    return (*errata, *reviewed)


def with_known_errata(manifest: Manifest, folder: str, left: Collection[str] = ()) -> Manifest:
    """Check that every erratum and every decision names a sample; return the manifest.

    If the dataset is part of a larger one, a warning counts the errata that name other samples.

    Args:
      left: ids of the samples that reviewers judged and did not drop.
    """
    from eqforge.schemas.dataset.reader import Dataset

    if not manifest.errata and not left:
        return manifest
    dataset = Dataset(folder=folder, manifest=manifest)
    wanted = {erratum.id for erratum in manifest.errata} | set(left)
    sample_ids = {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])}
    rejects = list(dataset.rows("rejects", ["candidate_id", "stage", "reason"]))
    stages = {REVIEW_STAGE.name, ERRATA_STAGE.name}
    dropped = {row["candidate_id"] for row in rejects if row["stage"] in stages}
    known = wanted & (sample_ids | dropped)
    named = {erratum.id for erratum in manifest.errata if erratum.stage == ERRATA_STAGE.name}
    reasons = {row["candidate_id"]: row["reason"] for row in rejects}
    needless = {id_: reasons[id_] for id_ in (named & reasons.keys()) - known}
    ids = unknown(manifest.errata, known)
    run = run_of(manifest.config)
    if not run.get("only") and run.get("limit") is None and run.get("sample") == "100%":
        _check_known(
            manifest.errata, left, known | needless.keys(), min(sample_ids | dropped, default="")
        )
    if not ids:
        return manifest
    errata = [erratum for erratum in manifest.errata if erratum.id not in set(ids)]
    warnings = list(manifest.warnings)
    if needless:
        counts = Counter(needless.values())
        why = ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
        warnings.append(f"{counted(len(needless), 'known errors')} {NEEDLESS}: {why}")
    if absent := set(ids) - needless.keys():
        warnings.append(
            f"{len(absent):,} samples in the errata are not in this part of the dataset"
        )
    return replace(manifest, errata=errata, warnings=warnings)


def _check_known(
    errata: Sequence[Erratum], left: Collection[str], known: set[str], example: str
) -> None:
    reviewed = {each.id for each in errata if each.stage == REVIEW_STAGE.name} | set(left)
    others = [each for each in errata if each.stage != REVIEW_STAGE.name]
    if ids := unknown(others, known):
        fault = f"--errata: {unmatched(ids)}"
    elif ids := sorted(reviewed - known):
        fault = f"--decisions: {unmatched(ids)}"
    else:
        return
    raise BuildError(
        f"{fault}. Remove the unknown ids, and build again with --overwrite. Sample ids of this "
        f"dataset look like {shown(example)}. To get errata with such ids, run eqforge lint on the "
        "dataset, not on the published file."
    )
