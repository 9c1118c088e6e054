"""VALSE's files: captions and foils of a linguistic phenomenon each, checked by three annotators.

An item counts if at least two of the three chose the caption over the foil.

Source: Parcalabescu et al. 2022, "VALSE", section 4.1; github.com/Heidelberg-NLP/VALSE, data/ and
  the reader in `bert_lxmert_vilbert_clip.py`.
"""

from collections.abc import Iterator
from typing import Final

from eqforge.sources.benchmarks.form import (
    NOT_CONFIRMED,
    BenchmarkItem,
    Entry,
    Form,
    record_id,
    rest,
    text,
)

CONFIRMED: Final = 2
FIELDS: Final = frozenset(("image_file", "caption", "foil", "mturk"))
_USED: Final = ("image_file", "caption", "foil", "split")


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the item of a record; not confirmed ones are refused."""
    node = entry.node
    image = node["image_file"].text()
    votes = node["mturk"]["caption"].integer()
    yield BenchmarkItem(
        item_id=record_id(entry, image, entry.key),
        split=text(node, "split", "original_split", default="test"),
        kind=entry.part,
        images=(image,),
        texts=(node["caption"].text(),),
        negatives=(node["foil"].text(),),
        annotation=rest(node, *_USED),
        refusal="" if votes >= CONFIRMED else NOT_CONFIRMED,
    )


FORMS: Final = {"valse": (Form(fields=FIELDS, read=read),)}
