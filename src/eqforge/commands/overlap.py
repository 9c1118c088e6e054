"""`eqforge overlap`: which images of a dataset a model saw in training, and which it did not."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import tyro

from eqforge.schemas.errors import InputError
from eqforge.schemas.io import storage
from eqforge.schemas.machine import check_workers
from eqforge.schemas.shell import shell
from eqforge.schemas.sources.training_ids import (
    keys_of_name,
    read_training_ids,
    training_list,
)
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import dataset_type
from eqforge.schemas.tables.description import Collection
from eqforge.transforms.filters.minimality import HASH_BITS

if TYPE_CHECKING:
    import pyarrow as pa

    from eqforge.schemas.dataset.reader import Dataset

REASONS: Final[dict[str, str]] = {
    "id": "The image's own id or name is in a list.",
    "linked_id": "The id that the same photograph has in another collection is in a list.",
    "near_duplicate": "A training image looks the same.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Tell the images of a dataset that a model was trained on from those it was not."""

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    output: str
    """The Parquet file to write: a row for each image of each sample, seen or not, and why."""

    training_ids: tuple[str, ...] = ()
    """Lists of training images: COCO or Karpathy JSON, Visual Genome's image_data.json, a JSON
    array, or an id or file name a line. Bare numbers need coco=FILE, vg=FILE or flickr=FILE."""

    links: tuple[Path, ...] = ()
    """Files that say which ids are of one photograph, such as Visual Genome's image_data.json;
    their images do not count as seen."""

    splits: tuple[str, ...] = ("train", "restval")
    """Splits that count as training, where a list has splits; `all` takes every one."""

    names_are: Collection | None = None
    """What a name that is a mere number, such as 1000092795.jpg, is the id of in the dataset."""

    images: tuple[Path, ...] = ()
    """Folders of training images: the dataset's images that look the same count as seen."""

    max_distance: int = 24
    """Bits, of 192, in which the perceptual hashes of two images that look the same may differ."""

    workers: int = 1
    """Processes that hash the training images."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """One image of one sample."""

    sample_id: str
    image: str | None
    image_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """Why an image counts as seen.

    Attributes:
      why: one of REASONS.
      matched: the training image: its key, such as `coco:391895`, or its file.
      found_in: the list or folder that has it.
      distance: bits in which the hashes differ; None if no hash decided.
    """

    why: str
    matched: str
    found_in: str
    distance: int | None = None


def overlap_command(arguments: Arguments) -> int:
    """Writes and prints which images of a dataset were seen; returns the exit status."""
    from eqforge.schemas.dataset.reader import open_dataset

    _check(arguments)
    dataset = open_dataset(arguments.dataset)
    shown = list(shown_images(dataset))
    if arguments.training_ids and all(each.image is None for each in shown):
        raise InputError(f"{dataset.folder}: its rows name no images; compare with --images")
    named = _collection(dataset.manifest.dataset) or arguments.names_are
    seen = seen_by_id(shown, arguments, named)
    unreadable = seen_by_look(dataset, arguments, shown, seen)
    rows = overlap_rows(shown, seen)
    _write(rows, arguments.output)
    _print(rows, unreadable)
    print(f"{arguments.output}: {len(rows):,} rows")
    return 0


def _collection(dataset: str) -> Collection | None:
    """Returns whose pictures a dataset names; None where it is not known."""
    known = BENCHMARKS.get(dataset)
    return known.collection if known else dataset_type(dataset).collection


def _check(arguments: Arguments) -> None:
    if not arguments.training_ids and not arguments.images:
        raise InputError("nothing to compare with: name --training-ids FILE or --images FOLDER")
    if not 0 <= arguments.max_distance <= HASH_BITS:
        raise InputError(f"--max-distance {arguments.max_distance}: expected 0 to {HASH_BITS}")
    check_workers(arguments.workers)


def shown_images(dataset: "Dataset") -> Iterator[Shown]:
    """Yields every image of every sample, in the order of the rows."""
    columns = set(dataset.columns("samples"))
    pairs = [
        (name, key)
        for name, key in (
            (dataset_type(dataset.manifest.dataset).image, "image_id"),
            ("image_0", "image_0_id"),
            ("image_1", "image_1_id"),
        )
        if key in columns
    ]
    wanted = ["sample_id", *(name for pair in pairs for name in pair if name in columns)]
    for row in dataset.rows("samples", wanted):
        for name, key in pairs:
            if row.get(name) is not None or row[key] is not None:
                yield Shown(sample_id=row["sample_id"], image=row.get(name), image_id=row[key])


def seen_by_id(
    shown: Iterable[Shown], arguments: Arguments, collection: Collection | None
) -> dict[str, Seen]:
    """Returns the images that are in a list of training images, by their names."""
    listed: dict[str, str] = {}
    for word in arguments.training_ids:
        source = training_list(word)
        for keys in read_training_ids(source, arguments.splits):
            for key in keys:
                listed.setdefault(key, source.path.name)
    links: dict[str, set[str]] = {}
    for path in arguments.links:
        for keys in read_training_ids(training_list(str(path)), ("all",)):
            for key in keys:
                links.setdefault(key, set()).update(keys)
    found = {}
    for name in {each.image for each in shown if each.image is not None}:
        match = _listed(keys_of_name(name, collection), listed, links)
        if match is not None:
            found[name] = match
    return found


def _listed(
    own: Sequence[str], listed: Mapping[str, str], links: Mapping[str, set[str]]
) -> Seen | None:
    linked = sorted({other for key in own for other in links.get(key, ())} - set(own))
    for why, keys in (("id", own), ("linked_id", linked)):
        for key in keys:
            if key in listed:
                return Seen(why=why, matched=key, found_in=listed[key])
    return None


def seen_by_look(
    dataset: "Dataset", arguments: Arguments, shown: Iterable[Shown], seen: dict[str, Seen]
) -> int:
    """Adds the images that look like a training image to `seen`, by their ids.

    Returns:
      How many files of the folders are not readable images.

    Raises:
      InputError: the dataset has no images, or a folder has none.
    """
    from eqforge.transforms.filters.near_duplicates import hash_folder, nearest, to_numbers

    if not arguments.images:
        return 0
    if "images" not in dataset.manifest.tables:
        raise InputError(f"{dataset.folder}: holds no images; {dataset.remedy}")
    rows = list(dataset.rows("images", ["image_id", "phash"]))
    hashes, unreadable = to_numbers(row["phash"] for row in rows), 0
    for folder in arguments.images:
        hashed = hash_folder(str(folder), arguments.workers)
        unreadable += len(hashed.unreadable)
        if not hashed.names:
            continue
        for row, place, distance in zip(rows, *nearest(hashes, hashed.hashes), strict=True):
            known = seen.get(row["image_id"])
            is_nearer = known is None or known.distance is None or distance < known.distance
            if distance <= arguments.max_distance and is_nearer:
                seen[row["image_id"]] = Seen(
                    why="near_duplicate",
                    matched=hashed.names[place],
                    found_in=folder.name,
                    distance=int(distance),
                )
    return unreadable


def overlap_rows(shown: Sequence[Shown], seen: Mapping[str, Seen]) -> list[dict[str, Any]]:
    """Returns the rows of the output; a match by id takes precedence over one by look."""
    found = [_seen(each, seen) for each in shown]
    samples = {each.sample_id for each, why in zip(shown, found, strict=True) if why is not None}
    nothing = dict.fromkeys(("why", "matched", "found_in", "distance"))
    return [
        {
            **msgspec.to_builtins(each),
            "seen": why is not None,
            **(nothing if why is None else msgspec.to_builtins(why)),
            "sample_seen": each.sample_id in samples,
        }
        for each, why in zip(shown, found, strict=True)
    ]


def _seen(each: Shown, seen: Mapping[str, Seen]) -> Seen | None:
    for key in (each.image, each.image_id):
        if key is not None and key in seen:
            return seen[key]
    return None


def _write(rows: list[dict[str, Any]], output: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with storage.open_atomic(output) as stream:
        pq.write_table(
            pa.Table.from_pylist(rows, schema=overlap_schema()), stream, compression="zstd"
        )


def _print(rows: list[dict[str, Any]], unreadable: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("", "images", "samples", "meaning"):
        table.add_column(heading, justify="right" if heading in ("images", "samples") else "left")
    images: Counter[str | None] = Counter()
    for _, why in {(row["image"] or row["image_id"], row["why"]) for row in rows}:
        images[why] += 1
    for why, meaning in REASONS.items():
        samples = {row["sample_id"] for row in rows if row["why"] == why}
        table.add_row(why, f"{images[why]:,}", f"{len(samples):,}", meaning)
    seen = {row["sample_id"] for row in rows if row["sample_seen"]}
    unseen = {row["sample_id"] for row in rows} - seen
    number = sum(images.values()) - images[None]
    table.add_row("seen", f"{number:,}", f"{len(seen):,}", "")
    table.add_row("unseen", f"{images[None]:,}", f"{len(unseen):,}", "No image of it was seen.")
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(table)
    if unreadable:
        console.print(f"{unreadable:,} training images could not be read and were not compared")


def overlap_schema() -> "pa.Schema":
    """Returns the columns of the file that is written."""
    import pyarrow as pa

    from eqforge.schemas.tables.columns import required

    text = pa.string()
    return pa.schema(
        [
            required("sample_id", text),
            *(pa.field(name, text) for name in ("image", "image_id")),
            required("seen", pa.bool_()),
            *(pa.field(name, text) for name in ("why", "matched", "found_in")),
            pa.field("distance", pa.int32()),
            required("sample_seen", pa.bool_()),
        ]
    )


main = shell("eqforge overlap", Arguments, overlap_command)
"""Compares a dataset with what a command line names."""
