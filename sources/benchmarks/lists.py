"""Benchmarks of which a record holds several items, or several records hold one.

  aro-order     {"image_path", "caption_options"}, the true caption first; made when ARO is run
  vl-checklist  [image, {"POS": [...], "NEG": [...]}]; the i-th NEG was made from the i-th POS
  negclip       `neg_caption` is a list in Python's notation; `neg_image` numbers rows with images
                like this one, and stands in `annotation`
  bivlc         the repository's CSV names four drawn candidates for each negative; each is a pair,
                and the four share their `source_id`
  mmvp          a question with two options on each image; images that CLIP takes for one another
                have consecutive numbers
  mmvp-vlm      a statement of each image, and a type; two make a pair
  natural-bench `test_set.json` has [question, image, answer, kind], four in a row for each group:
                the first question on both images, then the second; the hub a row for each group

Source: Yuksekgonul et al. 2023; github.com/mertyg/vision-language-models-are-bows,
  github.com/vinid/neg_clip. Zhao et al. 2022, "VL-CheckList"; github.com/om-ai-lab/VL-CheckList.
  Miranda et al. 2024, "BiVLC"; github.com/IMirandaM/BiVLC. Tong et al. 2024, "Eyes Wide Shut?";
  huggingface.co/datasets/MMVP/MMVP and MMVP/MMVP_VLM, read as by github.com/tsb0601/MMVP,
  scripts/evaluate_vlm.py. Li et al. 2024, "NaturalBench"; github.com/Baiqi-Li/NaturalBench,
  huggingface.co/datasets/BaiqiL/NaturalBench.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, product
from pathlib import PurePosixPath
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

ORDER: Final = frozenset(("image_path", "caption_options"))
NEGCLIP: Final = frozenset(("title", "filepath", "neg_caption"))
CANDIDATES: Final = tuple(f"hn_img_{number}" for number in range(4))
BIVLC: Final = frozenset(("filename", "caption", "negative_caption", *CANDIDATES))
CHECKLIST: Final = ("Attribute", "Object", "Relation")


def read_order(entry: Entry) -> Iterator[BenchmarkItem]:
    node = entry.node
    image, cells = picture(entry, "image_path")
    true, *false = (option.text() for option in node["caption_options"].elements())
    if not false:
        node["caption_options"].fail("a true caption, followed by false captions")
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
    image, captions = entry.node.elements()
    true, false = ([each.text() for each in captions[name].elements()] for name in ("POS", "NEG"))
    if not true or len(true) != len(false):
        captions.fail("equal numbers of POS and NEG captions, at least one each")
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
    """Yield the records of rows of VL-CheckList; rows of one record are adjacent."""
    for _, group in groupby(rows, key=lambda row: row["item_id"]):
        found = list(group)
        true, false = ([row[name] for row in found] for name in ("caption", "hard_negative"))
        yield [found[0]["image"], {"POS": true, "NEG": false}]


def read_negclip(entry: Entry) -> Iterator[BenchmarkItem]:
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
    value = node.value
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            node.fail("a list of strings")
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        node.fail("a non-empty list of strings")
    return [Node(node.file, node.where, text).text() for text in value]


def read_candidates(entry: Entry) -> Iterator[BenchmarkItem]:
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
    array="an array that contains an image and its captions (POS and NEG)",
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


QUESTION: Final = frozenset(("Index", "Question", "Options", "Correct Answer"))
STATEMENT: Final = frozenset(("Question ID", "Type", "Statement"))
_OPTION: Final = re.compile(r"\(([a-z])\)\s*([^()]*(?:\((?![a-z]\))[^()]*\)[^()]*)*)")


def read_question(entry: Entry) -> Iterator[BenchmarkItem]:
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


def join_statements(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield an entry for each two statements of a pair, by their numbers."""
    found: dict[int, Entry] = {}
    for entry in entries:
        number = int(_number(entry.node, "Question ID"))
        if number in found:
            raise InputError(f"{entry.node.place}: the Question ID {number} appears twice")
        found[number] = entry
    for number in sorted(found):
        first, second = found.get(number), found.get(number + 1)
        if number % 2 == 0 and number - 1 in found:
            continue
        types = [entry and entry.node["Type"].text() for entry in (first, second)]
        assert first is not None
        if number % 2 == 0 or second is None or types[0] != types[1]:
            raise InputError(
                f"{first.node.place}: statement {number} needs a statement "
                f"{number + 1 if number % 2 else number - 1} with the same 'Type'"
            )
        node = first.node
        yield replace(first, node=replace(node, value={"0": node.value, "1": second.node.value}))


def read_statements(entry: Entry) -> Iterator[BenchmarkItem]:
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
QUESTION_FORM: Final = Form(fields=QUESTION, read=read_question, patterns=_FILE, is_one_file=True)
PAIR_FORM: Final = Form(
    fields=STATEMENT, read=read_statements, joined=join_statements, patterns=_FILE, is_one_file=True
)


_KINDS: Final = ("yes_no", "mcq")
_SIDES: Final = tuple(product((0, 1), (0, 1)))  # question, image
HUB: Final = frozenset(
    (
        *(f"{kind}_{side}" for kind in ("Image", "Question") for side in (0, 1)),
        *(f"Image_{image}_Question_{question}" for question, image in _SIDES),
    )
)


def join_groups(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield an entry for each group of four records; rows of the hub unchanged."""
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
        raise InputError(
            f"{node.place}: expected four records per group, but the last group has fewer"
        )


def _group(entries: list[Entry]) -> Entry:
    first = entries[0].node
    rows = [[each.text() for each in entry.node.elements()] for entry in entries]
    questions, images = [[row[column] for row in rows] for column in (0, 1)]
    if questions != [questions[0]] * 2 + [questions[2]] * 2 or images != [images[0], images[1]] * 2:
        raise InputError(
            f"{first.place}: the next four records are not two questions about the same two "
            "images. Restore the published order of the records."
        )
    return replace(entries[0], node=Node(first.file, first.where, rows))


def is_record(value: Any) -> bool:
    is_row = isinstance(value, list) and len(value) == 4
    return is_row and all(isinstance(part, str) for part in value) and value[3] in _KINDS


def read_group(entry: Entry) -> Iterator[BenchmarkItem]:
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


NATURAL_BENCH: Final = (
    Form(
        fields=frozenset(),
        array="an array that contains a question, an image, an answer and a kind (yes_no or mcq)",
        is_array=is_record,
        read=read_group,
        joined=join_groups,
        patterns=("test_set.json",),
        is_one_file=True,
    ),
    Form(fields=HUB, read=read_hub, is_one_file=True),
)
