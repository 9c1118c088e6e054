"""What items can be filtered and sorted by: a value or several of each item, a number of each."""

import array
import base64
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.report.pictures import Pictures

Row = Mapping[str, Any]

FACETS: Final = (
    *("dataset", "split", "kind", "change", "task", "part", "group", "role", "label"),
    *("perturbation", "applied", "words_changed", "stage", "reason"),
    *(
        "hard_positive_kind",
        "hard_negative_kind",
        "hard_positive_kinds",
        "hard_negative_kinds",
        "source_word",
        "target_word",
        "repairs",
        "findings",
        "answer_listed",
        "judges",
        "changed columns",
    ),
)
"""Columns whose values tell kinds of rows."""

LINKED: Final = frozenset(("stage", "reason", "changed columns"))
"""Those that the first pages link to: they are kept where all items have the same value."""

MOST_VALUES: Final = 400
"""A column of more values is no facet: nobody reads such a list."""

_NO_NUMBERS: Final = frozenset(("version", "source_order"))


@dataclass(kw_only=True, slots=True)
class Facet:
    """A column of few values.

    Attributes:
      title: its name.
      places: the place of each value that was seen.
      found: the places of each item's values.
      kept: whether it is shown even where all items have the same value.
    """

    title: str
    kept: bool = False
    places: dict[str, int] = field(default_factory=dict)
    found: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, item: int, values: Iterable[str]) -> None:
        """Adds the values of an item; those of items between have none."""
        self.fill(item)
        named = dict.fromkeys(values)
        self.found.append(tuple(self.places.setdefault(v, len(self.places)) for v in named))

    def fill(self, items: int) -> None:
        """Adds items without a value until there are so many."""
        self.found += [()] * (items - len(self.found))

    @property
    def is_useful(self) -> bool:
        """Whether its values tell items apart, and can be read as a list."""
        several = self.kept or len(self.places) > 1 or any(not places for places in self.found)
        return bool(self.places) and several and len(self.places) <= MOST_VALUES

    def sorted(self) -> "Facet":
        """Returns the same with its values in their order: the bytes follow from the values."""
        values = sorted(self.places)
        new = {self.places[value]: place for place, value in enumerate(values)}
        found = [tuple(sorted(new[place] for place in places)) for places in self.found]
        places = {value: place for place, value in enumerate(values)}
        return Facet(title=self.title, places=places, found=found)

    def counts(self) -> list[int]:
        """Returns how many items have each value."""
        counted = Counter(place for places in self.found for place in places)
        return [counted[place] for place in range(len(self.places))]

    @property
    def is_many(self) -> bool:
        """Whether an item has several values."""
        return any(len(places) > 1 for places in self.found)

    def data(self) -> dict[str, Any]:
        """Returns the places of the values as the pages read them."""
        size = 1 if len(self.places) < 0xFF else 2
        kind = {1: np.uint8, 2: np.uint16}[size]
        if not self.is_many:
            none = len(self.places)
            flat = np.array([places[0] if places else none for places in self.found], dtype=kind)
            return {"bytes": size, "data": _base64(flat)}
        starts = np.cumsum([0, *map(len, self.found)], dtype=np.uint32)
        flat = np.array([place for places in self.found for place in places], dtype=kind)
        return {"starts": _base64(starts), "bytes": size, "data": _base64(flat)}


@dataclass(kw_only=True, slots=True)
class Numbers:
    """A column of numbers.

    Attributes:
      title: its name.
      group: what the numbers are of, such as `scores` or the name of a model.
      found: the number of each item, NaN for none.
    """

    title: str
    group: str
    found: "array.array[float]" = field(default_factory=lambda: array.array("f"))

    def add(self, item: int, value: float | None) -> None:
        """Adds the number of an item."""
        self.fill(item)
        self.found.append(math.nan if value is None else value)

    def fill(self, items: int) -> None:
        """Adds items without a number until there are so many."""
        self.found.extend([math.nan] * (items - len(self.found)))

    def values(self) -> NDArray[np.float32]:
        """Returns the numbers [n], float32, NaN for none."""
        return np.frombuffer(self.found, dtype=np.float32)

    @property
    def is_useful(self) -> bool:
        """Whether there is any number."""
        return bool(np.isfinite(self.values()).any())

    def data(self) -> str:
        """Returns the numbers as the pages read them."""
        return _base64(self.values())


class Gathered:
    """The columns of all items, gathered one item after the other.

    Args:
      pictures: of the dataset; their scores are numbers of the items that show them.
    """

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures
        self._facets: dict[str, Facet] = {}
        self._numbers: dict[str, Numbers] = {}
        self.items = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Adds an item made of some rows of a table."""
        for name in FACETS:
            values = [value for row in rows for value in _values(row.get(name))]
            if values:
                self.facet(name, kept=name in LINKED).add(self.items, values)
        for name, value in self._of_row(rows[0]):
            group, _, title = name.rpartition("\t")
            self.number(title, group).add(self.items, value)
        self.items += 1

    def _of_row(self, row: Row) -> Iterable[tuple[str, float | None]]:
        for name, value in row.items():
            if type(value) in (int, float) and name not in _NO_NUMBERS:
                yield name, value
        for score in row.get("scores") or ():
            yield f"scores\t{score['name']}", score["value"]
        for name in ("image", "image_0", "image_1"):
            for title, value in self._pictures.scores_of(row.get(f"{name}_id")):
                yield f"{name.replace('_', ' ')}\t{title}", value

    def facet(self, title: str, *, kept: bool = False) -> Facet:
        """Returns the facet of a title, made where there is none."""
        return self._facets.setdefault(title, Facet(title=title, kept=kept))

    def number(self, title: str, group: str = "") -> Numbers:
        """Returns the numbers of a title and group, made where there are none."""
        key = f"{group}\t{title}"
        return self._numbers.setdefault(key, Numbers(title=title, group=group))

    def done(self) -> tuple[list[Facet], list[Numbers]]:
        """Returns the columns that can tell items apart."""
        columns: list[Facet | Numbers] = [*self._facets.values(), *self._numbers.values()]
        for column in columns:
            column.fill(self.items)
        facets = [facet.sorted() for facet in self._facets.values() if facet.is_useful]
        return facets, [number for number in self._numbers.values() if number.is_useful]


def _values(value: Any) -> Iterable[str]:
    if value is None or value == "":
        return ()
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    return map(str, value) if isinstance(value, (list, tuple)) else (str(value),)


def _base64(numbers: NDArray[Any]) -> str:
    """Returns numbers as the little-endian bytes that JavaScript's typed arrays read."""
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(little.tobytes()).decode("ascii")
