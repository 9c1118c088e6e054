"""`eqforge report` writes every row of a dataset, and what it can be found by."""

import array
import hashlib
import io
import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge.commands import card, report
from eqforge.core.files.owned import Listing
from eqforge.evaluation.metrics.pairs import group_score, pair_ties
from eqforge.evaluation.report.folder import Folder
from eqforge.evaluation.report.items import differing_words, marked
from eqforge.evaluation.report.overview import borderline, charts_of, limits_of_settings
from eqforge.evaluation.report.pictures import coloured
from eqforge.evaluation.report.tables import Numbers, Written
from eqforge.schemas.dataset.card import title_of
from eqforge.schemas.dataset.manifest import load_manifest
from eqforge.schemas.dataset.reader import open_dataset
from tests.exported import pairs, picture, write_pairs
from tests.made_datasets import describe, score_rows, write_scores
from tests.reports import HOSTILE, chunks, digests, exact, facet, given, numbers, write_report

COUNT = 230
"""More than two files of items."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("d") / "pairs"
    found = [each for some in pairs(COUNT, ("test", "val")).values() for each in some]
    found[3] = replace(found[3], caption_0=HOSTILE)
    measured = [replace(each, ssim=n / COUNT) for n, each in enumerate(found)]
    return write_pairs(folder, measured, [picture(n) for n in range(COUNT + 1)])


@pytest.fixture(scope="module")
def written(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(dataset, tmp_path_factory.mktemp("r") / "report")


def rows_of(dataset: Path, table: str = "samples") -> dict[str, dict[str, Any]]:
    key = {"samples": "sample_id", "rejects": "candidate_id"}[table]
    return {row[key]: row for row in open_dataset(str(dataset)).rows(table)}


def plain(text: dict[str, Any]) -> str:
    return "".join(part if isinstance(part, str) else part[0] for part in text["parts"])


def test_every_pair_is_there_with_its_captions_pictures_and_whole_row(
    dataset: Path, written: Path
) -> None:
    rows = rows_of(dataset)
    items, whole = chunks(written, "samples", "items"), chunks(written, "samples", "rows")

    assert [item["id"] for item in items] == sorted(rows, key=lambda name: name.encode())
    for item, ((table, row),) in zip(items, whole, strict=True):
        expected = rows[item["id"]]
        assert (table, row) == ("samples", expected)
        for side, pane in enumerate(item["panes"]):
            assert plain(pane["texts"][0]) == expected[f"caption_{side}"]
            stored = (written / pane["file"]).read_bytes()
            assert hashlib.sha256(stored).hexdigest() == expected[f"image_{side}_id"]
            with Image.open(written / pane["thumb"]) as small:
                assert small.size == (pane["width"], pane["height"])


def test_pairs_are_found_by_their_columns_and_texts(dataset: Path, written: Path) -> None:
    rows = rows_of(dataset)
    items = chunks(written, "samples", "items")
    names = [item["id"] for item in items]

    assert facet(written, "samples", "split") == [[rows[name]["split"]] for name in names]
    ssim = np.array([rows[name]["ssim"] for name in names], dtype=np.float32)
    assert np.array_equal(numbers(written, "samples", "ssim"), ssim)
    background = [rows[name]["background_ssim"] for name in names]
    expected = np.array([np.nan if each is None else each for each in background], np.float32)
    assert np.array_equal(numbers(written, "samples", "background_ssim"), expected, equal_nan=True)
    for name, text in zip(names, chunks(written, "samples", "texts"), strict=True):
        for said in (name, rows[name]["caption_0"], rows[name]["caption_1"]):
            assert said.lower() in text


def test_no_text_of_data_is_markup(written: Path) -> None:
    pages = [(written / page).read_text("utf-8") for page in ("index.html", "samples.html")]
    scripts = [path.read_text("utf-8") for path in (written / "data").rglob("*.js")]

    assert any("onerror" in script for script in scripts)
    for said in (*pages, *scripts):
        assert "<img src=x" not in said
    assert all("\u2028" not in script for script in scripts)


def test_the_same_dataset_gives_the_same_bytes_also_after_a_kill(
    dataset: Path, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eqforge.evaluation.report import write

    class Killed(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(write, "write_pages", killed)
        with pytest.raises(Killed):
            report.main([str(dataset), "--output", str(tmp_path / "r")])
    shutil.rmtree(tmp_path / "r" / "thumbnails" / next(iter(rows_images(dataset)))[:2])
    again = write_report(dataset, tmp_path / "r")

    assert digests(again) == digests(written)


def rows_images(dataset: Path) -> list[str]:
    return [row["image_id"] for row in open_dataset(str(dataset)).rows("images", ["image_id"])]


def test_scores_are_laid_over_and_right_is_what_metrics_calls_right(
    dataset: Path, tmp_path: Path
) -> None:
    names = list(rows_of(dataset))[:-2]
    values = np.random.default_rng(0).integers(0, 4, (len(names), 4)).astype(np.float32)
    tables = {"scores": score_rows(names, values)}
    scores = write_scores(tmp_path / "s", dataset, "pairs", tables, model="one")

    written = write_report(dataset, tmp_path / "r", "--scores", str(scores))

    right = dict(zip(names, group_score(values.reshape(-1, 2, 2)) > 0, strict=True))
    tied = dict(zip(names, pair_ties(values.reshape(-1, 2, 2)), strict=True))
    (model,) = given(written, "samples/index")["models"]
    items = [item["id"] for item in chunks(written, "samples", "items")]
    verdicts = facet(written, "samples", f"model: {model['name']}")
    margins = numbers(written, "samples", "margin", f"model: {model['name']}")
    for name, (verdict,), margin in zip(items, verdicts, margins, strict=True):
        if name not in right:
            assert verdict == "not scored"
            assert np.isnan(margin)
        else:
            assert (verdict == "right") == right[name] == bool(margin > 0)
            assert verdict != "tied" or tied[name]


def test_a_model_may_be_called_as_a_column_is(dataset: Path, tmp_path: Path) -> None:
    names = list(rows_of(dataset))
    for name in ("split", "scores"):
        lines = [json.dumps({"sample_id": each, "values": [1, 0, 0, 1]}) for each in names]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    files = [str(tmp_path / f"{name}.jsonl") for name in ("split", "scores")]

    written = write_report(dataset, tmp_path / "r", "--scores", *files)

    index = given(written, "samples/index")
    assert [model["name"] for model in index["models"]] == ["split", "scores"]
    for model in index["models"]:
        assert index["facets"][model["facet"]]["values"] == ["right"]
    expected = [[rows_of(dataset)[name]["split"]] for name in sorted(names, key=str.encode)]
    assert facet(written, "samples", "split") == expected


def test_numbers_that_a_page_would_round_are_texts(tmp_path: Path) -> None:
    told = {"a": [2**53, 2**53 + 1, -(2**63), True, 0.5, math.inf]}

    Folder(Listing(str(tmp_path))).write_data("x", told)

    exact = [2**53, "9007199254740993", "-9223372036854775808", True, 0.5, None]
    assert given(tmp_path, "x") == {"a": exact}


def test_scores_of_samples_that_are_not_there_are_refused(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.jsonl").write_text('{"sample_id": "nobody", "values": [1, 0, 0, 1]}\n')
    options = ["--output", str(tmp_path / "r"), "--scores", str(tmp_path / "s.jsonl")]

    with pytest.raises(SystemExit):
        report.main([str(dataset), *options])

    assert "none of its ids, such as 'nobody'" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_thumbnails_alone_take_less(dataset: Path, written: Path, tmp_path: Path) -> None:
    small = write_report(dataset, tmp_path / "r", "--thumbnails-only")

    assert not (small / "pictures").exists()
    assert digests(small / "thumbnails") == digests(written / "thumbnails")
    assert all(
        pane["file"] is None and pane["thumb"]
        for item in chunks(small, "samples", "items")
        for pane in item["panes"]
    )


def test_without_a_folder_a_report_lies_beside_its_dataset(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(dataset, tmp_path / "mine"))
    monkeypatch.chdir(tmp_path)

    assert report.main(["mine/", "--thumbnails-only"]) == 0

    assert (tmp_path / "mine-report" / "index.html").is_file()
    written = digests(tmp_path / "mine-report")
    monkeypatch.chdir(folder)
    assert report.main([".", "--thumbnails-only"]) == 0
    assert digests(tmp_path / "mine-report") == written


def test_of_a_url_the_folder_has_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        report.main(["memory://bucket/pairs"])

    (line,) = capsys.readouterr().err.splitlines()
    assert "memory://bucket/pairs is not on this machine. Choose a folder for the report" in line


def test_the_title_is_that_of_the_card(dataset: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(dataset, tmp_path / "d"))
    title = HOSTILE.replace("\u2028", "")
    (tmp_path / "about.toml").write_text(f"title = {json.dumps(title)}", "utf-8")
    assert card.main([str(folder), "--about", str(tmp_path / "about.toml")]) == 0

    page = (write_report(folder, tmp_path / "r") / "index.html").read_text("utf-8")

    shown = "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"
    assert page.index("<title>") < page.index(shown) < page.index("</title>")
    assert f"<h1>{shown}" in page


def test_without_a_title_a_report_has_the_datasets_name(dataset: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(dataset, tmp_path / "d"))
    for head in ("", "license: mit", "pretty_name: [1]", 'pretty_name: "', "---\npretty_name: no"):
        (folder / "README.md").write_text(f"---\n{head}\n---\n")
        assert title_of(str(folder)) == ""
    tag = "---\npretty_name: !!python/object:os.system x\n---\n"
    for text in ("", "# A card without a head\npretty_name: no\n", tag):
        (folder / "README.md").write_text(text)
        assert title_of(str(folder)) == ""

    page = (write_report(folder, tmp_path / "r") / "index.html").read_text("utf-8")

    assert "<h1>eq-video</h1>" in page


@pytest.mark.parametrize(
    "name",
    [
        *("eq-ag", "eq-video", "eq-sd", "eq-kubric", "hard-positives"),
        *("training-captions", "retrieval-perturbations", "vlue", "simat"),
    ],
)
def test_every_kind_of_dataset_has_all_its_rows_and_rejects(
    name: str, demo_dataset: Callable[[str], Path], tmp_path: Path
) -> None:
    dataset = demo_dataset(name)

    written = write_report(dataset, tmp_path / "r")

    for table in ("samples", "rejects"):
        rows = rows_of(dataset, table)
        if not rows:
            assert not (written / f"{table}.html").exists()
            continue
        key = "candidate_id" if table == "rejects" else "sample_id"
        whole = [
            row for item in chunks(written, table, "rows") for kind, row in item if kind == table
        ]
        assert sorted(row[key] for row in whole) == sorted(rows)
        assert all(row == exact(rows[row[key]]) for row in whole)
        if table == "samples":
            shown = [pane for item in chunks(written, table, "items") for pane in item["panes"]]
            assert shown
            assert all((written / pane["thumb"]).is_file() for pane in shown)
            assert all((written / pane["mask"]).is_file() for pane in shown if pane["mask"])
    stages = load_manifest(str(dataset)).stages
    page = (written / "index.html").read_text("utf-8")
    assert not re.search(r"<b>1</b> \w+s\b", page)
    assert page.index('class="numbers"') < page.index('id="stages"') < page.index('id="strip"')
    items = [item["id"] for item in chunks(written, "samples", "items")]
    strip = re.findall(
        r'class="id" title="([^"]+)"', page.partition('id="strip"')[2].partition("</ul>")[0]
    )
    assert strip == [items[n * len(items) // min(12, len(items))] for n in range(len(strip))]
    assert len(strip) == min(12, len(items))
    assert all(f">{reason}</a>" in page for books in stages.values() for reason in books.reasons)
    found = Counter(refused_for(written)) if (written / "rejects.html").exists() else {}
    for stage, books in stages.items():
        assert all(found[stage, reason] == n for reason, n in books.reasons.items())


def refused_for(written: Path) -> list[tuple[str, str]]:
    both = (facet(written, "rejects", title) for title in ("stage", "reason"))
    return [(stage, reason) for (stage,), (reason,) in zip(*both, strict=True)]


@pytest.fixture
def videos(demo_output: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo_output / "eq-video", tmp_path / "videos"))


def test_rejects_of_videos_have_their_pictures_and_what_was_measured(
    demo_output: Path, tmp_path: Path
) -> None:
    written = write_report(demo_output / "eq-video", tmp_path / "r")

    items = chunks(written, "rejects", "items")

    measured = [item for item in items if item["why"]["reason"] == "not_minimal"]
    assert measured
    assert all(len(item["panes"]) == 2 for item in measured)
    for item in measured:
        row = rows_of(demo_output / "eq-video", "rejects")[item["id"]]
        assert (item["why"]["value"], item["why"]["threshold"]) == (row["value"], row["threshold"])
        assert all((written / pane["thumb"]).is_file() for pane in item["panes"])
        assert item["comparable"]


def test_the_first_page_shows_the_pairs_nearest_the_limit(videos: Path, tmp_path: Path) -> None:
    page = (write_report(videos, tmp_path / "r") / "index.html").read_text("utf-8")

    section = page.partition('id="borderline"')[2].partition("</section>")[0]
    kept, rejected = (
        re.findall(r'title="([^"]+)"', part) for part in section.partition("Rejected")[::2]
    )
    scores = {name: row["scores"] for name, row in rows_of(videos).items()}
    values = {
        name: score["value"]
        for name, some in scores.items()
        for score in some
        if score["name"] == "minimality"
    }
    refused = {name: row["value"] for name, row in rows_of(videos, "rejects").items()}
    assert kept == sorted(values, key=lambda name: values[name])[:10]
    assert rejected == sorted(refused, key=lambda name: -refused[name])[:10]
    assert f">{values[kept[0]]:.3g}<" in section


def test_a_limit_between_two_bounds_has_both_sides_nearest_first() -> None:
    samples = pa.table({"sample_id": ["a", "b", "c"], "ssim": [0.5, 0.21, 0.79]})
    rejects = pa.table(
        {
            "detail": ["ssim", "ssim", "ssim", "luminance_mean", ""],
            "value": [0.1, 0.81, 0.19, 3.0, None],
            "threshold": [0.2, 0.8, 0.2, 10.0, None],
        }
    )

    found = borderline(samples, rejects)

    assert (found.score, [*found.kept], sorted(found.rejected)) == ("ssim", [1, 2, 0], [0, 1, 2])
    assert [*found.rejected][-1] == 0
    signed = pa.table({"sample_id": ["a", "b"], "ssim": [5.0, -39.9]})
    dark = pa.table({"detail": ["ssim"] * 2, "value": [90.0, -40.1], "threshold": [40.0, 40.0]})
    assert [*borderline(signed, dark).kept, *borderline(signed, dark).rejected] == [1, 0, 1, 0]
    assert borderline(samples, rejects.slice(3)).score == ""


def test_refused_values_are_counted_beside_the_kept_ones(videos: Path, tmp_path: Path) -> None:
    """In the same bins, whatever the order of the rejects."""
    (path,) = (videos / "data").glob("rejects-*")
    table = pq.read_table(path)
    first = write_report(videos, tmp_path / "r")
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), path)
    describe(videos)

    again = given(write_report(videos, tmp_path / "again"), "charts")

    charts = {chart["title"]: chart for chart in given(first, "charts")}
    assert again == list(charts.values())
    chart = charts["minimality"]
    refused = [row["value"] for row in table.to_pylist() if row["detail"] == chart["title"]]
    kept = [
        float(np.float32(score["value"]))
        for row in rows_of(videos).values()
        for score in row["scores"]
        if score["name"] == chart["title"]
    ]
    found = (chart["counts"], chart["refused"]["counts"])
    for values, counts in zip((kept, refused), found, strict=True):
        assert values
        assert np.histogram(values, chart["edges"])[0].tolist() == counts
    assert (chart["refused"]["least"], chart["refused"]["most"]) == (min(refused), max(refused))
    (limit,) = [each["value"] for each in chart["limits"] if each["label"] == "min_minimality"]
    assert max(refused) < limit < min(kept)
    assert charts["ssim"]["refused"] is None
    page = (first / "index.html").read_text("utf-8")
    assert page.count('class="legend"') == sum(chart["refused"] is not None for chart in again)


def test_bins_of_whole_numbers_do_not_hide_limits_between_them() -> None:
    number = Numbers(title="overlap_m_0", group="scores", found=array.array("f", [0] * 3))
    limits = {number.title: [("max_overlap_m", 0.01)]}

    reject = {"reason": "overlap", "detail": number.title, "value": 0.02, "threshold": 0.01}

    (chart,) = charts_of(Written(numbers=[number]), limits, [reject])

    assert (chart["edges"][0], chart["edges"][-1]) == (0, 0.02)
    assert (chart["counts"][0], chart["refused"]["counts"][-1]) == (3, 1)


def test_a_pair_refused_for_a_frame_says_why_the_frame_was(videos: Path, tmp_path: Path) -> None:
    (path,) = (videos / "data").glob("rejects-*")
    rows = pq.read_table(path).to_pylist()
    frame = rows[0] | {"candidate_id": "a frame", "reason": "too_dark", "detail": "luminance_mean"}
    frame |= {"value": 3.0, "threshold": 6.0}
    pair = rows[1] | {"candidate_id": "a pair", "reason": "frame_rejected", "detail": "a frame"}
    pair |= {"value": None, "threshold": None}
    schema = pq.read_schema(path)
    found = sorted([frame, pair, *rows[2:]], key=lambda row: row["candidate_id"])
    pq.write_table(pa.Table.from_pylist(found, schema), path)
    describe(videos)

    items = chunks(write_report(videos, tmp_path / "r"), "rejects", "items")

    (told,) = [item for item in items if item["id"] == "a pair"]
    said = {text["role"]: plain(text) for text in told["texts"]}
    why = "too_dark  luminance_mean 3, limit 6"
    assert said == {"": "a frame", "why it was rejected": why}


@pytest.mark.parametrize("change", [("a" * 64, "../../../x"), (".jpg", ".desktop")])
def test_pictures_of_rejects_have_names_of_pictures(
    videos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str]
) -> None:
    for path in (videos / "_work" / "done" / "extract").rglob("*.json"):
        text = re.sub(r'("image_id":")[0-9a-f]{64}', rf"\g<1>{'a' * 64}", path.read_text())
        path.write_text(text.replace(*change))

    with pytest.raises(SystemExit) as left:
        report.main([str(videos), "--output", str(tmp_path / "r")])

    assert left.value.code == 2
    assert re.search("the image (id|suffix) .* is not", capsys.readouterr().err.splitlines()[-1])
    assert not (tmp_path / "r").exists()


def test_damaged_pictures_of_rejects_cannot_be_shown(videos: Path, tmp_path: Path) -> None:
    for path in (videos / "_work" / "media").rglob("*.jpg"):
        path.write_bytes(b"no picture")

    written = write_report(videos, tmp_path / "r")

    panes = [pane for item in chunks(written, "rejects", "items") for pane in item["panes"]]
    samples = {row["image_id"] for row in open_dataset(str(videos)).rows("images", ["image_id"])}
    alone = [pane for pane in panes if Path(pane["file"] or "").stem not in samples]
    assert alone
    assert all(pane["thumb"] is None and pane["width"] for pane in alone)


def test_marks_are_where_characters_were_changed() -> None:
    assert marked("a red cup", [(2, 5)]).parts == ("a ", ("red",), " cup")
    assert marked("", []).parts == ("",)
    assert marked("кошка", [(0, 99)]).parts == (("кошка",),)
    assert marked("abc", [(2, 2), (1, 2), (0, 1)]).parts == (("a",), ("b",), "c")
    first, second = "A red cup on the table.", "A blue cup on the table."
    assert differing_words(first, second) == ([(2, 5)], [(2, 6)])
    assert differing_words("杯子在桌上", "杯子在地上") == ([(3, 4)], [(3, 4)])
    assert differing_words("Same words", "same words") == ([], [])
    assert differing_words("", "new") == ([], [(0, 3)])


def test_limits_are_those_of_the_settings() -> None:
    config = {"a": {"max_ssim": 0.9, "min_ssim": None, "min_changed_area": 0.1}, "min_pairs": True}
    config |= {"b": {"max_overlap_m": 0.01, "face_threshold": 0.75}}

    found = limits_of_settings(config)

    assert found["ssim"] == [("max_ssim", 0.9)]
    assert found["changed_area_fraction"] == [("min_changed_area", 0.1)]
    assert "pairs" not in found
    assert found["overlap_m_0"] == found["overlap_m_1"] == [("max_overlap_m", 0.01)]
    assert found["face_yunet"] == [("face_threshold", 0.75)]


@pytest.mark.parametrize("mode", ["L", "P"])
def test_masks_get_a_colour_for_each_object(mode: str) -> None:
    numbers = np.array([[0, 1], [2, 2]], dtype=np.uint8)
    mask = Image.fromarray(numbers)
    if mode == "P":
        mask.putpalette([9] * 768)
    stream = io.BytesIO()
    mask.save(stream, "PNG")

    with Image.open(io.BytesIO(coloured(stream.getvalue()))) as drawn:
        pixels = np.asarray(drawn.convert("RGBA"))

    assert pixels[0, 0, 3] == 0
    assert (pixels[1, 0] == pixels[1, 1]).all()
    assert pixels[0, 1, 3] == pixels[1, 0, 3] == 255
    assert (pixels[0, 1] != pixels[1, 0]).any()
