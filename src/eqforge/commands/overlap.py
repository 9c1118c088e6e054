"""`eqforge overlap`: which images of a dataset a model saw in training, and which it did not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import tyro

from eqforge.commands.overlap_seen import (
    REASONS,
    Seen,
    Shown,
    collection_of,
    not_compared,
    read_looks,
    read_named,
    seen_by_id,
    seen_by_look,
    shown_images,
)
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.ranges import check_workers
from eqforge.core.shell import Command
from eqforge.schemas.tables.description import Collection
from eqforge.transforms.filters.minimality import HASH_BITS

if TYPE_CHECKING:
    import pyarrow as pa


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

    datasets: tuple[str, ...] = ()
    """Other datasets, such as one that a model was trained on. Their images count as seen: by name
    if that is an id of COCO, Visual Genome or Flickr, and by look if both datasets hold theirs."""

    max_distance: int = 24
    """Bits, of 192, in which the perceptual hashes of two images that look the same may differ."""

    workers: int = 1
    """Processes that hash the training images."""


def overlap_command(arguments: Arguments) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from eqforge.schemas.dataset.reader import open_dataset

    if not (arguments.training_ids or arguments.images or arguments.datasets):
        raise InputError(
            "nothing to compare with: name --training-ids FILE, --images FOLDER or --datasets "
            "FOLDER"
        )
    if not 0 <= arguments.max_distance <= HASH_BITS:
        raise InputError(f"--max-distance {arguments.max_distance}: expected 0 to {HASH_BITS}")
    check_workers(arguments.workers)
    dataset = open_dataset(arguments.dataset)
    shown = list(shown_images(dataset))
    if arguments.training_ids and all(each.image is None for each in shown):
        raise InputError(f"{dataset.folder}: its rows name no images; compare with --images")
    others = [open_dataset(folder) for folder in arguments.datasets]
    collection = collection_of(dataset) or arguments.names_are
    lists = arguments.training_ids, arguments.links, arguments.splits
    named = read_named(*lists, dataset, others)
    looks = read_looks(dataset, arguments.images, others, arguments.workers)
    by_look = seen_by_look(dataset, looks, arguments.max_distance)
    rows = overlap_rows(shown, by_look | seen_by_id(shown, named, collection))
    with storage.open_atomic(arguments.output) as stream:
        table = pa.Table.from_pylist(rows, schema=overlap_schema())
        pq.write_table(table, stream, compression="zstd")
    _print(rows, sum(each.unreadable for each in looks))
    if unknown := len(not_compared(shown, named, collection, bool(looks))):
        print(
            f"{unknown:,} of the images count as unseen, but could not be compared: their names "
            "are no ids of what is listed, and nothing was compared by look; --names-are says what "
            "mere numbers are, --images and --datasets compare looks"
        )
    print(f"{arguments.output}: {len(rows):,} rows")
    return 0


def overlap_rows(shown: Sequence[Shown], seen: Mapping[str, Seen]) -> list[dict[str, Any]]:
    """Return the rows of the output; a match by id takes precedence over one by look."""
    found = [seen.get(each.image or "") or seen.get(each.image_id or "") for each in shown]
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


main = Command("eqforge overlap", Arguments, overlap_command)
