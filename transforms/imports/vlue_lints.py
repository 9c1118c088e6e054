"""Checks VLUE's annotation rules; items that break one stay in the dataset with a finding."""

import re
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.words import count_words
from eqforge.schemas.tables.vlue import Finding
from eqforge.sources.vlue import VlueItem, canonical_name

MIN_WORDS: Final = 8
RULES: Final[dict[str, str]] = {
    "few_words": "The caption has too few words.",
    "there_is": "The caption starts with 'there is'.",
    "answer_not_listed": "None of the answers to the question is in the list of answers.",
    "same_answer": "The same question about another image of the folder has the same answer.",
    "empty_box": "The box has no area.",
    "box_outside_image": "The box extends beyond its image.",
    "box_unchecked": "The size of the image is not known, so the box could not be checked.",
    "size_differs": "The image's size differs from the annotated size.",
    "name_not_nfc": "The image's name is not in the Unicode form NFC.",
}
_BOX_SLACK_PX = 0.01  # COCO rounds boxes to hundredths of a pixel
_THERE_IS = re.compile(r"\s*there\s+is\b", re.IGNORECASE)
_CAPTIONS = ("retrieval", "captioning")


def lint_item(
    item: VlueItem,
    answers: frozenset[str] | None,
    size: tuple[int, int] | None,
    min_words: int = MIN_WORDS,
    *,
    pair_rule: bool = True,
) -> Iterator[Finding]:
    """Yield every breach of the annotation rules by an item.

    Args:
      answers: the list of answers; None leaves answers unchecked.
      size: width and height in pixels of the image's file, if it exists.
      pair_rule: whether to check that a question about two images has two answers.

    Source: Zhou et al., "VLUE", section 3.2: captions of at least 8 words that do not start with
      "there is", answers in the list of the 3,129 most frequent ones and different for the two
      images of a concept that a question is about, boxes drawn in the image.
      The rules on names and sizes are ours.
    """
    for part, name in enumerate(item.images):
        # A row of several captions names its image once, and is reported once.
        if name != canonical_name(name) and item.number in (None, 0):
            yield _finding(item, "name_not_nfc", name, part=part)
    if item.task in _CAPTIONS:
        for part, caption in enumerate(item.texts):
            words = count_words(caption)
            if words < min_words:
                yield _finding(item, "few_words", caption, part=part, value=words)
            if _THERE_IS.match(caption):
                yield _finding(item, "there_is", caption, part=part)
    if is_listed(item, answers) is False:
        yield _finding(item, "answer_not_listed", item.answers[0])
    if item.same_answer and pair_rule:
        yield _finding(item, "same_answer", item.answers[0])
    yield from _lint_box(item, size)


def is_listed(item: VlueItem, answers: frozenset[str] | None) -> bool | None:
    if answers is None or not item.answers:
        return None
    return not answers.isdisjoint(item.answers)


def size_of(item: VlueItem, size: tuple[int, int] | None) -> tuple[int, int] | None:
    if size is not None:
        return size
    stated = item.width_px, item.height_px
    return (stated[0], stated[1]) if stated[0] is not None and stated[1] is not None else None


def _lint_box(item: VlueItem, size: tuple[int, int] | None) -> Iterator[Finding]:
    if item.box is None:
        return
    x, y, width, height = item.box
    shown, known, stated = str(list(item.box)), size_of(item, size), size_of(item, None)
    if not (width > 0 and height > 0):
        yield _finding(item, "empty_box", shown)
    if known is None:
        yield _finding(item, "box_unchecked", shown)
    else:
        outside = max(-x, -y, x + width - known[0], y + height - known[1])
        if outside > _BOX_SLACK_PX:
            yield _finding(item, "box_outside_image", shown, value=outside)
    if size is not None and stated is not None and size != stated:
        text = f"{stated[0]}x{stated[1]} stated, {size[0]}x{size[1]} found"
        yield _finding(item, "size_differs", text)


def _finding(
    item: VlueItem, rule: str, text: str, *, part: int = 0, value: float | None = None
) -> Finding:
    return Finding(
        finding_id=f"{item.item_id} {rule} {part}",
        sample_id=item.item_id,
        task=item.task,
        image=item.image,
        rule=rule,
        part=part,
        text=text,
        value=None if value is None else float(value),
    )
