"""Write lists of items as data of the pages: items, rows, and columns to search by."""

import array
import base64
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.report.folder import Folder, for_page
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.kinds import spread_places
from eqforge.evaluation.report.pictures import Pictures

CHUNK: Final = 100

SEARCHED: Final = 50 * CHUNK

FACETS: Final = (
    *("dataset", "split", "kind", "change", "task", "part", "group", "role", "label"),
    *("perturbation", "applied", "words_changed", "stage", "reason", "hard_positive_kind"),
    *("hard_negative_kind", "hard_positive_kinds", "hard_negative_kinds", "source_word"),
    *("target_word", "repairs", "findings", "answer_listed", "judges", "changed columns"),
)

LINKED: Final = frozenset(("stage", "reason", "changed columns"))
"""Facets that first pages link to; kept even if all items have the same value."""

MOST_VALUES: Final = 400
"""Limit of distinct values for a facet; nobody reads longer lists."""


SHARE: Final = "questions right"
"""Share of an item's questions that a model answers correctly in every order."""

Row = Mapping[str, Any]
Shown = tuple[Item, Sequence[dict[str, Any]]]
"""An item, with the rows to search it by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """A model's verdict and number (`margin` or SHARE, lower is worse) for each item id."""

    name: str
    verdicts: Mapping[str, tuple[str, float]]
    measure: str

    @property
    def title(self) -> str:
        """Column title; prefixed, as a model may be named like a column, such as `split`."""
        return f"model: {self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TablePage:
    """A table such as `samples`; `again` is the command that rebuilds an item, without its id."""

    name: str
    thing: str
    total: int
    again: str = ""


LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "changed_area_fraction": (
        "Changed area, fraction of the image",
        "Fraction of pixels whose colour or brightness differs.",
    ),
    "ssim": ("SSIM", "Structural similarity of the two images. 1 means equal."),
    "background_ssim": ("SSIM of the background", "SSIM of the areas without changed pixels."),
    "luminance_shift": ("Brightness change, L*", "Mean L* of the second image minus the first."),
    "phash_distance": (
        "pHash distance, bits",
        "Distance of the perceptual hashes: 0 means equal, 64 opposite.",
    ),
    "word_edit_distance": (
        "Caption edit distance, words",
        "Number of words that differ between the captions.",
    ),
    "cut_histogram_change": ("Colour histogram change", "Near 1 at a camera cut."),
    "cut_registered_points": ("Matched keypoints", "Near 0 at a camera cut."),
    "luminance_mean": ("Brightness, 0 to 255", "Mean luma. Black frames are near 0."),
    "contrast": ("Contrast, 0 to 127.5", "Standard deviation of the strongest colour channel."),
    "sharpness": (
        "Sharpness",
        "Variance of the Laplacian at 256 pixels. Blurred images have low values.",
    ),
    "probability": ("Probability of drawing the row", "Weight of the row in training."),
}


def label_of(title: str) -> str:
    """Return the label of a number: `overlap_m_0` is `Overlap, m (image 0)`."""
    if title in LABELS:
        return LABELS[title][0]
    name = title.removesuffix("_0").removesuffix("_1")
    words = name.removesuffix("_m").replace("_", " ").replace("ssim", "SSIM").replace("iou", "IoU")
    unit = ", m" if name.endswith("_m") else ""
    return f"{words[:1].upper()}{words[1:]}{unit}" + (f" (image {title[-1]})" * (name != title))


@dataclass(kw_only=True, slots=True)
class Facet:
    """A column of few distinct values, with the value of each item."""

    title: str
    kept: bool = False
    found: list[tuple[str, ...]] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        return dict(sorted(Counter(value for values in self.found for value in values).items()))

    @property
    def is_many(self) -> bool:
        return any(len(values) > 1 for values in self.found)

    @property
    def is_useful(self) -> bool:
        """Whether its values distinguish items, and the list is short enough to read."""
        values = self.counts()
        several = self.kept or len(values) > 1 or any(not each for each in self.found)
        return bool(values) and several and len(values) <= MOST_VALUES

    def data(self) -> dict[str, Any]:
        places = {value: place for place, value in enumerate(self.counts())}
        size = 1 if len(places) < 0xFF else 2
        kind = np.uint8 if size == 1 else np.uint16
        if not self.is_many:
            none = len(places)
            flat = [places[values[0]] if values else none for values in self.found]
            return {"bytes": size, "data": _base64(np.array(flat, dtype=kind))}
        starts = np.cumsum([0, *map(len, self.found)], dtype=np.uint32)
        flat = [place for values in self.found for place in sorted(places[v] for v in values)]
        data = _base64(np.array(flat, dtype=kind))
        return {"starts": _base64(starts), "bytes": size, "data": data}


@dataclass(kw_only=True, slots=True)
class Numbers:
    """A column of numbers, NaN if missing; `group` names their source, such as `scores`."""

    title: str
    group: str
    found: "array.array[float]" = field(default_factory=lambda: array.array("f"))

    def values(self) -> NDArray[np.float32]:
        return np.frombuffer(self.found, dtype=np.float32)

    def finite(self) -> NDArray[np.float32]:
        values = self.values()
        return values[np.isfinite(values)]


def _base64(numbers: NDArray[Any]) -> str:
    """Encode numbers as little-endian bytes in base64, for JavaScript's typed arrays."""
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(little.tobytes()).decode("ascii")


class _Columns:
    def __init__(self, pictures: Pictures, answers: Sequence[Answers]) -> None:
        self._pictures, self._answers = pictures, answers
        self._facets: dict[str, Facet] = {}
        self._numbers: dict[tuple[str, str], Numbers] = {}
        self.items = 0

    def add(self, name: str, rows: Sequence[Row]) -> None:
        for title in FACETS:
            if values := [value for row in rows for value in _values(row.get(title))]:
                self._facet(title, values, kept=title in LINKED)
        for group, title, number in self._of_row(rows[0]):
            self._number(group, title, number)
        for each in self._answers:
            verdict, value = each.verdicts.get(name, ("not scored", None))
            self._facet(each.title, [verdict], kept=True)
            self._number(each.title, each.measure, value)
        self.items += 1

    def _of_row(self, row: Row) -> Iterator[tuple[str, str, float | None]]:
        for name, value in row.items():
            if type(value) in (int, float) and name not in {"version", "source_order"}:
                yield "", name, value
        for score in row.get("scores") or ():
            yield "scores", score["name"], score["value"]
        for name in ("image", "image_0", "image_1"):
            for title, value in self._pictures.scores.get(row.get(f"{name}_id") or "", ()):
                yield name.replace("_", " "), title, value

    def _facet(self, title: str, values: Iterable[str], *, kept: bool) -> None:
        facet = self._facets.setdefault(title, Facet(title=title, kept=kept))
        self._pad(facet)
        facet.found.append(tuple(dict.fromkeys(values)))

    def _number(self, group: str, title: str, value: float | None) -> None:
        column = self._numbers.setdefault((group, title), Numbers(title=title, group=group))
        self._pad(column)
        column.found.append(math.nan if value is None else value)

    def _pad(self, column: Facet | Numbers) -> None:
        none: Any = () if isinstance(column, Facet) else math.nan
        column.found.extend([none] * (self.items - len(column.found)))

    def done(self) -> tuple[list[Facet], list[Numbers]]:
        facets, numbers = list(self._facets.values()), list(self._numbers.values())
        for facet in facets:
            self._pad(facet)
        for number in numbers:
            self._pad(number)
        return [each for each in facets if each.is_useful], [n for n in numbers if len(n.finite())]


def _values(value: Any) -> Iterable[str]:
    if value is None or value == "":
        return ()
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    return map(str, value) if isinstance(value, (list, tuple)) else (str(value),)


@dataclass(kw_only=True, slots=True)
class Written:
    """A written table: first id of each file; `strip`, items spread over it; and `asked` items."""

    items: int = 0
    starts: list[str] = field(default_factory=list)
    facets: list[Facet] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    strip: list[dict[str, Any]] = field(default_factory=list)
    asked: dict[int, dict[str, Any]] = field(default_factory=dict)


def write_table(
    folder: Folder,
    page: TablePage,
    items: Iterable[Shown],
    pictures: Pictures,
    answers: Sequence[Answers] = (),
    strip: int = 0,
    asked: Collection[int] = (),
) -> Written:
    """Write the items of a table; return, for the first page, `strip` items and those `asked`."""
    columns, written = _Columns(pictures, answers), Written()
    places, left = spread_places(page.total, strip), iter(items)
    texts: list[str] = []
    for chunk in itertools.count():
        batch = list(itertools.islice(left, CHUNK))
        if len(texts) == SEARCHED or (texts and not batch):
            folder.write_data(f"{page.name}/texts/{(columns.items - 1) // SEARCHED}", texts)
            texts = []
        if not batch:
            break
        written.starts.append(batch[0][0].id)
        shown = [for_page(item, pictures) for item, _ in batch]
        written.strip += [each for n, each in enumerate(shown, columns.items) if n in places]
        written.asked |= {n: each for n, each in enumerate(shown, columns.items) if n in asked}
        folder.write_data(f"{page.name}/items/{chunk}", shown)
        folder.write_data(f"{page.name}/rows/{chunk}", [item.rows for item, _ in batch])
        for item, rows in batch:
            columns.add(item.id, rows)
            searched = [item.id, *(value for _, value in item.facts)]
            searched += [text.plain for text in item.all_texts()]
            searched += [] if item.why is None else [item.why.reason, item.why.detail]
            texts.append("\n".join(searched).lower())
    written.items = columns.items
    written.facets, written.numbers = columns.done()
    _write_index(folder, page, written, answers)
    return written


def _write_index(
    folder: Folder, page: TablePage, written: Written, answers: Sequence[Answers]
) -> None:
    for place, facet in enumerate(written.facets):
        folder.write_data(f"{page.name}/facets/{place}", facet.data())
    for place, number in enumerate(written.numbers):
        folder.write_data(f"{page.name}/numbers/{place}", _base64(number.values()))
    titles = [facet.title for facet in written.facets]
    named = [(number.group, number.title) for number in written.numbers]
    index = {
        "rows": written.items,
        "chunk": CHUNK,
        "search_chunk": SEARCHED,
        "thing": page.thing,
        "again": page.again,
        "starts": written.starts,
        "sorted": written.starts == sorted(written.starts),
        "facets": [
            {
                "title": facet.title,
                "values": list(counts := facet.counts()),
                "counts": list(counts.values()),
                "many": facet.is_many,
            }
            for facet in written.facets
        ],
        "numbers": [
            {
                "title": number.title,
                "label": label_of(number.title),
                "group": number.group,
                "least": float(number.finite().min()),
                "most": float(number.finite().max()),
            }
            for number in written.numbers
        ],
        "models": [
            {
                "name": each.name,
                "facet": titles.index(each.title),
                "number": named.index((each.title, each.measure)),
                "share": each.measure == SHARE,
            }
            for each in answers
            if (each.title, each.measure) in named
        ],
    }
    folder.write_data(f"{page.name}/index", index)
