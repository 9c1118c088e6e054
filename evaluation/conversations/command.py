"""The settings of `eqforge converse`."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import MAX_PIXELS
from eqforge.core.shell import Command
from eqforge.core.visible import visible
from eqforge.evaluation.conversations.questions import QUESTION, check_template
from eqforge.evaluation.statistics.bootstrap import RESAMPLES
from eqforge.evaluation.tables.render import FORMATS
from eqforge.models.pretrained import Precision, Weights


@dataclass(frozen=True, kw_only=True, slots=True)
class ConverseSettings:
    """Ask a multimodal language model which caption belongs to which image, in different orders."""

    dataset: tyro.conf.Positional[str]
    """Folder or URL of a dataset of minimal pairs."""

    model: str | None = None
    """Folder of a saved Transformers model, or ID@COMMIT from the Hugging Face Hub. With
    --endpoint, pass the model's name on the server."""

    endpoint: str | None = None
    """Address of an OpenAI-compatible server, such as https://api.openai.com/v1. Set the
    environment variable EQFORGE_MODEL_KEY to the API key. The number of requests is printed before
    the first one is sent."""

    orders: Literal[2, 4] = 4
    """Number of questions to ask about each pair. With 2, only the order of the captions changes,
    as in the paper. With 4, the order of the images changes too."""

    output: Path | None = None
    """Folder for the answers. Run the same command again to resume an interrupted run."""

    answers: Path | None = None
    """Evaluate the answers in this JSON Lines file instead of asking a model. Each line has the
    fields sample_id, image_order, caption_order and answer."""

    samples: int | None = None
    """Number of pairs to ask about in each subset (default: all). The paper uses 20."""

    by: str | None = None
    """Group samples by this column of the samples table, such as kind or split."""

    seed: int = 0
    """Random seed for drawing pairs and for the bootstrap."""

    question: str = QUESTION
    """Text of the question, with the placeholders {caption_1} and {caption_2}."""

    chat_template: Path | None = None
    """Jinja file with a chat template, for models without their own template."""

    gap_px: int = 0
    """Width of the white bar between the two images, in pixels."""

    max_tokens: int = 64
    """Maximum number of tokens per answer."""

    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels per image. Larger images are rejected."""

    precision: Precision = "float32"
    """Data type of the model weights."""

    device: str = "cpu"
    """PyTorch device, such as cuda:0."""

    threads: int = 1
    """Number of CPU threads. Changing this number can change the answers."""

    shard_samples: int = 100
    """Number of pairs per output file. A resumed run repeats only the unfinished file."""

    allow_missing: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Skip pairs without an answer, instead of failing."""

    resamples: int = RESAMPLES
    """Number of bootstrap resamples."""

    show: Literal["text", "json", "csv", "latex"] = "text"
    """Format of the printed table."""

    def __post_init__(self) -> None:
        check_template(self.question)
        for name in ("max_tokens", "max_pixels", "threads", "shard_samples", "resamples"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name.replace('_', '-')} must be at least 1")
        if self.seed < 0:
            raise InputError("--seed must be at least 0")
        if self.gap_px < 0:
            raise InputError("--gap-px must be at least 0")
        if self.samples is not None and self.samples < 1:
            raise InputError("--samples must be at least 1")
        if self.endpoint is not None and self.model is None:
            raise InputError("--endpoint needs --model NAME")
        if self.answers is not None and self.endpoint is not None:
            raise InputError("pass either --endpoint or --answers, not both")
        if (self.answers is None) == (self.model is None):
            raise InputError("pass either --model or --answers, not both")
        usual = {each.name: each.default for each in fields(self)}
        for name in ("chat_template", "precision", "device", "threads"):
            if self.endpoint is not None and getattr(self, name) != usual[name]:
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} cannot be used with --endpoint; omit --{flag}")
        if self.model is not None and self.output is None:
            raise InputError("--model needs --output FOLDER for the answers")

    def weights(self) -> Weights:
        return Weights.of(str(self.model), self.precision, self.device)

    def folder(self) -> Path:
        assert self.output is not None  # checked in __post_init__
        return self.output


def converse_command(settings: ConverseSettings) -> None:
    import numpy as np

    from eqforge.evaluation.conversations.answers import (
        answers_report,
        describe_failures,
        read_answers,
        read_foreign_answers,
    )
    from eqforge.evaluation.conversations.run import choose_pairs, converse
    from eqforge.evaluation.tables.render import Rules
    from eqforge.evaluation.tables.report import model_names
    from eqforge.evaluation.tables.samples import read_samples
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(settings.dataset)
    pairs = choose_pairs(dataset, settings.samples, settings.by, settings.seed)
    if settings.answers is not None:
        captions = {pair.sample_id: pair.captions for pair in pairs}
        name, found = settings.answers.stem, read_foreign_answers(settings.answers, captions)
    else:
        manifest = converse(dataset, pairs, settings)
        (name,) = model_names([manifest.model.name], [settings.folder()])
        folder = str(settings.folder())
        found = read_answers(folder, manifest.tables["answers"])
        if failures := describe_failures(folder, manifest.tables["failures"]):
            print(visible(f"{folder}: {failures}"), file=sys.stderr)
    samples = read_samples(dataset, "source_id", settings.by)
    report = answers_report(
        dataset.manifest.dataset,
        name,
        samples.only(np.isin(samples.keys, [pair.sample_id for pair in pairs])),
        found,
        Rules(seed=settings.seed, resamples=settings.resamples),
        allow_missing=settings.allow_missing,
    )
    print(FORMATS[settings.show](report), end="" if settings.show != "text" else "\n")


main = Command(
    "eqforge converse",
    ConverseSettings,
    converse_command,
    example="eqforge converse out/eq-video --model FOLDER --output out/answers",
    basics=(
        "model",
        "endpoint",
        "output",
        "orders",
        "samples",
        "device",
        "precision",
        "by",
        "question",
    ),
    keeps_output=True,
)
