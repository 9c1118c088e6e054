"""Which images of a dataset are those of others: by their names, and by how they look."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eqforge.core.errors import InputError
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import dataset_type
from eqforge.schemas.tables.description import Collection
from eqforge.sources.training_ids import keys_of_name, read_training_ids, training_list

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset

REASONS: Final[dict[str, str]] = {
    "id": "The image's own id or name is in a list.",
    "linked_id": "The id that the same photograph has in another collection is in a list.",
    "near_duplicate": "A training image looks the same.",
}
_OWN_NAME = "name"


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
      distance: bits in which the hashes differ; None if no hash decided.
    """

    why: str
    matched: str
    found_in: str
    distance: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """The names of the images that were seen.

    Attributes:
      listed: the list or dataset that has an image, by its key.
      links: the keys of the same photograph, by each of them.
    """

    listed: Mapping[str, str]
    links: Mapping[str, set[str]]

    def match(self, own: Sequence[str]) -> Seen | None:
        linked = sorted({other for key in own for other in self.links.get(key, ())} - set(own))
        for why, keys in (("id", own), ("linked_id", linked)):
            for key in keys:
                if key in self.listed:
                    return Seen(why=why, matched=key, found_in=self.listed[key])
        return None

    def collections(self) -> set[str]:
        return {key.partition(":")[0] for key in (*self.listed, *self.links)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Looks:
    """How the images of a folder or a dataset look.

    Attributes:
      found_in: name of the folder or dataset.
      names: the images' files or ids.
      hashes: their perceptual hashes, uint64 [images, 3].
      unreadable: number of files that are no readable images.
    """

    found_in: str
    names: tuple[str, ...]
    hashes: Any
    unreadable: int = 0


def collection_of(dataset: "Dataset") -> Collection | None:
    """Return whose images a dataset names; None where it is not known."""
    name = dataset.manifest.dataset
    known = BENCHMARKS.get(name)
    return known.collection if known else dataset_type(name).collection


def shown_images(dataset: "Dataset") -> Iterator[Shown]:
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


def read_named(
    lists: Iterable[str],
    links: Iterable[Path],
    splits: tuple[str, ...],
    dataset: "Dataset",
    others: Iterable["Dataset"],
) -> Named:
    """Read the names of the images that were seen.

    A name of another dataset counts if it is the id of a collection, such as COCO's. Others, such
    as `1.jpg`, mean the same only where both are of one benchmark.

    Args:
      lists: files of training images, as the command line names them.
      links: files that say which ids are of one photograph.
      splits: splits that count as training, where a list has splits.
      dataset: the dataset whose images are looked for.
      others: datasets whose images count as seen.
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
                if is_same or not key.startswith(f"{_OWN_NAME}:"):
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
    found = {}
    for name in {each.image for each in shown if each.image}:
        match = named.match(keys_of_name(name, collection))
        if match is not None:
            found[name] = match
    return found


def read_looks(
    dataset: "Dataset", folders: Iterable[Path], others: Iterable["Dataset"], workers: int
) -> list[Looks]:
    """Hash the images of folders, and read the hashes of other datasets that hold images."""
    from eqforge.transforms.filters.near_duplicates import hash_folder, to_numbers

    found = []
    for folder in folders:
        if "images" not in dataset.manifest.tables:
            raise InputError(f"{dataset.folder}: holds no images; {dataset.remedy}")
        hashed = hash_folder(str(folder), workers)
        found.append(
            Looks(
                found_in=folder.name,
                names=hashed.names,
                hashes=hashed.hashes,
                unreadable=len(hashed.unreadable),
            )
        )
    for other in others if "images" in dataset.manifest.tables else ():
        rows = list(other.rows("images", ["image_id", "phash"]))
        hashes = to_numbers(row["phash"] for row in rows)
        names = tuple(row["image_id"] for row in rows)
        found.append(Looks(found_in=_name_of(other), names=names, hashes=hashes))
    return [looks for looks in found if looks.names]


def seen_by_look(dataset: "Dataset", looks: Sequence[Looks], max_distance: int) -> dict[str, Seen]:
    """Return, by id, the images that look like one that was seen, each with the nearest."""
    from eqforge.transforms.filters.near_duplicates import nearest, to_numbers

    if not looks:
        return {}
    rows = list(dataset.rows("images", ["image_id", "phash"]))
    hashes, seen = to_numbers(row["phash"] for row in rows), dict[str, Seen]()
    for each in looks:
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
    shown: Iterable[Shown], named: Named, collection: Collection | None, has_looks: bool
) -> set[str]:
    """Return the images, by name or id, of which nothing shows whether they were seen.

    Their names are ids of no collection that the lists have, and their looks were not compared.
    """
    known = named.collections()
    return {
        each.image or each.image_id or ""
        for each in shown
        if not (has_looks and each.image_id)
        and not (
            each.image
            and {key.partition(":")[0] for key in keys_of_name(each.image, collection)} & known
        )
    }
