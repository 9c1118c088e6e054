"""Fine-tuning, from settings to a folder with a model that can be scored.

accelerate handles devices, processes, precision and checkpoints. Each of several processes encodes
its share of a batch, gathers all vectors, and computes the losses of the whole batch. Only its own
share carries gradients; a hook on it makes the average over processes equal the gradient of the
whole batch.
"""

import math
import resource
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from eqforge.core.errors import BuildError, InputError, MissingExtra
from eqforge.core.files.pictures import VERSION as DECODER_VERSION
from eqforge.core.identity import derive_seed, versions_of
from eqforge.evaluation.scoring.pictures import plain_errors
from eqforge.evaluation.training.command import FinetuneSettings, Schedule
from eqforge.evaluation.training.examples import Batch, Examples, Plan, count_steps, read_examples
from eqforge.evaluation.training.feeds import (
    Pictures,
    PixelFeed,
    Texts,
    VectorFeed,
    copy_pictures,
    encode_frozen,
    share_of_step,
    stored_feed,
)
from eqforge.evaluation.training.folder import RunFolder
from eqforge.evaluation.training.fusion import (
    FUSIONS,
    MATCHING,
    FusionNetwork,
    check_fusion,
    fusion_losses,
)
from eqforge.evaluation.training.losses import Encoded, compute_losses
from eqforge.evaluation.training.networks import (
    SHARED,
    VISION_TEXT,
    DualNetwork,
    HeadsNetwork,
    Start,
    freeze_encoders,
    load_start,
    parameter_groups,
    save_trained,
)
from eqforge.models.fusion import TrainedFusion
from eqforge.models.stored_vectors import StoredVectors
from eqforge.schemas.dataset.reader import Dataset, open_dataset

VERSIONED = ("eqforge", "torch", "transformers", "accelerate", "numpy", "pillow")
STEP_VERSION = 1
REPORT_S = 10.0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Job:
    """The inputs of the training loop, which changes the network in place."""

    settings: FinetuneSettings
    plan: Plan
    network: DualNetwork | HeadsNetwork | FusionNetwork
    feed: PixelFeed | VectorFeed
    folder: RunFolder
    accelerator: Any
    times: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=100))
    """Seconds per step for the last 100 steps: for encoders and losses, and for the whole step."""


def finetune(settings: FinetuneSettings) -> str | None:
    """Train a model, or resume; return a summary, or None in all processes but the first."""
    weights = settings.weights()
    texts = Texts(
        negatives="hard-negative" in weights or settings.negatives_in_contrast,
        positives="hard-positive" in weights,
    )
    dataset = open_dataset(settings.dataset)
    examples = read_examples(dataset, settings.split)
    _check_losses(settings, texts, examples)
    count = len(examples.units)
    steps = count_steps(count, settings.batch_size, settings.epochs, settings.steps)
    start = load_start(settings.model, settings.train)
    is_fusion = isinstance(start.encoder, TrainedFusion)
    if is_fusion:
        check_fusion(settings, start.kind)
    elif wrong := [name for name in settings.weights() if name in MATCHING]:
        known = ", ".join(FUSIONS)
        raise InputError(f"--loss {wrong[0]} trains only fusion encoders (--model {known})")
    elif settings.fusion_factor != 1:
        raise InputError("--fusion-factor applies only to fusion encoders; leave it out")
    folder = RunFolder(settings.output, _identity(settings, dataset, start))
    if folder.is_finished:
        return f"{settings.output}: the training is already complete"
    accelerator = _accelerator(settings, examples)
    if is_fusion and accelerator.num_processes > 1:
        raise InputError(
            f"--model {settings.model}: fusion encoders train in one process, found "
            f"{accelerator.num_processes}; run eqforge finetune without accelerate launch"
        )
    network, feed = _prepare(settings, texts, dataset, examples, start, folder, accelerator)
    job = Job(
        settings=settings,
        plan=Plan(
            units=examples.units,
            batch_size=settings.batch_size,
            steps=steps,
            seed=settings.seed,
            exclude_repeats=settings.exclude_repeats,
        ),
        network=network,
        feed=feed,
        folder=folder,
        accelerator=accelerator,
    )
    try:
        logged = train(job)
    except torch.OutOfMemoryError as error:
        raise BuildError(
            f"{accelerator.device} ran out of memory; lower --batch-size, or use --train heads"
        ) from error
    loss = sum(entry["loss"] for entry in logged) / len(logged) if logged else None
    if accelerator.is_main_process:
        outcome = {
            "format": "eqforge training",
            "format_version": 1,
            "steps": steps,
            "samples": count,
            "left_out": examples.left_out,
            "loss_of_last_steps": loss,
            "device": str(accelerator.device.type),
            "processes": accelerator.num_processes,
            "cost": measured_cost(job),
            "versions": versions_of(*VERSIONED),
        }
        folder.finish(lambda model_folder: save_trained(model_folder, start, network), outcome)
    accelerator.wait_for_everyone()
    if not accelerator.is_main_process:
        return None
    left_out = "".join(f", {count:,} left out ({why})" for why, count in examples.left_out.items())
    ending = "" if loss is None else f"; loss of the last {len(logged)} steps {loss:.4f}"
    return (
        f"{settings.output}: {steps:,} steps of {settings.batch_size:,} samples, from "
        f"{count:,}{left_out}{ending}"
    )


def measured_cost(job: Job) -> dict[str, float | None]:
    """Return what a step costs, as in appendix A.4 of Wang et al. 2023.

    `forward_s` and `step_s` are means of the last 100 steps in seconds, without reading images, or
    None if no step was taken. `peak_memory_bytes` is this process's on a CPU, and what torch
    allocated on a GPU. The paper's time is that of the forward pass.
    """
    device = job.accelerator.device
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
    else:
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    forward, whole = zip(*job.times, strict=True) if job.times else ((), ())
    parameters = list(job.network.parameters())
    return {
        "forward_s": fmean(forward) if forward else None,
        "step_s": fmean(whole) if whole else None,
        "steps_measured": len(job.times),
        "peak_memory_bytes": peak,
        "parameters": sum(each.numel() for each in parameters),
        "trained_parameters": sum(each.numel() for each in parameters if each.requires_grad),
    }


def _check_losses(settings: FinetuneSettings, texts: Texts, examples: Examples) -> None:
    wants_pairs = "eqsim-v2" in settings.weights() and settings.close == "known"
    if wants_pairs and examples.matches_per_unit == 1:
        raise InputError(
            "--loss eqsim-v2: the dataset contains no close pairs; choose how to find them with "
            "--close top-k or --close multinomial"
        )
    for name, wanted in (("hard_negative", texts.negatives), ("hard_positive", texts.positives)):
        if wanted and not examples.count_texts(name):
            raise InputError(
                f"--loss: the dataset has no {name.replace('_', ' ')}s; use a dataset of the "
                "type hard-positives or training-captions"
            )


def _identity(settings: FinetuneSettings, dataset: Dataset, start: Start) -> dict[str, Any]:
    aside = {"dataset", "model", "output", "preset", "device", "workers", "checkpoint_every"}
    if not isinstance(start.encoder, TrainedFusion):
        aside |= {"distant_count", "fusion_factor"}
    return {
        **{name: value for name, value in asdict(settings).items() if name not in aside},
        "loss": [f"{name}={weight:g}" for name, weight in settings.weights().items()],
        "dataset": dataset.manifest.dataset,
        "dataset_sha256": dataset.sha256,
        "kind": start.kind,
        "model": start.weights.name,
        "revision": start.weights.digest(),
        "preprocessing": start.preprocessor.digest,
        "decoder": DECODER_VERSION,
    }


def _accelerator(settings: FinetuneSettings, examples: Examples) -> Any:
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise MissingExtra("accelerate", "models") from error
    accelerator = Accelerator(
        cpu=settings.device == "cpu",
        mixed_precision="bf16" if settings.precision == "bfloat16" else "no",
    )
    processes = accelerator.num_processes
    if settings.batch_size * examples.matches_per_unit % processes:
        raise InputError(
            f"--batch-size {settings.batch_size}: expected a multiple of {processes}, the number "
            "of processes"
        )
    return accelerator


def _prepare(
    settings: FinetuneSettings,
    texts: Texts,
    dataset: Dataset,
    examples: Examples,
    start: Start,
    folder: RunFolder,
    accelerator: Any,
) -> tuple[DualNetwork | HeadsNetwork | FusionNetwork, PixelFeed | VectorFeed]:
    seed = derive_seed(settings.seed, "heads", "start", 1)
    if isinstance(start.encoder, StoredVectors):
        stored = stored_feed(start.encoder, examples.units, texts)
        with accelerator.main_process_first():
            folder.begin()
        sizes, mlp = (stored.images.shape[1], stored.captions.shape[1]), settings.train != "heads"
        return HeadsNetwork(*sizes, SHARED, settings.temperature, seed, mlp), stored
    copied = folder.work / "pictures.arrow"
    with accelerator.main_process_first():
        folder.begin()
        if not copied.exists():
            copy_pictures(dataset, examples.image_ids(), copied)
    pictures = Pictures(copied)
    if settings.train == "heads" and start.kind == VISION_TEXT:
        freeze_encoders(start.model, settings.temperature)
    encoder = start.encoder
    if settings.train == "all" or start.kind == VISION_TEXT:
        pixels = PixelFeed(
            pictures=pictures,
            processor=start.preprocessor.image,
            tokenizer=start.tokenizer,
            texts=texts,
            stacked=not isinstance(encoder, TrainedFusion),
        )
        if isinstance(encoder, TrainedFusion):
            return FusionNetwork(encoder), pixels
        return DualNetwork(start.model, encoder), pixels
    start.model.to(accelerator.device)
    feed = encode_frozen(start, pictures, examples.units, texts, settings.workers)
    size = start.model.config.projection_dim
    return HeadsNetwork(size, size, size, settings.temperature, seed), feed


def train(job: Job) -> list[dict[str, float]]:
    settings, accelerator, steps = job.settings, job.accelerator, job.plan.steps
    groups = parameter_groups(
        job.network, settings.weight_decay, job.network.fused, settings.fusion_factor
    )
    # The betas and epsilon are CLIP's.
    optimizer: Any = torch.optim.AdamW(groups, settings.learning_rate, (0.9, 0.98), 1e-6)
    network, optimizer = accelerator.prepare(job.network.train(), optimizer)
    start = job.folder.load_checkpoint(accelerator)
    logged: list[dict[str, float]] = []
    start_s = reported = time.monotonic()
    images = 0
    is_main = accelerator.is_main_process
    order = range(start, steps)
    rank, processes = accelerator.process_index, accelerator.num_processes
    loader: Any = DataLoader(
        order,  # type: ignore[arg-type, unused-ignore]
        batch_size=None,
        collate_fn=partial(share_of_step, job.plan, job.feed, rank, processes),
        num_workers=settings.workers,
        pin_memory=accelerator.device.type == "cuda",
    )
    with job.folder.log(start if is_main else None) as write, plain_errors():
        for step, (batch, inputs) in zip(order, loader, strict=True):
            entry = _step(job, network, optimizer, step, batch, inputs)
            write(entry)
            logged = [*logged[-99:], entry]
            images += len(batch.matches)
            done, now = step + 1, time.monotonic()
            if is_main and now - reported >= REPORT_S:
                reported = now
                print(
                    f"step {done:,} of {steps:,}: loss {entry['loss']:.4f}, "
                    f"{images / (now - start_s):,.0f} images/s",
                    file=sys.stderr,
                )
            if done % settings.checkpoint_every == 0 or done == steps:
                job.folder.save_checkpoint(accelerator, done)
    return logged


def _step(
    job: Job, network: Any, optimizer: Any, step: int, batch: Batch, inputs: dict[str, Any]
) -> dict[str, float]:
    from accelerate.utils import send_to_device

    settings, accelerator, device = job.settings, job.accelerator, job.accelerator.device
    seed = derive_seed(settings.seed, f"step {step}", "losses", STEP_VERSION)
    rate = learning_rate(
        step, job.plan.steps, settings.learning_rate, settings.warmup_steps, settings.schedule
    )
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]
    optimizer.zero_grad()
    start_s = _seconds(device)
    # Dropout's draws depend only on the step, so they survive a restart.
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed + accelerator.process_index)
        inputs = send_to_device(inputs, device, non_blocking=True)
        generator = torch.Generator().manual_seed(seed)
        scale = {}
        if isinstance(job.network, FusionNetwork):
            known = {
                name: torch.from_numpy(getattr(batch, name)).to(device)
                for name in ("partners", "excluded")
            }
            losses = fusion_losses(network, inputs, settings, **known, generator=generator)
        else:
            encoded = encode_batch(network(**inputs), batch, job.feed.texts, accelerator)
            losses = compute_losses(encoded, settings, generator)
            scale = {"scale": encoded.scale.item()}
        weighted = [weight * losses[name] for name, weight in settings.weights().items()]
        total = torch.stack(weighted).sum()
        forward = _seconds(device) - start_s
        accelerator.backward(total)
    longest = math.inf if settings.max_grad_norm is None else settings.max_grad_norm
    norm = accelerator.clip_grad_norm_(network.parameters(), longest)
    entry: dict[str, float] = {
        "step": step + 1,
        "learning_rate": rate,
        "loss": total.item(),
        **{str(name): loss.item() for name, loss in losses.items()},
        **scale,
        "gradient_norm": norm.item(),
    }
    if not math.isfinite(entry["loss"]):
        raise BuildError(
            f"step {step + 1}: the loss is {entry['loss']}; try a smaller --learning-rate, or "
            "--precision float32"
        )
    optimizer.step()
    job.network.after_step()
    job.times.append((forward, _seconds(device) - start_s))
    return entry


def _seconds(device: Any) -> float:
    """Return the time when the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def learning_rate(step: int, steps: int, peak: float, warmup: float, schedule: Schedule) -> float:
    """Return a step's rate: it rises to the peak at step `warmup`, then follows the schedule.

    A `warmup` below 1 is a share of all steps.
    """
    warmup = int(warmup if warmup >= 1 else warmup * steps)
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if schedule == "constant":
        return peak
    done = (step - warmup) / max(1, steps - warmup)
    return peak * (1 - done if schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done)))


def encode_batch(
    output: tuple[Tensor, ...], batch: Batch, texts: Texts, accelerator: Any
) -> Encoded:
    images, vectors, scale, bias = output
    parts = [_gather(part, accelerator) for part in (images, *torch.split(vectors, len(images)))]
    known = {
        name: torch.from_numpy(getattr(batch, name)).to(images.device)
        for name in ("has_negative", "has_positive", "excluded", "partners")
    }
    return Encoded(
        images=parts[0],
        captions=parts[1],
        negatives=parts[2] if texts.negatives else None,
        positives=parts[-1] if texts.positives else None,
        scale=scale,
        bias=bias,
        **known,
    )


def _gather(rows: Any, accelerator: Any) -> Tensor:
    """Return the rows of all processes, in order; gradients flow only to this process's rows."""
    processes = accelerator.num_processes
    if processes == 1:
        return rows
    parts = list(accelerator.gather(rows.detach()).chunk(processes))
    if rows.requires_grad:
        rows = rows.clone()
        rows.register_hook(lambda gradient: gradient * processes)
    parts[accelerator.process_index] = rows
    return torch.cat(parts)
