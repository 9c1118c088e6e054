"""The training loop: batches, losses, steps, and what they cost.

Each of several processes encodes its share of a batch, gathers all vectors, and computes the
losses of the whole batch. Only its own share carries gradients; a hook on it makes the average
over processes equal the gradient of the whole batch.
"""

import math
import resource
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from eqforge.core.errors import BuildError
from eqforge.core.identity import derive_seed
from eqforge.evaluation.scoring.pictures import plain_errors
from eqforge.evaluation.training.command import FinetuneSettings, Schedule
from eqforge.evaluation.training.examples import Batch, Plan
from eqforge.evaluation.training.feeds import PixelFeed, Texts, VectorFeed, share_of_step
from eqforge.evaluation.training.folder import RunFolder
from eqforge.evaluation.training.fusion import FusionNetwork, fusion_losses
from eqforge.evaluation.training.losses import Encoded, compute_losses
from eqforge.evaluation.training.networks import DualNetwork, HeadsNetwork, parameter_groups

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
