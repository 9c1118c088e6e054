"""`eqforge diff --report` shows what was added, removed and changed, with the pictures."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eqforge.commands import diff
from tests.evaluation.report.pages import violations
from tests.exported import picture, sample, write_pairs
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
        "ssim in A": "0.5",
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
    assert f"{tmp_path}/r/index.html: open it in a browser" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "r").glob("*.html")) == ["index.html"]


def test_its_pages_are_readable_by_everybody(written: Path, opened: Callable[..., Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for theme in ("light", "dark"):
        page = opened(written, color_scheme=theme, bypass_csp=True)
        for file in sorted(path.name for path in written.glob("*.html")):
            page.open(file)
            assert violations(Axe(), page) == []
    page.open("changed.html#id=p/2")
    page.press("b")
    assert page.page.locator(".stage").get_attribute("data-mode") == "blink"
