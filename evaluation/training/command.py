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

Preset = Literal[
    "none", "eqsim-paper", "eqsim-meter", "eqsim-fiber", "hard-positives-paper", "simat-paper"
]
Schedule = Literal["cosine", "linear", "constant"]
Train = Literal["all", "heads", "mlp-heads"]
Off = tyro.conf.FlagCreatePairsOff


@dataclass(frozen=True, kw_only=True, slots=True)
class FinetuneSettings:
    """Train a dual or fusion encoder, or heads on frozen encoders, on a dataset with images."""

    dataset: tyro.conf.Positional[str]
    """Dataset with images and captions. It can contain pairs, or captions with hard negatives."""

    model: str
    """Model to train, such as clip:FOLDER, or clip:ID@COMMIT from the Hugging Face Hub. The fusion
    encoders are blip-itm and vilt. All other kinds are dual encoders. To train heads on stored
    image and caption vectors, pass vectors:FILE.npz."""

    output: Path
    """Folder for the trained model. Run the same command again to resume an interrupted run."""

    preset: Preset = "none"
    """Use the settings of a paper. Options that you pass override these settings."""

    loss: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Loss and its weight, such as infonce=1 (the default). Repeat the option to add losses. Dual
    encoders can use infonce, sigmoid, eqsim-v1, eqsim-v2, hard-negative, hard-positive and
    in-modal. Fusion encoders can use itm, ranking, eqsim-v1 and eqsim-v2. The fusion encoder
    blip-itm can also use infonce."""

    train: Train = "all"
    """Train all weights (`all`), or only a linear layer per encoder (`heads`). For stored vectors,
    `mlp-heads` trains four layers for images and one for texts."""

    temperature: float = 0.1
    """Fixed temperature of the logits. Applies only with --train heads or mlp-heads."""

    split: str | None = None
    """Split to train on (default: all)."""

    epochs: int = 1
    """Number of passes over the training samples."""

    steps: int | None = None
    """Number of training steps. Overrides --epochs."""

    batch_size: int = 64
    """Number of samples per batch across all devices. A pair counts as one sample."""

    learning_rate: float = 1e-5
    """Peak learning rate."""

    schedule: Schedule = "cosine"
    """Learning rate schedule after the warm-up: cosine or linear decay to 0, or constant."""

    fusion_factor: float = 1.0
    """Factor that multiplies the learning rate of the matching head and of cross-attention. Applies
    only to fusion encoders."""

    warmup_steps: float = 0
    """Number of steps over which the learning rate rises to its peak. A number below 1 is a
    fraction of all steps."""

    weight_decay: float = 0.1
    """Weight decay for weight matrices. Gains and biases have no weight decay."""

    max_grad_norm: float | None = None
    """Maximum gradient norm. Larger gradients are clipped."""

    exclude_repeats: bool = True
    """Exclude negatives that repeat the sample's image or caption. --no-exclude-repeats keeps
    them."""

    negatives_in_contrast: Annotated[bool, Off] = False
    """In the infonce loss, contrast each image with all hard negatives in the batch."""

    close: ClosePairs = "known"
    """Source of EqSim's close pairs. `known` uses the dataset's pairs, and `top-k` uses the most
    similar samples in the batch. `multinomial` draws samples from the batch at random but favours
    similar ones. For fusion encoders, the close pairs also serve as hard negatives."""

    close_count: int = 4
    """Number of close texts, and of close images, per sample. Fusion encoders use only close
    texts."""

    distant_count: int = 4
    """Number of random texts per image for itm, ranking and eqsim-v1. Applies only to fusion
    encoders."""

    eqsim_scores: EqsimScores = "cosine"
    """Scores that EqSim compares. For dual encoders, `softmax` is taken over an image's logits for
    all texts. For fusion encoders, `logit` is the matching logit, `cosine` is its sigmoid, and
    `softmax` is taken over the four logits of two pairs."""

    eqsim_side: Literal["both", "text", "image"] = "both"
    """Side on which EqSim v2 penalizes deviations: texts, images or both."""

    margin: float = 0.0
    """EqSim v2 penalizes only squared deviations above this value."""

    margin_mode: MarginMode = "after-mean"
    """Subtract EqSim v2's margin from the mean deviation (`after-mean`), or from each pair's
    deviation (`per-pair`). The published code uses `after-mean`."""

    distant_margin: float = 0.0
    """EqSim v1 penalizes only mean squared deviations above this value."""

    precision: Literal["float32", "bfloat16"] = "float32"
    """Data type of the encoders. Weights, losses and optimizer steps stay in float32."""

    device: Literal["auto", "cpu"] = "auto"
    """Use the device that Accelerate detects (`auto`), or the CPU (`cpu`). To use several devices,
    start eqforge with `accelerate launch`."""

    workers: int = 2
    """Number of processes that decode images. With 0, the main process decodes them."""

    checkpoint_every: int = 500
    """Number of steps between checkpoints."""

    seed: int = 0
    """Random seed for the order of samples and all other random draws."""

    def check_ranges(self) -> None:
        check_workers(self.workers, least=0)
        above = ("learning_rate", "temperature", "fusion_factor")
        least = {"epochs": 1, "steps": 1, "batch_size": 1, "checkpoint_every": 1, "close_count": 1}
        margins = ("margin", "distant_margin", "weight_decay")
        least |= dict.fromkeys(("warmup_steps", "distant_count", *margins), 0)
        for name in (*above, *least):
            value = getattr(self, name)
            flag = "--" + name.replace("_", "-")
            if name in above and not 0 < value < float("inf"):
                raise InputError(f"{flag} {value}: expected more than 0")
            if name in least and value is not None and not least[name] <= value < float("inf"):
                raise InputError(f"{flag} {value}: expected at least {least[name]}")
        if self.warmup_steps > 1 and self.warmup_steps % 1:
            raise InputError(
                f"--warmup-steps {self.warmup_steps}: expected a whole number of steps, or a "
                "fraction (below 1) of all steps"
            )
        if self.max_grad_norm is not None and not self.max_grad_norm > 0:
            raise InputError(f"--max-grad-norm {self.max_grad_norm}: expected more than 0")

    def weights(self) -> dict[LossName, float]:
        return parse_weights(self.loss or ("infonce=1",))


# METER's and FIBER's settings for retrieval, in `meter/config.py` and `fiber/config.py`.
_FUSION: dict[str, Any] = {
    "fusion_factor": 5.0,
    "warmup_steps": 0.1,
    "schedule": "linear",
    "weight_decay": 0.01,
    "exclude_repeats": False,
}
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
    "eqsim-meter": {
        "loss": ("ranking=1", "itm=0.5", "eqsim-v1=0.5", "eqsim-v2=0.5"),
        "close": "multinomial",
        "close_count": 4,
        "distant_count": 11,
        "margin": 0.1,
        "epochs": 10,
        "batch_size": 512,
        "learning_rate": 5e-6,
        **_FUSION,
    },
    "eqsim-fiber": {
        "loss": ("itm=1", "infonce=1", "eqsim-v1=0.5", "eqsim-v2=0.5"),
        "close": "multinomial",
        "close_count": 4,
        "margin": 0.1,
        "epochs": 10,
        "batch_size": 1024,
        "learning_rate": 2e-5,
        **_FUSION,
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
