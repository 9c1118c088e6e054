"""The command `eqforge score` and its settings."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_text_lines
from eqforge.core.files.pictures import MAX_PIXELS
from eqforge.core.ranges import check_workers
from eqforge.core.shell import Command
from eqforge.core.visible import in_lines

if TYPE_CHECKING:
    from eqforge.schemas.dataset.score_tables import ScoresManifest


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreSettings:
    """Score a dataset with a model, and encode each image and caption only once."""

    dataset: tyro.conf.Positional[str]
    """Folder or URL of the dataset."""

    model: str
    """Model in the form KIND:MODEL, such as clip:FOLDER. For a model on the Hugging Face Hub, pass
    clip:ID@COMMIT. The kinds are listed in docs/guides/scoring.md. For your own model, pass
    python:MODULE:FACTORY. Add options after commas, as in clip:FOLDER,precision=bfloat16."""

    output: Path
    """Folder for the scores. Run the same command again to resume an interrupted run."""

    task: str | None = None
    """Task to score, such as foils or retrieval (default: the dataset's own task)."""

    devices: tuple[str, ...] = ()
    """PyTorch devices to use in parallel, such as cuda:0 cuda:1."""

    processes: int = 1
    """Number of processes per device. On a CPU, each process uses one thread."""

    workers: int = 2
    """Number of image-loading processes per scoring process."""

    prefetch: int = 2
    """Number of batches that each worker prepares in advance."""

    image_batch: int = 64
    """Number of images per batch. Smaller batches need less memory."""

    caption_batch: int = 128
    """Number of captions per batch."""

    pair_batch: int = 64
    """Number of image-caption pairs per batch, for a fusion encoder."""

    autocast: Literal["bf16"] | None = None
    """Compute in bfloat16 where PyTorch considers it safe. Scores are still float32."""

    captions: Path | None = None
    """Text file of extra captions to encode, one per line. Applies only to dual encoders."""

    candidates: Path | None = None
    """Folder of a dual encoder's vectors, used to preselect retrieval pairs for a fusion
    encoder."""

    top: int = 128
    """Number of candidates per image and per caption. Applies only with --candidates."""

    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels per image. Larger images are rejected."""

    def __post_init__(self) -> None:
        batches = ("image_batch", "caption_batch", "pair_batch")
        for name in ("processes", "prefetch", *batches, "top", "max_pixels"):
            if getattr(self, name) < 1:
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} {getattr(self, name)}: expected at least 1")
        check_workers(self.workers, least=0)

    def all_devices(self) -> tuple[str, ...]:
        from eqforge.models.spec import device_of

        devices = self.devices or (device_of(self.model) or "cpu",)
        return tuple(device for device in devices for _ in range(self.processes))

    def more_captions(self) -> tuple[str, ...]:
        if self.captions is None:
            return ()
        lines = map(str.strip, read_text_lines(self.captions))
        return tuple(dict.fromkeys(filter(None, lines)))


def summary(output: str, manifest: "ScoresManifest") -> str:
    lines = [f"{output}: {manifest.task} of {manifest.dataset} by {manifest.model.name}"]
    for name, counts in manifest.counts.items():
        lines.append(
            f"  {name}: {counts.expected:,} expected = {counts.scored:,} scored + "
            f"{counts.failed:,} failed"
        )
    lines += [f"  warning: {warning}" for warning in manifest.warnings]
    if any(counts.failed for counts in manifest.counts.values()):
        lines.append(f"  {_commonest(output)}")
        lines.append("  data/failures-00000-of-00001.parquet lists all reasons")
    if _lacks_scores(manifest):
        lines.append("  nothing could be scored")
    return in_lines(lines)


def _commonest(output: str) -> str:
    from eqforge.schemas.dataset.score_tables import open_scores

    reasons: Counter[tuple[str, str]] = Counter()
    for batch in open_scores(output).batches("failures", ["table", "reason"]):
        reasons.update((row["table"], row["reason"]) for row in batch.to_pylist())
    (table, reason), count = min(reasons.items(), key=lambda item: (-item[1], item[0]))
    return f"most common reason: {reason}, for {count:,} {table}"


def _lacks_scores(manifest: "ScoresManifest") -> bool:
    return any(counts.expected and not counts.scored for counts in manifest.counts.values())


def score_command(settings: ScoreSettings) -> int:
    from eqforge.evaluation.scoring.run import score_dataset

    manifest = score_dataset(settings)
    print(summary(str(settings.output), manifest))
    return int(_lacks_scores(manifest))


main = Command(
    "eqforge score",
    ScoreSettings,
    score_command,
    example="eqforge score out/eq-video --model clip:FOLDER --output out/scores",
    basics=("task", "devices", "workers", "image-batch", "caption-batch", "autocast", "top"),
)
