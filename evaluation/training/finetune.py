"""Fine-tuning, from settings to a folder with a model that can be scored."""

from typing import Any

from eqforge.core.errors import BuildError, InputError, MissingExtra
from eqforge.core.files.pictures import VERSION as DECODER_VERSION
from eqforge.core.identity import derive_seed
from eqforge.core.versions import versions_of
from eqforge.evaluation.training.batches import Plan, count_steps
from eqforge.evaluation.training.examples import Examples, read_examples
from eqforge.evaluation.training.feeds import Feed, PixelFeed, Texts
from eqforge.evaluation.training.folder import RunFolder
from eqforge.evaluation.training.frozen import encode_frozen
from eqforge.evaluation.training.loop import Job, train
from eqforge.evaluation.training.objective import Objective
from eqforge.evaluation.training.pictures import Pictures, copy_pictures
from eqforge.evaluation.training.settings import FinetuneSettings, check_ranges
from eqforge.evaluation.training.start import Start, load_start, save_trained
from eqforge.schemas.dataset.reader import Dataset, open_dataset

FORMAT = "eqforge training"
VERSIONED = ("eqforge", "torch", "transformers", "accelerate", "numpy", "pillow")


def finetune(settings: FinetuneSettings) -> str | None:
    """Trains a model, or resumes where an earlier call was interrupted.

    Returns:
      A one-line summary; None in all processes but the first.

    Raises:
      InputError: dataset, model, settings or output folder cannot be used.
      MissingExtra: a package is not installed.
      BuildError: a loss was not finite, or the device has too little memory.
    """
    check_ranges(settings)
    objective = settings.objective()
    dataset = open_dataset(settings.dataset)
    examples = read_examples(dataset, settings.split)
    check_objective(objective, examples)
    steps = count_steps(len(examples.units), settings.batch_size, settings.epochs, settings.steps)
    start = load_start(settings.model, heads=settings.train == "heads")
    folder = RunFolder(settings.output, _identity(settings, objective, dataset, start))
    if folder.is_finished:
        return f"{settings.output}: has been trained already"
    accelerator = _accelerator(settings, examples)
    plan = Plan(
        units=examples.units,
        batch_size=settings.batch_size,
        steps=steps,
        seed=settings.seed,
        exclude_repeats=settings.exclude_repeats,
    )
    job = _job(settings, objective, plan, start, folder, accelerator, dataset, examples)
    logged = _train(job)
    if accelerator.is_main_process:
        folder.finish(
            lambda made: save_trained(made, start, accelerator.unwrap_model(job.network)),
            _outcome(accelerator, examples, steps, logged),
        )
    accelerator.wait_for_everyone()
    return _summary(settings, examples, steps, logged) if accelerator.is_main_process else None


def _train(job: Job) -> list[dict[str, float]]:
    """Trains, and says what to change where the device has too little memory."""
    import torch

    try:
        return train(job)
    except torch.OutOfMemoryError as error:
        raise BuildError(
            f"{job.accelerator.device}: out of memory; lower --batch-size, or take --train heads"
        ) from error


def check_objective(objective: Objective, examples: Examples) -> None:
    """Checks that the dataset has what the losses need.

    Raises:
      InputError: it has no pairs, or no hard texts.
    """
    wants_pairs = "eqsim-v2" in objective.weights and objective.close == "known"
    if wants_pairs and examples.matches_per_unit == 1:
        raise InputError(
            "--loss eqsim-v2: the dataset names no close pairs; choose them with --close top-k or "
            "--close multinomial"
        )
    wanted = texts_of(objective)
    for name, asked in (
        ("hard_negative", wanted.negatives),
        ("hard_positive", wanted.positives),
    ):
        if asked and not examples.count_texts(name):
            shown = name.replace("_", " ")
            raise InputError(
                f"--loss: the dataset has no {shown}s; a dataset hard-positives or "
                "training-captions has them"
            )


def texts_of(objective: Objective) -> Texts:
    """Returns the hard texts that the losses need."""
    return Texts(
        negatives="hard-negative" in objective.weights or objective.negatives_in_contrast,
        positives="hard-positive" in objective.weights,
    )


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
            f"--batch-size {settings.batch_size}: expected a multiple of the {processes} processes"
        )
    return accelerator


def _job(
    settings: FinetuneSettings,
    objective: Objective,
    plan: Plan,
    start: Start,
    folder: RunFolder,
    accelerator: Any,
    dataset: Dataset,
    examples: Examples,
) -> Job:
    from eqforge.evaluation.training.networks import DualNetwork, HeadsNetwork

    texts = texts_of(objective)
    copied = folder.work / "pictures.arrow"
    with accelerator.main_process_first():
        folder.begin()
        if not copied.exists():
            copy_pictures(dataset, examples.image_ids(), copied)
    pictures = Pictures(copied)
    feed: Feed = PixelFeed(
        pictures=pictures,
        processor=start.preprocessor.image,
        tokenizer=start.tokenizer,
        texts=texts,
    )
    network: Any = DualNetwork(start.model, start.called)
    if settings.train == "heads":
        with accelerator.main_process_first():
            start.model.to(accelerator.device)
            feed = encode_frozen(
                start=start,
                pictures=pictures,
                units=examples.units,
                texts=texts,
                workers=settings.workers,
                path=folder.work / "vectors.safetensors",
            )
        seed = derive_seed(settings.seed, "heads", "start", 1)
        width = start.model.config.projection_dim
        network = HeadsNetwork(width, settings.temperature, seed)
    return Job(
        network=network,
        feed=feed,
        texts=texts,
        plan=plan,
        objective=objective,
        settings=settings.loop(),
        folder=folder,
        accelerator=accelerator,
    )


def _identity(
    settings: FinetuneSettings, objective: Objective, dataset: Dataset, start: Start
) -> dict[str, Any]:
    """Returns everything that decides the weights, besides versions and device."""
    return {
        **settings.identity(),
        "loss": [f"{name}={weight:g}" for name, weight in objective.weights.items()],
        "dataset": dataset.manifest.dataset,
        "dataset_sha256": dataset.sha256,
        "kind": start.kind,
        "model": start.weights.name,
        "revision": start.weights.digest(),
        "preprocessing": start.preprocessor.digest,
        "decoder": DECODER_VERSION,
    }


def _outcome(
    accelerator: Any, examples: Examples, steps: int, logged: list[dict[str, float]]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": 1,
        "steps": steps,
        "samples": len(examples.units),
        "left_out": examples.left_out,
        "loss_of_last_steps": _mean_loss(logged),
        "device": str(accelerator.device.type),
        "processes": accelerator.num_processes,
        "versions": versions_of(*VERSIONED),
    }


def _mean_loss(logged: list[dict[str, float]]) -> float | None:
    return sum(entry["loss"] for entry in logged) / len(logged) if logged else None


def _summary(
    settings: FinetuneSettings, examples: Examples, steps: int, logged: list[dict[str, float]]
) -> str:
    left_out = "".join(f", {count:,} left out ({why})" for why, count in examples.left_out.items())
    loss = _mean_loss(logged)
    ending = "" if loss is None else f"; loss of the last {len(logged)} steps {loss:.4f}"
    return (
        f"{settings.output}: {steps:,} steps of {settings.batch_size:,} samples, of "
        f"{len(examples.units):,}{left_out}{ending}"
    )
