"""VL-CheckList's tree of files: `[image, {"POS": [...], "NEG": [...]}]`.

The i-th NEG was made from the i-th POS; each of these pairs is a row.

Source: Zhao et al. 2022, "VL-CheckList"; github.com/om-ai-lab/VL-CheckList, data/.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any, Final

from eqforge.sources.benchmarks.form import BenchmarkItem, Entry, Form, record_id

TYPES: Final = ("Attribute", "Object", "Relation")
PATTERNS: Final = tuple(f"{name}/*.json" for name in TYPES)


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields an item for each caption of a record and its negative."""
    node = entry.node
    image, captions = node.elements()
    true, false = ([each.text() for each in captions[name].elements()] for name in ("POS", "NEG"))
    if not true or len(true) != len(false):
        captions.fail("as many NEG as POS captions, at least one")
    kind = _kind(entry.place)
    name = f"{kind}/{record_id(entry, image.text(), None)}"
    for number, (caption, negative) in enumerate(zip(true, false, strict=True)):
        yield BenchmarkItem(
            item_id=f"{name}/{number}" if len(true) > 1 else name,
            kind=kind,
            group=name,
            images=(image.text(),),
            texts=(caption,),
            negatives=(negative,),
        )


def is_record(value: Any) -> bool:
    """Tells whether a value is an image with its captions."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[1], dict)


def _kind(place: str) -> str:
    """Returns the path of a file below the folder of all, such as `Attribute/vg/color`."""
    parts = PurePosixPath(place).with_suffix("").parts
    first = next((number for number, part in enumerate(parts) if part in TYPES), len(parts) - 1)
    return "/".join(parts[first:])


def write(rows: Iterable[dict[str, Any]]) -> Iterator[list[Any]]:
    """Yields the records of rows; those of one record stand together."""
    for _, group in groupby(rows, key=lambda row: row["item_id"]):
        found = list(group)
        texts = {
            name: [row[column] for row in found]
            for name, column in (("POS", "caption"), ("NEG", "hard_negative"))
        }
        yield [found[0]["image"], texts]


FORMS: Final = {
    "vl-checklist": (
        Form(
            fields=frozenset(),
            array="arrays of an image and its captions, POS and NEG",
            is_array=is_record,
            read=read,
            patterns=PATTERNS,
            is_one_file=True,
        ),
    )
}
