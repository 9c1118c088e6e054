"""The check of `eqforge verify` that rendered pictures prove what their captions say.

What the gates measured is measured again on the stored pictures and masks, and the captions are
read again.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from eqforge.generators.scenes.reading import misread
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.io.pictures import read_pixels
from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.ticker import ticked
from eqforge.transforms.generated import scene_scores
from eqforge.transforms.generated.masks import read_numbers
from eqforge.transforms.generated.render import scene_pair_of
from eqforge.transforms.generated.scene_scores import RenderedView, score_scenes

NOT_STORED = frozenset({f"{scene_scores.OVERLAP}_{number}" for number in (0, 1)})
"""Scores of the meshes, which are not in the dataset."""

TOLERANCE = 0.001
"""Greatest difference of a score that other versions of NumPy or SciPy may make."""


def check_proofs(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every rendered pair whose pictures or captions are not as was measured.

    Every picture is decoded once. Encoded, it waits in a temporary folder for the other one of its
    pair.
    """
    samples = dict(_rendered(dataset))
    if not samples:
        return
    masks = dict(_pictures(dataset, "masks", "mask_id", samples))
    users = defaultdict(set)
    for name, row in samples.items():
        for number in (0, 1):
            users[row[f"image_{number}_id"]].add(name)
    missing = {name: {row["image_0_id"], row["image_1_id"]} for name, row in samples.items()}
    with tempfile.TemporaryDirectory() as folder:
        pictures = _pictures(dataset, "images", "image_id", samples)
        for image, data in ticked(pictures, len(users), "proofs", "pictures"):
            Path(folder, image).write_bytes(data)
            for name in users[image]:
                missing[name].discard(image)
                if not missing[name]:
                    yield from _wrong(samples.pop(name), folder, masks)


def _rendered(dataset: Dataset) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the rendered pairs that this version measures as they were measured."""
    if not {"spec_0", "mask_0_id", "objects_0", "scores"} <= set(dataset.columns("samples")):
        return
    names = [
        *("sample_id", "kind", "change", "caption_0", "caption_1", "spec_0", "spec_1"),
        *("image_0_id", "image_1_id", "mask_0_id", "mask_1_id", "objects_0", "objects_1"),
        "scores",
    ]
    for row in dataset.rows("samples", names):
        row["scores"] = {
            score["name"]: score["value"]
            for score in row["scores"]
            if (score["scorer"], score["version"]) == (scene_scores.SCORER, scene_scores.VERSION)
        }
        if row["scores"] and row["mask_0_id"] is not None and row["mask_1_id"] is not None:
            yield row["sample_id"], row


def _pictures(
    dataset: Dataset, table: str, key: str, samples: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, bytes]]:
    column = key.removesuffix("_id")
    wanted = {row[f"{column}_{number}_id"] for row in samples.values() for number in (0, 1)}
    for row in dataset.rows(table, [key, "image"]):
        if row[key] in wanted:
            yield row[key], row["image"]["bytes"]


def _wrong(row: Mapping[str, Any], folder: str, masks: Mapping[str, bytes]) -> Iterator[str]:
    pair, sample = scene_pair_of(row), row["sample_id"]
    for said in misread(pair):
        yield f"sample {sample}: {said}"
    first, second = (_view(row, number, folder, masks) for number in (0, 1))
    for view in (first, second):
        if view.numbers.shape != view.pixels.shape[:2]:
            yield f"sample {sample}: a mask has another size than its picture"
            return
    found = {score.name: score.value for score in score_scenes(pair, (first, second))}
    for name, stored in row["scores"].items():
        if name not in NOT_STORED and not _are_same(stored, found.get(name)):
            yield (
                f"sample {sample}: {name} of the stored pictures is {found.get(name)}, and "
                f"{stored} was measured"
            )


def _view(
    row: Mapping[str, Any], number: int, folder: str, masks: Mapping[str, bytes]
) -> RenderedView:
    return RenderedView(
        pixels=read_pixels(Path(folder, row[f"image_{number}_id"]).read_bytes()),
        numbers=read_numbers(masks[row[f"mask_{number}_id"]]),
        objects=tuple(msgspec.convert(shown, RenderedObject) for shown in row[f"objects_{number}"]),
        overlaps=(),
    )


def _are_same(stored: float | None, found: float | None) -> bool:
    if stored is None or found is None:
        return stored is found
    return abs(stored - found) <= TOLERANCE
