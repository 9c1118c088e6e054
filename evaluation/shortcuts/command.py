"""The command `eqforge audit`: how much text alone reveals about captions and answers."""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from more_itertools import map_reduce

from eqforge.core.errors import InputError
from eqforge.core.shell import Command

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset
    from eqforge.sources.text_pairs import TextPair


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditSettings:
    """Measure how well text alone separates true from false captions, or answers questions."""

    path: tyro.conf.Positional[Path]
    """Text pairs or questions, as a file, a Hugging Face folder or a dataset. Supported formats are
    VL-CheckList, ARO, SugarCrepe, VALSE, JSON Lines, NaturalBench and MMVP."""

    hard_positives: Path | None = None
    """Second file of a published hard-positive set. Pass the first file as PATH."""

    by: str | None = None
    """Group the pairs by this column, and audit each group as well. If PATH is a file, pass
    `kind`."""

    language_model: str | None = None
    """Causal language model to include in the audit. Pass a folder or an id on the Hugging Face
    Hub."""

    revision: str | None = None
    """Branch, tag or commit of the language model."""

    device: str = "cpu"
    """PyTorch device for the language model."""

    folds: int = 5
    """Number of cross-validation folds. Texts that share an image or a question group are always
    in the same fold."""

    seed: int = 0
    """Random seed for the bootstrap."""

    resamples: int = 1000
    """Number of bootstrap resamples."""

    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the results as JSON."""

    fail_above: float | None = None
    """Exit with status 1 if a text-only accuracy exceeds this limit, in [0, 1]."""


def audit_command(settings: AuditSettings) -> int:
    from eqforge.evaluation.tasks.questions import is_questions
    from eqforge.schemas.dataset.reader import open_samples
    from eqforge.sources.labelled_captions import is_dataset

    if settings.folds < 2 or settings.resamples < 1:
        raise InputError("--folds must be at least 2, and --resamples at least 1")
    dataset = open_samples(str(settings.path)) if is_dataset(settings.path) else None
    if dataset is not None:
        dataset.check_samples()
    if dataset is not None and is_questions(dataset):
        found = _audit_blind(dataset, settings)
    else:
        found = _audit_captions(settings)
    limit = settings.fail_above
    return int(limit is not None and max(found, default=0.0) > limit)


def _audit_blind(dataset: "Dataset", settings: AuditSettings) -> list[float]:
    from eqforge.evaluation.shortcuts.answerers import LanguageModelProbe, blind_answerers
    from eqforge.evaluation.shortcuts.audit import as_json
    from eqforge.evaluation.shortcuts.blind import audit_questions, questions_as_text

    if settings.hard_positives is not None:
        raise InputError(
            f"--hard-positives cannot be used with the questions in {settings.path}; omit it"
        )
    if settings.by is not None:
        raise InputError(
            f"--by cannot be used with the questions in {settings.path}; omit --by. eqforge audits "
            "all questions together"
        )
    answerers = blind_answerers(settings.folds)
    if settings.language_model is not None:
        model = LanguageModelProbe(settings.language_model, settings.revision, settings.device)
        answerers |= model.answerers()
    audit = audit_questions(
        dataset, answerers, folds=settings.folds, seed=settings.seed, resamples=settings.resamples
    )
    print((as_json if settings.json else questions_as_text)(str(settings.path), audit))
    return [result.accuracy for result in audit.results if result.metric == "accuracy"]


def _audit_captions(settings: AuditSettings) -> list[float]:
    from eqforge.core.identity import picture_key
    from eqforge.evaluation.shortcuts.answerers import LanguageModelProbe
    from eqforge.evaluation.shortcuts.audit import as_json, as_text, audit_pairs
    from eqforge.evaluation.shortcuts.judges import blind_judges, unasked
    from eqforge.sources.text_pairs import read_text_pairs, with_hard_positives

    judges = blind_judges(settings.folds)
    if settings.language_model is not None:
        model = LanguageModelProbe(settings.language_model, settings.revision, settings.device)
        judges |= model.judges()
    pairs, left_out = _read(settings.path)
    if settings.hard_positives is not None:
        pairs = with_hard_positives(pairs, read_text_pairs(settings.hard_positives))
    pairs = list(pairs)
    parts = {} if settings.by is None else _parts(pairs, settings.path, settings.by)
    images = {
        part: len({picture_key(pair.image, pair.pair_id) for pair in part_pairs})
        for part, part_pairs in parts.items()
    }
    audited = partial(
        audit_pairs,
        judges=judges,
        folds=settings.folds,
        seed=settings.seed,
        resamples=settings.resamples,
    )
    few = [part for part, count in images.items() if count < settings.folds]
    notes = (
        f"{part}: not audited, because it has too few images for {settings.folds} folds"
        for part in few
    )
    whole = dataclasses.replace(audited(pairs), left_out=left_out, unasked=(*unasked(), *notes))
    found = {part: audited(part_pairs) for part, part_pairs in parts.items() if part not in few}
    print((as_json if settings.json else as_text)(str(settings.path), whole, found))
    results = [result for each in (whole, *found.values()) for result in each.results]
    return [result.accuracy for result in results if result.contrast != "hard_positive"]


def _parts(pairs: "Sequence[TextPair]", path: Path, column: str) -> "dict[str, list[TextPair]]":
    from eqforge.evaluation.tables.samples import check_label_column
    from eqforge.schemas.dataset.reader import open_samples
    from eqforge.sources.labelled_captions import is_dataset, is_training

    if is_dataset(path):
        dataset = open_samples(str(path))
        check_label_column(dataset.schema("samples"), column, dataset.folder)
        key, roles = ("caption_id", ["role"]) if is_training(path) else ("sample_id", [])
        rows = dataset.rows("samples", list(dict.fromkeys([key, column, *roles])))
        named = {
            row[key]: row[column] for row in rows if row.get("role") in (None, "hard_negative")
        }
    elif column == "kind":
        named = {pair.pair_id: pair.kind for pair in pairs}
    else:
        raise InputError(
            f"--by {column}: {path} has only the column 'kind'. To get more columns, import the "
            "file with eqforge import"
        )
    found = map_reduce(pairs, lambda pair: f"{column} {named[pair.pair_id]}")
    return dict(sorted(found.items()))


def _read(path: Path) -> "tuple[Iterable[TextPair], int]":
    from eqforge.schemas.dataset.reader import open_samples
    from eqforge.sources.labelled_captions import is_dataset, is_training, read_labelled_captions
    from eqforge.sources.text_pairs import TextPair, read_text_pairs

    columns = set(open_samples(str(path)).columns("samples")) if is_dataset(path) else None
    if columns is not None and not columns & {"hard_negative", "caption_1", "role"}:
        raise InputError(
            f"{path} contains no images with true and false captions. eqforge audit reads "
            "hard-positives, training-captions, imported benchmarks and datasets of pairs. It also "
            "reads files of VL-CheckList, ARO, SugarCrepe, VALSE and Winoground"
        )
    if not is_training(path):
        return read_text_pairs(path), 0
    records = list(read_labelled_captions(path))
    pairs = [
        TextPair(
            pair_id=record.record_id,
            image=record.image,
            positive=record.positive,
            negative=record.negative,
            hard_positive=record.hard_positive,
        )
        for record in records
        if record.negative is not None
    ]
    if not pairs:
        raise InputError(f"{path}: none of its {len(records):,} captions has a hard negative")
    return pairs, len(records) - len(pairs)


main = Command(
    "eqforge audit",
    AuditSettings,
    audit_command,
    example="eqforge audit out/sugar-crepe",
    keeps_output=True,
)
