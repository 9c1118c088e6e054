"""BiVLC: SugarCrepe's captions, and an image drawn for each false one.

The hub has the chosen images in its table. The repository has a CSV that names four drawn
candidates for each negative (`hn_img_0` to `hn_img_3`): each is a pair here, and the four share
their `source_id`.

Source: Miranda et al. 2024, "BiVLC"; huggingface.co/datasets/imirandam/BiVLC;
  github.com/IMirandaM/BiVLC.
"""

from collections.abc import Iterator
from typing import Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node
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

HUB: Final = frozenset(("image", "caption", "negative_image", "negative_caption"))
CANDIDATES: Final = tuple(f"hn_img_{number}" for number in range(4))
CSV: Final = frozenset(("filename", "caption", "negative_caption", *CANDIDATES))
RESULT: Final = "text_score_i0"
_KINDS: Final = ("type", "subtype")


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the pair of a row of the hub.

    Raises:
      InputError: it is a row of results.
    """
    node = entry.node
    if RESULT in node.mapping():
        raise InputError(
            f"{node.file}: {node.where}: holds results, which `eqforge metrics` reads, and no pairs"
        )
    (image_0, cell_0), (image_1, cell_1) = (
        picture(entry, field) for field in ("image", "negative_image")
    )
    yield BenchmarkItem(
        item_id=record_id(entry, image_0, own_id(node, "id")),
        split=text(node, "split", default="test"),
        kind=_kind(node),
        images=(image_0, image_1),
        cells=cell_0 + cell_1,
        texts=(node["caption"].text(), node["negative_caption"].text()),
        annotation=rest(node, *HUB, *_KINDS, "id", "split"),
    )


def read_candidates(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields a pair for each image that was drawn for a negative."""
    node = entry.node
    image = node["filename"].text()
    name = record_id(entry, image, own_id(node, "index"))
    for number, field in enumerate(CANDIDATES):
        yield BenchmarkItem(
            item_id=f"{name}/{number}",
            kind=_kind(node),
            source_id=name,
            images=(image, node[field].text()),
            texts=(node["caption"].text(), node["negative_caption"].text()),
            annotation=rest(node, *CSV, *_KINDS, "index"),
        )


def _kind(node: Node) -> str:
    return "_".join(part for part in (text(node, name) for name in _KINDS) if part)


FORMS: Final = {
    "bivlc": (
        Form(fields=HUB, read=read, is_one_file=True),
        Form(
            fields=CSV,
            read=read_candidates,
            numbers=("index",),
            patterns=("*negative_imgs*.csv",),
            is_one_file=True,
        ),
    )
}
