"""`eqforge overlap`: find images of a dataset that a model saw in training."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import tyro

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.ranges import check_workers
from eqforge.core.shell import Command
from eqforge.core.visible import counted
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import dataset_type
from eqforge.schemas.tables.description import Collection
from eqforge.sources.training_ids import keys_of_name, read_training_ids, training_list
from eqforge.transforms.filters.minimality import HASH_BITS

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset

REASONS: Final[dict[str, str]] = {
    "id": "A list contains the image's id or name.",
    "linked_id": "A list contains an id of the same photograph in another collection.",
    "near_duplicate": "A training image looks the same.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Find images in a dataset that a model saw in training."""

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    output: str
    """Parquet file to write. Each row states whether the model saw an image, and gives the
    evidence."""

    training_ids: tuple[str, ...] = ()
    """Training images as COCO, Karpathy or Visual Genome JSON, or as lists of ids. A list is a JSON
    array, or has one id or file name per line. If ids are plain numbers, pass coco=FILE, vg=FILE or
    flickr=FILE."""

    links: tuple[Path, ...] = ()
    """Files that list several ids of the same photograph, such as Visual Genome's image_data.json.
    An image does not count as seen because it is listed in these files."""

    splits: tuple[str, ...] = ("train", "restval")
    """Splits of a list that count as training data. `all` selects every split."""

    names_are: Collection | None = None
    """Collection that the images come from. Required if the image names are only numbers, such as
    1000092795.jpg."""

    images: tuple[Path, ...] = ()
    """Folders of training images. Dataset images that look like a training image count as seen."""

    datasets: tuple[str, ...] = ()
    """Datasets whose images count as seen, matched by COCO, VG or Flickr id, or by appearance."""

    max_distance: int = 24
    """Maximum number of bits, out of 192, in which hashes of similar images differ."""

    workers: int = 1
    """Number of processes that hash the training images."""


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
      found_in: the list, folder or dataset that has it.
      distance: differing bits of the hashes; None if no hash decided.
    """

    why: str
    matched: str
    found_in: str
    distance: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """Names of seen images.

    Attributes:
      listed: the list or dataset that has an image, by its key.
      links: keys of the same photograph, by each key.
    """

    listed: Mapping[str, str]
    links: Mapping[str, set[str]]

    def match(self, names: Sequence[str]) -> Seen | None:
        linked = sorted({other for key in names for other in self.links.get(key, ())} - set(names))
        for why, keys in (("id", names), ("linked_id", linked)):
            for key in keys:
                if key in self.listed:
                    return Seen(why=why, matched=key, found_in=self.listed[key])
        return None


@dataclass(frozen=True, slots=True)
class HashList:
    """Perceptual hashes, uint64 [images, 3], of a folder or a dataset.

    `names` are files or ids; `unreadable` counts the files that are not readable images.
    """

    found_in: str
    names: tuple[str, ...]
    hashes: Any
    unreadable: int = 0


def overlap_command(arguments: Arguments) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.schemas.tables.columns import required

    if not (arguments.training_ids or arguments.images or arguments.datasets):
        options = "--training-ids FILE, --images FOLDER or --datasets FOLDER"
        raise InputError(f"there are no training images to compare; pass {options}")
    if not 0 <= arguments.max_distance <= HASH_BITS:
        raise InputError(f"--max-distance {arguments.max_distance}: expected 0 to {HASH_BITS}")
    check_workers(arguments.workers)
    dataset = open_dataset(arguments.dataset)
    shown = list(shown_images(dataset))
    if arguments.training_ids and all(each.image is None for each in shown):
        raise InputError(
            f"{dataset.folder}: the dataset contains no image names; pass the folder of images "
            "with --images"
        )
    others = [open_dataset(folder) for folder in arguments.datasets]
    collection = collection_of(dataset) or arguments.names_are
    lists = arguments.training_ids, arguments.links, arguments.splits
    named = read_named(*lists, dataset, others)
    hash_lists = read_hashes(dataset, arguments.images, others, arguments.workers)
    by_hash = seen_by_hash(dataset, hash_lists, arguments.max_distance)
    rows = overlap_rows(shown, by_hash | seen_by_id(shown, named, collection))
    text = pa.string()
    schema = pa.schema(
        [
            required("sample_id", text),
            *(pa.field(name, text) for name in ("image", "image_id")),
            required("seen", pa.bool_()),
            *(pa.field(name, text) for name in ("why", "matched", "found_in")),
            pa.field("distance", pa.int32()),
            required("sample_seen", pa.bool_()),
        ]
    )
    with storage.open_atomic(arguments.output) as stream:
        table = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(table, stream, compression="zstd")
    _print(rows, sum(each.unreadable for each in hash_lists))
    if unknown := len(not_compared(shown, named, collection, bool(hash_lists))):
        print(
            f"{unknown:,} images have names that are not ids of a listed collection. They count as "
            "unseen. For names that are plain numbers, pass --names-are. To compare the images "
            "themselves, pass --images or --datasets."
        )
    print(f"{arguments.output}: {len(rows):,} rows")


def overlap_rows(shown: Sequence[Shown], seen: Mapping[str, Seen]) -> list[dict[str, Any]]:
    """Return the rows of the output; a match by id takes precedence over one by appearance."""
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
    table.add_row(
        "unseen", f"{images[None]:,}", f"{len(unseen):,}", "None of the sample's images were seen."
    )
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(table)
    if unreadable:
        number_lost = counted(unreadable, "training images")
        console.print(f"{number_lost} could not be read or compared")


def collection_of(dataset: "Dataset") -> Collection | None:
    name = dataset.manifest.dataset
    known = BENCHMARKS.get(name)
    return known.collection if known else dataset_type(name).collection


def shown_images(dataset: "Dataset") -> Iterator[Shown]:
    columns = set(dataset.columns("samples"))
    main_image = (dataset_type(dataset.manifest.dataset).image, "image_id")
    known = (main_image, ("image_0", "image_0_id"), ("image_1", "image_1_id"))
    pairs = [(name, key) for name, key in known if key in columns]
    wanted = ["sample_id", *(name for pair in pairs for name in pair if name in columns)]
    for row in dataset.rows("samples", wanted):
        for name, key in pairs:
            if row.get(name) is not None or row[key] is not None:
                yield Shown(sample_id=row["sample_id"], image=row.get(name), image_id=row[key])


def read_named(
    lists: Iterable[str],
    links: Iterable[Path],
    splits: tuple[str, ...],
    dataset: "Dataset",
    others: Iterable["Dataset"],
) -> Named:
    """Read the names of seen images from lists and other datasets.

    A name from another dataset counts if it is the id of a collection, such as COCO's. Other names,
    such as `1.jpg`, mean the same only if both datasets belong to one benchmark.
    """
    listed: dict[str, str] = {}
    for word in lists:
        source = training_list(word)
        for keys in read_training_ids(source, splits):
            for key in keys:
                listed.setdefault(key, source.path.name)
    for other in others:
        collection, name = collection_of(other), _name_of(other)
        is_same = other.manifest.dataset == dataset.manifest.dataset
        for image in sorted({each.image for each in shown_images(other) if each.image}):
            for key in keys_of_name(image, collection):
                if is_same or not key.startswith("name:"):
                    listed.setdefault(key, name)
    linked: dict[str, set[str]] = {}
    for path in links:
        for keys in read_training_ids(training_list(str(path)), ("all",)):
            for key in keys:
                linked.setdefault(key, set()).update(keys)
    return Named(listed=listed, links=linked)


def _name_of(dataset: "Dataset") -> str:
    return dataset.folder.rstrip("/").rpartition("/")[2]


def seen_by_id(
    shown: Iterable[Shown], named: Named, collection: Collection | None
) -> dict[str, Seen]:
    names = {each.image for each in shown if each.image}
    matches = {name: named.match(keys_of_name(name, collection)) for name in names}
    return {name: match for name, match in matches.items() if match is not None}


def read_hashes(
    dataset: "Dataset", folders: Iterable[Path], others: Iterable["Dataset"], workers: int
) -> list[HashList]:
    """Hash the images in folders, and read the hashes of other datasets with images."""
    from eqforge.transforms.filters.near_duplicates import hash_folder, to_numbers

    found = []
    for folder in folders:
        if "images" not in dataset.manifest.tables:
            raise InputError(f"{dataset.folder} contains no images; {dataset.remedy}")
        hashed = hash_folder(str(folder), workers)
        unreadable = len(hashed.unreadable)
        found.append(HashList(folder.name, hashed.names, hashed.hashes, unreadable))
    for other in others if "images" in dataset.manifest.tables else ():
        rows = list(other.rows("images", ["image_id", "phash"]))
        hashes = to_numbers(row["phash"] for row in rows)
        names = tuple(row["image_id"] for row in rows)
        found.append(HashList(_name_of(other), names, hashes))
    return [each for each in found if each.names]


def seen_by_hash(
    dataset: "Dataset", hash_lists: Sequence[HashList], max_distance: int
) -> dict[str, Seen]:
    """Return, by id, the nearest match of each image that looks like a seen one."""
    from eqforge.transforms.filters.near_duplicates import nearest, to_numbers

    if not hash_lists:
        return {}
    rows = list(dataset.rows("images", ["image_id", "phash"]))
    hashes, seen = to_numbers(row["phash"] for row in rows), dict[str, Seen]()
    for each in hash_lists:
        for row, place, distance in zip(rows, *nearest(hashes, each.hashes), strict=True):
            known = seen.get(row["image_id"])
            is_nearer = known is None or known.distance is None or distance < known.distance
            if distance <= max_distance and is_nearer:
                seen[row["image_id"]] = Seen(
                    why="near_duplicate",
                    matched=each.names[place],
                    found_in=each.found_in,
                    distance=int(distance),
                )
    return seen


def not_compared(
    shown: Iterable[Shown], named: Named, collection: Collection | None, has_hashes: bool
) -> set[str]:
    """Return the images, by name or id, that could not be checked.

    Their names are ids of no listed collection, and their appearance was not compared.
    """
    known = {key.partition(":")[0] for key in (*named.listed, *named.links)}
    found = set()
    for each in shown:
        keys = keys_of_name(each.image, collection) if each.image else ()
        is_named = any(key.partition(":")[0] in known for key in keys)
        if not (is_named or (has_hashes and each.image_id)):
            found.add(each.image or each.image_id or "")
    return found


main = Command(
    "eqforge overlap",
    Arguments,
    overlap_command,
    example="eqforge overlap out/coco-pairs --training-ids ids.txt --output out/overlap.parquet",
    basics=("training-ids", "images", "datasets", "splits", "max-distance", "workers"),
)
