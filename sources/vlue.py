"""Read VLUE's out-of-distribution test sets, and a user's own sets in the same formats.

Each file is one JSON array of objects, or JSON lines (`.jsonl`) of the same objects:

    retrieval   {"image": "sw/1.jpg", "caption": ["...", "..."]}
    nlvr2       {"sentence": "...", "images": ["a.jpg", "b.jpg"], "label": "True"}
    vqa         {"question_id": 7, "question": "...", "image": "a.jpg", "answer": "yes"}
    captioning  {"image_id": 16, "image": "a.jpg", "caption": ["...", "..."]}
    grounding   {"ref_id": 3, "image": "a.jpg", "text": "left dog", "bbox": [x, y, width, height]}

`caption` and `answer` are a text or a list of texts. `label` is a boolean or its name as text. A
box is in pixels from the upper left corner; `width` and `height` may give the size of its image.
Optional are `identifier` of a statement, `image_id` of a captioned image, and `split` of any row.
Fields that are not named here are skipped.

The in-domain test sets are read from their own files; see vlue_in_domain.py.

Source: Zhou et al., "VLUE: A Multi-Task Benchmark for Evaluating Vision-Language Models", section
  3.2 and table 1; the released files `itr_vlue_test.json`, `nlvr2_vlue_test.json`,
  `vqa_vlue_test.json`, `caption_vlue_test.json`, `refcoco+_vlue_test.json` and
  `refcoco+_bbox100_vlue_test.json`; the last two have the fields of X-VLM's `refcoco+` files.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_bytes, read_lines, text_lines
from eqforge.core.identity import Namer, short_digest
from eqforge.schemas.tables.vlue import Task
from eqforge.sources.vlue_in_domain import in_domain_rows, is_in_domain

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class VlueItem:
    """One item of a task, which a model answers once.

    Attributes:
      item_id: unique in the dataset. Made from the published id if there is one (`vqa/7`,
        `captioning/16`), else from the content; independent of the order of the rows.
      images: the image, or a statement's two images, as the source writes them.
      texts: a caption, a statement, a question, a phrase, or all reference captions.
      split: the source's split; `test` by default, since VLUE has no other.
      entry_id: of a retrieval caption, the row of the source; else None.
      source_id: the published id of the question, captioned image, statement or referred object.
      number: of a retrieval caption, its position in its row from 0; else None.
      label: of a statement, whether it is true of the two images; else None.
      answers: of a question, the accepted answers; else empty.
      same_answer: whether the same question about another image of the folder has the same answer.
      box: of a phrase, x, y, width and height in pixels; else None.
      width_px, height_px: size of the image as stated by the source, or None.
    """

    item_id: str
    task: Task
    images: tuple[str, ...]
    texts: tuple[str, ...]
    split: str = "test"
    entry_id: str | None = None
    source_id: str | None = None
    number: int | None = None
    label: bool | None = None
    answers: tuple[str, ...] = ()
    same_answer: bool = False
    box: tuple[float, float, float, float] | None = None
    width_px: int | None = None
    height_px: int | None = None

    @property
    def text_id(self) -> str:
        return self.item_id

    @property
    def image(self) -> str:
        return canonical_name(self.images[0])


def canonical_name(image: str) -> str:
    """Return an image's name in Unicode NFC, which all its spellings share.

    503 of VLUE's 5,450 retrieval rows name their image in another form than NFC; an archive
    unpacked on another system may have any form.
    """
    return unicodedata.normalize("NFC", image)


class _Caption(msgspec.Struct, frozen=True):
    image: str
    caption: str | list[str]
    image_id: int | str | None = None
    split: str = "test"


class _Statement(msgspec.Struct, frozen=True):
    sentence: str
    images: tuple[str, str]
    label: bool | Literal["True", "False", "true", "false"]
    identifier: str | None = None
    split: str = "test"


class _Question(msgspec.Struct, frozen=True):
    question_id: int | str
    question: str
    image: str
    answer: str | list[str]
    split: str = "test"


_Pixels = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class _Phrase(msgspec.Struct, frozen=True):
    ref_id: int | str
    image: str
    text: str
    bbox: tuple[float, float, float, float]
    width: _Pixels | None = None
    height: _Pixels | None = None
    split: str = "test"


def read_vlue(task: Task, path: str | Path) -> Iterator[VlueItem]:
    path, number = Path(path), 0
    seen: set[str] = set()
    for item in _READERS[task](path):
        if not all(item.images):
            raise InputError(f"{path.name}: {item.item_id}: expected an image name, found ''")
        if item.item_id in seen:
            raise InputError(
                f"{path.name}: two items have the id {item.item_id!r}; change one of them"
            )
        seen.add(item.item_id)
        number += 1
        yield item
    if not number:
        raise InputError(f"{path.name} contains no rows for the task {task}")


def _read_retrieval(path: Path) -> Iterator[VlueItem]:
    name = Namer()
    for place, row in _rows("retrieval", path, _Caption):
        captions = _texts(row.caption, path, place, "caption")
        image = canonical_name(row.image)
        entry_id = name(f"retrieval/{image}/{short_digest([image, row.split, *captions])}")
        for number, caption in enumerate(captions):
            yield VlueItem(
                item_id=f"{entry_id}/{number}",
                task="retrieval",
                images=(row.image,),
                texts=(caption,),
                split=row.split,
                entry_id=entry_id,
                number=number,
            )


def _read_nlvr2(path: Path) -> Iterator[VlueItem]:
    name = Namer()
    for _, row in _rows("nlvr2", path, _Statement):
        images = [canonical_name(image) for image in row.images]
        label = row.label if isinstance(row.label, bool) else row.label.lower() == "true"
        content = [row.sentence, *images, row.split, label]
        default = name(f"nlvr2/{short_digest(content)}")
        yield VlueItem(
            item_id=default if row.identifier is None else f"nlvr2/{row.identifier}",
            task="nlvr2",
            images=row.images,
            texts=(row.sentence,),
            split=row.split,
            source_id=row.identifier,
            label=label,
        )


def _read_vqa(path: Path) -> Iterator[VlueItem]:
    rows = list(_rows("vqa", path, _Question))
    answers = [_texts(row.answer, path, place, "answer") for place, row in rows]
    pairs = question_pairs([row.image for _, row in rows], [row.question for _, row in rows])
    same = {row for pair in pairs if answers[pair[0]] == answers[pair[1]] for row in pair}
    for number, (_, row) in enumerate(rows):
        yield VlueItem(
            item_id=f"vqa/{row.question_id}",
            task="vqa",
            images=(row.image,),
            texts=(row.question,),
            split=row.split,
            source_id=str(row.question_id),
            answers=answers[number],
            same_answer=number in same,
        )


def concept_of(image: str) -> str:
    """Return an image's first and last folder: in VLUE, `sw/36-Sufuria`; empty without a folder."""
    folders = canonical_name(image).split("/")[:-1]
    return "/".join(dict.fromkeys((*folders[:1], *folders[-1:])))


def question_pairs(images: Sequence[str], questions: Sequence[str]) -> list[tuple[int, int]]:
    """Return the rows of each question that is asked about exactly two images of a concept.

    Names without a folder form no pairs.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for row, (image, question) in enumerate(zip(images, questions, strict=True)):
        if concept := concept_of(image):
            groups.setdefault((concept, question), []).append(row)
    return [
        (rows[0], rows[1])
        for rows in groups.values()
        if len(rows) == 2 and images[rows[0]] != images[rows[1]]
    ]


def _read_captioning(path: Path) -> Iterator[VlueItem]:
    name = Namer()
    for place, row in _rows("captioning", path, _Caption):
        captions = _texts(row.caption, path, place, "caption")
        image = canonical_name(row.image)
        content = name(f"captioning/{image}/{short_digest([image, row.split, *captions])}")
        yield VlueItem(
            item_id=content if row.image_id is None else f"captioning/{row.image_id}",
            task="captioning",
            images=(row.image,),
            texts=captions,
            split=row.split,
            source_id=None if row.image_id is None else str(row.image_id),
        )


def _read_grounding(path: Path) -> Iterator[VlueItem]:
    name = Namer()
    for _, row in _rows("grounding", path, _Phrase):
        image = canonical_name(row.image)
        content = [row.text, image, row.split, row.bbox, row.width, row.height]
        yield VlueItem(
            item_id=name(f"grounding/{row.ref_id}/{short_digest(content)}"),
            task="grounding",
            images=(row.image,),
            texts=(row.text,),
            split=row.split,
            source_id=str(row.ref_id),
            box=row.bbox,
            width_px=row.width,
            height_px=row.height,
        )


_READERS: Final[dict[Task, Callable[[Path], Iterator[VlueItem]]]] = {
    "retrieval": _read_retrieval,
    "nlvr2": _read_nlvr2,
    "vqa": _read_vqa,
    "captioning": _read_captioning,
    "grounding": _read_grounding,
}


def _rows(task: Task, path: Path, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield the place and content of each object of a JSON array, JSON lines or in-domain file."""
    if is_in_domain(task, path):
        for place, fields in in_domain_rows(task, path):
            yield place, decode(msgspec.json.encode(fields), kind, path.name, place)
    elif path.suffix in (".jsonl", ".ndjson"):
        for number, line in read_lines(path):
            yield f"line {number}", decode(line, kind, path.name, f"line {number}")
    else:
        rows: Any = decode(read_bytes(path), list[kind], path.name)  # type: ignore[valid-type]
        for position, row in enumerate(rows):
            yield f"[{position}]", row


def _texts(value: str | list[str], path: Path, place: str, field: str) -> tuple[str, ...]:
    if not value:
        raise InputError(
            f"{path.name}: {place}.{field}: expected a non-empty string or list of strings"
        )
    return (value,) if isinstance(value, str) else tuple(value)


def read_answer_list(path: str | Path) -> tuple[str, ...]:
    """Read the answers a classifier can give: a JSON array, a JSON object's keys, or lines.

    They keep the order of the file, or of the numbers of an object such as {"yes": 0, "no": 1}.
    """
    path = Path(path)
    if path.suffix == ".json":
        kind: Any = list[str] | dict[str, int]
        answers = decode(read_bytes(path), kind, path.name)
        if isinstance(answers, dict):
            answers = sorted(answers, key=answers.__getitem__)
    else:
        answers = [line.strip() for _, line in text_lines(path)]
    if not answers:
        raise InputError(f"{path.name} contains no answers")
    if len(answers) > len({*answers}):
        twice = next(answer for answer in answers if answers.count(answer) > 1)
        raise InputError(f"{path.name} contains {shown(twice)} twice")
    return tuple(answers)


_Side = Annotated[float, msgspec.Meta(gt=0)]


def read_regions(path: Path) -> dict[str, list[tuple[float, float, _Side, _Side]]]:
    """Read candidate boxes, x, y, width and height in pixels, by image.

    A JSON object has a list of boxes for each image, whose key is its name, with or without ending,
    or its COCO id, as in ALBEF's `dets.json`.
    """
    kind = dict[str, list[tuple[float, float, _Side, _Side]]]
    found = decode(read_bytes(path), kind, path.name)
    return {canonical_name(name): boxes for name, boxes in found.items()}


def regions_of(regions: Mapping[str, Sequence[T]], image: str) -> Sequence[T]:
    file = PurePosixPath(image)
    names = [image, str(file.with_suffix(""))]
    if coco := re.fullmatch(r"(?:COCO_\w+_)?(\d{12})", file.stem):
        names.append(coco[1].lstrip("0"))
    return next((regions[name] for name in names if name in regions), ())
