"""A browser for the pages of reports."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.report.pages import Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window; tests that need it are skipped where a machine has none.

    While it lasts an event loop runs in this thread, which tests elsewhere start themselves.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Page]]:
    """Opens a report; in the end nothing may have gone wrong, or been asked for elsewhere."""
    made: list[tuple[Page, Any]] = []

    def make(folder: Path, **options: Any) -> Page:
        context = browser.new_context(**options)
        made.append((Page(context.new_page(), folder), context))
        return made[-1][0]

    yield make
    for page, context in made:
        assert page.wrong == []
        assert {url.partition(":")[0] for url in page.asked} <= {"file", "about"}
        context.close()
