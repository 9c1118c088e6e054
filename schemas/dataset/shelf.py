"""Read images of a dataset by id, without holding the others in memory."""

import os
import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import FILE_SUFFIXES
from eqforge.core.files.table_file import ADVICE
from eqforge.schemas.dataset.reader import Dataset


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shelf:
    """File and row group of each image of a dataset, by id."""

    dataset: Dataset
    places: dict[str, tuple[str, int]]

    def read(self, images: Collection[str | None]) -> dict[str, bytes]:
        """Return encoded images by id, without ids that the dataset lacks."""
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
    if not dataset.files("images"):
        raise InputError(f"{dataset.folder} has no images; {dataset.remedy}")
    places: dict[str, tuple[str, int]] = {}
    for file in dataset.files("images"):
        for number, table in enumerate(dataset.groups(file.path, ["image_id"])):
            places |= dict.fromkeys(table.column("image_id").to_pylist(), (file.path, number))
    return Shelf(dataset=dataset, places=places)


_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def check_picture_id(picture_id: object, folder: str) -> str:
    """Return the id of an image or mask if it is a SHA-256, 64 lower-case hexadecimal digits.

    Raises:
      InputError: it is something else, which might lead out of a folder.
    """
    if isinstance(picture_id, str) and _SHA256.fullmatch(picture_id):
        return picture_id
    raise InputError(
        f"{folder}: the image id {name_of(picture_id)} is not a SHA-256 digest; {ADVICE}"
    )


def check_suffix(suffix: object, folder: str) -> str:
    """Return the suffix of an image file, such as `.jpg`, if it is a supported one."""
    if isinstance(suffix, str) and suffix in FILE_SUFFIXES:
        return suffix
    raise InputError(
        f"{folder}: the image suffix {name_of(suffix)} is not one of "
        f"{', '.join(FILE_SUFFIXES)}; {ADVICE}"
    )


def suffix_of(path: object, folder: str) -> str:
    return check_suffix(os.path.splitext(path)[1] if isinstance(path, str) else path, folder)
