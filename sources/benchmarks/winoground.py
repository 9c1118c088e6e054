"""Winoground's form: two images and two captions of the same words; others have taken it over.

Source: Thrush et al. 2022, "Winoground"; huggingface.co/datasets/facebook/winoground,
  `examples.jsonl`. Le et al. 2023, "COCO-Counterfactuals";
  huggingface.co/datasets/Intel/COCO-Counterfactuals, `examples.jsonl`.
"""

from collections.abc import Iterator
from functools import partial
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

FIELDS: Final = frozenset(("image_0", "image_1", "caption_0", "caption_1"))
TAGGED: Final = FIELDS | {"tag"}


def read(entry: Entry, suffix: str, kind: str) -> Iterator[BenchmarkItem]:
    """Yields the pair of a record.

    Args:
      entry: the record.
      suffix: of the images' files, whose names stand in the records without one.
      kind: the field that names its subset.
    """
    node = entry.node
    (image_0, cell_0), (image_1, cell_1) = (
        picture(entry, field, suffix) for field in ("image_0", "image_1")
    )
    yield BenchmarkItem(
        item_id=record_id(entry, image_0, own_id(node, "id")),
        split=text(node, "split", default="test"),
        kind=text(node, kind),
        images=(image_0, image_1),
        cells=cell_0 + cell_1,
        texts=(node["caption_0"].text(), node["caption_1"].text()),
        annotation=rest(node, *FIELDS, "id", "split", kind),
    )


def write(row: dict[str, Any], number: int | str) -> dict[str, Any]:
    """Returns the record of a pair.

    Args:
      row: a row of pairs, with the names of its files in `image_0` and `image_1`.
      number: of the row in its dataset, which is its id, as published.
    """
    return with_rest(
        row,
        {
            "id": number,
            "image_0": row["image_0"],
            "image_1": row["image_1"],
            "caption_0": row["caption_0"],
            "caption_1": row["caption_1"],
            "tag": row.get("kind") or "",
        },
    )


FORMS: Final = {
    "winoground": (
        Form(
            fields=TAGGED,
            read=partial(read, suffix=".png", kind="tag"),
            patterns=("examples.jsonl",),
            is_one_file=True,
        ),
    ),
    "coco-counterfactuals": (
        Form(
            fields=FIELDS,
            read=partial(read, suffix=".jpg", kind="tag"),
            patterns=("examples.jsonl",),
            is_one_file=True,
        ),
    ),
}
