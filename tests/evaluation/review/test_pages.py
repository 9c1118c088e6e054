"""The pages of a review, as reviewers with other eyes, and on phones, have them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eqforge.commands import review
from tests.evaluation.report.pages import Page, violations

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
        page.press("k")
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

    for theme in ("light", "dark"):
        # axe puts a script into the page, which the page's own policy refuses.
        page = opened(folder, color_scheme=theme, bypass_csp=True)
        for _ in sights(page):
            assert page.page.evaluate("document.documentElement.dataset.theme || 'light'") == theme
            assert violations(Axe(), page) == []
    phone = opened(folder, viewport={"width": 360, "height": 700})
    for _ in sights(phone):
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
