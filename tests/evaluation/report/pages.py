"""A page of a report in a browser, and what went wrong on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

THEMES = {"light": (), "dark": ("color-contrast",)}
"""The rules of axe that each theme is held to: all, and the one that colours can break."""


class Page:
    """A page, and what went wrong on it."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self._folder = page, folder
        self.wrong: list[str] = []
        self.asked: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: self.wrong.append(f"dialog {dialog.message}"))
        page.on("console", self._hear)
        page.on("request", lambda request: self.asked.append(request.url))

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def open(self, place: str) -> "Page":
        self.page.goto("about:blank")
        self.page.goto(f"file://{self._folder}/{place}")
        if not place.startswith("index"):
            self.page.wait_for_selector("#grid .card, #single .stage, #count:not(:empty)")
        return self

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def ids(self) -> list[str]:
        found: list[str] = self.page.locator("#grid .cover .id").all_inner_texts()
        return found

    def count(self, expected: str) -> None:
        self.page.wait_for_function(
            "text => document.getElementById('count').textContent === text", arg=expected
        )

    def turn(self, change: Callable[[], Any]) -> None:
        """Waits until the list is another one."""
        before = self.page.locator("#grid").inner_text()
        change()
        self.page.wait_for_function(
            "text => document.getElementById('grid').innerText !== text", arg=before
        )


def violations(axe: Any, page: Page, *rules: str) -> list[str]:
    """What axe finds on a page, with all of its rules or some."""
    only = {"runOnly": list(rules)} if rules else {}
    found = axe.run(page.page, options={"preload": False, **only}).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]
