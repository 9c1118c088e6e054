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
    "pairs": (*_SCORED, "errata"),
    "hard-positives": (*_SCORED, "quantity", "errata"),
    "foils": (*_SCORED, "quantity", "errata"),
    "boundaries": _SCORED,
    "gap": (),
    "samples": (*_SCORED, "by", "cluster", "errata", "human"),
    "files of hard positives": (*_SCORED, "by", "cluster", "quantity", "errata", "human"),
    "retrieval": (*_SCORED, "mode", "relevance"),
    "paper's retrieval": (*_DRAWN, "allow_missing", "mode", "relevance"),
    "VLUE's retrieval": (*_DRAWN, "allow_missing", "mode"),
    "SIMAT": (*_SCORED, "by", "cluster", "mode", "oracle", "lambdas"),
    "answers": (*_DRAWN, "allow_missing", "tokenizer"),
    "harnesses": (*_DRAWN, "allow_missing", "by", "cluster", "errata"),
    "questions": (*_DRAWN, "allow_missing", "errata"),
}
"""The settings that each table depends on: those of files under their format, then of datasets."""

Format = Literal["dataset", "eqben", "pairs", "hard-positives", "foils", "boundaries", "gap"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricsSettings:
    """Measure: scores in, the papers' tables out."""

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """A dataset and one or more scores of it: folders of eqforge score, files with a row a sample,
    files of answers, or what a harness wrote: lmms-eval's *_samples_*.jsonl, VLMEvalKit's
    MODEL_DATASET.xlsx, CLIP_benchmark's JSON. With --format eqben: one or more vectors."""

    format: Format = "dataset"
    """What the paths are: a dataset and scores of it; EqBen's vectors; files of scores of pairs, of
    hard positives, or of captions and foils, without a dataset; files of frames' scores around
    event boundaries; or two metrics.json, of data in and out of the domain."""

    quantity: Literal["probability", "logit", "cosine"] | None = None
    """For hard positives and foils, what a score in a file of yours is: a caption is called true
    above 0.5 or above 0."""

    ties: TieRule = "strict"
    """What a tie counts: nothing, one half, or what it is worth when ties are broken at random."""

    order: Order = "official"
    """Of EqBen's vectors: official, that of its released files, which are shuffled; or by-subset,
    subset after subset."""

    clusters: Path | None = None
    """For EqBen's vectors: text file with the video of each sample, a line each."""

    by: str | None = None
    """For pairs, hard positives and SIMAT: column of the samples that names their subset, such as
    split or group; by default the kind of change, where the dataset has it."""

    cluster: str | None = None
    """For pairs, hard positives and SIMAT: column of the samples that names what stands and falls
    together, drawn as one for intervals; by default their video or image; for SIMAT also
    source_word."""

    mode: Literal["corrected", "paper"] = "corrected"
    """For retrieval: paper counts what the dataset's authors do. For perturbed captions it divides
    R@k by five captions or one image whatever there are, and keeps captions whose words a
    perturbation did not change; for VLUE a query counts where any true candidate is among the
    first k. In either a tie loses. For SIMAT: paper excludes the query's own region alone, not
    other crops of the same."""

    relevance: Path | None = None
    """For retrieval: the folder of scores, vectors, whose model says how similar a false candidate
    is, for DCG_CM; the paper takes CLIP ViT-B/32."""

    oracle: str | None = None
    """For SIMAT: who says what a region shows: matrix:FILE,rows=FILE,columns=FILE with region ids
    and captions, or a folder of scores by a fusion encoder; by default the annotation."""

    lambdas: tuple[float, ...] = LAMBDAS
    """For SIMAT: how far an image is moved."""

    tokenizer: Tokenizer = "treebank"
    """For BLEU and CIDEr: ptb is COCO's own, a Java program."""

    allow_missing: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Leave samples out that have no score; otherwise one missing score is an error."""

    errata: Path | None = None
    """For pairs, hard positives and their files, questions, and harnesses: JSON lines of what is
    wrong with samples, by id. What they drop is left out, and what they correct too, as it was
    scored before."""

    human: tuple[Path, ...] = ()
    """For pairs, hard positives and foils of a dataset: what reviewers saved who
    ranked captions by eqforge review, a row of people beside the models."""

    seed: int = 0
    """Seed of the bootstrap."""

    resamples: int = RESAMPLES
    """How often the bootstrap draws."""

    show: Literal["text", "json", "csv", "latex"] = "text"
    """How the table is printed."""

    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print JSON, as --show json does."""

    labels: tuple[str, ...] = ()
    """Names for the models in the table, in their order; the notes keep the full ones."""

    output: Path | None = None
    """Folder to write metrics.json, .csv, .tex and .txt, and comparisons.csv into."""

    def __post_init__(self) -> None:
        if self.resamples < 1 or self.seed < 0:
            raise InputError("expected --resamples of at least 1 and --seed of at least 0")
        if self.json and self.show not in ("text", "json"):
            raise InputError(f"expected one of --json and --show {self.show}")

    @property
    def rules(self) -> Rules:
        return Rules(ties=self.ties, seed=self.seed, resamples=self.resamples)

    def check_read(self, table: str) -> None:
        """Reject settings that a table, a key of READ, does not depend on."""
        refuse_unread(self, (*_ALWAYS, *READ[table]), f"the table of {table}")


def refuse_unread(settings: Any, read: Container[str], what: str) -> None:
    for field in fields(settings):
        if field.name not in read and getattr(settings, field.name) != field.default:
            flag = f"--{field.name.replace('_', '-')}"
            raise InputError(f"{flag}: {what} does not depend on it; leave it out")
