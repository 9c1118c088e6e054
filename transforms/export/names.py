"""Names of files, splits and columns that are safe whatever names the data have."""

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Final

from eqforge.schemas.dataset.hugging_face import split_name
from eqforge.schemas.dataset.manifest import FILE_PATH
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.datasets import table_type

_SHOWN_CHARS = 48
_DIGEST_DIGITS = 24
_SAFE: Final = re.compile(FILE_PATH)
_PATH_CHARS: Final = 200
_PART_CHARS: Final = 120


def key_of(record_id: str) -> str:
    """Return a file name for a record: the ASCII characters of its id, and a digest of the id.

    It has no slash and no dot, at which WebDataset splits names. The digest also keeps names apart
    whose ids differ only in letter case.
    """
    shown = re.sub(r"[^A-Za-z0-9]+", "_", record_id)[:_SHOWN_CHARS].strip("_")
    digest = hashlib.sha256(record_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown}-{digest[:_DIGEST_DIGITS]}" if shown else digest[:_DIGEST_DIGITS]


def is_safe(path: str) -> bool:
    fits = len(path) <= _PATH_CHARS and max(map(len, path.split("/"))) <= _PART_CHARS
    return fits and _SAFE.fullmatch(path) is not None


def split_names(splits: Iterable[str]) -> dict[str, str]:
    """Return names that `datasets` and every disk accept, distinct in any letter case.

    Splits with non-ASCII letters, or that differ only in punctuation, get a digest.
    """
    found: dict[str, str] = {}
    plain = {split: split_name(split) for split in sorted(splits)}
    folded = [name.casefold() for name in plain.values()]
    for split, name in plain.items():
        is_own = name.isascii() and len(name) <= _SHOWN_CHARS and folded.count(name.casefold()) == 1
        found[split] = name if is_own else key_of(split).replace("-", "_")
    return found


def picture_references(dataset: Dataset, table: str) -> list[str]:
    kind = table_type(dataset.manifest.dataset, table)
    if kind is None or not dataset.manifest.num_rows("images"):
        return []
    columns = dataset.columns(table)
    return [name for name, to in kind.references.items() if to == "images" and name in columns]


def picture_columns(dataset: Dataset, table: str) -> dict[str, str]:
    """Map each column of image ids to its column of images: `image_0_id` to `image_0`."""
    ids = picture_references(dataset, table)
    return {
        name: name.removesuffix("_id") if name.endswith("_id") else f"{name}_picture"
        for name in ids
    }


def renamed(columns: Iterable[str], pictures: Collection[str]) -> dict[str, str]:
    """Rename columns whose name an image column takes: `image` becomes `image_name`."""
    there = set(columns)
    names: dict[str, str] = {}
    for name in sorted(there & set(pictures)):
        new = f"{name}_name"
        while new in there:
            new += "_"
        names[name] = new
    return names
