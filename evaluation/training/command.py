"""The command `eqforge finetune`, its settings, and the settings of the papers."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from eqforge.core.console import session
from eqforge.core.errors import InputError, reported_errors
from eqforge.core.help import Help
from eqforge.core.ranges import check_workers
from eqforge.core.shell import parse_line
from eqforge.evaluation.training.eqsim import MarginMode
from eqforge.evaluation.training.losses import ClosePairs, EqsimScores, LossName, parse_weights
from eqforge.models.pretrained import import_torch

Preset = Literal["none", "eqsim-paper", "hard-positives-paper", "simat-paper"]
Schedule = Literal["cosine", "constant"]
Off = tyro.conf.FlagCreatePairsOff


@dataclass(frozen=True, kw_only=True, slots=True)
class FinetuneSettings:
    """Train a dual encoder, or linear layers behind a CLIP, on a dataset with images.

    eqforge adds the losses up by their weights. Wherever a command asks for a model, you can name
    the folder that this one writes, behind the model's kind: clip:FOLDER.
    """

    dataset: tyro.conf.Positional[str]
    """Folder of a dataset: pairs of images, captions with hard texts, or captions; with images."""

    model: str
    """A dual encoder such as clip:FOLDER, or an id on the Hugging Face hub as clip:ID@COMMIT."""

    output: Path
    """Folder for the trained model. The same command goes on after an interruption."""

    preset: Preset = "none"
    """A paper's settings; your own flags go before them."""

    loss: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A loss and its weight, such as infonce=1; give the flag once for each. Losses: infonce,
    sigmoid, eqsim-v1, eqsim-v2, hard-negative, hard-positive. Without it infonce=1."""

    train: Literal["all", "heads"] = "all"
    """Train all weights, or a linear layer behind either encoder, which stays as it is."""

    temperature: float = 0.1
    """Temperature of the heads' logits, which does not learn."""

    split: str | None = None
    """Train on the samples of this split alone."""

    epochs: int = 1
    """How often every sample is seen."""

    steps: int | None = None
    """How many steps to make, in place of whole epochs."""

    batch_size: int = 64
    """Samples of a batch, over all devices; a pair of images is one sample."""

    learning_rate: float = 1e-5
    """Learning rate at its peak."""

    schedule: Schedule = "cosine"
    """The rate after the warm-up: half a cosine down to 0, or constant."""

    warmup_steps: int = 0
    """Steps over which the rate rises to its peak."""

    weight_decay: float = 0.1
    """Weight decay of matrices; gains and biases have none."""

    max_grad_norm: float | None = None
    """Shorten longer gradients to this length."""

    exclude_repeats: bool = True
    """Matches of a batch that share an image or a caption are no false matches of each other."""

    negatives_in_contrast: Annotated[bool, Off] = False
    """Images choose among all hard negatives of the batch too, in infonce."""

    close: ClosePairs = "known"
    """EqSim's close pairs: the dataset's own pairs, each one's nearest of the batch, or drawn."""

    close_count: int = 4
    """How many close texts and how many close images are chosen for each sample."""

    eqsim_scores: EqsimScores = "cosine"
    """What EqSim compares: cosines, logits, or each image's softmax over the texts of the batch."""

    eqsim_side: Literal["both", "text", "image"] = "both"
    """Which side of EqSim v2 counts."""

    margin: float = 0.0
    """EqSim v2: the squared deviation that costs nothing."""

    margin_mode: MarginMode = "after-mean"
    """Take the margin off the mean over close pairs, as published, or off each pair's deviation."""

    distant_margin: float = 0.0
    """EqSim v1: the mean squared deviation that costs nothing."""

    precision: Literal["float32", "bfloat16"] = "float32"
    """Type in which the encoders compute; weights, losses and steps stay float32."""

    device: Literal["auto", "cpu"] = "auto"
    """Take what accelerate finds, or the CPU. `accelerate launch -m eqforge.cli finetune …` takes
    several."""

    workers: int = 2
    """Processes that decode pictures; 0 decodes between the steps."""

    checkpoint_every: int = 500
    """Steps between checkpoints."""

    seed: int = 0
    """Seed of the order and of what is drawn."""

    def check_ranges(self) -> None:
        check_workers(self.workers, least=0)
        above = ("learning_rate", "temperature")
        least = {"epochs": 1, "steps": 1, "batch_size": 1, "checkpoint_every": 1, "close_count": 1}
        margins = ("margin", "distant_margin", "weight_decay")
        least |= dict.fromkeys(("warmup_steps", *margins), 0)
        for name in (*above, *least):
            value = getattr(self, name)
            flag = "--" + name.replace("_", "-")
            if name in above and not 0 < value < float("inf"):
                raise InputError(f"{flag} {value}: expected more than 0")
            if name in least and value is not None and not least[name] <= value < float("inf"):
                raise InputError(f"{flag} {value}: expected at least {least[name]}")
        if self.max_grad_norm is not None and not self.max_grad_norm > 0:
            raise InputError(f"--max-grad-norm {self.max_grad_norm}: expected more than 0")

    def weights(self) -> dict[LossName, float]:
        return parse_weights(self.loss or ("infonce=1",))


PRESETS: dict[Preset, dict[str, Any]] = {
    "none": {},
    "eqsim-paper": {
        "loss": ("infonce=1", "eqsim-v1=0.5", "eqsim-v2=0.5"),
        "close": "multinomial",
        "close_count": 4,
        "eqsim_scores": "softmax",
        "margin": 0.1,
        "learning_rate": 2e-5,
        "weight_decay": 0.01,
        "exclude_repeats": False,
    },
    "hard-positives-paper": {
        "loss": ("infonce=1", "hard-negative=1", "hard-positive=1"),
        "negatives_in_contrast": True,
        "epochs": 5,
        "batch_size": 512,
        "learning_rate": 5e-6,
        "weight_decay": 0.1,
        "exclude_repeats": False,
    },
    "simat-paper": {
        "train": "heads",
        "loss": ("infonce=1",),
        "temperature": 0.1,
        "epochs": 30,
        "batch_size": 4096,
        "learning_rate": 1e-3,
        "weight_decay": 0.0,
        "schedule": "constant",
        "max_grad_norm": 1.0,
    },
}


HELP = Help(
    program="eqforge finetune",
    example="eqforge finetune out/eq-video --model clip:FOLDER --output out/trained",
    basics=("preset", "loss", "train", "epochs", "batch-size", "learning-rate", "device"),
)


def parse_settings(argv: Sequence[str] | None) -> FinetuneSettings:
    """Parse a command line; a preset overrides the defaults."""
    first: FinetuneSettings = parse_line(FinetuneSettings, argv, HELP).settings
    if first.preset == "none":
        return first
    chosen = dict(PRESETS[first.preset])
    losses = chosen.pop("loss")
    start = FinetuneSettings(
        dataset=first.dataset, model=first.model, output=first.output, **chosen
    )
    line = parse_line(FinetuneSettings, argv, HELP, default=lambda _: start)
    found: FinetuneSettings = line.settings
    return dataclasses.replace(found, loss=found.loss or losses)


def main(argv: Sequence[str] | None = None) -> int:
    with reported_errors(), session():
        settings = parse_settings(argv)
        settings.check_ranges()
        import_torch()
        from eqforge.evaluation.training.finetune import finetune

        done = finetune(settings)
        if done is not None:
            print(done)
    return 0
