"""Benchmarks whose records hold several items: lists of captions, or of images.

  aro-order     {"image_path", "caption_options"}, the true caption first; made when ARO is run
  vl-checklist  [image, {"POS": [...], "NEG": [...]}]; the i-th NEG was made from the i-th POS
  negclip       `neg_caption` is a list in Python's notation; `neg_image` numbers rows with images
                like this one, and stands in `annotation`
  bivlc         the repository's CSV names four drawn candidates for each negative; each is a pair,
                and the four share their `source_id`

Source: Yuksekgonul et al. 2023; github.com/mertyg/vision-language-models-are-bows,
  github.com/vinid/neg_clip. Zhao et al. 2022, "VL-CheckList"; github.com/om-ai-lab/VL-CheckList.
  Miranda et al. 2024, "BiVLC"; github.com/IMirandaM/BiVLC.
"""

import ast
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import PurePosixPath
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
)

ORDER: Final = frozenset(("image_path", "caption_options"))
NEGCLIP: Final = frozenset(("title", "filepath", "neg_caption"))
CANDIDATES: Final = tuple(f"hn_img_{number}" for number in range(4))
BIVLC: Final = frozenset(("filename", "caption", "negative_caption", *CANDIDATES))
CHECKLIST: Final = ("Attribute", "Object", "Relation")


def read_order(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields an item for each false order of a caption."""
    node = entry.node
    image, cells = picture(entry, "image_path")
    true, *false = (option.text() for option in node["caption_options"].elements())
    if not false:
        node["caption_options"].fail("a true caption, and others behind it")
    name = record_id(entry, image, own_id(node, "id", "image_id"))
    for number, foil in enumerate(false):
        yield BenchmarkItem(
            item_id=f"{name}/{number}",
            split=text(node, "split", default="test"),
            group=name,
            images=(image,),
            cells=cells,
            texts=(true,),
            negatives=(foil,),
            annotation=rest(node, *ORDER, "split"),
        )


def read_checklist(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields an item for each caption of a record and its negative."""
    image, captions = entry.node.elements()
    true, false = ([each.text() for each in captions[name].elements()] for name in ("POS", "NEG"))
    if not true or len(true) != len(false):
        captions.fail("as many NEG as POS captions, at least one")
    # The path of the file below the folder of all, such as `Attribute/vg/color`.
    parts = PurePosixPath(entry.place).with_suffix("").parts
    first = next((n for n, part in enumerate(parts) if part in CHECKLIST), len(parts) - 1)
    kind = "/".join(parts[first:])
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


def write_checklist(rows: Iterable[dict[str, Any]]) -> Iterator[list[Any]]:
    """Yields the records of rows of VL-CheckList; those of one record stand together."""
    for _, group in groupby(rows, key=lambda row: row["item_id"]):
        found = list(group)
        true, false = ([row[name] for row in found] for name in ("caption", "hard_negative"))
        yield [found[0]["image"], {"POS": true, "NEG": false}]


def read_negclip(entry: Entry) -> Iterator[BenchmarkItem]:
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
            annotation=rest(node, *NEGCLIP),
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


def read_candidates(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields a pair for each image that was drawn for a negative."""
    node = entry.node
    image = node["filename"].text()
    name = record_id(entry, image, own_id(node, "index"))
    for number, field in enumerate(CANDIDATES):
        yield BenchmarkItem(
            item_id=f"{name}/{number}",
            kind="_".join(filter(None, (text(node, "type"), text(node, "subtype")))),
            source_id=name,
            images=(image, node[field].text()),
            texts=(node["caption"].text(), node["negative_caption"].text()),
            annotation=rest(node, *BIVLC, "type", "subtype", "index"),
        )


ORDER_FORM: Final = Form(fields=ORDER, read=read_order)
CHECKLIST_FORM: Final = Form(
    fields=frozenset(),
    array="arrays of an image and its captions, POS and NEG",
    is_array=lambda v: isinstance(v, list) and len(v) == 2 and isinstance(v[1], dict),
    read=read_checklist,
    patterns=tuple(f"{name}/*.json" for name in CHECKLIST),
    is_one_file=True,
)
NEGCLIP_FORM: Final = Form(fields=NEGCLIP, read=read_negclip, patterns=("*.tsv",))
CANDIDATES_FORM: Final = Form(
    fields=BIVLC,
    read=read_candidates,
    numbers=("index",),
    patterns=("*negative_imgs*.csv",),
    is_one_file=True,
)
