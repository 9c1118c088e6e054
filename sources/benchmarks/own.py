"""Your own pairs, foils, rewordings or questions: columns as in eqforge's tables, or named.

`id`, `split` and `kind` are optional, and so is the image of a foil or a question: a text without
one is about none. What `eqforge export` wrote comes back as it was.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import msgspec

from eqforge.core.files.cells import Cell
from eqforge.core.files.checked import Node
from eqforge.sources.benchmarks.exported import as_it_was, as_own
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

PAIR: Final = ("caption_0", "caption_1", "image_0", "image_1")
FOIL: Final = ("caption", "hard_negative")
REWORDING: Final = ("caption", "hard_positive", "hard_negative")
QUESTION: Final = ("question", "answer")
OPTIONAL: Final = ("id", "split", "kind", "image", "source_id", "group_id", "options")


def read_pair(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the pair of a record."""
    entry, exported = as_own(entry)
    node = entry.node
    pictures = [picture(entry, field) for field in PAIR[2:]]
    item = BenchmarkItem(
        item_id=record_id(entry, pictures[0][0], own_id(node, "id") or entry.key),
        split=text(node, "split", default="test"),
        kind=text(node, "kind"),
        source_id=own_id(node, "source_id"),
        images=tuple(name for name, _ in pictures),
        cells=tuple(cell for _, cells in pictures for cell in cells),
        texts=(node["caption_0"].text(), node["caption_1"].text()),
        annotation=rest(node, *PAIR, *OPTIONAL),
    )
    yield item if exported is None else as_it_was(item, exported, PAIR[2:])


def read_foil(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the item of a record."""
    return _read(entry, "caption")


def read_rewording(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the item of a record with a second true caption."""
    return _read(entry, "caption", "hard_positive")


def _read(entry: Entry, *captions: str) -> Iterator[BenchmarkItem]:
    entry, exported = as_own(entry)
    node = entry.node
    image, cells = _image(entry)
    item = BenchmarkItem(
        item_id=record_id(entry, image, own_id(node, "id") or entry.key),
        split=text(node, "split", default="test"),
        kind=text(node, "kind"),
        group=own_id(node, "group_id") or "",
        images=(image,),
        cells=cells,
        texts=tuple(node[name].text() for name in captions),
        negatives=(node["hard_negative"].text(),),
        annotation=rest(node, *captions, "hard_negative", *OPTIONAL),
    )
    yield item if exported is None else as_it_was(item, exported, ("image",))


def read_question(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields a question."""
    entry, exported = as_own(entry)
    node = entry.node
    image, cells = _image(entry)
    options = _listed(node.get("options"))
    item = BenchmarkItem(
        item_id=record_id(entry, image, own_id(node, "id") or entry.key),
        split=text(node, "split", default="test"),
        kind=text(node, "kind"),
        group=own_id(node, "group_id") or "",
        images=(image,),
        cells=cells,
        texts=(node["question"].text(),),
        negatives=() if options is None else tuple(each.text() for each in options.elements()),
        answer=node["answer"].text(),
        annotation=rest(node, *QUESTION, *OPTIONAL),
    )
    yield item if exported is None else as_it_was(item, exported, ("image",))


def _listed(node: Node | None) -> Node | None:
    """Returns a list, which stands as JSON in a text where a table has no lists; None if empty.

    Raises:
      InputError: the text is no such list.
    """
    if node is None or not isinstance(node.value, str):
        return node
    if not node.value.strip():
        return None
    try:
        return replace(node, value=msgspec.json.decode(node.value, type=list[str]))
    except (msgspec.DecodeError, RecursionError):
        node.fail('options as a JSON list of texts, such as ["red", "blue"]')


def _image(entry: Entry) -> tuple[str, tuple[Cell | None]]:
    return ("", (None,)) if entry.node.get("image") is None else picture(entry, "image")


def _form(fields: tuple[str, ...], read: Callable[[Entry], Iterator[BenchmarkItem]]) -> Form:
    return Form(fields=frozenset(fields), read=read, optional=OPTIONAL, is_one_file=True)


FORMS: Final = {
    "own-pairs": (_form(PAIR, read_pair),),
    "own-foils": (_form(FOIL, read_foil),),
    "own-rewordings": (_form(REWORDING, read_rewording),),
    "own-questions": (_form(QUESTION, read_question),),
}
