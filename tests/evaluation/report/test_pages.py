"""The pages of a report, driven in Chromium from disk as a reader does."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eqforge.evaluation.report.tables import CHUNK
from tests.evaluation.report.pages import THEMES, Page, violations
from tests.exported import picture, sample, write_pairs
from tests.made_datasets import score_rows, write_scores
from tests.reports import HOSTILE, write_report

COUNT = 260
PAGE = 24
KINDS = ("eq-video", "eq-kubric", "hard-positives", "retrieval-perturbations", "vlue", "simat")
"""One of each layout: eq-ag and eq-sd show no more than eq-video and eq-kubric do."""
DARK = ("eq-video", "hard-positives")
"""Layouts that have all colours between them."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dataclasses import replace

    pictures = [picture(n) for n in range(4)]
    shown = [(pictures[n % 3], pictures[n % 3 + 1]) for n in range(COUNT)]
    some = [sample(f"p/{n:03d}", n, shown[n], ("test", "val")[n % 2]) for n in range(COUNT)]
    ssim = np.random.default_rng(1).permutation(COUNT) / COUNT
    found = [replace(each, ssim=float(value)) for each, value in zip(some, ssim, strict=True)]
    found[7] = replace(found[7], sample_id=f"p/007 {HOSTILE}", caption_0=HOSTILE)
    return write_pairs(tmp_path_factory.mktemp("d") / "pairs", found, pictures)


@pytest.fixture(scope="module")
def scores(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    from eqforge.schemas.dataset.reader import open_dataset

    names = [row["sample_id"] for row in open_dataset(str(dataset)).rows("samples")]
    folders = []
    for seed in (0, 1):
        values = np.random.default_rng(seed).integers(0, 3, (len(names), 4)).astype(np.float32)
        tables = {"scores": score_rows(names, values)}
        folder = tmp_path_factory.mktemp("s") / "scores"
        folders.append(str(write_scores(folder, dataset, "pairs", tables, model=f"m{seed}")))
    return folders


@pytest.fixture(scope="module")
def report(dataset: Path, scores: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("r") / "a report #1"
    return write_report(dataset, folder, "--scores", *scores)


@pytest.fixture
def page(opened: Callable[..., Page], report: Path) -> Page:
    # What has to be written as %23 in an address is a folder's name as any other.
    return opened(Path(str(report).replace("#", "%23").replace(" ", "%20")))


def test_the_first_page_leads_to_the_rows(page: Page) -> None:
    page.open("index.html")

    assert page.page.locator("h1").inner_text() == "eq-video"
    page.page.wait_for_selector(".chart canvas")
    assert page.page.locator(".chart").count() >= 4
    page.page.locator(".facets a", has_text="val").click()
    page.count(f"{COUNT // 2} of {COUNT} pairs")


def test_lists_are_filtered_sorted_searched_and_linked(page: Page, dataset: Path) -> None:
    from eqforge.schemas.dataset.reader import open_dataset

    rows = list(open_dataset(str(dataset)).rows("samples", ["sample_id", "ssim", "split"]))
    page.open("samples.html")
    page.count(f"{COUNT} pairs")

    page.turn(lambda: page.page.select_option("#sort", "-ssim"))
    falling = sorted(rows, key=lambda row: -row["ssim"])
    assert page.ids() == [row["sample_id"] for row in falling[:PAGE]]

    page.press("f")
    page.turn(lambda: page.page.get_by_label("val", exact=False).click())
    assert page.page.evaluate("document.activeElement.checked")
    some = [row for row in falling if row["split"] == "val"]
    assert page.ids() == [row["sample_id"] for row in some[:PAGE]]

    page.page.get_by_label("ssim: at most", exact=True).fill("0.3")
    page.turn(lambda: page.press("Tab"))
    some = [row for row in some if row["ssim"] <= 0.3]
    assert some[0]["ssim"] == 0.3  # which is less than the same number of 32 bits
    page.count(f"{len(some)} of {COUNT} pairs")
    assert page.ids() == [row["sample_id"] for row in some[:PAGE]]

    link = page.page.url.rpartition("/")[2]
    page.turn(lambda: page.page.get_by_role("button", name="Clear all").click())
    page.turn(page.page.go_back)
    assert page.ids() == [row["sample_id"] for row in some[:PAGE]]
    page.open(link)
    page.count(f"{len(some)} of {COUNT} pairs")
    assert page.ids() == [row["sample_id"] for row in some[:PAGE]]

    page.press("/")
    page.page.keyboard.type("p/01")
    page.count(f"{sum('p/01' in row['sample_id'] for row in some)} of {COUNT} pairs")


def test_keys_lead_through_the_list_and_its_items(page: Page) -> None:
    page.open("samples.html")
    page.turn(lambda: page.press("j"))
    second = page.ids()
    page.page.locator(".cover").nth(1).focus()
    page.press("Enter")
    page.page.wait_for_selector("#single .stage")
    assert page.page.locator("#single h2").inner_text() == second[1]
    page.press("k")
    page.page.wait_for_function(
        "id => document.querySelector('#single h2').textContent === id", arg=second[0]
    )
    page.press("k")  # the last of the page before
    page.page.wait_for_function(
        "id => document.querySelector('#single h2').textContent !== id", arg=second[0]
    )
    page.press("ArrowRight", "Escape")
    page.page.wait_for_selector("#grid .card")
    assert page.ids() == second
    page.page.wait_for_function("() => document.activeElement.className === 'cover'")


def test_two_pictures_are_compared_in_four_ways(page: Page) -> None:
    page.open("samples.html#id=p/003")
    stage = page.page.locator(".stage")

    for key, mode in (("b", "blink"), ("s", "swipe"), ("c", "diff"), ("a", "side")):
        page.press(key)
        assert stage.get_attribute("data-mode") == mode
        assert page.page.locator(".stack").is_visible() == (mode != "side")
        assert page.page.locator(".pane > .frame").count() == (2 if mode == "side" else 0)
    page.press("b")
    for turn in ("1", "0"):
        page.page.wait_for_selector(f".stage[data-turn='{turn}']")
    page.press("s")
    page.page.locator("input.swipe").focus()
    page.press("ArrowRight")  # moves the swipe, and not to the next pair
    assert page.page.locator("#single h2").inner_text() == "p/003"


def test_a_difference_of_colours_of_equal_brightness_is_seen(
    opened: Callable[..., Page], tmp_path: Path
) -> None:
    import io

    from PIL import Image

    def filled(colour: tuple[int, int, int]) -> bytes:
        stream = io.BytesIO()
        image = Image.new("RGB", (24, 16), (60, 131, 60))
        image.paste(colour, (12, 0, 24, 16))
        image.save(stream, "PNG")
        return stream.getvalue()

    pictures = [filled((60, 131, 60)), filled((200, 60, 60))]
    folder = write_pairs(
        tmp_path / "d", [sample("p", 0, (pictures[0], pictures[1]), "test")], pictures
    )
    page = opened(write_report(folder, tmp_path / "r")).open("samples.html#id=p")
    page.press("c")

    drawn = page.page.locator(".stack").screenshot()

    with Image.open(io.BytesIO(drawn)) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    height, width = pixels.shape[:2]
    assert pixels[height // 2, width // 4].sum() < 60
    assert pixels[height // 2, 3 * width // 4].sum() > 300


def test_texts_of_data_do_nothing(page: Page) -> None:
    page.open("samples.html#q=onerror")
    page.count(f"1 of {COUNT} pairs")
    assert HOSTILE.split("\u2028")[0] in page.page.locator(".card .text").first.inner_text()
    page.page.locator(".cover").click()
    page.page.wait_for_selector("#single .stage")
    page.press("i")
    page.page.wait_for_selector(".fields")
    assert page.page.locator(".everything").bounding_box()["y"] < 100  # it is scrolled to
    assert page.page.locator("img[src=x]").count() == 0
    page.open("index.html")


def test_two_models_are_compared(page: Page, scores: list[str], dataset: Path) -> None:
    from eqforge.schemas.dataset.score_tables import open_scores

    right = []
    for folder in scores:
        batches = open_scores(folder).batches("scores", ["values"])
        values = np.array([row["values"] for batch in batches for row in batch.to_pylist()])
        own, other = values[:, [0, 0, 3, 3]], values[:, [1, 2, 1, 2]]
        right.append((own - other).min(axis=1) > 0)
    both = int((right[0] & right[1]).sum())

    page.open("samples.html")
    page.page.wait_for_selector(".crossed")
    heads = page.page.locator(".crossed thead th").all_inner_texts()
    column = [head.endswith(" right") for head in heads].index(True)
    row = page.page.locator(".crossed tbody tr", has=page.page.locator("th", has_text="right"))
    cell = row.locator("td").nth(column)
    assert cell.inner_text() == str(both)
    cell.locator("a").click()
    page.count(f"{both} of {COUNT} pairs")
    page.open("samples.html")
    page.turn(lambda: page.page.locator(".model a", has_text="worst first").first.click())
    said = page.page.locator(".card .verdicts li:first-child").all_inner_texts()
    margins = [float(text.rpartition(" ")[2]) for text in said]
    assert margins == sorted(margins)


def test_on_a_phone_a_table_of_models_with_long_names_scrolls_by_itself(
    opened: Callable[..., Page], report: Path
) -> None:
    folder = Path(str(report).replace("#", "%23").replace(" ", "%20"))
    phone = opened(folder, viewport={"width": 390, "height": 700})
    phone.open("samples.html")
    phone.page.wait_for_selector(".crossed")
    phone.page.evaluate(
        """document.querySelectorAll(".crossed th, .model b").forEach(
            (name) => name.prepend("openai/clip-vit-large-patch14-336@0123456789ab "))"""
    )
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    around = phone.page.locator("div:has(> .crossed)")
    assert around.evaluate("node => node.scrollWidth > node.clientWidth")
    assert around.evaluate("node => getComputedStyle(node).overflowX") == "auto"


def test_the_tab_holds_few_files_of_data(page: Page) -> None:
    assert COUNT > 2 * CHUNK
    page.open("samples.html#page=11")
    page.count(f"{COUNT} pairs")
    loaded = [url for url in page.asked if "/items/" in url]
    assert [url.rpartition("/")[2] for url in loaded] == ["2.js"]
    assert not any("/rows/" in url or "/texts/" in url for url in page.asked)


def test_charts_say_in_words_what_was_refused_by_a_limit(
    demo_output: Path, tmp_path: Path, opened: Callable[..., Page]
) -> None:
    page = opened(write_report(demo_output / "eq-video", tmp_path / "r")).open("index.html")
    chart = page.page.locator(".chart", has=page.page.locator(".legend"))

    chart.locator("canvas").wait_for()

    assert chart.locator("figcaption").inner_text().split() == [
        *("Minimality", "kept", "rejected", "by", "this", "limit"),
    ]
    said = chart.locator(".note").inner_text()
    assert said.startswith(
        "6 kept, 0.7835 to 0.9526; 13 rejected by this limit, 0.000004 to 0.0641; "
    )


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_readable_by_everybody(
    name: str, demo_dataset: Callable[[str], Path], tmp_path: Path, opened: Callable[..., Page]
) -> None:
    """No violation that axe finds, on any page; nothing wider than a phone."""
    from axe_playwright_python.sync_playwright import Axe

    folder = write_report(demo_dataset(name), tmp_path / "r")
    pages = [file.name for file in sorted(folder.glob("*.html"))]
    for theme, rules in THEMES.items():
        if theme == "dark" and name not in DARK:
            continue
        # axe puts a script into the page, which the page's own policy refuses.
        page = opened(folder, color_scheme=theme, bypass_csp=True)
        for file in pages:
            page.open(file)
            assert violations(Axe(), page, *rules) == []
        page.open("samples.html")
        page.press("f", "?")
        page.page.locator(".cover").first.click()
        page.page.wait_for_selector("#single .stage")
        page.press("i", "m")
        page.page.wait_for_selector(".fields")
        assert violations(Axe(), page, *rules) == []
    phone = opened(folder, viewport={"width": 360, "height": 700})
    for file in (*pages, page.page.url.rpartition("/")[2]):
        phone.open(file)
        if "#id=" in file:
            phone.press("i")
            phone.page.wait_for_selector(".fields")
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
