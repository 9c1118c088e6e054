"""Every text of a dataset, of scores and of annotations is hostile; what is shown of it is not."""

import contextlib
import csv
import json
import logging
import re
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt

from eqforge.cli import main
from eqforge.core.errors import MAX_MESSAGE_CHARS
from eqforge.core.visible import visible
from eqforge.schemas.dataset.about import About, Author
from eqforge.schemas.dataset.card import dataset_card
from eqforge.schemas.dataset.croissant import croissant
from eqforge.schemas.dataset.manifest import InputFile, Manifest, load_manifest, to_json
from eqforge.schemas.dataset.profile import Facts, Profile
from tests.made_datasets import score_rows, write_dataset, write_scores

EVIL = (
    "=1+1 \x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066\u200b\x7f\r\n\\input{/etc/passwd}\n\n"
    "## Licence: CC0\n<script>alert(1)</script>[bold]|[link=http://x]y[/link] $z$ :smile: \u2028"
)
IMAGES, CAPTIONS = ["image_0_id", "image_1_id"], ["caption_0", "caption_1"]
COUNT = 6
TAME = {"sample_id": "a", "source_id": "a", "kind": "b", "split": "c", "ssim": 0.5} | dict.fromkeys(
    (*IMAGES, *CAPTIONS), "a"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of pairs whose every text is hostile, and two models' scores of it.

    Names of datasets, modes, tables and stages are not: a manifest where they are is refused.
    """
    place = tmp_path_factory.mktemp("hostile")
    rows: list[dict[str, Any]] = [
        {
            "sample_id": f"{n}{EVIL}",
            "source_id": f"{n // 2}{EVIL}",
            "kind": f"{n % 2}{EVIL}",
            "split": EVIL,
            "ssim": n / 10,
            **{name: f"{EVIL}{name}{n}" for name in (*IMAGES, *CAPTIONS)},
        }
        for n in range(COUNT)
    ]
    dataset = write_dataset(
        place / "d",
        "eq-kubric",
        {"samples": rows},
        warnings=[EVIL],
        inputs=[InputFile(name=f"captions{EVIL}.json", sha256="0" * 64)],
        versions={"eqforge": EVIL},
    )
    for model in ("a", "b"):
        values = np.random.default_rng(ord(model)).random((COUNT, 4))
        scores = {"scores": score_rows([row["sample_id"] for row in rows], values)}
        name = f"{model}{EVIL}"
        write_scores(place / model, dataset, "pairs", scores, model=name, warnings=[EVIL])
    return place


class Elements(HTMLParser):
    """The elements of a page, and what they link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}
        assert not [name for name, _ in attrs if name.startswith("on")]


def _shown(arguments: list[object], capfd: pytest.CaptureFixture[str]) -> str:
    """Returns what a command prints, which has to be visible."""
    with contextlib.suppress(SystemExit):
        main([*map(str, arguments)])
    printed = "".join(capfd.readouterr())
    hidden = [line for line in printed.split("\n") if visible(line) != line]
    assert not hidden, hidden[:3]
    assert "\n## Licence" not in printed
    assert "\n\\input" not in printed
    return printed


def test_what_commands_print_of_a_hostile_dataset_is_visible(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset = folder / "d"
    commands: list[list[object]] = [
        ["verify", dataset],
        ["inspect", dataset],
        ["inspect", dataset, "--full"],
        ["lint", dataset],
        ["lint", folder / "evil.jsonl"],
        ["metrics", dataset],
        ["converse", dataset, "--answers", tmp_path / "none.jsonl", "--by", "kind"],
    ]
    (folder / "evil.jsonl").write_text(json.dumps({"video": EVIL, EVIL: EVIL}))
    printed = [_shown(command, capfd) for command in commands]
    assert all(printed)
    assert "\\u001b]0;owned" in printed[1]
    assert "[bold]" in printed[1]
    assert ":smile:" in printed[1]


@pytest.mark.parametrize("form", ["text", "json", "csv", "latex"])
def test_metrics_of_hostile_names_are_visible_in_every_form(
    folder: Path, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    paths = [folder / "d", folder / "a", folder / "b"]
    options = ["--by", "kind", "--resamples", "10", "--show", form]
    assert "owned" in _shown(["metrics", *paths, *options], capfd)


def test_tables_of_hostile_names_parse_back(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = [str(folder / name) for name in ("d", "a", "b")]
    options = ["--by", "kind", "--resamples", "10", "--output", str(tmp_path)]
    assert main(["metrics", *paths, *options]) == 0
    found = json.loads((tmp_path / "metrics.json").read_text())
    assert {f"0{EVIL}", f"1{EVIL}"} <= {one["subset"] for one in found["measures"]}
    for name in ("metrics.csv", "comparisons.csv"):
        rows = list(csv.reader((tmp_path / name).read_text().splitlines()))
        assert len({len(row) for row in rows}) == 1
        assert not any(re.match(r"[=+@]|-[^\d]", cell) for row in rows for cell in row)
        assert any(f"0{visible(EVIL)}" in row for row in rows)
    tex = (tmp_path / "metrics.tex").read_text()
    body = [line for line in tex.splitlines() if not line.startswith("%")]
    commands = set(re.findall(r"\\[a-z]+", "\n".join(body)))
    assert commands == {
        *("\\begin", "\\end", "\\toprule", "\\midrule", "\\bottomrule"),
        *("\\textbackslash", "\\textasciicircum", "\\textasciitilde"),
    } - {"\\textasciicircum", "\\textasciitilde"}
    assert all(visible(line) == line for line in tex.splitlines())


def test_the_card_of_a_hostile_dataset_has_its_own_headings_alone(folder: Path) -> None:
    about = About(title=EVIL, authors=(Author(name=EVIL),), contact=EVIL, limitations=(EVIL,))
    facts = Facts(splits={"samples": {"a": 1, EVIL: 1}}, licences={EVIL: 1}, sources=1)
    manifest = load_manifest(str(folder / "d"))
    profile = Profile(manifest=manifest, facts=facts, commands=(EVIL,), about=about)
    card = dataset_card(profile)
    assert all(visible(line) == line for line in card.split("\n"))
    head, _, page = card.removeprefix("---\n").partition("\n---\n")
    import yaml

    configs = yaml.safe_load(head)["configs"]
    assert "samples" in {config["config_name"] for config in configs}
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    headings = [tokens[n + 1].content for n, one in enumerate(tokens) if one.type == "heading_open"]
    assert headings[1:] == [
        *("Columns of `samples`", "Splits", "What was rejected, and why", "Made from", "Uses"),
        *("Known limits", "People", "Loading"),
        *("Rebuild it", "Citation", "Licence", "Authors and contact", "Warnings"),
    ]
    described = json.loads(croissant(profile))
    assert described["name"] == EVIL
    assert EVIL in described["rai:dataLimitations"]
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}
    assert all(visible(line) == line for line in card.splitlines())


def test_a_plot_of_hostile_names_is_an_image_that_runs_nothing(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = [folder / "d", folder / "a", folder / "b"]
    _shown(["plot", "equivariance", *paths, "--output", tmp_path / "p.svg"], capfd)
    tags = {
        element.tag.rpartition("}")[2] for element in ElementTree.parse(tmp_path / "p.svg").iter()
    }
    assert not tags & {"script", "a", "foreignObject"}


def test_pages_of_hostile_rows_have_their_own_elements_alone(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each page, and each file of data that it loads, has nothing of the rows but as texts."""
    tame = write_dataset(tmp_path / "t", "eq-kubric", {"samples": [TAME]})
    dataset, own = folder / "d", tmp_path / "own.toml"
    own.write_text("name = \"own\"\nquestion = '<script>alert(1)</script>'\nreasons = ['<b>']\n")
    commands: dict[str, list[object]] = {
        "report": ["report", dataset, "--scores", folder / "a", "--output"],
        "diff": ["diff", tame, dataset, "--report"],
        "tasks": ["review", "plan", dataset, "--reviewers", "ada", "--protocol", own, "--output"],
    }
    for name, command in commands.items():
        _shown([*command, tmp_path / name], capfd)
        pages = [*(tmp_path / name).glob("*.html")]
        assert pages
        for page in pages:
            text = page.read_text("utf-8")
            assert "<script>alert" not in text
            found = Elements(text)
            assert "img" not in found.tags
            assert not [place for place in found.links if ":" in place]
        scripts = [*(tmp_path / name / "data").rglob("*.js")]
        assert any("owned" in script.read_text("utf-8") for script in scripts)
        for script in scripts:
            # One call with JSON between its brackets, on one line.
            text = script.read_text("utf-8")
            name_of, _, data = text.removeprefix("eqforge.take(").partition(", ")
            assert json.loads(name_of)
            json.loads(data.removesuffix(");\n"))
            assert all(visible(line) == line for line in text.split("\n"))
            assert "<" not in text


def test_what_libraries_log_and_warn_of_is_visible(caplog: pytest.LogCaptureFixture) -> None:
    """Such as transformers' warning that quotes the `model_type` of a model's folder."""
    main(["--version"])

    logging.getLogger("transformers").warning("a model of type `%s`", EVIL)
    for text in (caplog.messages[-1], warnings.formatwarning(EVIL, UserWarning, EVIL, 1)):
        assert "owned" in text
        assert all(visible(line) == line for line in text.split("\n"))


def test_a_message_of_a_hundred_thousand_characters_is_cut(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    columns = {f"{'x' * 100_000}\x1b[2J": ["a"]}
    pq.write_table(pa.table(columns), tmp_path / "m.parquet")
    (tmp_path / "m.csv").write_text(f"model,score,{'x' * 100_000}\na,1,1\n")
    printed = _shown(["pareto", tmp_path / "m.csv"], capfd)
    printed += _shown(["metrics", "--format", "pairs", tmp_path / "m.parquet"], capfd)
    assert len(printed) < 2 * MAX_MESSAGE_CHARS + 100


def test_manifests_escape_what_is_hidden_and_stay_the_same_data() -> None:
    name = "\u202egnp\x7f\U000e0041.jsonl"
    about: dict[str, Any] = {"versions": {}, "stages": {}, "tables": {}, "inputs": []}
    written = Manifest(dataset="d", mode="", config={"captions": name}, **about)

    text = to_json(written).decode()

    assert all(visible(line) == line for line in text.split("\n"))
    assert json.loads(text)["config"] == {"captions": name}
