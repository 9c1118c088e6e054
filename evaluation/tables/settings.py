"""The settings of `eqforge metrics`, and which of them each table depends on."""

from collections.abc import Container
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import tyro

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.answers import Tokenizer
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import RESAMPLES
from eqforge.evaluation.tables.render import Rules

Order: TypeAlias = Literal["official", "by-subset"]
LAMBDAS = (1.0, 2.0, 3.0, 4.0, 5.0)

_ALWAYS = ("paths", "format", "show", "json", "output")
_DRAWN = ("seed", "resamples", "labels")
_SCORED = (*_DRAWN, "ties", "allow_missing")
READ: dict[str, tuple[str, ...]] = {
    "eqben": (*_DRAWN, "ties", "order", "clusters"),
    "pairs": (*_SCORED, "columns", "errata"),
    "hard-positives": (*_SCORED, "columns", "quantity", "errata"),
    "foils": (*_SCORED, "columns", "quantity", "errata"),
    "boundaries": _SCORED,
    "grounding": (*_SCORED, "columns", "quantity"),
    "gap": (),
    "samples": (*_SCORED, "by", "cluster", "errata", "human"),
    "files of pairs": (*_SCORED, "by", "cluster", "columns", "errata", "human"),
    "files of hard positives": (
        *(*_SCORED, "by", "cluster", "columns", "quantity", "errata", "human"),
    ),
    "retrieval": (*_SCORED, "mode", "relevance"),
    "paper's retrieval": (*_DRAWN, "allow_missing", "mode", "relevance"),
    "VLUE's retrieval": (*_DRAWN, "allow_missing", "mode"),
    "SIMAT": (*_SCORED, "by", "cluster", "mode", "oracle", "lambdas"),
    "answers": (*_DRAWN, "allow_missing", "tokenizer", "by", "cluster"),
    "harnesses": (*_DRAWN, "allow_missing", "by", "cluster", "errata"),
    "questions": (*_DRAWN, "allow_missing", "errata"),
}
"""The settings that each table depends on; the keys are file formats, then dataset tables."""

Format = Literal["dataset", "eqben", "pairs", "hard-positives", "foils", "boundaries", "gap"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricsSettings:
    """Compute the papers' tables from scores."""

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Dataset, followed by its scores. Scores can be `eqforge score` folders, tables with one row
    per sample, or files from an evaluation harness. The supported harness files are lmms-eval's
    *_samples_*.jsonl, VLMEvalKit's MODEL_DATASET.xlsx and CLIP_benchmark's JSON. With --format
    eqben, pass one or more vector files instead."""

    format: Format = "dataset"
    """Type of input. `dataset` reads a dataset and its scores. `eqben` reads EqBen's vectors.
    `pairs`, `hard-positives` and `foils` read scores without a dataset. `boundaries` reads scores
    for frames around event boundaries. `gap` compares the metrics in two metrics.json or
    metrics.csv files. Pass the in-domain file first, then the out-of-domain file."""

    quantity: Literal["probability", "logit", "cosine"] | None = None
    """Type of scores in your files. Probabilities above 0.5 and logits above 0 count as true.
    Applies only to hard positives and foils."""

    columns: tuple[str, ...] = ()
    """Map eqforge's column names to the names in your tables, as in c0_i0=left. The column c0_i0
    contains the score of caption 0 with image 0."""

    ties: TieRule = "strict"
    """Credit for a tie. `strict` gives 0, `half` gives 0.5, and `expectation` gives the average
    over random orders."""

    order: Order = "official"
    """Order of EqBen's vectors. `official` is the shuffled order of the release. `by-subset` groups
    the vectors by subset."""

    clusters: Path | None = None
    """Text file with the video name of each sample, one sample per line. Applies only to EqBen's
    vectors."""

    by: str | None = None
    """Group samples by this column of the samples table (default: kind of change). For answers
    to VLUE, you can also pass language, culture or concept."""

    cluster: str | None = None
    """Column that groups samples for bootstrap intervals (default: the video or image)."""

    mode: Literal["corrected", "paper"] = "corrected"
    """Follow the paper (`paper`), or correct its errors (`corrected`). Paper mode keeps captions
    that a perturbation left unchanged. Its R@k for perturbed captions is the number of true
    candidates among the first k, divided by min(5, k) if the candidates are captions. For VLUE,
    paper mode counts a query as correct if any true candidate is among the first k. For SIMAT,
    paper mode excludes only the query's own region from the gallery."""

    relevance: Path | None = None
    """Folder of vectors from `eqforge score` that define relevance in the retrieval metric DCG_CM.
    The paper uses CLIP ViT-B/32."""

    oracle: str | None = None
    """Scores that determine which regions match a query (default: annotations). Pass the scores of
    a fusion encoder, or matrix:FILE,rows=FILE,columns=FILE. List region ids in the rows file, and
    captions in the columns file. Applies only to SIMAT."""

    lambdas: tuple[float, ...] = LAMBDAS
    """Values of lambda, the weight of the text change added to images. Applies only to SIMAT."""

    tokenizer: Tokenizer = "treebank"
    """Tokenizer for BLEU and CIDEr. `ptb` is COCO's own tokenizer and needs Java."""

    allow_missing: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Skip samples whose score is missing or NaN, instead of failing."""

    errata: Path | None = None
    """JSON Lines file with the ids of faulty samples to leave out."""

    human: tuple[Path, ...] = ()
    """Caption rankings from `eqforge review import`, to add a row for human performance."""

    seed: int = 0
    """Random seed for the bootstrap."""

    resamples: int = RESAMPLES
    """Number of bootstrap resamples."""

    show: Literal["text", "json", "csv", "latex"] = "text"
    """Format of the printed table."""

    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print JSON. This is the same as --show json."""

    labels: tuple[str, ...] = ()
    """Names to show in the table instead of the model names, in the same order. The table's notes
    still use the full names."""

    output: Path | None = None
    """Folder for metrics.json, metrics.csv, metrics.tex, metrics.txt and comparisons.csv."""

    def __post_init__(self) -> None:
        if self.resamples < 1 or self.seed < 0:
            raise InputError("--resamples must be at least 1, and --seed at least 0")
        if self.json and self.show not in ("text", "json"):
            raise InputError(f"pass either --json or --show {self.show}, not both")

    @property
    def rules(self) -> Rules:
        return Rules(ties=self.ties, seed=self.seed, resamples=self.resamples)

    def check_read(self, table: str) -> None:
        """Reject settings that a table, a key of READ, does not depend on."""
        reject_unread(self, (*_ALWAYS, *READ[table]), f"this table ({table})")


def reject_unread(settings: Any, read: Container[str], source: str) -> None:
    for field in fields(settings):
        if field.name not in read and getattr(settings, field.name) != field.default:
            flag = f"--{field.name.replace('_', '-')}"
            raise InputError(f"{flag} cannot be used with {source}; omit {flag}")
