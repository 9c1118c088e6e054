"""MMVP and MMVP-VLM: images that CLIP takes for one another, in pairs of consecutive numbers.

MMVP asks a question with two options on each image. MMVP-VLM has a statement of each, and a type.

Source: Tong et al. 2024, "Eyes Wide Shut?"; huggingface.co/datasets/MMVP/MMVP and MMVP/MMVP_VLM,
  `Questions.csv`; read as by github.com/tsb0601/MMVP, `scripts/evaluate_vlm.py`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node
from eqforge.sources.benchmarks.form import BenchmarkItem, Entry, Form, own_id

QUESTION: Final = frozenset(("Index", "Question", "Options", "Correct Answer"))
STATEMENT: Final = frozenset(("Question ID", "Type", "Statement"))
_OPTION: Final = re.compile(r"\(([a-z])\)\s*([^()]*(?:\((?![a-z]\))[^()]*\)[^()]*)*)")


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields a question."""
    node = entry.node
    number = int(_number(node, "Index"))
    options = {f"({m[1]})": m[2].strip() for m in _OPTION.finditer(node["Options"].text())}
    answer = node["Correct Answer"].text().strip()
    if answer not in options:
        node["Correct Answer"].fail(f"one of the options {', '.join(options) or '(none)'}")
    yield BenchmarkItem(
        item_id=str(number),
        group=str((number + 1) // 2),
        images=(f"MMVP Images/{number}.jpg",),
        texts=(node["Question"].text(),),
        negatives=tuple(options.values()),
        answer=options[answer],
    )


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yields an entry for each two statements of a pair, by their numbers.

    Raises:
      InputError: a statement has no other of its type.
    """
    found: dict[int, Entry] = {}
    for entry in entries:
        number = int(_number(entry.node, "Question ID"))
        if number in found:
            raise InputError(f"{entry.node.file}: {entry.node.where}: {number} appears twice")
        found[number] = entry
    for number in sorted(found):
        first, second = found.get(number), found.get(number + 1)
        if number % 2 == 0 and number - 1 in found:
            continue
        types = [entry and entry.node["Type"].text() for entry in (first, second)]
        assert first is not None
        if number % 2 == 0 or second is None or types[0] != types[1]:
            raise InputError(
                f"{first.node.file}: {first.node.where}: statement {number} is one of a pair "
                "whose other is missing or of another type"
            )
        node = first.node
        yield replace(first, node=replace(node, value={"0": node.value, "1": second.node.value}))


def read_pair(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the pair of two statements."""
    sides = [entry.node["0"], entry.node["1"]]
    numbers = [_number(side, "Question ID") for side in sides]
    kind = sides[0]["Type"].text()
    folder = PurePosixPath("MLLM_VLM Images", kind)
    yield BenchmarkItem(
        item_id="-".join(numbers),
        kind=kind,
        images=tuple(str(folder / f"{number}.jpg") for number in numbers),
        texts=tuple(side["Statement"].text() for side in sides),
    )


def _number(node: Node, name: str) -> str:
    number = own_id(node, name) or ""
    return number if number.isascii() and number.isdigit() else node[name].fail("a whole number")


_FILE: Final = ("Questions.csv",)
QUESTION_FORM: Final = Form(fields=QUESTION, read=read, patterns=_FILE, is_one_file=True)
PAIR_FORM: Final = Form(
    fields=STATEMENT, read=read_pair, joined=joined, patterns=_FILE, is_one_file=True
)
