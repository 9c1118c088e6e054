import errno
from pathlib import Path

import pytest
from PIL import Image

from eqforge.core.errors import MissingExtra
from eqforge.core.files.source_folder import SourceFolder
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.text.work import admit_texts

LIMITS = CaptionSettings(max_tokens=None)


def record(name: str, image: str = "a.png", caption: str = "a dog") -> CaptionRecord:
    """A caption of an image."""
    return CaptionRecord(caption_id=name, image=image, caption=caption)


@pytest.mark.parametrize(
    ("name", "only", "wanted"),
    [
        ("coco/1", (), True),
        ("coco/1", ("coco/1",), True),
        ("coco/1", ("coco/1/original",), True),
        ("coco/1/original", ("coco/1",), True),
        ("coco/1", ("coco/12",), False),
        ("coco/12", ("coco/1",), False),
        ("coco/1/original", ("coco/1/hard_positive",), False),
        ("coco/2", ("coco/1", "coco/2"), True),
    ],
)
def test_a_name_asks_for_itself_its_record_and_its_samples(
    name: str, only: tuple[str, ...], wanted: bool
) -> None:
    assert is_wanted(name, only) is wanted


def test_an_error_of_the_record_is_a_rejection_with_its_type() -> None:
    def fail() -> int:
        raise RecursionError("at 0x7f12")

    assert guarded(lambda: 3) == 3
    assert guarded(fail) == Rejection(reason="error:RecursionError", detail="at 0x")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        MemoryError(),
        MissingExtra("spacy", "text"),
    ],
)
def test_an_error_of_the_run_is_raised_as_it_is(error: Exception) -> None:
    def fail() -> int:
        raise error

    with pytest.raises(type(error)) as raised:
        guarded(fail)
    assert raised.value is error


def test_the_books_count_what_is_asked_for_and_the_rest_of_the_image_stays_as_context() -> None:
    records = [record("one"), record("two"), record("blank", caption="  "), record("void", "b", "")]

    admitted = admit_texts(records, LIMITS, None, only=("one/original", "blank"))

    assert [found.caption_id for found in admitted.records] == ["one", "two"]
    assert [(found.candidate_id, found.reason) for found in admitted.rejects] == [
        ("blank", "empty_caption")
    ]
    assert (admitted.tally.candidates, admitted.tally.kept) == (2, 1)


def test_only_images_that_rows_refer_to_are_kept_each_once(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for name, colour in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / "images" / name)
    folder = ImageFolder(SourceFolder(str(tmp_path / "images")), str(tmp_path / "media"))
    records = [record("one"), record("two"), record("three", "b.png"), record("four", "c.png")]

    admitted = admit_texts(records, LIMITS, folder)

    class Row:
        image_id = admitted.image_id(records[1])

    assert [image.image_id for image in admitted.images_of([Row()])] == [Row.image_id]
    assert admitted.images_of([]) == ()
    assert [(found.candidate_id, found.reason) for found in admitted.rejects] == [
        ("four", "image_missing")
    ]
