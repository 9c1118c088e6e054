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
    """Compute the tables of the papers from scores."""

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Dataset, followed by its scores: `eqforge score` folders, tables, or harness files. A table
    must have one row per sample. Supported harness files are lmms-eval's *_samples_*.jsonl,
    VLMEvalKit's MODEL_DATASET.xlsx and CLIP_benchmark's JSON. With --format eqben, pass one or more
    vector files."""

    format: Format = "dataset"
    """Type of input: a dataset with scores, or only score files. `eqben` reads EqBen's vectors.
    `pairs`, `hard-positives` and `foils` read scores without a dataset. `boundaries` reads scores
    for frames around event boundaries. `gap` compares two metrics.json or metrics.csv files: one in
    domain, and one out of domain."""

    quantity: Literal["probability", "logit", "cosine"] | None = None
    """For hard positives and foils: type of the scores in your files. Probabilities above 0.5 and
    logits above 0 count as true."""

    columns: tuple[str, ...] = ()
    """Map eqforge's column names to yours, such as c0_i0=left. The column c0_i0 contains the score
    of caption 0 with image 0."""

    ties: TieRule = "strict"
    """Credit for a tie: none, one half, or the average over random orders."""

    order: Order = "official"
    """Order of EqBen's vectors: shuffled as in the release, or grouped by subset."""

    clusters: Path | None = None
    """For EqBen's vectors: text file that names each sample's video, one per line."""

    by: str | None = None
    """Sample column that defines the subsets, such as split (default: kind of change). Answers to
    VLUE can also be split by language, culture or concept."""

    cluster: str | None = None
    """Column that groups samples for bootstrap intervals (default: the video or image)."""

    mode: Literal["corrected", "paper"] = "corrected"
    """Follow the paper (`paper`), or correct its errors (`corrected`). In paper mode, unchanged
    captions are kept. R@k of perturbed captions divides the number of true candidates among the
    first k by min(5, k) captions or by 1 image. For VLUE, a query is correct if any true candidate
    is among the first k. For SIMAT, only the query's own region is excluded from the gallery."""

    relevance: Path | None = None
    """Folder with scores and vectors for the retrieval metric DCG_CM. The paper uses CLIP
    ViT-B/32."""

    oracle: str | None = None
    """For SIMAT: scores used to judge the regions (default: the annotations). Pass
    matrix:FILE,rows=FILE,columns=FILE with region ids as rows and captions as columns, or the
    scores of a fusion encoder."""

    lambdas: tuple[float, ...] = LAMBDAS
    """For SIMAT: step sizes by which an image vector is moved."""

    tokenizer: Tokenizer = "treebank"
    """Tokenizer for BLEU and CIDEr. `ptb` is COCO's own tokenizer and needs Java."""

    allow_missing: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Skip samples whose score is missing or NaN instead of failing."""

    errata: Path | None = None
    """JSON Lines file that lists samples with errors by id. These samples are left out."""

    human: tuple[Path, ...] = ()
    """Caption rankings from `eqforge review import`, which add a row for human performance."""

    seed: int = 0
    """Random seed for the bootstrap."""

    resamples: int = RESAMPLES
    """Number of bootstrap resamples."""

    show: Literal["text", "json", "csv", "latex"] = "text"
    """Format of the printed table."""

    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print JSON. This is the same as --show json."""

    labels: tuple[str, ...] = ()
    """Model names to show in the table, in order. Notes still use the full names."""

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
            raise InputError(f"{flag} does not apply to {source}; omit it")
