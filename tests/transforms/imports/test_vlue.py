import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eqforge.commands.overlap import REASONS
from eqforge.core.files.source_folder import SourceFolder
from eqforge.schemas.tables.vlue import Finding, Task
from eqforge.sources.vlue import VlueItem
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.imports.vlue import (
    Imported,
    VlueRules,
    import_item,
    match_name,
)
from eqforge.transforms.imports.vlue_lints import RULES, lint_item

EIGHT = "one two three four five six seven eight"
DECOMPOSED = unicodedata.normalize("NFD", "tr/Döner/1.png")
COMPOSED = unicodedata.normalize("NFC", DECOMPOSED)


def item(
    task: Task = "captioning",
    texts: Sequence[str] = (EIGHT,),
    images: Sequence[str] = ("a.png",),
    name: str = "x",
    answers: tuple[str, ...] = (),
    box: tuple[float, float, float, float] | None = None,
    stated: tuple[int, int] | None = None,
) -> VlueItem:
    return VlueItem(
        item_id=f"{task}/{name}",
        task=task,
        images=tuple(images),
        texts=tuple(texts),
        source_id=name,
        answers=answers,
        box=box,
        width_px=None if stated is None else stated[0],
        height_px=None if stated is None else stated[1],
        label=True if task == "nlvr2" else None,
    )


def found(findings: Sequence[Finding]) -> list[tuple[str, int, float | None]]:
    return [(finding.rule, finding.part, finding.value) for finding in findings]


@pytest.mark.parametrize(
    ("box", "size", "stated", "rules"),
    [
        ((0, 0, 40, 30), (40, 30), None, []),
        ((10, 10, 30.005, 20), (40, 30), None, []),
        ((10, 10, 33, 20), (40, 30), None, [("box_outside_image", 0, 3.0)]),
        ((-2, 0, 10, 10), None, (40, 30), [("box_outside_image", 0, 2.0)]),
        ((0, 0, 0, 10), (40, 30), None, [("empty_box", 0, None)]),
        ((0, 0, 5, 5), None, None, [("box_unchecked", 0, None)]),
        ((0, 0, 5, 5), (40, 30), (30, 40), [("size_differs", 0, None)]),
    ],
)
def test_a_box_lies_in_its_image(
    box: tuple[float, float, float, float],
    size: tuple[int, int] | None,
    stated: tuple[int, int] | None,
    rules: list[tuple[str, int, float | None]],
) -> None:
    phrase = item("grounding", ["left dog"], box=box, stated=stated)
    assert found(list(lint_item(phrase, None, size))) == rules


def test_a_name_in_another_form_of_unicode_is_found() -> None:
    assert found(list(lint_item(item(images=[COMPOSED]), None, None))) == []
    statement = item("nlvr2", images=[COMPOSED, DECOMPOSED])
    assert found(list(lint_item(statement, None, None))) == [("name_not_nfc", 1, None)]


@pytest.fixture
def folder(tmp_path: Path) -> ImageFolder:
    """A folder with two images, one under a decomposed name, and a file that is none."""
    root = tmp_path / "images"
    for number, name in enumerate(("a.png", DECOMPOSED)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (30, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    (root / "broken.png").write_bytes(b"no image")
    return ImageFolder(SourceFolder(str(root)), str(tmp_path / "media"))


@pytest.mark.parametrize("name", [COMPOSED, DECOMPOSED])
def test_an_image_is_found_in_any_form_of_unicode(folder: ImageFolder, name: str) -> None:
    assert match_name(folder.root, name) == DECOMPOSED

    made = import_item(item(images=[name]), VlueRules(by_image=True, images=folder))

    assert isinstance(made, Imported)
    assert (made.images[0].width_px, made.images[0].height_px) == (40, 30)
    assert (made.sample.image, made.sample.source_image) == (COMPOSED, name)


def test_the_exact_name_wins_over_an_equal_one(folder: ImageFolder) -> None:
    other = Path(folder.root.root) / COMPOSED
    if other.exists():
        pytest.skip("this file system does not tell the forms apart")
    other.parent.mkdir()
    (Path(folder.root.root) / "a.png").rename(other)

    assert match_name(folder.root, COMPOSED) == COMPOSED
    assert match_name(folder.root, DECOMPOSED) == DECOMPOSED


@pytest.mark.parametrize("name", ["../a.png", "/etc/passwd", "nowhere/a.png", "a.png/b.png"])
def test_a_name_that_is_not_there_stays_for_the_folder_to_judge(
    folder: ImageFolder, name: str
) -> None:
    assert match_name(folder.root, name) == name


def test_the_page_lists_every_rule_and_reason() -> None:
    page = (Path(__file__).parents[3] / "docs" / "datasets" / "vlue.md").read_text(encoding="utf-8")

    for name in (*RULES, *REASONS):
        assert f"| `{name}` | " in page
