"""Every code block of the README and of the documents runs as it stands, or names what it needs.

The blocks of a page run one after the other in a folder in which `make demo` has left `out/demo`.
A comment before a block says what is special about it:

    <!-- needs: clip:FOLDER, a GPU -->   what a reader has to bring; see SUPPLIED and NOT_HERE
    <!-- file: mine.jsonl -->            the block is a file, which later blocks read
"""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from eqforge.schemas.tables.benchmarks import EQBEN_SIZES
from eqforge.schemas.tables.datasets import DATASETS, TYPES, table_type
from tests.warm import warm_programs

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md")
    for path in ROOT.glob(pattern)
)
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
SHELL = ("sh", "console")
BLOCK = re.compile(r"((?:^<!-- (?:needs|file): [^\n]* -->\n)*)^```(\w*)\n(.*?)^```$", re.M | re.S)
MARK = re.compile(r"<!-- (needs|file): (.*) -->")

NOT_HERE = {
    "a GPU",
    "a model hub",
    "a model server",
    "a checkout",
    "an environment of its own",
    "a Flink cluster",
    "Java",
    "Docker",
    "Google Cloud",
    "scans",
    "SIMAT's files",
    "Visual Genome's images",
    "VL-CheckList",
}
"""What no test can bring; the commands that are so marked are read by people."""

EXTRAS = {
    "eqforge[models]": ("torch", "diffusers", "transformers"),
    "eqforge[render]": ("bpy", "kubric"),
    "datasets": ("datasets",),
    "webdataset": ("webdataset",),
    "mlcroissant": ("mlcroissant",),
}
"""What the packages of each extra are called, and others, to tell whether they are installed."""


NO_FACES = {"EQFORGE_FACE_POLICY": "off"}
QUICK = {
    "docs/datasets/eq-kubric.md": {"EQFORGE_RESOLUTION": "64", "EQFORGE_SAMPLES": "4"},
    "docs/datasets/eqben-videos.md": NO_FACES,
    "docs/guides/scaling.md": NO_FACES,
}
"""Settings that quicken the builds of a page; the demo builds with the defaults."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A code block: where it begins, its language and text, the marks before it."""

    line: int
    language: str
    text: str
    needs: tuple[str, ...]
    file: str | None


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        marks = dict(MARK.findall(found[1]))
        needs = tuple(need.strip() for need in marks.get("needs", "").split(",") if need)
        line = text[: found.start(2)].count("\n") + 1
        yield Block(
            line=line, language=found[2], text=found[3], needs=needs, file=marks.get("file")
        )


# --- what a reader has to bring, and a test can


def save_model(kind: str) -> Callable[[Path], object]:
    """Returns what saves a tiny model of random weights in a folder."""

    def save(folder: Path) -> object:
        from tests import tiny_models
        from tests.evaluation.conversations.made import save_llava

        savers: dict[str, Callable[[Path], object]] = {
            "clip": tiny_models.save_clip,
            "siglip": tiny_models.save_siglip,
            "blip-itm": tiny_models.save_blip,
            "chat": save_llava,
        }
        return savers[kind](folder / f"{kind}-FOLDER")

    return save


def save_vector(folder: Path) -> None:
    """Scores of chance, as many as EqBen's server takes."""
    size = 4 * sum(EQBEN_SIZES.values())
    np.save(folder / "vector.npy", np.random.default_rng(0).random(size, dtype=np.float32))


SUPPLIED: dict[str, Callable[[Path], object]] = {
    **{f"{kind}:FOLDER": save_model(kind) for kind in ("clip", "siglip", "blip-itm", "chat")},
    "vector.npy": save_vector,
}


def is_missing(need: str) -> bool:
    packages = EXTRAS["eqforge[models]"] if need.endswith(":FOLDER") else EXTRAS.get(need, ())
    return any(find_spec(package) is None for package in packages)


# --- running


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_programs(tmp_path_factory.mktemp("warm")) as folder:
        yield folder


def run(command: list[str], folder: Path, programs: Path) -> None:
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stderr}{done.stdout}"


def run_block(block: Block, folder: Path, programs: Path) -> None:
    text = block.text
    for kind in ("clip", "siglip", "blip-itm"):
        text = text.replace(f"{kind}:FOLDER", f"{kind}:{folder}/{kind}-FOLDER")
    text = text.replace("--model FOLDER", f"--model {folder}/chat-FOLDER")
    if block.file is not None:
        (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.file).write_text(text, encoding="utf-8")
    elif block.language == "python":
        run([str(programs / "run"), text], folder, programs)
    elif block.language in SHELL:
        run(["bash", "-euc", re.sub(r"^\$ ", "", text, flags=re.M)], folder, programs)


def test_every_block_says_what_it_is() -> None:
    for name, block in ((page, block) for page in PAGES for block in blocks(page)):
        where = f"{name}:{block.line}"
        assert block.language in (*SHELL, "python", "json", "text"), where
        assert set(block.needs) <= NOT_HERE | EXTRAS.keys() | SUPPLIED.keys(), where
        if block.language == "json":
            assert is_json(block.text) or all(map(is_json, block.text.splitlines())), where


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", [page for page in PAGES if [*blocks(page)]])
def test_the_blocks_of_a_page_run(
    page: str, demo_output: Path, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in QUICK.get(page, {}).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "demo").symlink_to(demo_output)
    missing = set()
    for block in blocks(page):
        lacks = {need for need in block.needs if is_missing(need)}
        missing |= lacks
        if lacks or NOT_HERE & set(block.needs):
            continue
        for need in block.needs:
            SUPPLIED.get(need, lambda _: None)(tmp_path)
        run_block(block, tmp_path, programs)
    if missing:
        pytest.skip(f"not installed: {', '.join(sorted(missing))}")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run(
    notebook: Path, demo_output: Path, programs: Path, tmp_path: Path
) -> None:
    text = notebook.read_text(encoding="utf-8")
    if "clip:FOLDER" in text:
        if is_missing("clip:FOLDER"):
            pytest.skip("not installed: eqforge[models]")
        SUPPLIED["clip:FOLDER"](tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "demo").symlink_to(demo_output)
    copy = tmp_path / notebook.name
    copy.write_text(text.replace("clip:FOLDER", f"clip:{tmp_path}/clip-FOLDER"), encoding="utf-8")
    run(["jupyter-execute", "--inplace", str(copy)], tmp_path, programs)
    cells = json.loads(copy.read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] for cell in cells[-1:] if cell["cell_type"] == "code")


def test_the_files_shown_are_those_of_a_dataset(demo_output: Path) -> None:
    design = blocks("docs/about/design.md")
    (layout,) = (block.text for block in design if block.text.startswith("out/"))
    shown = re.findall(r"^  (\S+)  ", layout, re.M)
    assert {"dataset.json", "README.md", "_work/"} <= set(shown)
    for name in shown:
        assert (demo_output / "eq-youcook2" / name).exists(), name


def test_the_tables_of_the_documents_are_those_of_the_code() -> None:
    """`make docs` writes them."""
    script = runpy.run_path(str(ROOT / "scripts" / "tables.py"))
    for page in script["PAGES"]:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert script["page"](text) == text
        assert page != "docs/reference/tables.md" or "|  |" not in text, (
            "the docstring of a record leaves out a field"
        )


def test_every_dataset_and_page_is_in_the_site() -> None:
    listed = set(re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    assert listed == {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
    described = runpy.run_path(str(ROOT / "scripts" / "tables.py"))["PAGE_OF"]
    assert {
        f"datasets/{described.get(name, f'{name}.md').partition('#')[0]}" for name in DATASETS
    } <= listed


def test_every_table_is_described_once() -> None:
    page = (ROOT / "docs" / "reference" / "tables.md").read_text()
    found = re.findall(r"<!-- made: (\S+) (\w+) -->", page)
    described = []
    for names in found:
        known = table_type(*names)
        assert known is not None, names
        described.append(known.record)
    tables = [table for kind in TYPES.values() for table in kind.tables]
    assert set(described) == {table.record for table in tables}
    assert len(described) == len(set(described))


def test_guides_name_all_choices_and_reasons() -> None:
    from eqforge.evaluation.conversations.answers import REASONS, chance_of
    from eqforge.evaluation.conversations.questions import FORMS
    from eqforge.evaluation.plots.command import Kind
    from eqforge.evaluation.scoring.index import TASKS
    from eqforge.evaluation.training.command import PRESETS
    from eqforge.evaluation.training.losses import LOSSES
    from eqforge.models.spec import SCORERS
    from eqforge.schemas.dataset.score_tables import FAILURE_REASONS

    of_scores = {"not_finite", "image_failed"}
    for guide, names in (
        ("scoring", {*TASKS, *SCORERS, "python", *FAILURE_REASONS}),
        ("metrics", {*get_args(Kind)}),
        ("training", {*LOSSES, *PRESETS} - {"none"}),
        ("conversations", {*FORMS, *chance_of(4), *REASONS} - of_scores),
    ):
        page = (ROOT / "docs" / "guides" / f"{guide}.md").read_text(encoding="utf-8")
        assert [name for name in names if f"`{name}`" not in page] == [], guide
    for name, chance in chance_of(4).items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert float(row.split("|")[3]) == 100 * chance
