"""The pages of a review, as reviewers with other eyes, and on phones, have them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eqforge.commands import review
from tests.evaluation.report.pages import THEMES, Page, violations
from tests.exported import picture, sample, write_pairs

TASKS = 2
KINDS = (("eq-gebc", "eq-gebc-screening"), ("hard-positives", "true-and-false"))


def sights(page: Page) -> Iterator[None]:
    """Goes through all that a reviewer sees, and halts wherever something new stands there."""
    page.open("index.html")
    yield
    page.page.get_by_role("link", name="ada").click()
    page.page.wait_for_selector("#single[aria-busy=false]")
    yield
    page.page.locator(".guide summary").click()
    page.page.get_by_role("button", name="Drop").click()
    page.page.wait_for_selector("#reasons:not([hidden])")
    yield
    page.page.get_by_role("button", name="no reason").click()
    for answered in range(1, TASKS):
        page.page.wait_for_function(
            "number => document.getElementById('progress').value === number", arg=answered
        )
        page.page.wait_for_selector("#single[aria-busy=false]")
        page.press("k", *"ttt", "Enter")  # keep, or each text is true
    page.page.wait_for_selector(".done")
    yield


@pytest.mark.parametrize(("dataset", "protocol"), KINDS)
def test_everybody_can_review(
    dataset: str, protocol: str, demo_output: Path, tmp_path: Path, opened: Callable[..., Page]
) -> None:
    """No violation that axe finds, on any page, in either theme; nothing wider than a phone."""
    from axe_playwright_python.sync_playwright import Axe

    folder = tmp_path / "r"
    argv = ["--protocol", protocol, "--reviewers", "ada", "--sample", str(TASKS)]
    argv += ["--output", str(folder)]
    assert review.main(["plan", str(demo_output / dataset), *argv]) == 0

    for theme, rules in THEMES.items():
        # axe puts a script into the page, which the page's own policy refuses.
        page = opened(folder, color_scheme=theme, bypass_csp=True)
        for _ in sights(page):
            assert page.page.evaluate("document.documentElement.dataset.theme || 'light'") == theme
            assert violations(Axe(), page, *rules) == []
    phone = opened(folder, viewport={"width": 360, "height": 700})
    for _ in sights(phone):
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_tall_pictures_leave_room_for_the_captions_and_the_answers(
    tmp_path: Path, opened: Callable[..., Page]
) -> None:
    tall = [picture(n, size=(400, 600)) for n in range(2)]
    dataset = write_pairs(tmp_path / "d", [sample("p", 0, (tall[0], tall[1]), "test")], tall)
    argv = ["--protocol", "eq-gebc-screening", "--reviewers", "ada"]
    argv += ["--output", str(tmp_path / "r")]
    assert review.main(["plan", str(dataset), *argv]) == 0
    page = opened(tmp_path / "r", viewport={"width": 1200, "height": 800}).open("ada.html").page
    page.wait_for_selector("#single[aria-busy=false]")

    said = page.locator("figcaption .text").last.bounding_box()
    answers = page.locator("#vote [data-answer]").first.bounding_box()

    assert said is not None
    assert answers is not None
    assert said["y"] + said["height"] <= answers["y"]
    assert answers["y"] + answers["height"] <= 800
