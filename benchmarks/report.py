"""Writes the report of a large dataset, and measures its pages in Chromium.

    python benchmarks/report.py --pairs 100000

The dataset is synthetic, two small pictures a pair. The report is written by a process of its own,
with small pictures alone; then its pages are opened from disk: how long until the first one shows
its charts and the list its first pairs, how long a sorted filter and a search take, and how much
memory the tab's scripts hold before and after many pages of the list, garbage collected.

Goals: a first view under 2 s, and memory of the tab that does not grow. Needs Chromium.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from export import make_dataset, measure  # type: ignore[import-not-found]

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--enable-precise-memory-info", "--js-flags=--expose-gc")


def write(dataset: Path, report: Path, output: Path) -> float:
    """Writes the report of a dataset beside `output`; returns the seconds."""
    from eqforge.cli import main

    started = time.perf_counter()
    assert main(["report", str(dataset), "--output", str(report), "--thumbnails-only"]) == 0
    return time.perf_counter() - started


class Tab:
    """A tab of a browser."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self._tools = page.context.new_cdp_session(page)

    def opened(self, page: Path, seen: str) -> float:
        """Opens a page from disk; returns the seconds until it shows an element."""
        started = time.perf_counter()
        self.page.goto(f"file://{page}")
        self.page.wait_for_selector(seen, timeout=60_000)
        return round(time.perf_counter() - started, 2)

    def turn(self, state: str) -> float:
        """Returns how long it takes until the list shows something else for another address."""
        before = self.page.locator("#grid").inner_text()
        started = time.perf_counter()
        self.page.evaluate("state => { location.hash = state; }", state)
        self.page.wait_for_function(
            "text => document.getElementById('grid').innerText !== text", arg=before, timeout=60_000
        )
        return round(time.perf_counter() - started, 2)

    def heap_mb(self) -> float:
        """Returns the megabytes that scripts hold, after a collection."""
        self._tools.send("HeapProfiler.collectGarbage")
        return round(self.page.evaluate("performance.memory.usedJSHeapSize") / 1e6, 1)


def look(report: Path, pairs: int, turns: int) -> dict[str, Any]:
    """Opens the pages of a report; returns seconds and megabytes."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, _PROGRAMS)))
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        tab = Tab(browser.new_page())
        found: dict[str, Any] = {}
        found["first page, s"] = tab.opened(report / "index.html", ".chart canvas")
        found["list, s"] = tab.opened(report / "samples.html", "#grid .card")
        heap = [tab.heap_mb()]
        step = max(1, pairs // 24 // turns)
        for number in range(1, turns):
            tab.turn(f"page={1 + number * step}")
            if number in (turns // 2, turns - 1):
                heap.append(tab.heap_mb())
        found[f"heap before, half way and after {turns} pages of the list, MB"] = heap
        found["sort, s"] = tab.turn("sort=-ssim")
        found["search, s"] = tab.turn("q=000077")
        found["heap at the end, MB"] = tab.heap_mb()
        browser.close()
    return found


def main() -> None:
    """Runs it and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100_000, help="pairs, of two pictures each")
    parser.add_argument("--side", type=int, default=64, help="side of a picture in pixels")
    parser.add_argument("--turns", type=int, default=500, help="pages of the list to open")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as name:
        dataset, report = Path(name) / "dataset", Path(name) / "report"
        make_dataset(dataset, args.pairs, args.side, 4)
        seconds, peak_mb = measure(write, dataset, report, name)
        files = [each.stat().st_size for each in report.rglob("*") if each.is_file()]
        result = {
            "pairs": args.pairs,
            "written, s": round(seconds, 1),
            "peak, MB": round(peak_mb),
            "files": len(files),
            "length, MB": round(sum(files) / 1e6),
            **look(report, args.pairs, args.turns),
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
