"""The training loop: AdamW steps over batches, with a log and checkpoints to resume from.

With several processes each one encodes its share of a batch, gathers all vectors, and computes the
losses of the whole batch. Only its own share carries gradients; the hook on it makes the average
over processes equal the gradient of the whole batch.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eqforge.core.errors import BuildError
from eqforge.core.identity import derive_seed
from eqforge.evaluation.training.batches import Batch, Plan, learning_rate
from eqforge.evaluation.training.feeds import Feed, Texts
from eqforge.evaluation.training.folder import RunFolder
from eqforge.evaluation.training.log import Log, Progress
from eqforge.evaluation.training.objective import Encoded, Objective, compute_losses, weighted_sum
from eqforge.evaluation.training.settings import Schedule

if TYPE_CHECKING:
    from torch import Tensor

STEP_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopSettings:
    """How the steps are made.

    Attributes:
      peak: peak learning rate.
      warmup, schedule: see `learning_rate`.
      weight_decay: weight decay of matrices.
      max_grad_norm: gradients are clipped to this norm; None for no clipping.
      betas, epsilon: of AdamW.
      workers: number of processes that decode images; 0 decodes between the steps.
      checkpoint_every: steps between checkpoints.
      seed: seed of random draws within steps.
    """

    peak: float
    warmup: int
    schedule: Schedule
    weight_decay: float
    max_grad_norm: float | None
    betas: tuple[float, float]
    epsilon: float
    workers: int
    checkpoint_every: int
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Job:
    """Everything a loop needs.

    Attributes:
      network: a DualNetwork or HeadsNetwork, on the CPU; it is trained in place.
      feed: makes its inputs; `texts` says which texts are among them.
      plan, objective, settings: batches, losses, and how steps are made.
      folder: where log and checkpoints go.
      accelerator: accelerate's, which handles devices, processes and precision.
    """

    network: Any
    feed: Feed
    texts: Texts
    plan: Plan
    objective: Objective
    settings: LoopSettings
    folder: RunFolder
    accelerator: Any


def train(job: Job) -> list[dict[str, float]]:
    """Trains to the end of the plan, from the checkpoint if there is one.

    Returns:
      The log entries of the last steps of this call, at most 100.

    Raises:
      BuildError: a loss is not finite.
    """
    import torch

    from eqforge.evaluation.training.networks import parameter_groups

    settings, accelerator = job.settings, job.accelerator
    optimizer = torch.optim.AdamW(
        parameter_groups(job.network, settings.weight_decay),
        lr=settings.peak,
        betas=settings.betas,
        eps=settings.epsilon,
    )
    start = _restore(job, optimizer)
    network, optimizer = accelerator.prepare(job.network.train(), optimizer)
    logged: list[dict[str, float]] = []
    progress = Progress(job.plan.steps, enabled=accelerator.is_main_process)
    with Log(job.folder if accelerator.is_main_process else None, start) as write:
        for step, batch, inputs in _batches(job, start):
            entry = _step(job, network, optimizer, step, batch, inputs)
            write(entry)
            logged = [*logged[-99:], entry]
            progress.report(step + 1, entry["loss"], len(batch.matches))
            done = step + 1
            if done % settings.checkpoint_every == 0 or done == job.plan.steps:
                _checkpoint(job, optimizer, done)
    return logged


def _step(
    job: Job, network: Any, optimizer: Any, step: int, batch: Batch, inputs: dict[str, Any]
) -> dict[str, float]:
    import torch

    settings, accelerator = job.settings, job.accelerator
    seed = derive_seed(settings.seed, f"step {step}", "losses", STEP_VERSION)
    generator = torch.Generator().manual_seed(seed)
    rate = learning_rate(step, job.plan.steps, settings.peak, settings.warmup, settings.schedule)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    # For dropout: draws depend on the step alone, so they survive a restart.
    device = accelerator.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed + accelerator.process_index)
        encoded = encode_batch(network(**_move(inputs, device)), batch, job)
        losses = compute_losses(encoded, job.objective, generator)
        total = weighted_sum(losses, job.objective)
        accelerator.backward(total)
    longest = math.inf if settings.max_grad_norm is None else settings.max_grad_norm
    norm = accelerator.clip_grad_norm_(network.parameters(), longest)
    entry = _entry(step, rate, total, losses, encoded.scale) | {"gradient_norm": norm.item()}
    if not math.isfinite(entry["loss"]):
        raise BuildError(
            f"step {step + 1}: the loss is {entry['loss']}; try a smaller --learning-rate, or "
            "--precision float32"
        )
    optimizer.step()
    job.network.after_step()
    return entry


def encode_batch(output: "tuple[Tensor, ...]", batch: Batch, job: Job) -> Encoded:
    """Combines the network's outputs of all processes with what is known of the batch.

    Args:
      output: unit vectors of this process's images and texts, the scale and the bias.
      batch: the whole batch.
      job: says which texts there are.
    """
    import torch

    images, texts, scale, bias = output
    device, count = images.device, images.shape[0]
    parts = [_gather(part, job.accelerator) for part in (images, *_split(texts, count))]
    negatives = parts[2] if job.texts.negatives else None
    positives = parts[-1] if job.texts.positives else None
    known = {
        name: torch.from_numpy(getattr(batch, name)).to(device)
        for name in ("has_negative", "has_positive", "excluded", "partners")
    }
    return Encoded(
        images=parts[0],
        captions=parts[1],
        negatives=negatives,
        positives=positives,
        scale=scale,
        bias=bias,
        **known,
    )


def _split(texts: Any, count: int) -> "tuple[Tensor, ...]":
    return tuple(texts.split(count))


def _gather(own: Any, accelerator: Any) -> "Tensor":
    """Returns the rows of all processes, in their order; gradients flow to this process's own."""
    import torch

    processes = accelerator.num_processes
    if processes == 1:
        return own
    parts = list(accelerator.gather(own.detach()).chunk(processes))
    if own.requires_grad:
        own = own.clone()
        own.register_hook(lambda gradient: gradient * processes)
    parts[accelerator.process_index] = own
    return torch.cat(parts)


def _batches(job: Job, start: int) -> Iterator[tuple[int, Batch, dict[str, Any]]]:
    """Yields steps with their batches, prepared ahead by worker processes."""
    from torch.utils.data import DataLoader

    from eqforge.evaluation.scoring.pictures import plain_errors
    from eqforge.evaluation.training.feeds import Steps

    steps: Any = Steps(
        plan=job.plan,
        feed=job.feed,
        rank=job.accelerator.process_index,
        processes=job.accelerator.num_processes,
    )
    order = range(start, job.plan.steps)
    loader: Any = DataLoader(
        steps,
        batch_size=None,
        sampler=order,
        num_workers=job.settings.workers,
        pin_memory=job.accelerator.device.type == "cuda",
        collate_fn=_as_it_is,
    )
    with plain_errors():
        for step, (batch, inputs) in zip(order, loader, strict=True):
            yield step, batch, inputs


def _as_it_is(item: Any) -> Any:
    return item


def _move(inputs: Mapping[str, Any], device: Any) -> dict[str, Any]:
    return {
        name: _move(value, device)
        if isinstance(value, Mapping)
        else value.to(device, non_blocking=True)
        for name, value in inputs.items()
    }


def _entry(
    step: int, rate: float, total: "Tensor", losses: "Mapping[Any, Tensor]", scale: "Tensor"
) -> dict[str, float]:
    terms = {str(name): loss.item() for name, loss in losses.items()}
    whole = {"loss": total.item(), **terms, "scale": scale.item()}
    return {"step": step + 1, "learning_rate": rate, **whole}


def _restore(job: Job, optimizer: Any) -> int:
    state = job.folder.load_checkpoint()
    if state is None:
        return 0
    try:
        job.network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        return int(state["step"])
    except Exception as error:  # a mismatch is reported in many ways
        raise job.folder.damaged(error) from error


def _checkpoint(job: Job, optimizer: Any, done: int) -> None:
    if job.accelerator.is_main_process:
        network = job.accelerator.unwrap_model(job.network)
        job.folder.save_checkpoint(
            {
                "step": done,
                "network": network.state_dict(),
                "optimizer": optimizer.state_dict(),
            }
        )
    job.accelerator.wait_for_everyone()
