"""The manifest of scores before any are computed: dataset, model, settings, warnings."""

import dataclasses
import platform
from collections.abc import Iterator
from typing import Any

from eqforge.core.files import pictures, storage
from eqforge.core.identity import fingerprint
from eqforge.core.versions import versions_of
from eqforge.evaluation.scoring.batches import LENGTH_STEP
from eqforge.evaluation.scoring.settings import ScoreSettings
from eqforge.evaluation.scoring.tasks import Task
from eqforge.models.scorer import Identity, Scorer, gives_log_odds, is_dual_encoder
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import (
    FILE_NAME,
    Quantity,
    ScoresManifest,
    open_scores,
)

_LIBRARIES = ("torch", "transformers", "tokenizers", "pillow", "numpy", "pyarrow")


def make_header(
    dataset: Dataset, task: Task, scorer: Scorer, settings: ScoreSettings
) -> ScoresManifest:
    """Returns the manifest of scores without counts and files.

    Raises:
      InputError: the folder of candidates holds no scores.
    """
    identity = scorer.identity
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
            "candidates": _candidates_digest(settings),
            "decoder": pictures.VERSION,
            "batches": dataclasses.asdict(settings.sizes()),
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
    """Returns the quantity of a scorer's scores."""
    if is_dual_encoder(scorer):
        return "cosine"
    return "logit" if gives_log_odds(scorer) else "score"


def _candidates_digest(settings: ScoreSettings) -> list[Any] | None:
    if settings.candidates is None:
        return None
    open_scores(str(settings.candidates))  # raises InputError with the problem, if any
    return [storage.digest(str(settings.candidates / FILE_NAME))[1], settings.top]


def device_name(device: str) -> str:
    """Returns what decides a score's last bits: `cpu, one thread`, or the GPU's name."""
    if not device.startswith("cuda"):
        return "cpu, one thread" if device == "cpu" else device.partition(":")[0]
    import torch

    return torch.cuda.get_device_name(device)


def family_warnings(config: Any, identity: Identity) -> Iterator[str]:
    """Yields a warning for every oracle of the model's family that chose the dataset's samples."""
    for judge in _judges(config):
        if str(judge.get("family", "")).casefold() == identity.family.casefold():
            yield (
                f"the dataset's oracle {judge.get('kind')}:{judge.get('model')} is of the family "
                f"{identity.family!r}, as is this model: it kept the samples that this family "
                "tells apart, so the scores come out too high"
            )


def _judges(config: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(config, dict):
        return
    for name, value in sorted(config.items()):
        if name == "oracle" and isinstance(value, list):
            yield from (judge for judge in value if isinstance(judge, dict))
        else:
            yield from _judges(value)
