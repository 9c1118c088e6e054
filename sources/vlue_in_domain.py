"""Read in-domain test sets that VLUE compares with, from their own files, as rows of its form.

    nlvr2       NLVR2's `test1.json` and others: JSON lines with `identifier` and `sentence`
    vqa         VQA 2.0's `v2_OpenEnded_mscoco_val2014_questions.json`, and beside it
                `v2_mscoco_val2014_annotations.json`
    grounding   RefCOCO+'s `refs(unc).p`, and beside it `instances.json`
    retrieval, captioning   COCO's captions, Karpathy's `dataset_coco.json` and
                `dataset_flickr30k.json`, Flickr30k's `.token` and CSV files

If a file of captions has a split `test`, other splits are skipped; of RefCOCO+, `train` is.

Source: Zhou et al., "VLUE", table 1; the readers of NLVR2 (`nlvr/nlvr2`), VQA (`vqaTools/vqa.py`)
  and REFER (`refer.py`).
"""

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes, read_lines
from eqforge.schemas.tables.vlue import Task
from eqforge.sources.action_genome import read_members
from eqforge.sources.caption_sources import read_captions

Rows = Iterator[tuple[str, dict[str, Any]]]
_TEST: Final = "test"
_TABLES: Final = (".csv", ".token", ".txt")


def is_in_domain(task: Task, path: Path) -> bool:
    """Return whether a file has a form of this module, by its suffix and first character."""
    if task == "grounding":
        return path.suffix == ".p"
    if task in ("retrieval", "captioning") and path.suffix in _TABLES:
        return True
    if path.suffix != ".json":
        return False
    _, first = next(read_lines(path), (0, b""))
    return first.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")


def in_domain_rows(task: Task, path: Path) -> Rows:
    """Yield the place and fields of each row, in VLUE's form."""
    readers = {"nlvr2": _nlvr2, "vqa": _vqa, "grounding": _grounding}
    return readers.get(task, _captions)(path)


def companion(task: Task, path: Path) -> Path | None:
    """Return the file beside a file of questions or phrases that completes it."""
    if task == "vqa" and is_in_domain(task, path):
        name = path.name.replace("OpenEnded_", "").replace("questions", "annotations")
        return path.with_name(name)
    return path.with_name("instances.json") if task == "grounding" and path.suffix == ".p" else None


def _beside(task: Task, path: Path) -> Path:
    other = companion(task, path)
    if other == path:
        raise InputError(
            f"{path.name}: the file name is not VQA's. Rename the file to "
            "v2_OpenEnded_SPLIT_questions.json, and its answers to v2_SPLIT_annotations.json."
        )
    if other is None or not other.is_file():
        raise InputError(
            f"{path.name}: the file with its {'answers' if task == 'vqa' else 'boxes'} is missing. "
            f"Put {other and other.name} into the same folder."
        )
    return other


class _Statement(msgspec.Struct):
    identifier: str
    sentence: str
    label: Any
    directory: int | None = None
    images: tuple[str, str] | None = None
    split: str | None = None


def _nlvr2(path: Path) -> Rows:
    for number, line in read_lines(path):
        where = f"line {number}"
        row = decode(line, _Statement, path.name, where)
        pair = row.identifier.rpartition("-")[0]
        folder = "" if row.directory is None else f"{row.directory}/"
        images = row.images or [f"{folder}{pair}-img{side}.png" for side in (0, 1)]
        fields = {"identifier": row.identifier, "sentence": row.sentence, "label": row.label}
        split = row.split or row.identifier.partition("-")[0]
        yield where, fields | {"images": images, "split": split}


class _Asked(msgspec.Struct):
    question_id: int
    image_id: int
    question: str


class _Questions(msgspec.Struct):
    questions: list[_Asked]
    data_subtype: str


class _Given(msgspec.Struct):
    answer: str


class _Annotation(msgspec.Struct):
    question_id: int
    answers: list[_Given]


class _Annotations(msgspec.Struct):
    annotations: list[_Annotation]


def _vqa(path: Path) -> Rows:
    questions = decode(read_bytes(path), _Questions, path.name)
    other = _beside("vqa", path)
    annotations = decode(read_bytes(other), _Annotations, other.name).annotations
    answers = {one.question_id: [each.answer for each in one.answers] for one in annotations}
    for place, row in enumerate(questions.questions):
        where = f"questions[{place}]"
        if row.question_id not in answers:
            raise InputError(f"{other.name} has no answers to the question {row.question_id}")
        yield (
            where,
            {
                "question_id": row.question_id,
                "question": row.question,
                "image": f"COCO_{questions.data_subtype}_{row.image_id:012}.jpg",
                "answer": answers[row.question_id],
                "split": questions.data_subtype,
            },
        )


class _Box(msgspec.Struct):
    id: int
    bbox: tuple[float, float, float, float]


class _Image(msgspec.Struct):
    id: int
    file_name: str
    width: int
    height: int


class _Instances(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Box]


def _grounding(path: Path) -> Rows:
    other = _beside("grounding", path)
    instances = decode(read_bytes(other), _Instances, other.name)
    boxes = {one.id: one.bbox for one in instances.annotations}
    images = {one.id: one for one in instances.images}
    for _, ref in read_members(path):
        split = ref["split"].name()
        if split == "train":
            continue
        box, image = boxes.get(ref["ann_id"].integer()), images.get(ref["image_id"].integer())
        if box is None or image is None:
            kind, field = ("annotation", "ann_id") if box is None else ("image", "image_id")
            missing = f"{kind} {ref[field].value}"
            raise InputError(f"{ref.place}: {field}: {other.name} has no {missing}")
        for sentence in ref["sentences"].elements():
            yield (
                ref.where,
                {
                    "ref_id": ref["ref_id"].integer(),
                    "image": image.file_name,
                    "text": sentence["sent"].line(),
                    "bbox": box,
                    "width": image.width,
                    "height": image.height,
                    "split": split,
                },
            )


def _captions(path: Path) -> Rows:
    captions = list(read_captions(path))
    only = _TEST if any(one.split == _TEST for one in captions) else None
    rows: dict[tuple[str, str], list[str]] = {}
    for one in captions:
        if only in (None, one.split):
            rows.setdefault((one.image, one.split), []).append(one.caption)
    for (image, split), texts in rows.items():
        yield image, {"image": image, "caption": texts, "split": split}
