"""Score a dataset: index, work, tables, manifest, in this order; a killed run resumes."""

from __future__ import annotations

import dataclasses
import platform
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from eqforge.core.console import Ticker
from eqforge.core.errors import InputError
from eqforge.core.files import pictures, storage
from eqforge.core.identity import fingerprint, versions_of
from eqforge.core.visible import counted
from eqforge.evaluation.scoring.batches import LENGTH_STEP, Batch, cut_batches
from eqforge.evaluation.scoring.gather import (
    Folder,
    cosines,
    gather_grid,
    gather_samples,
    gather_vectors,
    logits,
)
from eqforge.evaluation.scoring.index import (
    Index,
    Task,
    candidate_pairs,
    make_index,
    make_pairs,
    task_of,
    texts_to_encode,
)
from eqforge.evaluation.scoring.pictures import Failure
from eqforge.evaluation.scoring.work import (
    Job,
    caption_unit,
    done,
    make_map,
    note_name,
    read_failures,
    run_job,
    run_processes,
    share,
)
from eqforge.models.pretrained import import_torch
from eqforge.models.scorer import Identity, Scorer, gives_log_odds, is_dual_encoder
from eqforge.models.spec import load_model
from eqforge.models.stored_vectors import StoredScorer
from eqforge.schemas.dataset.manifest import WORK, to_json
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.dataset.score_tables import FILE_NAME, Quantity, ScoresManifest, open_scores

if TYPE_CHECKING:
    from eqforge.evaluation.scoring.command import ScoreSettings

_UNIT_BATCHES = 4
_CAPTIONS_AT_ONCE = 10_000


def score_dataset(settings: ScoreSettings, scorer: Scorer | None = None) -> ScoresManifest:
    """Score a dataset with a model and return the manifest of the scores.

    Args:
      scorer: loaded model, for scoring in one process; None loads the model of the settings.

    Raises:
      BuildError: out of memory, or a process was killed; the next run resumes.
    """
    dataset = open_dataset(settings.dataset)
    task = task_of(dataset, settings.task)
    import_torch()
    devices = settings.all_devices()
    if scorer is None:
        # Each of several processes loads its own model; here it is only inspected.
        scorer = load_model(settings.model, "cpu" if len(devices) > 1 else devices[0])
    _check(settings, task, scorer)
    index = make_index(dataset, task, settings.more_captions())
    if not index.images:
        raise InputError(f"{dataset.folder}: its samples have no images; {dataset.remedy}")
    if isinstance(scorer, StoredScorer):
        scorer.stored.check(index.images, texts_to_encode(dataset, index))
    header = make_header(dataset, task, scorer, settings)
    header.warnings.extend(_truncation_warnings(scorer, texts_to_encode(dataset, index)))
    folder = settings.output
    if (folder / FILE_NAME).exists():
        return _finished(folder, header)
    work = folder / WORK
    pairs = None
    if settings.candidates is not None:
        folder_of = str(settings.candidates)
        pairs = candidate_pairs(folder_of, dataset.sha256, index, settings.top)
    elif not is_dual_encoder(scorer):
        pairs = make_pairs(dataset, task, index)
    _begin(work, header, index)
    if pairs is not None:
        pairs.save(work)
        make_map(work, "values", (pairs.count,))
    units = 1 if task.crossed and pairs is not None else _UNIT_BATCHES
    batches, missing = cut_batches(dataset, index.image_numbers(), settings.image_batch, units)
    _do(work, dataset, batches, index, settings, scorer, devices)
    numbers = index.image_numbers()
    failures = {one.image: one for one in read_failures(work)} | {
        numbers[image]: Failure(
            image=numbers[image], reason="missing_image", detail="not in the table of images"
        )
        for image in missing
    }
    if len(failures) == len(index.images):
        first = failures[min(failures)]
        raise InputError(
            f"none of the {len(failures)} images could be scored, for example "
            f"{index.images[first.image]} ({first.reason}: {first.detail})"
        )
    out = Folder(output=str(folder), index=index, failures=failures)
    if not task.crossed:
        values = cosines(work) if pairs is None else logits(work, pairs)
        gathered = gather_samples(out, dataset, task, values, header)
    elif pairs is None:
        gathered = gather_vectors(out, work)
    else:
        gathered = gather_grid(out, work, pairs)
    manifest = dataclasses.replace(header, tables=gathered.tables, counts=gathered.counts)
    storage.write_bytes(str(folder / FILE_NAME), to_json(manifest))
    shutil.rmtree(work)
    return manifest


def _check(settings: ScoreSettings, task: Task, scorer: Scorer) -> None:
    if settings.captions is not None and not task.crossed:
        raise InputError(
            f"--captions: the task {task.name} cannot score extra captions; omit --captions"
        )
    if settings.candidates is not None and (not task.crossed or is_dual_encoder(scorer)):
        raise InputError("--candidates works only for retrieval with fusion encoders; omit it")


def _finished(folder: Path, header: ScoresManifest) -> ScoresManifest:
    found = open_scores(str(folder)).manifest
    warnings = header.warnings
    if dataclasses.replace(found, counts={}, tables={}, warnings=warnings) != header:
        raise InputError(
            f"{folder} contains scores for {found.dataset!r} by {found.model.name}. That run had a "
            "different dataset, model, setting or version. Choose another --output, or delete the "
            "folder"
        )
    print(f"{folder} already contains the scores", file=sys.stderr)
    return found


def _begin(work: Path, header: ScoresManifest, index: Index) -> None:
    plan = work / "plan.json"
    unwarned = msgspec.to_builtins(dataclasses.replace(header, warnings=[]))
    wanted = msgspec.json.encode([fingerprint(unwarned), index.digest()])
    if plan.exists():
        if plan.read_bytes() != wanted:
            raise InputError(
                f"{work.parent} contains unfinished scores from a run with a different dataset, "
                "model or setting; choose another --output, or delete the folder"
            )
        return
    if work.parent.exists() and any(work.parent.iterdir()) and not work.exists():
        raise InputError(f"{work.parent} contains other files; choose an empty folder")
    (work / "done").mkdir(parents=True, exist_ok=True)
    storage.write_bytes(str(plan), wanted)


def _do(
    work: Path,
    dataset: Dataset,
    batches: Sequence[Batch],
    index: Index,
    settings: ScoreSettings,
    scorer: Scorer,
    devices: Sequence[str],
) -> None:
    before, unit_captions = done(work), caption_unit(settings)
    count = -(-len(index.captions) // unit_captions) if is_dual_encoder(scorer) else 0
    captions = [unit for unit in range(count) if note_name("captions", unit) not in before]
    left = [batch for batch in batches if note_name("images", batch.unit) not in before]
    sizes_of = _unit_sizes(batches, len(index.captions) if count else 0, unit_captions)
    finished = set(before)
    ticker = Ticker(
        sizes_of.total(), "images and captions", before=sum(sizes_of[name] for name in before)
    )

    def show(names: Iterable[str]) -> None:
        finished.update(names)
        ticker.show(sum(sizes_of[name] for name in finished))

    job = Job(
        folder=work,
        dataset=dataset,
        batches=left,
        caption_units=captions,
        captions=texts_to_encode(dataset, index),
        images=len(index.images),
        device=devices[0],
        settings=settings,
    )
    if len(devices) > 1:
        run_processes(share(job, devices), show)
    else:
        for name in run_job(job, scorer):
            show([name])
    ticker.close()


def _unit_sizes(batches: Sequence[Batch], captions: int, caption_unit: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for batch in batches:
        found[note_name("images", batch.unit)] += sum(len(piece.rows) for piece in batch.pieces)
    for unit, start in enumerate(range(0, captions, caption_unit)):
        found[note_name("captions", unit)] = min(caption_unit, captions - start)
    return found


_LIBRARIES = ("torch", "transformers", "tokenizers", "pillow", "numpy", "pyarrow")


def make_header(
    dataset: Dataset, task: Task, scorer: Scorer, settings: ScoreSettings
) -> ScoresManifest:
    identity, candidates = scorer.identity, None
    if settings.candidates is not None:
        open_scores(str(settings.candidates))  # raises InputError with the problem, if any
        candidates = [storage.digest(str(settings.candidates / FILE_NAME))[1], settings.top]
    return ScoresManifest(
        dataset=dataset.manifest.dataset,
        dataset_sha256=dataset.sha256,
        task=task.name,
        quantity=quantity_of(scorer),
        images=[] if task.crossed else [column.name for column in task.images],
        captions=[] if task.crossed else [column.name for column in task.captions],
        model=identity,
        settings={
            "autocast": settings.autocast,
            "candidates": candidates,
            "decoder": pictures.VERSION,
            "batches": {
                "images": settings.image_batch,
                "captions": settings.caption_batch,
                "pairs": settings.pair_batch,
            },
            "device": device_name(settings.all_devices()[0]),
            "length_step": LENGTH_STEP,
            "max_pixels": settings.max_pixels,
            "more_captions": fingerprint(list(settings.more_captions())),
        },
        counts={},
        versions=versions_of("eqforge")
        | {"python": platform.python_version()}
        | versions_of(*_LIBRARIES),
        tables={},
        warnings=list(family_warnings(dataset.manifest.config, identity)),
    )


def quantity_of(scorer: Scorer) -> Quantity:
    if is_dual_encoder(scorer):
        return "cosine"
    return "logit" if gives_log_odds(scorer) else "score"


def device_name(device: str) -> str:
    """Return what determines a score's last bits: `cpu, one thread`, or the GPU's name."""
    if not device.startswith("cuda"):
        return "cpu, one thread" if device == "cpu" else device.partition(":")[0]
    import torch

    return torch.cuda.get_device_name(device)


def family_warnings(config: Any, identity: Identity) -> Iterator[str]:
    """Warn of every oracle of the model's family that selected the dataset's samples."""
    for judge in _judges(config):
        if str(judge.get("family", "")).casefold() == identity.family.casefold():
            yield (
                f"the dataset's oracle {judge.get('kind')}:{judge.get('model')} belongs to the "
                f"same family as this model ({identity.family!r}). The oracle kept samples that "
                "this family can distinguish, so the scores are too high"
            )


def _truncation_warnings(scorer: Scorer, captions: list[str]) -> Iterator[str]:
    if not hasattr(scorer, "count_truncated"):
        return
    starts = range(0, len(captions), _CAPTIONS_AT_ONCE)
    if count := sum(scorer.count_truncated(captions[i : i + _CAPTIONS_AT_ONCE]) for i in starts):
        yield (
            f"the model cuts off the end of {count:,} of {counted(len(captions), 'captions')}. "
            "Captions that differ only there get equal scores"
        )


def _judges(config: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(config, dict):
        return
    for name, value in sorted(config.items()):
        if name == "oracle" and isinstance(value, list):
            yield from (judge for judge in value if isinstance(judge, dict))
        else:
            yield from _judges(value)
