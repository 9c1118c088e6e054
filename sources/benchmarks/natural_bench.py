"""NaturalBench: two questions on two images, whose answers differ both ways.

`test_set.json` has `[question, image, answer, kind]`, four in a row for each group: the first
question on both images, then the second. The hub has a row for each group.

Source: Li et al. 2024, "NaturalBench"; github.com/Baiqi-Li/NaturalBench;
  huggingface.co/datasets/BaiqiL/NaturalBench.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node
from eqforge.core.identity import short_digest
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

_SIDES: Final = tuple(product((0, 1), (0, 1)))  # question, image
HUB: Final = frozenset(
    (
        *(f"{what}_{side}" for what in ("Image", "Question") for side in (0, 1)),
        *(f"Image_{image}_Question_{question}" for question, image in _SIDES),
    )
)


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yields an entry for each group of four records; rows of the hub as they are.

    Raises:
      InputError: records are missing, or stand in another order.
    """
    group: list[Entry] = []
    for entry in entries:
        if not isinstance(entry.node.value, list):
            yield entry
            continue
        group.append(entry)
        if len(group) == 4:
            yield _group(group)
            group = []
    if group:
        node = group[0].node
        raise InputError(f"{node.file}: {node.where}: expected four records of a group")


def _group(entries: list[Entry]) -> Entry:
    first = entries[0].node
    rows = [_row(entry.node) for entry in entries]
    questions, images = [[row[column] for row in rows] for column in (0, 1)]
    if questions != [questions[0]] * 2 + [questions[2]] * 2 or images != [images[0], images[1]] * 2:
        raise InputError(
            f"{first.file}: {first.where}: expected four records of a group: a question on two "
            "images, then another on the same two; are they in another order?"
        )
    return replace(entries[0], node=Node(first.file, first.where, rows))


def _row(node: Node) -> list[str]:
    return [element.text() for element in node.elements()]


def is_record(value: Any) -> bool:
    """Tells whether a value is a question with its image, its answer and its kind."""
    is_row = isinstance(value, list) and len(value) == 4
    return is_row and all(isinstance(part, str) for part in value)


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the four questions of a group."""
    rows = entry.node.value
    name = short_digest(rows)
    for (question, image), row in zip(_SIDES, rows, strict=True):
        yield BenchmarkItem(
            item_id=f"{name}/q{question}i{image}",
            kind=row[3],
            group=name,
            images=(row[1],),
            texts=(row[0],),
            answer=row[2],
        )


def read_hub(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the four questions of a row of the hub."""
    node = entry.node
    pictures = [picture(entry, f"Image_{side}") for side in (0, 1)]
    name = record_id(entry, pictures[0][0], own_id(node, "Index"))
    for question, image in _SIDES:
        shown, cells = pictures[image]
        yield BenchmarkItem(
            item_id=f"{name}/q{question}i{image}",
            split=text(node, "split", default="test"),
            kind=text(node, "Question_Type"),
            group=name,
            images=(shown,),
            cells=cells,
            texts=(node[f"Question_{question}"].text(),),
            answer=node[f"Image_{image}_Question_{question}"].text(),
            annotation=rest(node, *HUB, "Index", "Question_Type", "split"),
        )


FORMS: Final = (
    Form(
        fields=frozenset(),
        array="arrays of a question, an image, an answer and a kind",
        is_array=is_record,
        read=read,
        joined=joined,
        patterns=("test_set.json",),
        is_one_file=True,
    ),
    Form(fields=HUB, read=read_hub, is_one_file=True),
)
