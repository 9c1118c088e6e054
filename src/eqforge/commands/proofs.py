"""The check of `eqforge verify` that rendered pictures prove what their captions say.

The captions are read again. What the gates measured is measured again on the stored pictures and
masks: it has to come out the same, and to keep the limits that the dataset was made with.
"""

import functools
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from eqforge.core.files.pictures import read_pixels
from eqforge.core.ticker import ticked
from eqforge.generators.scenes.assets import BUILTIN, BUILTIN_MANIFEST
from eqforge.generators.scenes.manifest import Asset, AssetWords, read_manifest
from eqforge.generators.scenes.reading import misread
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.records.scores import Score
from eqforge.transforms.generated import scene_scores
from eqforge.transforms.generated.masks import read_numbers
from eqforge.transforms.generated.render import scene_pair_of
from eqforge.transforms.generated.scene_gates import OFF, SceneGates, gate_scenes
from eqforge.transforms.generated.scene_scores import score_scenes
from eqforge.transforms.generated.scene_view import RenderedView

NOT_STORED = frozenset({f"{scene_scores.OVERLAP}_{number}" for number in (0, 1)})
"""Scores of the meshes, which are not in the dataset."""

TOLERANCE = 0.001
"""Greatest difference of a score that other versions of NumPy or SciPy may make."""


class _Parameters(msgspec.Struct, frozen=True):
    assets: dict[str, str | None] = {}


def check_proofs(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every rendered pair whose pictures or captions are not as was measured.

    Every picture is decoded once. Encoded, it waits in a temporary folder for the other one of its
    pair.
    """
    samples = {row["sample_id"]: row for row in _rendered(dataset)}
    is_measured = any(row["versions"] for row in samples.values())
    is_own = dataset.manifest.config.get("assets", BUILTIN) == BUILTIN
    for name, row in samples.items():
        said = misread(scene_pair_of(row), _words(row) if is_own else {})
        yield from (f"sample {name}: {line}" for line in said)
        if is_measured and not row["versions"]:
            yield f"sample {name}: nothing was measured on its pictures, as on those of others"
    measured = {name: row for name, row in samples.items() if row["scores"]}
    if measured:
        yield from _measured_again(dataset, measured)


def why_not_proved(dataset: Dataset) -> str:
    """Returns why stored pictures cannot be compared with what was measured on them.

    Returns:
      Empty where they can, and where there are no rendered pairs.
    """
    samples = [*_rendered(dataset)]
    if not samples or any(row["scores"] for row in samples):
        return ""
    versions = sorted({version for row in samples for version in row["versions"]})
    return (
        "its captions agree with its scenes, and its pictures are not measured again: of "
        f"{scene_scores.SCORER} {scene_scores.VERSION} it has no scores, only of versions "
        f"{', '.join(versions) or 'before'}"
    )


def _measured_again(dataset: Dataset, samples: dict[str, dict[str, Any]]) -> Iterator[str]:
    gates = _gates(dataset)
    masks = dict(_pictures(dataset, "masks", "mask_id", samples))
    users = defaultdict(set)
    for name, row in samples.items():
        for number in (0, 1):
            users[row[f"image_{number}_id"]].add(name)
    # An id is whatever the file says, such as `../../.bashrc`, and so never a part of a path.
    numbers = {image: str(number) for number, image in enumerate(users)}
    missing = {name: {row["image_0_id"], row["image_1_id"]} for name, row in samples.items()}
    with tempfile.TemporaryDirectory() as folder:
        files = {image: Path(folder, number) for image, number in numbers.items()}
        pictures = _pictures(dataset, "images", "image_id", samples)
        for image, data in ticked(pictures, len(users), "proofs", "pictures"):
            files[image].write_bytes(data)
            for name in users[image]:
                missing[name].discard(image)
                if not missing[name]:
                    yield from _wrong(samples[name], files, masks, gates)


@functools.cache
def _builtin() -> Mapping[str, Asset]:
    return read_manifest(BUILTIN_MANIFEST).assets


def _words(row: Mapping[str, Any]) -> dict[str, AssetWords]:
    """Returns what those of a pair's assets are called that eqforge brings, told by digest.

    A manifest of a user, which is not in the dataset, may call others what it likes.
    """
    used = msgspec.json.decode(row["generation"]["parameters"], type=_Parameters).assets
    known = {name: _builtin()[name] for name in used if name in _builtin()}
    return {
        name: asset.words
        for name, asset in known.items()
        if asset.words is not None and asset.sha256 == used[name]
    }


def _gates(dataset: Dataset) -> SceneGates:
    """Returns the limits that a dataset says it was made with; none where it says none.

    A gate that was not there yet when it was made is off.
    """
    settings = dataset.manifest.config.get("settings")
    limits = settings.get("scenes") if isinstance(settings, dict) else None
    return msgspec.convert({**asdict(OFF), **(limits or {})}, SceneGates)


def _rendered(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields the rendered pairs.

    Their `scores` are those that this version measures, by name, and `versions` those of all that
    were measured on the scenes.
    """
    if not {"spec_0", "mask_0_id", "objects_0", "scores"} <= set(dataset.columns("samples")):
        return
    names = [
        *("sample_id", "kind", "change", "caption_0", "caption_1", "spec_0", "spec_1"),
        *("image_0_id", "image_1_id", "mask_0_id", "mask_1_id", "objects_0", "objects_1"),
        *("scores", "generation"),
    ]
    for row in dataset.rows("samples", names):
        if row["generation"]["generator"] != "kubric":
            continue
        of_scenes = [each for each in row["scores"] if each["scorer"] == scene_scores.SCORER]
        row["versions"] = {score["version"] for score in of_scenes}
        row["scores"] = {
            score["name"]: score["value"]
            for score in of_scenes
            if score["version"] == scene_scores.VERSION
        }
        yield row


def _pictures(
    dataset: Dataset, table: str, key: str, samples: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, bytes]]:
    column = key.removesuffix("_id")
    wanted = {row[f"{column}_{number}_id"] for row in samples.values() for number in (0, 1)}
    for row in dataset.rows(table, [key, "image"]):
        if row[key] in wanted:
            yield row[key], row["image"]["bytes"]


def _wrong(
    row: Mapping[str, Any], files: Mapping[str, Path], masks: Mapping[str, bytes], gates: SceneGates
) -> Iterator[str]:
    sample = row["sample_id"]
    first, second = (_view(row, number, files, masks) for number in (0, 1))
    for view in (first, second):
        if view.numbers.shape != view.pixels.shape[:2]:
            yield f"sample {sample}: a mask has another size than its picture"
            return
    found = {score.name: score.value for score in score_scenes(scene_pair_of(row), (first, second))}
    for name, stored in row["scores"].items():
        if name not in NOT_STORED and not _are_same(stored, found.get(name)):
            yield (
                f"sample {sample}: {name} of the stored pictures is {found.get(name)}, and "
                f"{stored} was measured"
            )
    for name in sorted(found.keys() - row["scores"].keys()):
        yield f"sample {sample}: its score {name} is missing"
    yield from (f"sample {sample}: {said}" for said in _refused(row["scores"], gates))


def _refused(scores: Mapping[str, float | None], gates: SceneGates) -> Iterator[str]:
    """Yields which limit of its dataset a pair's scores are beyond, as stored, if none is missing.

    What is measured here may differ by the tolerance, so a pair may be beyond a limit only here.
    """
    try:
        refused = gate_scenes([_score(name, value) for name, value in scores.items()], gates)
    except KeyError:
        return  # said already
    if refused is not None:
        yield (
            f"is refused for {refused.reason}: {refused.detail} is {refused.value}, and the "
            f"limit of its dataset {refused.threshold}"
        )


def _score(name: str, value: float | None) -> Score:
    return Score(
        name=name,
        value=value,
        scorer=scene_scores.SCORER,
        version=scene_scores.VERSION,
        settings="{}",
    )


def _view(
    row: Mapping[str, Any], number: int, files: Mapping[str, Path], masks: Mapping[str, bytes]
) -> RenderedView:
    return RenderedView(
        pixels=read_pixels(files[row[f"image_{number}_id"]].read_bytes()),
        numbers=read_numbers(masks[row[f"mask_{number}_id"]]),
        objects=tuple(msgspec.convert(shown, RenderedObject) for shown in row[f"objects_{number}"]),
        overlaps=(),
    )


def _are_same(stored: float | None, found: float | None) -> bool:
    if stored is None or found is None:
        return stored is found
    return abs(stored - found) <= TOLERANCE
