"""SugarCrepe's files, and SugarCrepe++'s with a second true caption.

Source: Hsieh et al. 2023, "SugarCrepe"; github.com/RAIVNLab/sugar-crepe, data/. Dumpala et al.
  2024, "SugarCrepe++"; github.com/Sri-Harsha/scpp, data/.
"""

from collections.abc import Iterator
from typing import Any, Final

from eqforge.sources.benchmarks.form import (
    BenchmarkItem,
    Entry,
    Form,
    own_id,
    picture,
    record_id,
    rest,
    text,
    with_rest,
)

FIELDS: Final = frozenset(("filename", "caption", "negative_caption"))
REWORDED: Final = FIELDS | {"caption2"}
HUB: Final = frozenset(("caption", "negative_caption", "image"))
REWORDED_HUB: Final = HUB | {"caption2"}


def read(entry: Entry, *captions: str) -> Iterator[BenchmarkItem]:
    """Yields the item of a record.

    Args:
      entry: the record.
      *captions: the fields of its true captions.
    """
    node = entry.node
    image, cells = picture(entry, "filename" if "filename" in node.mapping() else "image")
    used = (*FIELDS, *captions, "image", "id", "split")
    yield BenchmarkItem(
        item_id=record_id(entry, image, entry.key or own_id(node, "id")),
        split=text(node, "split", default="test"),
        kind=entry.part,
        images=(image,),
        cells=cells,
        texts=tuple(node[name].text() for name in captions),
        negatives=(node["negative_caption"].text(),),
        annotation=rest(node, *used),
    )


def write(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a row of SugarCrepe."""
    return with_rest(
        row,
        {
            "filename": row["image"],
            "caption": row["caption"],
            "negative_caption": row["hard_negative"],
        },
    )


def write_plus(row: dict[str, Any], number: int | str) -> dict[str, Any]:
    """Returns the record of a row of SugarCrepe++, numbered in its file."""
    return with_rest(
        row,
        {
            "id": number,
            "filename": row["image"],
            "caption": row["caption"],
            "caption2": row["hard_positive"],
            "negative_caption": row["hard_negative"],
        },
    )


def _read_one(entry: Entry) -> Iterator[BenchmarkItem]:
    return read(entry, "caption")


def _read_two(entry: Entry) -> Iterator[BenchmarkItem]:
    return read(entry, "caption", "caption2")


FORMS: Final = {
    "sugar-crepe": (Form(fields=FIELDS, read=_read_one), Form(fields=HUB, read=_read_one)),
    "sugar-crepe-plus": (
        Form(fields=REWORDED, read=_read_two),
        Form(fields=REWORDED_HUB, read=_read_two),
    ),
}
