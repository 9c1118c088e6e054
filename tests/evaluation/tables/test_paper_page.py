"""The page's list of the papers' tables and figures: whole, and each command runs in a test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/guides/metrics.md"
TABLES = {"EqBen": 12, "VLUE": 4, "Hard positives": 10, "Brittleness": 5, "SIMAT": 3}
FIGURES = {"EqBen": 16, "VLUE": 2, "Hard positives": 4, "Brittleness": 1, "SIMAT": 6}
NAMED = "tests/evaluation/tables/test_papers.py"
RUNS = {  # the test that runs each command on tiny input, and the words of the command in its file
    "tables --paper eqben": (NAMED, "eqbens_fifteen_numbers_and_their_mean", '"eqben"'),
    "tables --paper vlue": (NAMED, "a_dataset_that_a_column_names", '"vlue"'),
    "tables --paper hard-positives": (NAMED, "hard_positives_stand_in_both", '"hard-positives"'),
    "tables --paper brittleness": (NAMED, "the_detail_of_captions_stands", '"brittleness"'),
    "tables --paper simat": (NAMED, "numbers_have_the_unit_of_the_paper", '"simat"'),
    "finetune --preset eqsim-paper": (
        "tests/evaluation/training/test_finetune.py",
        "the_papers_presets_train",
        '"eqsim-paper"',
    ),
    "finetune --preset eqsim-meter": (
        "tests/evaluation/training/test_fusion.py",
        "the_presets_train",
        '"eqsim-meter"',
    ),
    "ablate": (
        "tests/evaluation/training/test_ablate.py",
        "a_grid_is_trained_scored_and_printed_once",
        "ablate",
    ),
    "finetune --preset hard-positives-paper": (
        "tests/evaluation/training/test_finetune.py",
        "the_papers_presets_train",
        '"hard-positives-paper"',
    ),
    "answer": ("tests/evaluation/scoring/test_answer.py", "vilt_answers_with_its_best", "answer"),
    "classify": (
        "tests/evaluation/scoring/test_classify.py",
        "accuracy_is_that_of_the_most_similar_class",
        "classify",
    ),
    "converse": (
        "tests/evaluation/conversations/test_converse.py",
        "a_model_that_prefers_a_place",
        "converse",
    ),
    "build eq-gebc --grounding": (
        "tests/pipelines/test_eq_gebc.py",
        "boundary_grounding_finds",
        '"--grounding"',
    ),
    "plot equivariance": (
        "tests/evaluation/plots/test_plots.py",
        "a_plot_is_the_same_bytes_each_time",
        '"equivariance"',
    ),
    "plot lambdas": (
        "tests/evaluation/plots/test_plots.py",
        "drops_and_strengths_are_drawn",
        '"lambdas"',
    ),
    "inspect --sheet": ("tests/commands/test_contact_sheet.py", "a_cell_has_both", '"--sheet"'),
    "pareto": ("tests/evaluation/plots/test_plots.py", "a_front_is_drawn", '"pareto"'),
    "build vlue": ("tests/pipelines/test_vlue.py", "every_task_becomes_a_table", "vlue"),
    "build hard-positives": (
        "tests/pipelines/test_hard_positives.py",
        "paper_mode_keeps_duplicates",
        "hard_positives",
    ),
    "build retrieval-perturbations": (
        "tests/pipelines/test_retrieval_perturbations.py",
        "paper_mode_writes_the_published_typo",
        "retrieval_perturbations",
    ),
    "build simat": ("tests/pipelines/test_simat.py", "a_gallery_of_crops", "simat"),
}


def rows() -> list[list[str]]:
    section = PAGE.read_text().split("## Every table of the papers")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [
        line.strip("|").split("|") if line[1] != "|" else line[1:-1].split("|")
        for line in lines[2:]
    ]


def numbers(text: str) -> set[int]:
    """Return 1, 3, 4 and 5 of "1, 3-5"."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:\u2013(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def test_every_table_and_figure_of_the_five_papers_has_a_row() -> None:
    tables: dict[str, set[int]] = {name: set() for name in TABLES}
    figures: dict[str, set[int]] = {name: set() for name in TABLES}
    paper = ""
    for name, numbered, command, agreement in rows():
        paper = name or paper
        of_tables, _, of_figures = re.sub("figures?", "#", numbered).partition("#")
        tables[paper] |= numbers(of_tables)
        figures[paper] |= numbers(of_figures)
        assert agreement
        assert command or "not possible: " in agreement
    assert {name: max(found) for name, found in tables.items()} == TABLES
    assert all(found == set(range(1, TABLES[name] + 1)) for name, found in tables.items()), tables
    assert all(f == set(range(1, FIGURES[name] + 1)) for name, f in figures.items()), figures


def test_every_command_of_the_page_runs_in_a_test() -> None:
    commands = {one for row in rows() for one in re.findall("`eqforge ([^`]+)`", row[2])}
    assert commands == RUNS.keys()
    for command, (file, test, words) in RUNS.items():
        text = (ROOT / file).read_text()
        assert re.search(rf"^def test_\w*{test}", text, re.M), command
        assert words in text, command
