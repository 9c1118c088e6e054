"""The rows that an imported item of VLUE's tasks becomes."""

from typing import Any

from eqforge.generators.text.words import count_words
from eqforge.schemas.records.values import XywhBox
from eqforge.schemas.tables.vlue import (
    CaptioningImage,
    Finding,
    GroundingPhrase,
    Nlvr2Statement,
    RetrievalCaption,
    VlueSample,
    VqaQuestion,
)
from eqforge.sources.vlue import VlueItem, canonical_name
from eqforge.transforms.vlue.lints import is_listed, size_of

ImageIds = tuple[str | None, ...]


def sample_row(item: VlueItem, ids: ImageIds, findings: tuple[Finding, ...]) -> VlueSample:
    """Returns an item's row of `samples`.

    Args:
      item: of any task.
      ids: keys of its images into `images`, each None where no folder was named.
      findings: what was found of it.
    """
    names = [canonical_name(image) for image in item.images]
    has_two = len(names) > 1
    return VlueSample(
        sample_id=item.item_id,
        task=item.task,
        split=item.split,
        group=names[0].partition("/")[0] if "/" in names[0] else "",
        image=names[0],
        image_id=ids[0],
        image_1=names[1] if has_two else None,
        image_1_id=ids[1] if has_two else None,
        source_image=item.images[0],
        source_image_1=item.images[1] if has_two else None,
        findings=tuple(sorted({finding.rule for finding in findings})),
    )


def task_row(
    item: VlueItem,
    ids: ImageIds,
    *,
    by_image: bool,
    answers: frozenset[str] | None,
    size: tuple[int, int] | None,
) -> Any:
    """Returns an item's row of its task's table.

    Args:
      item: of any task.
      ids: keys of its images into `images`, each None where no folder was named.
      by_image: whether all captions of an image belong to one candidate of the retrieval.
      answers: the list of answers, where there is one.
      size: width and height in pixels of the image's file, where there is one.
    """
    image: dict[str, Any] = {"sample_id": item.item_id, "image": item.image, "image_id": ids[0]}
    match item.task:
        case "retrieval":
            assert item.entry_id is not None
            assert item.number is not None
            return RetrievalCaption(
                **image,
                entry_id=item.entry_id,
                gallery_id=item.image if by_image else item.entry_id,
                number=item.number,
                caption=item.texts[0],
                words=count_words(item.texts[0]),
            )
        case "nlvr2":
            return _statement(item, ids)
        case "vqa":
            return VqaQuestion(
                **image,
                source_id=_source_id(item),
                question=item.texts[0],
                answers=item.answers,
                answer_listed=is_listed(item, answers),
            )
        case "captioning":
            return CaptioningImage(**image, source_id=item.source_id, references=item.texts)
        case "grounding":
            return _phrase(item, ids, size)


def _source_id(item: VlueItem) -> str:
    assert item.source_id is not None
    return item.source_id


def _statement(item: VlueItem, ids: ImageIds) -> Nlvr2Statement:
    assert item.label is not None
    return Nlvr2Statement(
        sample_id=item.item_id,
        source_id=item.source_id,
        statement=item.texts[0],
        image_0=item.image,
        image_0_id=ids[0],
        image_1=canonical_name(item.images[1]),
        image_1_id=ids[1],
        label=item.label,
    )


def _phrase(item: VlueItem, ids: ImageIds, size: tuple[int, int] | None) -> GroundingPhrase:
    assert item.box is not None
    x, y, width, height = item.box
    width_px, height_px = size_of(item, size) or (None, None)
    return GroundingPhrase(
        sample_id=item.item_id,
        source_id=_source_id(item),
        phrase=item.texts[0],
        image=item.image,
        image_id=ids[0],
        box=XywhBox(x=x, y=y, width=width, height=height),
        width_px=width_px,
        height_px=height_px,
    )
