"""Tables of the papers: your numbers at their places, differences, best numbers, printed data."""

import json
import math
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.command import main as metrics_command
from eqforge.evaluation.tables.paper_layout import wrong_means
from eqforge.evaluation.tables.papers import TablesSettings, read_measured, read_paper
from eqforge.evaluation.tables.papers import main as command
from eqforge.evaluation.tasks.eqben import EQBEN_COLUMNS
from eqforge.pipelines.retrieval_perturbations import main as build
from eqforge.schemas.tables.benchmarks import EQBEN_SIZES
from tests.statuses import status_of

main, metrics = status_of(command), status_of(metrics_command)
PAPERS = get_args(get_type_hints(TablesSettings)["paper"])
DOMAINS = ("youcook2", "gebc", "ag", "kubric", "sd")
FIBER = "52.04 50.84 38.32 25.19 22.66 11.08 32.49 24.05 13.70 47.94 45.60 33.53 86.05 88.63 79.97"


def write_metrics(folder: Path, title: str, cells: dict[tuple[str, str], float]) -> str:
    """Write metrics.json with the numbers of one model, m, by subset and metric."""
    folder.mkdir()
    names = {"model": "m", "unit": "share", "low": None, "high": None, "chance": None}
    measures = [
        {**names, "subset": subset, "metric": metric, "value": value}
        for (subset, metric), value in cells.items()
    ]
    (folder / "metrics.json").write_text(json.dumps({"title": title, "measures": measures}))
    return str(folder)


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the cells of each row of a table that fits into one part."""
    lines = (line.strip().split("  ") for line in text.splitlines() if line.startswith("  "))
    return {cells[0].strip(): [c.strip() for c in cells[1:] if c.strip()] for cells in lines}


@pytest.fixture
def eqben(tmp_path: Path) -> list[str]:
    """The scores of ten pairs of each domain, measured one by one."""
    folders = []
    for seed, domain in enumerate(DOMAINS):
        scores = np.random.default_rng(seed).normal(size=(10, 2, 2))
        np.save(tmp_path / "m.npy", scores)
        folder = str(tmp_path / domain)
        settings = ["--format", "pairs", "--output", folder, "--resamples", "50"]
        assert metrics([str(tmp_path / "m.npy"), *settings]) == 0
        folders.append(f"eq-{domain}={folder}")
    return folders


def scores_by_hand() -> list[float]:
    """Return text, image and group score of each domain, and their mean, from the definitions."""
    found: list[float] = []
    for seed in range(len(DOMAINS)):
        s = np.random.default_rng(seed).normal(size=(10, 2, 2))  # [pair, image, caption]
        text = (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
        image = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
        found += [100 * flags.mean() for flags in (text, image, text & image)]
    return [*found, float(np.mean(found))]


def test_eqbens_fifteen_numbers_and_their_mean_stand_beside_the_printed_row(
    eqben: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    printed = [*map(float, FIBER.split()), 44.86]
    expected = scores_by_hand()
    shown: dict[str, list[str]] = {"FIBER": [], "FIBER (yours)": [], "difference": []}
    shown |= {"samples": [], "chance": []}
    for domain in ("Eq-YouCook2", "Eq-GEBC", "Eq-AG", "Eq-Kubric", "Eq-SD"):
        assert main([*eqben, "--paper", "eqben", "--labels", "FIBER", "--columns", domain]) == 0
        first = capsys.readouterr().out.split("EqBen and EqSim")[1]
        for name, cells in rows_of(first).items():
            if name in shown:
                shown[name] += cells
    assert shown["FIBER"] == FIBER.split()
    assert shown["FIBER (yours)"] == [f"{value:.2f}" for value in expected[:-1]]
    gains = [f"{own - old:+.2f}" for own, old in zip(expected, printed, strict=True)]
    assert shown["difference"] == gains[:-1]
    assert shown["samples"] == ["10"] * 15
    assert shown["chance"] == ["25.00", "25.00", "16.67"] * 5
    assert main([*eqben, "--paper", "eqben", "--labels", "FIBER"]) == 0
    out = capsys.readouterr().out
    assert f"{expected[-1]:.2f}" in out
    assert gains[-1] in out
    assert "FIBER: the paper prints 44.86 as the mean, but the mean of its row is 43.47." in out
    assert main([*eqben, "--paper", "eqben", "--columns", "Avg"]) == 0
    out = capsys.readouterr().out
    assert rows_of(out)["m"] == [f"{expected[-1]:.2f}"]
    assert "BLIP2: the paper prints 45.19 as the mean, but the mean of its row is 45.99." in out


def test_scores_with_eqbens_seven_subsets_have_kubrics_mean_and_the_average(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    credits = [1, 1, 0, 1, 0, 0, 1]  # one pair of each subset; Kubric has 1, 0 and 0
    lines = [
        f"{name},{credit},0,0,{credit},{name}"
        for name, credit in zip(EQBEN_SIZES, credits, strict=True)
    ]
    table, folder = tmp_path / "m.csv", str(tmp_path / "out")
    shown = {}
    for kept in (lines, lines[:-1]):
        table.write_text("\n".join(["sample_id,c0_i0,c1_i0,c0_i1,c1_i1,subset", *kept]))
        settings = ["--format", "pairs", "--output", folder, "--resamples", "50"]
        assert metrics([str(table), *settings]) == 0
        capsys.readouterr()
        options = ["--columns", "Eq-Kubric", "Avg"]
        assert main([folder, "--paper", "eqben", *options]) == 0
        shown[len(kept)] = capsys.readouterr().out.split("Table 4")[0]
    kubric = sum(c for n, c in zip(EQBEN_SIZES, credits, strict=True) if "kubric" in n) / 3
    others = sum(c for n, c in zip(EQBEN_SIZES, credits, strict=True) if "kubric" not in n)
    first, second = map(rows_of, shown[7].split("Avg"))
    assert first["m"] == [f"{100 * kubric:.2f}"] * 3
    assert first["samples"] == ["3"] * 3
    assert second["m"] == [f"{20 * (kubric + others):.2f}"]
    assert "‡: the score is the cosine similarity" in shown[7]
    assert "needs all columns" not in shown[7]
    assert rows_of(shown[6])["m"][-1] == "-"
    assert "m: Avg needs all columns, but Eq-SD Text was not found." in shown[6]


def test_three_printed_means_of_eqben_do_not_follow_from_their_rows() -> None:
    table = read_paper("eqben").tables[0]
    rows = {name: np.array(values) for name, values in table.rows.items()}
    off = {n: v[:15].mean() for n, v in rows.items() if abs(v[:15].mean() - v[15]) > 0.02}
    assert {name: round(mean, 2) for name, mean in off.items()} == {
        **{"BLIP2": 45.99, "METER + EqSim": 42.01, "FIBER": 43.47},
    }
    assert [text.partition(":")[0] for text in wrong_means(table)] == list(off)


def test_replace_is_the_mean_over_samples_of_its_parts_in_all_rows_but_two() -> None:
    """16,868 relations and 10,575 attributes; the published code prints counts."""
    first, seventh = read_paper("hard-positives").tables[:2]
    off = {}
    for name in seventh.rows.keys() - {*seventh.apart}:
        parts = seventh.rows[name]
        relations, attributes = np.array(parts)[[0, 1, 4]], np.array(parts)[[2, 3, 5]]
        computed = (16_868 * relations + 10_575 * attributes) / 27_443
        printed = np.array(first.rows[name])[[0, 1, 4]]
        wrong = np.abs(printed - computed) > 0.11
        if wrong.any():
            off[name] = computed[wrong].round(1).tolist()
    assert off == {"DAC-SAM": [88.3, 58.2, 31.7], "Our HN": [22.5]}
    assert all(str(value) in first.note for values in off.values() for value in values)


def test_latex_has_models_in_rows_the_best_in_bold_and_chance_once(
    eqben: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    options = ["--show", "latex", "--digits", "1", "--columns", "Eq-SD", "Eq-Kubric Group"]
    assert main([*eqben, "--paper", "eqben", "--intervals", *options]) == 0
    out = capsys.readouterr().out
    assert r"& \multicolumn{1}{c}{Eq-Kubric} & \multicolumn{3}{c}{Eq-SD} \\" in out
    assert r"\cmidrule(lr){2-2} \cmidrule(lr){3-5}" in out
    assert r"FIBER + EqSim & \textbf{37.4} & 90.8 & 86.0 & 80.7 \\" in out
    assert r"BLIP2 & 28.5 & \textbf{92.6} & 91.5 & \textbf{86.5} \\" in out
    assert r"BLIP + FT (F30K) & 28.9 & 92.4 & \textbf{92.2} & 86.3 \\" in out
    assert out.count(r"\textbf{") == 1 + 1 + 2 + 2  # 37.4 and 92.6; 92.2 and 86.5 twice each
    assert out.count("chance &") == 1
    assert "m & " + " & ".join(f"{v:.1f}" for v in scores_by_hand()[11:15]) + r" \\" in out
    assert out.count(r"95\% interval & [") == 1


def test_hard_positives_stand_in_both_halves_and_less_brittle_is_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, folders, expected = np.random.default_rng(3), [], []
    for half in ("REPLACE", "SWAP"):
        scores = rng.normal(size=(20, 3))
        np.save(tmp_path / "m.npy", scores)
        folder = str(tmp_path / half)
        settings = ["--format", "hard-positives", "--output", folder, "--resamples", "50"]
        assert metrics([str(tmp_path / "m.npy"), *settings]) == 0
        folders.append(f"{half}={folder}")
        right, reworded = scores[:, 0] > scores[:, 2], scores[:, 1] > scores[:, 2]
        expected.append((right.mean(), (right & reworded).mean(), (right ^ reworded).mean()))
    capsys.readouterr()
    assert main([*folders, "--paper", "hard-positives", "--labels", "NegCLIP"]) == 0
    shown = rows_of(capsys.readouterr().out.split("Table 2 ")[0])
    order = [expected[0][:2], expected[1][:2], (expected[0][2], expected[1][2])]
    assert shown["NegCLIP (yours)"] == [f"{100 * v:.1f}" for pair in order for v in pair]
    assert shown["NegCLIP"] == ["68.6", "52.1", "70.9", "56.7", "21.5", "26.4"]
    assert "chance" not in shown
    assert shown["Random Chance"][0] == "50.0"
    assert main([*folders, "--paper", "hard-positives", "--show", "latex"]) == 0
    xvlm = r"XVLM-16M* & 72.9 & \textbf{63.8} & \textbf{89.3} & \textbf{84.8}"
    out = capsys.readouterr().out
    assert xvlm in out
    assert r"& \textbf{8.1} \\" in out
    assert r"Human Estimate & 97.0 & 97.0" in out


@pytest.mark.parametrize(
    ("paper", "cells", "name", "expected"),
    [
        ("simat", {("test: delta, lambda 1", "n = 1"): 0.159}, "CLIP", "15.9"),
        ("simat", {("all: sentence average, lambda 1.2", "n = 1"): 0.5}, "LaBSE", "50.0"),
        ("brittleness", {("all images", "i2t rsum"): 1.5}, "CLIP, MS-COCO", "150.00"),
        ("brittleness", {("all captions", "t2i DCG_CM"): 1.66}, "CLIP, MS-COCO", "1.66"),
        ("brittleness", {("Jaccard", "decreased"): 0.1792}, "CLIP, MS-COCO", "0.1792"),
        ("vlue", {("nlvr2", "accuracy"): 0.75}, "METER", "75.00"),
        ("vlue", {("captioning", "CIDEr"): 0.712}, "OFA", "71.2"),
        ("eqben", {("kubric-counting", "group"): 0.1965}, "FIBER", "19.65"),
    ],
)
def test_numbers_have_the_unit_of_the_paper(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    paper: str,
    cells: dict[tuple[str, str], float],
    name: str,
    expected: str,
) -> None:
    folder = write_metrics(tmp_path / "m", "d: t", cells)
    assert main([folder, "--paper", paper, "--labels", name]) == 0
    out = capsys.readouterr().out
    assert any(expected in line.split() and "(yours)" in line for line in out.splitlines())
    split = next(iter(cells))[0].partition(": ")
    names = "all splits" if split[0] == "all" else f"the split {split[0]}"
    assert (f"Your numbers are for {names}." in out) == bool(split[1])


def test_the_detail_of_captions_stands_beside_table_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captions = ["A small brown dog runs across the green grass.", "Two men sit on a red sofa."]
    (tmp_path / "captions.json").write_text(json.dumps({"101": captions}))
    arguments = ["--captions", str(tmp_path / "captions.json"), "--output", str(tmp_path / "out")]
    assert build([*arguments]) == 0
    capsys.readouterr()

    folder = f"Flickr30k-FG={tmp_path / 'out'}"
    columns = ["--columns", "Noun phrase Adjectives", "Noun phrase Quantifiers", "Caption Words"]
    assert main([folder, "--paper", "brittleness", *columns]) == 0
    out = capsys.readouterr().out
    shown = rows_of(out)
    assert shown["Flickr30k-FG"] == ["1.30", "0.27", "13.67"]
    assert shown["Flickr30k-FG (yours)"] == ["2.00", "0.50", "8.00"]  # small brown green, red; Two
    assert shown["difference"] == ["+0.70", "+0.23", "-5.67"]
    assert shown["samples"] == ["2", "2", "2"]
    assert "The paper does not define quantifiers" in out
    assert "To see differences" not in out


def test_drops_are_means_over_models_and_rows_are_datasets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for name, drops in (("MS-COCO", (0.1, 0.3)), ("own", (0.5,))):
        measures = [
            {"model": f"m{n}", "subset": "char_swap", "metric": "drop t2i rsum", "value": value}
            for n, value in enumerate(drops)
        ]
        (tmp_path / name).mkdir()
        content = json.dumps({"title": "retrieval-perturbations: t", "measures": measures})
        (tmp_path / name / "metrics.json").write_text(content)
        folders.append(f"{name}={tmp_path / name}")
    arguments = ["--paper", "brittleness", "--columns", "Perturbation Character Swap"]
    assert main([*folders, *arguments]) == 0
    out = capsys.readouterr().out
    shown = rows_of(out)
    assert shown["MS-COCO"] == ["18.90"]
    assert shown["MS-COCO (yours)"] == ["20.00"]
    assert shown["difference"] == ["+1.10"]
    assert shown["own"] == ["50.00"]
    assert "does not say whether it prints per cent or points" in out


def test_a_dataset_that_a_column_names_stands_in_no_other_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = write_metrics(tmp_path / "in", "vlue: t", {("nlvr2", "accuracy"): 0.9})
    outside = write_metrics(tmp_path / "out", "vlue: t", {("nlvr2", "accuracy"): 0.6})
    arguments = ["--paper", "vlue", "--labels", "METER", "--columns", "NLVR2"]
    assert main([f"NLVR2-test={inside}", f"OOD={outside}", *arguments]) == 0
    first, second = capsys.readouterr().out.split("Table 2, in domain")
    assert rows_of(first)["METER (yours)"] == ["60.00"]
    assert rows_of(second)["METER (yours)"] == ["-", "90.00"]
    assert rows_of(second)["METER"] == ["82.33", "83.05"]


def test_mean_scores_stand_beside_the_hard_positives_papers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = {("all", f"mean {text}"): value for text, value in MEANS.items()}
    folder = write_metrics(tmp_path / "m", "hard-positives: t", cells)
    assert main([f"REPLACE={folder}", "--paper", "hard-positives", "--labels", "DAC-LLM"]) == 0
    _, second, ninth = capsys.readouterr().out.split("Hard positives (Kamath et al. 2024), ")
    assert second.startswith("Table 2 ")
    assert rows_of(second)["DAC-LLM"] == ["0.160", "0.134", "0.131"]
    assert rows_of(second)["DAC-LLM (yours)"] == ["0.250", "0.200", "0.225"]
    assert rows_of(ninth)["difference"] == ["+0.093", "-"]


MEANS = {"caption": 0.25, "hard negative": 0.2, "hard positive": 0.225}


@pytest.mark.parametrize("paper", PAPERS)
def test_the_printed_tables_are_whole(paper: str) -> None:
    for table in read_paper(paper).tables:
        assert table.rows.keys() >= {*table.apart}
        for name, values in table.rows.items():
            assert len(values) == len(table.columns), name
            least, most = (-6, 300) if paper == "brittleness" else (0, 141)
            assert all(math.isnan(value) or least <= value <= most for value in values), name
        assert all(find.count("|") == 2 for column in table.columns for find in column.find)


def test_the_columns_of_eqben_are_those_that_metrics_writes() -> None:
    columns = read_paper("eqben").tables[0].columns
    assert [tuple(one.find[0].split("|")[1:]) for one in columns] == list(EQBEN_COLUMNS)


def test_what_does_not_fit_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = {("all", "text"): 0.5}
    one = write_metrics(tmp_path / "a", "eq-ag: t", cells)
    two = write_metrics(tmp_path / "b", "eq-ag: t", cells)
    with pytest.raises(
        InputError, match=r"m: .* 'eq-ag', subset 'all' and metric 'text' appears twice; name each"
    ):
        read_measured([one, two])
    assert set(read_measured([f"eq-ag={one}", f"eq-sd={two}"])["m"]) == {
        ("eq-ag", "all", "text"),
        ("eq-sd", "all", "text"),
    }
    for arguments, message in (
        (
            [one, "--paper", "simat"],
            'no numbers for the columns of simat. Known headings: "Delta, lambda 1" (n = 1,',
        ),
        (
            [one, "--paper", "eqben", "--columns", "Eq-COCO"],
            'Eq-COCO: no such heading. Known headings: "Eq-YouCook2" (Text, Image, Group);',
        ),
        ([one, "--paper", "eqben", "--digits", "9"], "--digits 9: expected 0 to 6"),
        (
            [str(tmp_path / "none"), "--paper", "eqben"],
            "expected a folder written by eqforge metrics",
        ),
        (["a=b", "--paper", "eqben"], "expected a folder written by eqforge metrics"),
    ):
        assert main(arguments) == 2
        assert message in " ".join(capsys.readouterr().err.split())
