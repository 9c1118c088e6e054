"""Checks of `eqforge verify` by row: values, related rows, and images of generated pairs."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from eqforge.core.console import ticked
from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import sha256_hex
from eqforge.core.visible import counted
from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.claims import differs_as_declared
from eqforge.generators.scenes.propose import DATASET, SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.text.words import count_words, has_same_words, word_edit
from eqforge.schemas.dataset.manifest import run_of
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.scenes import RenderedObject, ScenePair
from eqforge.schemas.records.values import Span, spans_of
from eqforge.schemas.tables.description import TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE
from eqforge.schemas.tables.texts import ENCODED_CHARACTERS, PerturbedCaption
from eqforge.schemas.tables.vlue import RetrievalCaption
from eqforge.transforms.dataset.errata import EDITS
from eqforge.transforms.filters import minimality
from eqforge.transforms.generated import scene_scores
from eqforge.transforms.generated.pairs import read_numbers
from eqforge.transforms.generated.render import scene_pair_of
from eqforge.transforms.generated.scene_colours import RenderedView
from eqforge.transforms.generated.scene_scores import score_scenes

MAX_MEASURED = 10_000
"""Rows remeasured per table; in larger tables about this many, chosen by hash."""

_JSON = ("annotation", "parameters", "settings", "spec_0", "spec_1")


def is_measured(key: str, rows: int) -> bool:
    return int(sha256_hex(key.encode())[:8], 16) * rows < MAX_MEASURED << 32


def watched(
    dataset: Dataset, kind: TableType, records: Iterable[Any], found: list[str]
) -> Iterator[Any]:
    """Yield the records of a table unchanged, and add their faults to `found`."""
    rows, images = (dataset.manifest.num_rows(name) for name in (kind.name, IMAGES_TABLE.name))
    for record in records:
        key = kind.key_of(record)
        faults = list(_misfits(record, ""))
        if images and getattr(record, "image_id", "") is None:
            faults.append("image_id is null, although the dataset has images")
        if is_measured(key, rows):
            faults += measured_faults(record)
        found += [f"{kind.name}: {key}: {fault}" for fault in faults]
        yield record


def _misfits(record: Any, place: str) -> Iterator[str]:
    """Yield the columns of a record, and of nested records, that contradict the others."""
    for column, fits in getattr(record, "RULES", {}).items():
        if not fits(record):
            yield f"{place}{column} contradicts other columns"
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        several = value if isinstance(value, tuple) else (value,)
        if value == "0" * 64:
            yield f"{place}{name} is not a valid digest"
        elif name in _JSON:
            try:
                json.loads(value)
            except ValueError:
                yield f"{place}{name} is not valid JSON"
        elif several and is_dataclass(several[0]):
            for each in several:
                yield from _misfits(each, f"{place}{name}.")


def measured_faults(record: Any) -> Iterator[str]:
    """Yield the columns that differ from a new measurement of a record's texts."""
    names = record.__dataclass_fields__.keys()
    for first, second, spans_0, spans_1 in EDITS:
        if {first, second, spans_0, spans_1} <= names:
            yield from _edit_faults(record, (first, second), (spans_0, spans_1))
    if isinstance(record, PerturbedCaption):
        end = ENCODED_CHARACTERS if record.mode == "paper" else None
        is_same = has_same_words(record.caption[:end], record.perturbed_caption[:end])
        if record.words_changed == is_same:
            yield f"words_changed is {record.words_changed}, but the texts show the opposite"
    if isinstance(record, RetrievalCaption) and record.words != count_words(record.caption):
        number = counted(count_words(record.caption), "words")
        yield f"'words' is {record.words}, but the caption has {number}"


def _edit_faults(record: Any, texts: tuple[str, str], columns: tuple[str, str]) -> Iterator[str]:
    (before, after), spans = attrgetter(*texts)(record), attrgetter(*columns)(record)
    edit, distance = word_edit(before, after), getattr(record, "word_edit_distance", None)
    if distance not in (None, edit.distance):
        number = counted(edit.distance, "words")
        yield f"word_edit_distance is {distance}, but the texts differ in {number}"
    by_words = spans == (spans_of(edit.spans_0), spans_of(edit.spans_1))
    by_rule = distance is None and _outside(before, spans[0]) == _outside(after, spans[1])
    if not (by_words or by_rule or getattr(record, "repairs", None)):  # such as of an article
        yield f"{' and '.join(columns)} do not mark where the texts differ"


def _outside(text: str, spans: Sequence[Span]) -> list[str] | int:
    """Return the pieces of a text outside spans; its length if spans exceed it."""
    ends = [0, *(span.end for span in spans)]
    starts = [*(span.start for span in spans), len(text)]
    pieces = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    return pieces if max(ends) <= len(text) else -len(text) - 1


NOT_STORED = frozenset({"overlap_m_0", "overlap_m_1"})
"""Scores of the meshes, which are not in the dataset."""

TOLERANCE = 0.001
"""Largest difference of a score between versions of NumPy or SciPy."""

TOLERANCES = {
    **dict.fromkeys(("changed_area_fraction", "ssim", "background_ssim"), 0.005),
    **{"luminance_shift": 0.1, "phash_distance": 8},
}
"""The same for measures of JPEG pairs, which also depend on the decoder."""


def check_locked_areas(dataset: Dataset) -> Iterator[str]:
    if not {"mask_0_id", "source_sha256"} <= set(dataset.columns("samples")):
        return  # no edited photographs
    names = ["sample_id", "image_0_id", "image_1_id", "mask_0_id", "mask_1_id", "generation"]
    locked = []
    for row in dataset.rows("samples", names):
        mask = json.loads(row["generation"]["parameters"]).get("mask") or {}
        if row["mask_0_id"] is not None and mask.get("lock"):
            locked.append(row)
    for row, pixels, masks in _pictures(dataset, locked, "locked areas"):
        if not pixels[0].shape == pixels[1].shape == (*masks[0].shape, 3):
            yield f"sample {row['sample_id']}: its mask and its images differ in size"
        elif (pixels[0] != pixels[1])[masks[0] == 0].any():
            where = "outside the mask, although this area was locked"
            yield f"sample {row['sample_id']}: its images differ {where}"


def _check_pairs(dataset: Dataset) -> Iterator[str]:
    columns = ["sample_id", "image_0_id", "image_1_id", *TOLERANCES]
    if not {*columns} <= {*dataset.columns("samples")}:
        return
    total = dataset.manifest.num_rows("samples")
    rows = [r for r in dataset.rows("samples", columns) if is_measured(r["sample_id"], total)]
    for row, pixels, _ in _pictures(dataset, rows, "pairs"):
        found = minimality.measure_pair(*map(minimality.view, pixels))
        for name, tolerance in TOLERANCES.items():
            value, now = row[name], getattr(found, name)
            if value is not now and (None in (value, now) or not abs(value - now) <= tolerance):
                yield f"sample {row['sample_id']}: {name} is {value}, but its images give {now}"


def check_specs(dataset: Dataset) -> Iterator[str]:
    for row in _rendered(dataset):
        if not differs_as_declared(scene_pair_of(row)):
            yield (
                f"sample {row['sample_id']}: expected scenes that differ only in {row['change']}"
            )


def check_scores(dataset: Dataset) -> Iterator[str]:
    yield from _check_pairs(dataset)
    rows = list(_rendered(dataset))
    is_measured = any(row["versions"] for row in rows)
    for row in rows:
        if is_measured and not row["versions"]:
            name = row["sample_id"]
            yield f"sample {name} has no measured scores, unlike other samples"
    measured = [row for row in rows if row["scores"]]
    for row, pixels, masks in _pictures(dataset, measured, "stored scores"):
        sample, stored = row["sample_id"], row["scores"]
        if any(mask.shape != each.shape[:2] for each, mask in zip(pixels, masks, strict=True)):
            yield f"sample {sample}: a mask and its image differ in size"
            continue
        objects = [msgspec.convert(row[f"objects_{n}"], list[RenderedObject]) for n in (0, 1)]
        first, second = (
            RenderedView(pixels=each, numbers=mask, objects=tuple(shown), overlaps=())
            for each, mask, shown in zip(pixels, masks, objects, strict=True)
        )
        scores = score_scenes(scene_pair_of(row), (first, second))
        found = {score.name: score.value for score in scores}
        for name, value in stored.items():
            now = found.get(name)
            is_same = value is now or (None not in (value, now) and abs(value - now) <= TOLERANCE)
            if name not in NOT_STORED and not is_same:
                yield (
                    f"sample {sample}: {name} is {now} for the stored images, but its row says "
                    f"{value}"
                )
        for name in sorted(found.keys() - stored.keys()):
            yield f"sample {sample}: its score {name} is missing"


def check_scene_captions(dataset: Dataset) -> Iterator[str]:
    """Yield a line for every rendered pair whose captions do not match its scenes.

    The pair's seed redraws both. Nothing is compared if it draws different scenes, as another
    version of eqforge may, or if an erratum corrected a caption.
    """
    manifest = dataset.manifest
    if manifest.dataset != DATASET or manifest.config.get("assets") != BUILTIN:
        return
    proposer = SceneProposer(
        msgspec.convert(manifest.config["scenes"], SceneSettings),
        AssetLibrary(BUILTIN, ""),
        "paper" if manifest.mode == "paper" else "corrected",
        run_of(manifest.config)["seed"],
    )
    corrected = {erratum.id for erratum in manifest.errata}
    for row in _rendered(dataset):
        kind, number = row["kind"], int(row["sample_id"].rpartition("/")[2])
        stored = scene_pair_of(row)
        if proposer.captions(kind, number) == stored.captions or stored.sample_id in corrected:
            continue
        pair = proposer.pair(kind, number)
        if not isinstance(pair, ScenePair):
            continue
        if (pair.scenes, pair.claims) == (stored.scenes, stored.claims):
            yield f"sample {stored.sample_id}: its captions do not match its scenes"


def why_not_measured(dataset: Dataset) -> str:
    """Explain why stored images cannot be remeasured; empty if they can."""
    rows = list(_rendered(dataset))
    if not rows or any(row["scores"] for row in rows):
        return ""
    versions = sorted({version for row in rows for version in row["versions"]})
    return (
        f"the images were not measured again: the scores are from {scene_scores.SCORER} version "
        f"{', '.join(versions) or '(unknown)'}, not {scene_scores.VERSION}"
    )


def _rendered(dataset: Dataset) -> Iterator[dict[str, Any]]:
    if not {"spec_0", "mask_0_id", "objects_0", "scores"} <= set(dataset.columns("samples")):
        return
    names = [
        *("sample_id", "kind", "change", "caption_0", "caption_1", "spec_0", "spec_1"),
        *("image_0_id", "image_1_id", "mask_0_id", "mask_1_id", "objects_0", "objects_1"),
        *("scores", "generation"),
    ]
    for row in dataset.rows("samples", names):
        if row["generation"]["generator"] == "kubric":
            scores = [each for each in row["scores"] if each["scorer"] == scene_scores.SCORER]
            row["versions"] = {score["version"] for score in scores}
            row["scores"] = {
                score["name"]: score["value"]
                for score in scores
                if score["version"] == scene_scores.VERSION
            }
            yield row


def _pictures(
    dataset: Dataset, samples: list[dict[str, Any]], task: str
) -> Iterator[tuple[dict[str, Any], list[NDArray[np.uint8]], list[NDArray[Any]]]]:
    """Yield samples with the pixels of their two images and the numbers of their masks.

    Every file is read once: an encoded image waits in a temporary folder for its pair.
    """
    if not samples:
        return
    wanted = {row.get(f"mask_{number}_id") for row in samples for number in (0, 1)} - {None}
    masks = {
        row["mask_id"]: row["image"]["bytes"]
        for row in (dataset.rows("masks", ["mask_id", "image"]) if wanted else ())
        if row["mask_id"] in wanted
    }
    users = defaultdict(list)
    missing = []
    for place, row in enumerate(samples):
        missing.append({row["image_0_id"], row["image_1_id"]})
        for image in missing[place]:
            users[image].append(place)
    # An id is whatever the file says, such as `../../.bashrc`, and so never a part of a path.
    numbers = {image: str(number) for number, image in enumerate(users)}
    rows = dataset.rows("images", ["image_id", "image"])
    with tempfile.TemporaryDirectory() as folder:
        for stored in ticked(rows, dataset.manifest.num_rows("images"), task, "pictures"):
            if (name := stored["image_id"]) not in users:
                continue
            Path(folder, numbers[name]).write_bytes(stored["image"]["bytes"])
            for place in users[name]:
                missing[place].discard(name)
                if not missing[place]:
                    row = samples[place]
                    files = [Path(folder, numbers[row[f"image_{n}_id"]]) for n in (0, 1)]
                    shown = [read_numbers(masks[row[f"mask_{n}_id"]]) for n in (0, 1) if masks]
                    yield row, [read_pixels(file.read_bytes()) for file in files], shown
