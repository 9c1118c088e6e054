"""NegCLIP's lists: captions of COCO with negatives, in which two phrases are swapped.

`neg_caption` is a list in Python's notation. `neg_image` numbers rows of the list whose images are
like this one; it stands in `annotation`.

Source: Yuksekgonul et al. 2023; github.com/vinid/neg_clip, `train_neg_clip.tsv`,
  `valid_neg_clip.tsv`.
"""

import ast
from collections.abc import Iterator
from typing import Final

from eqforge.core.files.checked import Node
from eqforge.sources.benchmarks.form import BenchmarkItem, Entry, Form, record_id, rest

FIELDS: Final = frozenset(("title", "filepath", "neg_caption"))


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields an item for each negative of a caption."""
    node = entry.node
    image = node["filepath"].text()
    name = record_id(entry, image, None)
    for number, negative in enumerate(_texts(node["neg_caption"])):
        yield BenchmarkItem(
            item_id=f"{name}/{number}",
            split="train" if entry.part.startswith("train") else "validation",
            group=name,
            images=(image,),
            texts=(node["title"].text(),),
            negatives=(negative,),
            annotation=rest(node, *FIELDS),
        )


def _texts(node: Node) -> list[str]:
    """Returns the texts of a list in Python's notation, or of an array."""
    value = node.value
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            node.fail("a list of texts")
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        node.fail("a list of at least one text")
    return [Node(node.file, node.where, text).text() for text in value]


FORMS: Final = {"negclip": (Form(fields=FIELDS, read=read, patterns=("*.tsv",)),)}
