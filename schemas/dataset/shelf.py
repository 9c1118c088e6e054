"""Reads pictures of a dataset by their ids, without holding the others in memory."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.reader import Dataset


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shelf:
    """Where each picture of a dataset is stored.

    Attributes:
      dataset: the dataset.
      places: the file and the row group of each picture, by its id.
    """

    dataset: Dataset
    places: dict[str, tuple[str, int]]

    def read(self, images: Collection[str | None]) -> dict[str, bytes]:
        """Returns encoded images by id, without ids that the dataset lacks.

        Raises:
          InputError: a file is missing or damaged.
        """
        wanted = {image for image in images if image is not None and image in self.places}
        groups: defaultdict[str, set[int]] = defaultdict(set)
        for image in wanted:
            path, group = self.places[image]
            groups[path].add(group)
        found: dict[str, bytes] = {}
        for path, numbers in sorted(groups.items()):
            for table in self.dataset.groups(path, ["image_id", "image"], sorted(numbers)):
                ids = table.column("image_id").to_pylist()
                rows = [place for place, image in enumerate(ids) if image in wanted]
                for row in table.take(rows).to_pylist():
                    found[row["image_id"]] = (row["image"] or {}).get("bytes") or b""
        return found


def make_shelf(dataset: Dataset) -> Shelf:
    """Indexes the ids of a dataset's images.

    Raises:
      InputError: there is no table of images, or a file is missing or damaged.
    """
    if not dataset.files("images"):
        raise InputError(f"{dataset.folder}: has no images; {dataset.remedy}")
    places: dict[str, tuple[str, int]] = {}
    for file in dataset.files("images"):
        for number, table in enumerate(dataset.groups(file.path, ["image_id"])):
            places |= dict.fromkeys(table.column("image_id").to_pylist(), (file.path, number))
    return Shelf(dataset=dataset, places=places)
