"""What reviewers wrote and drew, as rows of the files that builds read.

`build vlue` reads those of VLUE's protocols; see `eqforge.sources.vlue`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from eqforge.core.identity import short_digest
from eqforge.evaluation.review.fields import Field, broken
from eqforge.evaluation.review.protocols import PROTOCOLS, Form
from eqforge.evaluation.review.units import DrawnBox, boxes_of, picture_names
from eqforge.evaluation.review.votes import Vote
from eqforge.schemas.dataset.reader import Dataset

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """An answer that was given.

    Attributes:
      reviewer: who gave it.
      vote: the answer.
      texts: what was written, without white space around it.
    """

    reviewer: str
    vote: Vote
    texts: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What answers are about.

    Attributes:
      names: of the pictures in their source, by id.
      sizes: of the pictures, width and height in pixels, by id.
      panes: the pictures of each item, by its id.
      statements: what the dataset says of each statement, by its id.
      boxes: those that others drew, by id.
    """

    names: Mapping[str, str]
    sizes: Mapping[str, tuple[int, int]]
    panes: Mapping[str, tuple[str, ...]]
    statements: Mapping[str, Row]
    boxes: Mapping[str, DrawnBox]


def source_of(dataset: Dataset, panes: Mapping[str, tuple[str, ...]], file: Path | None) -> Source:
    """Returns what some answers are about.

    Args:
      dataset: what was reviewed.
      panes: the pictures of each item, by its id.
      file: of the boxes that others drew; None for none.
    """
    columns = ["image_id", "width_px", "height_px"]
    statements = dataset.rows("nlvr2") if "nlvr2" in dataset.manifest.tables else ()
    return Source(
        names=picture_names(dataset),
        sizes={
            row["image_id"]: (row["width_px"], row["height_px"])
            for row in dataset.rows("images", columns)
        },
        panes=panes,
        statements={row["sample_id"]: row for row in statements},
        boxes={} if file is None else boxes_of(file),
    )


def given_of(
    votes: Mapping[str, Mapping[str, Vote]],
    fields: Sequence[Field],
    panes: Mapping[str, tuple[str, ...]],
    answers: Collection[str] | None,
) -> tuple[list[Written], list[tuple[str, str, str]]]:
    """Returns the answers that keep the rules, and each breach: reviewer, item, rule.

    Args:
      votes: first votes by item and reviewer.
      fields: the texts to write.
      panes: the pictures of each item, by its id.
      answers: the list of answers; None for none.
    """
    kept: list[Written] = []
    wrong: list[tuple[str, str, str]] = []
    for item, own in votes.items():
        for reviewer, vote in own.items():
            if not vote.is_given:
                continue
            pictures = len(panes[item])
            breaches = [rule for _, rule in broken(vote.texts, fields, pictures, answers)]
            wrong += [(reviewer, item, rule) for rule in breaches]
            if not breaches:
                names = [name for field in fields for name in field.names(pictures)]
                texts = {name: " ".join(vote.texts[name].split()) for name in names}
                kept.append(Written(reviewer=reviewer, vote=vote, texts=texts))
    return kept, wrong


def rows_of(protocol: str, form: Form, given: list[Written], source: Source) -> Iterator[Row]:
    """Yields the rows that answers become, in the order of the items and reviewers."""
    own = _boxes if form == "box" else _plain
    return _MAKERS.get(protocol, own)(given, source)


def _captions(given: list[Written], source: Source) -> Iterator[Row]:
    """Yields a row for each picture, with the captions of all who wrote one."""
    for item, own in _by_item(given).items():
        captions = list(dict.fromkeys(each.texts["caption"] for each in own))
        yield {"image": source.names[item], "caption": captions}


def _statements(given: list[Written], source: Source) -> Iterator[Row]:
    for item, own in _by_item(given).items():
        row = source.statements[item]
        name = row["source_id"] or item
        for number, each in enumerate(own, start=1):
            yield {
                "identifier": name if number == 1 else f"{name}-{number}",
                "sentence": each.texts["sentence"],
                "images": [row["image_0"], row["image_1"]],
                "label": str(row["label"]),
            }


def _questions(given: list[Written], source: Source) -> Iterator[Row]:
    """Yields two rows for each question, one for each picture."""
    seen: set[str] = set()
    for each in given:
        for place, image_id in enumerate(source.panes[each.vote.id]):
            row = {
                "question": each.texts["question"],
                "image": source.names[image_id],
                "answer": each.texts[f"answer_{place}"],
            }
            key = short_digest(row)
            if key not in seen:
                seen.add(key)
                yield {"question_id": key, **row}


def _boxes(given: list[Written], source: Source) -> Iterator[Row]:
    """Yields each box once, whoever drew it: the next group is asked about it by its id."""
    seen: set[str] = set()
    for each in given:
        assert each.vote.box is not None
        width, height = source.sizes[each.vote.id]
        x, y, across, down = each.vote.box
        bbox = tuple(
            round(share * size, 2)
            for share, size in zip((x, y, across, down), (width, height) * 2, strict=True)
        )
        what = " ".join(each.texts[name] for name in sorted(each.texts))
        name = f"{each.vote.id[:12]}/{short_digest([each.vote.id, what, bbox])}"
        if name in seen:
            continue
        seen.add(name)
        yield msgspec.to_builtins(
            DrawnBox(
                id=name,
                image_id=each.vote.id,
                image=source.names[each.vote.id],
                object=what,
                bbox=bbox,  # type: ignore[arg-type]
                width=width,
                height=height,
            )
        )


def _phrases(given: list[Written], source: Source) -> Iterator[Row]:
    for each in given:
        box = source.boxes[each.vote.id]
        yield {
            "ref_id": box.id,
            "image": box.image,
            "text": each.texts["text"],
            "bbox": list(box.bbox),
            "width": box.width,
            "height": box.height,
        }


def _plain(given: list[Written], source: Source) -> Iterator[Row]:
    """Yields what was written by a protocol of a user's own, with the names of the pictures."""
    for each in given:
        images = [source.names.get(image_id) for image_id in source.panes[each.vote.id]]
        yield {"item": each.vote.id, "images": images, **each.texts}


def _by_item(given: list[Written]) -> dict[str, list[Written]]:
    found: dict[str, list[Written]] = {}
    for each in given:
        found.setdefault(each.vote.id, []).append(each)
    return found


_MAKERS: Final[Mapping[str, Callable[[list[Written], Source], Iterator[Row]]]] = {
    "vlue-captions": _captions,
    "vlue-translation": _statements,
    "vlue-questions": _questions,
    "vlue-boxes": _boxes,
    "vlue-expressions": _phrases,
}
"""How the answers of each of eqforge's protocols become rows."""

assert _MAKERS.keys() <= PROTOCOLS.keys()
