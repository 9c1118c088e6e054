"""Turn rows of each kind of dataset into items of a page."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from more_itertools import map_reduce

from eqforge.evaluation.report.items import (
    Box,
    Item,
    Pane,
    Spans,
    Text,
    Tone,
    differing_words,
    marked,
    plain,
)

Row = Mapping[str, Any]

FACTS: Final = (
    *("dataset", "split", "kind", "change", "task", "part", "group", "group_id"),
    *("hard_positive_kind", "hard_negative_kind"),
)
"""Columns shown in addition to the id, unless they are empty."""

_PERSON, _THING = 0, 1
_TRUE_TARGETS: Final = 6

_ROLES: Final[Mapping[str, Tone]] = {"hard_positive": "true", "hard_negative": "false"}


def of_pair(row: Row) -> Item:
    captions = row["caption_0"], row["caption_1"]
    spans = _given(row, "edited_spans_0"), _given(row, "edited_spans_1")
    if spans == (None, None):
        spans = differing_words(*captions)
    panes = tuple(
        Pane(
            name=f"image {side}",
            image_id=row.get(f"image_{side}_id"),
            texts=(
                marked(captions[side], spans[side] or ()),
                *(
                    plain(text, "also")
                    for text in row.get(f"captions_{side}") or ()
                    if text != captions[side]
                ),
            ),
            boxes=tuple(_boxes(row, side)),
            mask_id=row.get(f"mask_{side}_id"),
        )
        for side in (0, 1)
    )
    comparable = all(pane.image_id is not None for pane in panes)
    return _item(row, panes=panes, comparable=comparable)


def _boxes(row: Row, side: int) -> Iterator[Box]:
    for shown in row.get(f"objects_{side}") or ():
        if shown["box"] is not None:
            yield Box(label=f"{shown['name']} ({shown['asset']})", tone=_THING, **shown["box"])
    try:
        annotation = json.loads(row.get("annotation") or "{}")
    except (ValueError, RecursionError):
        return
    if not isinstance(annotation, dict):
        return
    for x0, y0, x1, y1 in _numbers(annotation.get(f"person_boxes_xyxy_{side}"), nested=True):
        yield Box(label="person", x=x0, y=y0, width=x1 - x0, height=y1 - y0, tone=_PERSON)
    for x, y, width, height in _numbers(annotation.get(f"object_box_xywh_{side}"), nested=False):
        label = str(annotation.get("object", "object"))
        yield Box(label=label, x=x, y=y, width=width, height=height, tone=_THING)


def _numbers(text: Any, *, nested: bool) -> list[list[float]]:
    """Parse boxes of four numbers from a JSON text; return none for other texts."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return []
    boxes = found if nested else [found]
    if not isinstance(boxes, list):
        return []
    return [
        box
        for box in boxes
        if isinstance(box, list) and len(box) == 4 and all(type(n) in (int, float) for n in box)
    ]


def of_texts(row: Row) -> Item:
    caption = row["caption"]
    texts: list[Text] = []
    touched: Spans = []
    for role, (before, after) in _EDITS.items():
        if (text := row.get(role)) is None:
            continue
        spans = _given(row, before), _given(row, after)
        if None in spans:
            spans = differing_words(caption, text)
        touched += spans[0] or ()
        texts.append(marked(text, spans[1] or (), role.replace("_", " "), _ROLES[role]))
    first = marked(caption, _merged(touched), "caption", "true")
    return _item(row, panes=(_pane(row),), texts=(first, *texts))


_EDITS: Final = {
    "hard_positive": ("caption_spans", "hard_positive_spans"),
    "hard_negative": ("foil_spans", "hard_negative_spans"),
}


def of_perturbations(rows: Sequence[Row]) -> Item:
    first = rows[0]
    texts = [plain(first["caption"], "caption")]
    for row in rows:
        name = row["perturbation"]
        if row["applied"]:
            spans = _given(row, "perturbed_spans") or ()
            note = "" if row.get("words_changed", True) else ", words unchanged"
            texts.append(marked(row["perturbed_caption"], spans, f"{name}{note}"))
        else:
            texts.append(plain(f"({row['reason']})", f"{name}, not applied"))
    return _item(*rows, name="caption_id", panes=(_pane(first),), texts=tuple(texts))


def of_training(rows: Sequence[Row]) -> Item:
    by_role = {row["role"]: row for row in rows}
    original = by_role.get("original", rows[0])["text"]
    texts: list[Text] = []
    touched: Spans = []
    for role, row in by_role.items():
        if role == "original":
            continue
        before, after = differing_words(original, row["text"])
        touched += before
        label = f"{role.replace('_', ' ')} ({row['kind']})" if row["kind"] else role
        texts.append(marked(row["text"], after, label, _ROLES.get(role, "")))
    first = marked(original, _merged(touched), "original", "true")
    texts.sort(key=lambda text: text.tone == "false")
    return _item(*rows, name="caption_id", panes=(_pane(rows[0]),), texts=(first, *texts))


def of_questions(rows: Sequence[Row]) -> Item:
    pictures = list(dict.fromkeys((row["image"], row["image_id"]) for row in rows))
    questions: dict[tuple[str, tuple[str, ...]], list[tuple[int, str]]] = {}
    for row in rows:
        number = pictures.index((row["image"], row["image_id"])) + 1
        key = row["question"], tuple(row["options"])
        questions.setdefault(key, []).append((number, row["answer"]))
    texts: list[Text] = []
    for number, ((question, options), answers) in enumerate(questions.items(), start=1):
        texts.append(plain(question, f"question {number}" if len(questions) > 1 else "question"))
        for place, option in enumerate(options):
            letter = chr(ord("A") + place) if place < 26 else str(place + 1)
            texts.append(plain(option, f"option {letter}"))
        for place, answer in answers:
            role = f"answer to image {place}" if len(pictures) > 1 else "answer"
            texts.append(plain(answer, role, "true"))
    panes = tuple(
        Pane(name=f"image {place}: {name}", image_id=image_id)
        for place, (name, image_id) in enumerate(pictures, start=1)
    )
    comparable = len(panes) == 2 and all(pane.image_id is not None for pane in panes)
    return _item(*rows, name="group_id", panes=panes, texts=tuple(texts), comparable=comparable)


def queries(gallery: Iterable[Row], captions: Iterable[Row]) -> Callable[[Row], Item]:
    regions = {row["region_id"]: row for row in gallery}
    spoken = {str(row["caption_id"]): str(row["caption"]) for row in captions}
    of_triplets = map_reduce(sorted(regions), lambda name: regions[name]["triplet_id"])

    def make(row: Row) -> Item:
        names = row["source_triplet_id"], row["target_triplet_id"]
        source, target = (spoken.get(str(name), str(name)) for name in names)
        marks = differing_words(source, target)
        found = of_triplets.get(names[1], [])
        query = _crop(regions.get(row["region_id"]), "query", marked(source, marks[0], "shows"))
        targets = (
            _crop(regions.get(name), f"true target {n}")
            for n, name in enumerate(found[:_TRUE_TARGETS], start=1)
        )
        texts = (
            Text(role="change", parts=(row["source_word"], " → ", (row["target_word"],))),
            marked(target, marks[1], "looks for", "true"),
            plain(f"{len(found):,} in the gallery", "true targets"),
        )
        return _item(row, panes=(query, *targets), texts=texts)

    return make


def _crop(row: Row | None, name: str, *texts: Text) -> Pane:
    if row is None:
        return Pane(name=name, texts=texts)
    left, top = row["box"]["x0"], row["box"]["y0"]
    subject, _, rest = row["triplet_id"].partition("/")
    sides = (subject, row["subject_box"]), (rest.rpartition("/")[2], row["object_box"])
    boxes = tuple(
        Box(
            label=label,
            x=box["x0"] - left,
            y=box["y0"] - top,
            width=box["x1"] - box["x0"],
            height=box["y1"] - box["y0"],
            tone=tone,
        )
        for tone, (label, box) in enumerate(sides)
    )
    return Pane(name=name, image_id=row["image_id"], texts=texts, boxes=boxes)


def tasks(rows: Mapping[str, Iterable[Row]], findings: Iterable[Row]) -> Callable[[Row], Item]:
    of_items = {row["sample_id"]: (name, row) for name, group in rows.items() for row in group}
    wrong = map_reduce(findings, itemgetter("sample_id"))

    def make(row: Row) -> Item:
        name, task_row = of_items.get(row["sample_id"], ("", {}))
        found = wrong.get(row["sample_id"], ())
        texts = [
            text for column, role in _OF_TASKS.items() for text in _texts_of(task_row, column, role)
        ]
        texts += (plain(f"{each['rule']}: {each['text']}", "finding", "false") for each in found)
        box = task_row.get("box")
        boxes = (
            () if box is None else (Box(label=str(task_row.get("phrase", "")), tone=_THING, **box),)
        )
        panes = tuple(
            Pane(name=row[image], image_id=row[f"{image}_id"], boxes=boxes)
            for image in ("image", "image_1")
            if row[image] is not None
        )
        more = ((name, task_row), *(("findings", each) for each in found)) if task_row else ()
        return _item(row, panes=panes, texts=tuple(texts), more=more)

    return make


_OF_TASKS: Final = {
    "caption": "caption",
    "statement": "statement",
    "question": "question",
    "phrase": "phrase",
    "label": "label",
    "answers": "answer",
    "references": "reference",
}


def _texts_of(row: Row, column: str, role: str) -> Iterator[Text]:
    value = row.get(column)
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if each is not None:
            yield plain(str(each).lower() if isinstance(each, bool) else each, role)


def _item(
    *rows: Row, name: str = "sample_id", more: tuple[tuple[str, Row], ...] = (), **shown: Any
) -> Item:
    first, sources = rows[0], [*(("samples", row) for row in rows), *more]
    facts = [(name, str(first[name])) for name in FACTS if first.get(name) not in (None, "")]
    return Item(
        id=first[name],
        facts=tuple(facts),
        rows=tuple((table, dict(row)) for table, row in sources),
        **shown,
    )


def _pane(row: Row) -> Pane:
    return Pane(name=str(row.get("image") or ""), image_id=row.get("image_id"))


def _given(row: Row, column: str) -> Spans | None:
    found = row.get(column)
    return None if found is None else [(span["start"], span["end"]) for span in found]


def _merged(spans: Iterable[tuple[int, int]]) -> Spans:
    merged: Spans = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
