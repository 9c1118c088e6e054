"""Fine-tuning, from settings to a folder with a model that can be scored.

accelerate handles devices, processes, precision and checkpoints.
"""

from dataclasses import asdict
from typing import Any

import torch

from eqforge.core.errors import BuildError, InputError, MissingExtra
from eqforge.core.files.pictures import VERSION as DECODER_VERSION
from eqforge.core.identity import derive_seed, versions_of
from eqforge.evaluation.training.command import FinetuneSettings
from eqforge.evaluation.training.examples import Examples, Plan, count_steps, read_examples
from eqforge.evaluation.training.feeds import (
    Pictures,
    PixelFeed,
    Texts,
    VectorFeed,
    copy_pictures,
    encode_frozen,
    stored_feed,
)
from eqforge.evaluation.training.folder import RunFolder
from eqforge.evaluation.training.fusion import (
    FUSIONS,
    MATCHING,
    FusionNetwork,
    check_fusion,
)
from eqforge.evaluation.training.loop import Job, measured_cost, train
from eqforge.evaluation.training.networks import (
    SHARED,
    VISION_TEXT,
    DualNetwork,
    HeadsNetwork,
    Start,
    freeze_encoders,
    load_start,
    save_trained,
)
from eqforge.models.fusion import TrainedFusion
from eqforge.models.stored_vectors import StoredVectors
from eqforge.schemas.dataset.reader import Dataset, open_dataset

VERSIONED = ("eqforge", "torch", "transformers", "accelerate", "numpy", "pillow")


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
        known = " or ".join(FUSIONS)
        raise InputError(f"--loss {wrong[0]} trains only fusion encoders (--model {known})")
    elif settings.fusion_factor != 1:
        raise InputError("--fusion-factor applies only to fusion encoders; omit it")
    folder = RunFolder(settings.output, _identity(settings, dataset, start))
    if folder.is_finished:
        return f"{settings.output}: the training is already complete"
    accelerator = _accelerator(settings, examples)
    if is_fusion and accelerator.num_processes > 1:
        raise InputError(
            f"--model {settings.model}: fusion encoders train in one process, but there are "
            f"{accelerator.num_processes}. Run eqforge finetune without accelerate launch"
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
    ending = "" if loss is None else f"; loss of the last steps {loss:.4f}"
    return (
        f"{settings.output}: {steps:,} steps of {settings.batch_size:,} samples, from "
        f"{count:,}{left_out}{ending}"
    )


def _check_losses(settings: FinetuneSettings, texts: Texts, examples: Examples) -> None:
    wants_pairs = "eqsim-v2" in settings.weights() and settings.close == "known"
    if wants_pairs and examples.matches_per_unit == 1:
        raise InputError(
            "--loss eqsim-v2: the dataset contains no close pairs; pass --close top-k or --close "
            "multinomial"
        )
    for name, wanted in (("hard_negative", texts.negatives), ("hard_positive", texts.positives)):
        if wanted and not examples.count_texts(name):
            raise InputError(
                f"--loss: the dataset has no {name.replace('_', ' ')}s; use a hard-positives or "
                "training-captions dataset"
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
