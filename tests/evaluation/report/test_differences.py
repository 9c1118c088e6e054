"""`eqforge diff --report` shows what was added, removed and changed, with the pictures."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.commands import diff, report, review
from eqforge.core.files.owned import Listing
from eqforge.evaluation.report.folder import Folder
from eqforge.evaluation.report.items import Pane
from eqforge.evaluation.report.pictures import read_pictures, write_some
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from tests.evaluation.report.pages import THEMES, violations
from tests.exported import picture, sample, write_pairs
from tests.made_datasets import describe
from tests.reports import HOSTILE, chunks, digests, facet, given

PICTURES = [picture(n) for n in range(5)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """B lacks p/0, has p/5, another caption of p/1, and another second picture of p/2."""
    folder = tmp_path_factory.mktemp("d")
    some = [sample(f"p/{n}", n, (PICTURES[0], PICTURES[1]), "test") for n in range(6)]
    other = [*some[1:]]
    other[0] = replace(other[0], caption_0=HOSTILE, ssim=0.75)
    other[1] = sample("p/2", 2, (PICTURES[0], PICTURES[2]), "test")
    a = write_pairs(folder / "a", some[:5], PICTURES[:2])
    return a, write_pairs(folder / "b", other, PICTURES[:3], shards=1)


def compared(both: tuple[Path, Path], output: Path, *options: str) -> Path:
    assert diff.main([*map(str, both), "--report", str(output), *options]) == 1
    return output


@pytest.fixture(scope="module")
def written(both: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compared(both, tmp_path_factory.mktemp("r") / "r")


def told(item: dict[str, Any]) -> dict[str, str]:
    def plain(parts: list[Any]) -> str:
        return "".join(part if isinstance(part, str) else part[0] for part in parts)

    return {text["role"]: plain(text["parts"]) for text in item["texts"]}


def test_each_sample_that_differs_is_shown_once_with_both_versions(written: Path) -> None:
    names = {name: chunks(written, name, "items") for name in ("added", "removed", "changed")}

    assert {name: [item["id"] for item in items] for name, items in names.items()} == {
        "added": ["p/5"],
        "removed": ["p/0"],
        "changed": ["p/1", "p/2"],
    }
    caption, drawn = names["changed"]
    assert told(caption) == {
        "caption_0 in A": "кошка на столе",
        "caption_0 in B": HOSTILE,
        "ssim in A": "0.25",
        "ssim in B": "0.75",
    }
    shown = [(pane["name"], (written / pane["file"]).read_bytes()) for pane in drawn["panes"]]
    assert shown == [("image 1 in A", PICTURES[1]), ("image 1 in B", PICTURES[2])]
    assert drawn["comparable"]
    assert facet(written, "changed", "changed columns") == [["caption_0", "ssim"], ["image_1_id"]]
    for item, rows in zip(names["changed"], chunks(written, "changed", "rows"), strict=True):
        assert [(side, row["sample_id"]) for side, row in rows] == [
            ("in A", item["id"]),
            ("in B", item["id"]),
        ]


def test_pictures_that_nobody_sees_are_left_out(written: Path) -> None:
    stored = {hashlib.sha256(data).hexdigest() for data in digests(written / "pictures").values()}
    assert stored == {hashlib.sha256(data).hexdigest() for data in PICTURES[:3]}
    page = (written / "index.html").read_text("utf-8")
    assert "<img src=x" not in page
    assert given(written, "changed/index")["rows"] == 2


def test_the_same_datasets_give_the_same_pages(
    both: tuple[Path, Path], written: Path, tmp_path: Path
) -> None:
    assert digests(compared(both, tmp_path / "r")) == digests(written)
    with pytest.raises(SystemExit):
        diff.main([*map(str, both[::-1]), "--report", str(tmp_path / "r")])
    assert digests(tmp_path / "r") == digests(written)
    compared((both[1], both[0]), tmp_path / "r", "--overwrite")
    assert [item["id"] for item in chunks(tmp_path / "r", "added", "items")] == ["p/0"]


def test_equal_datasets_have_a_page_that_says_so(
    both: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = str(both[0])
    assert diff.main([a, a, "--report", str(tmp_path / "r")]) == 0
    assert f"open {tmp_path}/r/index.html in a browser" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "r").glob("*.html")) == ["index.html"]


def test_columns_that_are_not_asked_for_are_not_shown(
    both: tuple[Path, Path], tmp_path: Path
) -> None:
    captions = compared(both, tmp_path / "c", "--only", "caption_0")
    pictures = compared(both, tmp_path / "p", "--only", "image_1_id", "--table", "samples")

    (item,) = chunks(captions, "changed", "items")
    assert list(told(item)) == ["caption_0 in A", "caption_0 in B"]
    assert facet(captions, "changed", "changed columns") == [["caption_0"]]
    (item,) = chunks(pictures, "changed", "items")
    assert [pane["name"] for pane in item["panes"]] == ["image 1 in A", "image 1 in B"]
    assert [item["id"] for item in chunks(pictures, "added", "items")] == ["p/5"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--table", "images"), "--table: --report needs the samples table"),
        (("--only", "phash"), "--report: the samples have no column phash"),
    ],
)
def test_what_pages_cannot_show_is_refused(
    both: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    said: str,
) -> None:
    with pytest.raises(SystemExit) as left:
        diff.main([*map(str, both), "--report", str(tmp_path / "r"), *options])

    assert left.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@pytest.fixture(scope="module")
def rendered(demo_dataset: Callable[[str], Path]) -> Path:
    return demo_dataset("eq-kubric")


@pytest.fixture(scope="module")
def masked(rendered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rendered pairs without the first two."""
    folder = tmp_path_factory.mktemp("m") / "masked"
    shutil.copytree(rendered, folder, ignore=shutil.ignore_patterns("_work"))
    (path,) = (folder / "data").glob("samples-*")
    pq.write_table(pq.read_table(path).slice(2), path)
    describe(folder)
    return folder


def test_comparisons_and_reviews_have_the_masks_that_they_show(
    masked: Path, rendered: Path, tmp_path: Path
) -> None:
    pages = compared((rendered, masked), tmp_path / "d")
    asked = ["--protocol", "eq-sd-filter", "--reviewers", "ada", "--overlap", "1"]
    review.main(["plan", str(masked), *asked, "--sample", "1", "--output", str(tmp_path / "r")])

    removed, tasks = chunks(pages, "removed", "items"), given(tmp_path / "r", "ada/items/0")
    for folder, items, count in ((pages, removed, 2), (tmp_path / "r", tasks, 1)):
        named = {pane["mask"] for item in items for pane in item["panes"]} - {None}
        assert len(items) == count
        assert named
        assert {f"masks/{path}" for path in digests(folder / "masks")} == named


def test_masks_have_names_of_masks(
    masked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(masked, tmp_path / "d"))
    (path,) = (folder / "data").glob("masks-*")
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[0]["mask_id"] = "../../x"
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    describe(folder)

    with pytest.raises(SystemExit) as left:
        report.main([str(folder), "--output", str(tmp_path / "r")])

    assert left.value.code == 2
    assert "the image id ../../x is not a SHA-256" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_pictures_that_are_not_shown_are_not_read(
    both: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three pictures that are stored alone in a row group each, the two that are wanted."""
    (path,) = (both[1] / "data").glob("images-*")
    folder = Path(shutil.copytree(both[1], tmp_path / "d"))
    pq.write_table(pq.read_table(path), folder / "data" / path.name, row_group_size=1)
    describe(folder)
    read: list[int] = []
    whole = Dataset.groups

    def watched(self: Dataset, path: str, columns: Any, numbers: Any = None) -> Any:
        for table in whole(self, path, columns, numbers):
            read.extend([table.num_rows] * ("image" in columns))
            yield table

    monkeypatch.setattr(Dataset, "groups", watched)
    dataset = open_dataset(str(folder))
    pictures = read_pictures(dataset, whole=True)
    ids = [hashlib.sha256(data).hexdigest() for data in PICTURES[1:3]]

    report = Folder(Listing(str(tmp_path)))
    write_some(dataset, [Pane(image_id=name) for name in ids], pictures, report)

    assert sum(read) == 2
    assert {path.stem for path in (tmp_path / "pictures").rglob("*.png")} == set(ids)


def test_its_pages_are_readable_by_everybody(written: Path, opened: Callable[..., Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for theme, rules in THEMES.items():
        page = opened(written, color_scheme=theme, bypass_csp=True)
        for file in sorted(path.name for path in written.glob("*.html")):
            page.open(file)
            assert violations(Axe(), page, *rules) == []
    page.open("changed.html#id=p/2")
    page.press("b")
    assert page.page.locator(".stage").get_attribute("data-mode") == "blink"


def test_both_pictures_of_a_pair_are_compared_with_what_they_were(
    tmp_path: Path, opened: Callable[..., Any]
) -> None:
    folders = []
    for name, shown in (("a", (0, 1)), ("b", (2, 3))):
        some = [sample("p", 0, (PICTURES[shown[0]], PICTURES[shown[1]]), "test")]
        folders.append(write_pairs(tmp_path / name, some, [PICTURES[n] for n in shown]))
    page = opened(compared((folders[0], folders[1]), tmp_path / "r")).open("changed.html#id=p")
    frames = page.page.locator(".stack .frame")

    page.press("b")

    assert page.page.locator(".stack").count() == 2
    assert [page.page.locator(".stack").nth(n).locator(".frame").count() for n in (0, 1)] == [2, 2]
    for turn, seen in (("1", [False, True] * 2), ("0", [True, False] * 2)):
        page.page.wait_for_selector(f".stage[data-turn='{turn}']")
        assert [frames.nth(n).is_visible() for n in range(4)] == seen
    page.press("a")
    assert page.page.locator(".pane > .frame").count() == 4
