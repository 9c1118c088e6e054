"""VisMin's benchmark: two images that differ in one thing, and a caption of each.

Source: Awal et al. 2024, "VisMin"; huggingface.co/datasets/mair-lab/vismin-bench, read as by
  github.com/rabiulcste/vismin, `vismin-bench/eval.py`.
"""

from collections.abc import Iterator
from typing import Final

from eqforge.sources.benchmarks.form import (
    BenchmarkItem,
    Entry,
    Form,
    own_id,
    picture,
    record_id,
    rest,
    text,
)

FIELDS: Final = frozenset(("image_0", "image_1", "text_0", "text_1"))


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the pair of a record."""
    node = entry.node
    (image_0, cell_0), (image_1, cell_1) = (
        picture(entry, field) for field in ("image_0", "image_1")
    )
    yield BenchmarkItem(
        item_id=record_id(entry, image_0, own_id(node, "id")),
        split=text(node, "split", default="test"),
        kind=text(node, "category"),
        images=(image_0, image_1),
        cells=cell_0 + cell_1,
        texts=(node["text_0"].text(), node["text_1"].text()),
        annotation=rest(node, *FIELDS, "id", "category", "split"),
    )


FORMS: Final = {"vismin": (Form(fields=FIELDS, read=read, is_one_file=True),)}
