"""ARO's files: relations and attributes of Visual Genome, and captions in another order.

VG-Relation and VG-Attribution show a part of an image, padded with black where its box reaches
beyond it, as Pillow crops. The captions in another order are made when ARO is run; what is read
here is a file of what was made: {"image_path", "caption_options"}, the true caption first.

Source: Yuksekgonul et al. 2023, "When and why vision-language models behave like bags-of-words";
  github.com/mertyg/vision-language-models-are-bows, dataset_zoo/aro_datasets.py.
"""

from collections.abc import Iterator
from typing import Any, Final

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
    with_rest,
)
from eqforge.sources.text_pairs import box_of

FIELDS: Final = frozenset(("image_path", "true_caption", "false_caption"))
RELATION: Final = FIELDS | {"relation_name"}
ATTRIBUTION: Final = FIELDS | {"attributes"}
_BOX: Final = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")
_IDS: Final = ("id", "image_id")


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the item of a relation or of two attributes."""
    node = entry.node
    image, cells = picture(entry, "image_path")
    attributes = [element.text() for element in _elements(node, "attributes")]
    yield BenchmarkItem(
        item_id=record_id(entry, image, None),
        split=text(node, "split", default="test"),
        kind=text(node, "relation_name") or "_".join(attributes),
        images=(image,),
        cells=cells,
        texts=(node["true_caption"].text(),),
        negatives=(node["false_caption"].text(),),
        box=box_of(node),
        annotation=rest(node, *FIELDS, *_BOX, "split"),
    )


def read_order(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields an item for each false order of a caption."""
    node = entry.node
    image, cells = picture(entry, "image_path")
    true, *false = (option.text() for option in node["caption_options"].elements())
    if not false:
        node["caption_options"].fail("a true caption, and others behind it")
    name = record_id(entry, image, own_id(node, *_IDS))
    for number, foil in enumerate(false):
        yield BenchmarkItem(
            item_id=f"{name}/{number}",
            split=text(node, "split", default="test"),
            group=name,
            images=(image,),
            cells=cells,
            texts=(true,),
            negatives=(foil,),
            annotation=rest(node, "image_path", "caption_options", "split"),
        )


def _elements(node: Node, name: str) -> Iterator[Node]:
    found = node.get(name)
    return iter(()) if found is None else found.elements()


def write(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a relation or of two attributes, with the fields it was read from.

    Of rows from elsewhere the kind takes the place of the relation, which ARO's reader wants.
    """
    box = row.get("box")
    corners = (
        {}
        if box is None
        else {
            "bbox_x": box["x0"],
            "bbox_y": box["y0"],
            "bbox_w": box["x1"] - box["x0"],
            "bbox_h": box["y1"] - box["y0"],
        }
    )
    record = with_rest(
        row,
        {
            "image_path": row["image"],
            "true_caption": row["caption"],
            "false_caption": row["hard_negative"],
            **corners,
        },
    )
    return record if "attributes" in record else {"relation_name": row.get("kind") or ""} | record


FORMS: Final = {
    "aro-relation": (
        Form(
            fields=RELATION, read=read, patterns=("visual_genome_relation.json",), is_one_file=True
        ),
    ),
    "aro-attribution": (
        Form(
            fields=ATTRIBUTION,
            read=read,
            patterns=("visual_genome_attribution.json",),
            is_one_file=True,
        ),
    ),
    "aro-order": (Form(fields=frozenset(("image_path", "caption_options")), read=read_order),),
}
