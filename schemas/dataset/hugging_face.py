"""Configurations and splits of a dataset for Hugging Face's `datasets`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.schemas.dataset.manifest import Manifest

WHOLE: Final = "full"
"""The split of rows that name none, or several: `datasets` would call it `train`, and keeps the
word `all` for itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """A part of a dataset that `load_dataset(folder, name)` loads.

    Attributes:
      name: of the table, or `<table>-<split>`.
      path: pattern of its files.
      split: name of its rows for `datasets`.
      only: the value of the column `split` that its rows have; None where all rows are loaded.
    """

    name: str
    path: str
    split: str
    only: str | None = None


def configurations(
    manifest: Manifest, splits: Mapping[str, Iterable[str]]
) -> tuple[Configuration, ...]:
    """Return the configurations of a dataset, the default `samples` first.

    Tables without rows have none: `datasets` (5.2) cannot load a split without rows, whatever a
    card says.

    Args:
      splits: by table, the splits that its rows name.
    """
    names = [name for name in manifest.tables if manifest.num_rows(name)]
    names.sort(key=lambda name: name != "samples")
    return tuple(one for name in names for one in _of_table(name, sorted(splits.get(name, ()))))


def _of_table(table: str, splits: list[str]) -> Iterator[Configuration]:
    path = f"data/{table}-*.parquet"
    names = {split: split_name(split) for split in splits}
    whole = names[splits[0]] if len(splits) == 1 else WHOLE
    yield Configuration(name=table, path=path, split=whole)
    if len(splits) > 1 and len(set(names.values())) == len(splits):
        for split, name in names.items():
            yield Configuration(name=f"{table}-{name}", path=path, split=name, only=split)


def split_name(split: str) -> str:
    name = re.sub(r"\W", "_", split)
    return WHOLE if name in ("", "all") else name
