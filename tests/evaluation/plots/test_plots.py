"""Plots show the numbers of the tables, and are the same bytes each time."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.cli import main as command
from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.pairs import equivariance, group_score
from eqforge.evaluation.plots.pairs import (
    bins_of,
    density,
    deviations,
    equivariance_curves,
    read_pair_scores,
)
from eqforge.evaluation.plots.tables import chosen, read_numbers, strengths
from eqforge.evaluation.tables.render import Rules
from eqforge.schemas.dataset.reader import open_dataset
from tests.made_datasets import score_rows, write_dataset, write_scores
from tests.optional import optional
from tests.statuses import status_of

optional("matplotlib")

main = status_of(command)

N = 60


def write_pairs(folder: Path, **measured: Any) -> Path:
    rows = [
        {
            "sample_id": f"s{n:03d}",
            "source_id": f"v{n // 3:02d}",
            "image_0_id": f"a{n}",
            "image_1_id": f"b{n}",
            "caption_0": f"one {n}",
            "caption_1": f"two {n}",
            **{name: values[n] for name, values in measured.items()},
        }
        for n in range(N)
    ]
    return write_dataset(folder, "eq-video", {"samples": rows})


def pair_scores(seed: int, spread: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (np.eye(2) * 0.1 + spread * rng.standard_normal((N, 2, 2))).astype(np.float32)


def score_files(folder: Path, dataset: Path, name: str, values: np.ndarray, **changes: Any) -> Path:
    keys = [f"s{n:03d}" for n in range(len(values))]
    tables = {"scores": score_rows(keys, values.reshape(-1, 4))}
    return write_scores(folder / name, dataset, "pairs", tables, model=name, **changes)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    background_ssim = [n / N if n % 5 else None for n in range(N)]
    measured = {"ssim": [0.5] * N, "background_ssim": background_ssim}
    return write_pairs(tmp_path / "pairs", **measured, split=["val"] * N)


def texts_of(svg: Path) -> str:
    """Letters are outlines; matplotlib writes each text as a comment beside them."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", svg.read_text()))


def plot(*arguments: object) -> int:
    return main(["plot", *map(str, arguments)])


def write_metrics(path: Path, rows: list[tuple[str, str, str, float | None]]) -> Path:
    measures = [
        {"model": m, "subset": s, "metric": name, "value": v, "low": None, "high": None}
        for m, s, name, v in rows
    ]
    path.write_text(json.dumps({"measures": measures}))
    return path


def test_the_squares_of_the_deviations_make_up_the_equivariance_score() -> None:
    scores = pair_scores(0)
    found = deviations(scores).reshape(2, 2, N)
    assert (found[0] == -found[1]).all()
    assert (found[0] ** 2).sum(axis=0) == pytest.approx(equivariance(scores))
    swapped = deviations(scores[:, ::-1, ::-1])
    assert np.sort(swapped) == pytest.approx(np.sort(found.ravel()))


def test_a_density_is_that_of_the_plain_sum_of_kernels() -> None:
    values = np.random.default_rng(0).standard_normal(3_000)
    at = np.linspace(-4, 4, 801)
    found = density(values, at)
    width = 0.9 * min(values.std(), np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.34)
    width *= 3_000**-0.2
    kernels = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    assert found == pytest.approx(kernels.mean(axis=1), abs=2e-3)
    assert np.trapezoid(found, at) == pytest.approx(1, abs=2e-3)
    assert np.isfinite(density(np.zeros(10), at)).all()


def test_the_tighter_curve_is_the_more_equivariant_model(dataset: Path, tmp_path: Path) -> None:
    paths = [
        score_files(tmp_path, dataset, name, pair_scores(1, spread))
        for name, spread in (("loose", 0.2), ("tight", 0.05))
    ]
    models = read_pair_scores(open_dataset(str(dataset)), paths, None, allow_missing=False)
    loose, tight = equivariance_curves(models)
    assert (loose.at == tight.at).all()
    assert tight.density.max() > 2 * loose.density.max()
    values = pair_scores(1, 0.05)
    right = (values[:, [0, 1], [0, 1]].min(axis=1) > values[:, [0, 1], [1, 0]].max(axis=1)).mean()
    assert tight.group == right
    assert plot("equivariance", dataset, *paths, "--output", tmp_path / "e.svg") == 0
    assert f"group {100 * right:.2f}" in texts_of(tmp_path / "e.svg")


def test_each_subset_has_a_panel_with_its_own_group_scores(tmp_path: Path) -> None:
    kinds = ["cut" if n % 3 else "fade" for n in range(N)]
    dataset = write_pairs(tmp_path / "pairs", split=kinds)
    values = pair_scores(4, 0.1)
    path = score_files(tmp_path, dataset, "m", values)
    assert plot("equivariance", dataset, path, "--by", "split", "--output", tmp_path / "e.svg") == 0
    shown = texts_of(tmp_path / "e.svg")
    is_right = group_score(values)
    for kind in ("cut", "fade"):
        own = is_right[[one == kind for one in kinds]].mean()
        assert f"Equivariance on eq-video: {kind}" in shown
        assert f"clip:m@r (group {100 * own:.2f})" in shown
    (model,) = read_pair_scores(open_dataset(str(dataset)), [path], None, allow_missing=False)
    with pytest.raises(InputError, match="no scored pairs in the subset 'wipe'"):
        equivariance_curves([model], "wipe")


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_plot_is_the_same_bytes_each_time(dataset: Path, tmp_path: Path, suffix: str) -> None:
    scores = score_files(tmp_path, dataset, "m", pair_scores(2))
    for name in ("a", "b"):
        output = tmp_path / f"{name}.{suffix}"
        assert plot("equivariance", dataset, scores, "--output", output) == 0
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b"))
    assert first == second
    assert len(first) > 1_000
    assert b"<dc:date>" not in first


def test_bins_of_minimality_are_those_of_a_plain_loop(dataset: Path, tmp_path: Path) -> None:
    values = pair_scores(3)
    scores = score_files(tmp_path, dataset, "m", values)
    (model,) = read_pair_scores(
        open_dataset(str(dataset)), [scores], "background_ssim", allow_missing=False
    )
    found = bins_of(model, "group", 4, Rules(resamples=50))
    known = [n for n in range(N) if n % 5]
    assert sum(one.pairs for one in found) == len(known)
    assert [one.pairs for one in found] == [12, 12, 12, 12]
    for place, one in enumerate(found):
        members = known[12 * place : 12 * (place + 1)]
        right = [
            min(values[n, 0, 0], values[n, 1, 1]) > max(values[n, 0, 1], values[n, 1, 0])
            for n in members
        ]
        assert (one.low, one.high) == (members[0] / N, members[-1] / N)
        assert one.score == pytest.approx(np.mean(right))
        assert one.score_low <= one.score <= one.score_high
    arguments = ("minimality", dataset, scores, "--measure", "background_ssim", "--resamples", "20")
    assert plot(*arguments, "--labels", "mine", "--output", tmp_path / "m.svg") == 0
    said = texts_of(tmp_path / "m.svg")
    assert "mine" in said
    assert "chance" in said
    assert "background ssim" in said


def test_equal_measures_share_a_bin(tmp_path: Path) -> None:
    dataset = write_pairs(tmp_path / "pairs", ssim=[0.0] * 40 + [1.0] * 20)
    scores = score_files(tmp_path, dataset, "m", pair_scores(4))
    (model,) = read_pair_scores(open_dataset(str(dataset)), [scores], "ssim", allow_missing=False)
    found = bins_of(model, "text", 5, Rules(resamples=10))
    assert [(one.middle, one.pairs) for one in found] == [(0.0, 40), (1.0, 20)]


def test_bars_end_at_the_numbers_of_the_table_and_chance_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 2, 2)) + np.eye(2)  # [pair, image, caption]
    subsets = ["a", "b"] * 20
    names = ["c0_i0", "c1_i0", "c0_i1", "c1_i1"]
    rows = [
        {"sample_id": f"s{n}", "subset": subset, **dict(zip(names, one.ravel(), strict=True))}
        for n, (subset, one) in enumerate(zip(subsets, scores, strict=True))
    ]
    for model, sign in (("good", 1), ("bad", -1)):
        lines = [{k: sign * v if k in names else v for k, v in row.items()} for row in rows]
        (tmp_path / f"{model}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    files = [str(tmp_path / "good.jsonl"), str(tmp_path / "bad.jsonl")]
    settings = ["--format", "pairs", "--output", str(tmp_path / "t"), "--resamples", "50"]
    assert main(["metrics", *files, *settings]) == 0

    drawn: list[Any] = []
    write = Figure.savefig

    def keep(figure: Any, *arguments: Any, **settings: Any) -> None:
        drawn.append(figure)
        write(figure, *arguments, **settings)

    monkeypatch.setattr(Figure, "savefig", keep)
    assert plot("bars", tmp_path / "t/metrics.json", "--output", tmp_path / "b.svg") == 0
    said = texts_of(tmp_path / "b.svg")
    assert all(text in said for text in ("a: text", "b: group", "all: image", "good", "bad"))
    axes = drawn[0].axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    widths = {bar.get_label(): [one.get_width() for one in bar] for bar in axes.containers[1::2]}
    for model, sign in (("good", 1), ("bad", -1)):
        of = dict(zip(labels, widths[model], strict=True))
        for subset in "ab":
            s = sign * scores[np.array(subsets) == subset]
            text = (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
            image = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
            assert of[f"{subset}: text"] == pytest.approx(100 * text.mean())
            assert of[f"{subset}: group"] == pytest.approx(100 * (text & image).mean())
    chance = sorted({float(x[0][0]) for x in axes.collections[-1].get_segments()})
    assert chance == pytest.approx([100 / 6, 25.0])

    assert (
        plot("bars", tmp_path / "t/metrics.json", "--subset", "a", "--output", tmp_path / "a.svg")
        == 0
    )
    assert "a: text" not in texts_of(tmp_path / "a.svg")


def test_drops_and_strengths_are_drawn_from_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(m, s, "drop t2i rsum", 0.1) for m in ("a", "b") for s in ("typos", "swap")]
    drops = write_metrics(tmp_path / "drops.json", [*rows, ("a", "typos", "t2i rsum", 1.0)])
    assert plot("drops", drops, "--output", tmp_path / "d.svg") == 0
    said = texts_of(tmp_path / "d.svg")
    assert all(text in said for text in ("typos", "swap", "drop t2i rsum, per cent"))
    methods = [(f"{s}: delta, lambda {x:g}", v) for s in ("dev", "test") for x, v in LAMBDAS]
    simat = write_metrics(
        tmp_path / "simat.json",
        [("m", s, "n = 1", v) for s, v in [*methods, ("test: text to image", 0.3)]],
    )
    found = strengths(chosen(read_numbers([simat]), "n = 1"))
    assert [(x, one.value) for x, one in found["m", "test: delta"]] == sorted(LAMBDAS)
    for subset in ([], ["--subset", "test"]):
        assert plot("lambdas", simat, *subset, "--output", tmp_path / "l.svg") == 0
        assert ("dev: delta" in texts_of(tmp_path / "l.svg")) == (not subset)
    assert plot("lambdas", simat, "--subset", "tset", "--output", tmp_path / "l.svg") == 2
    assert "--subset tset: expected one of dev, test" in capsys.readouterr().err


LAMBDAS = [(10.0, 0.1), (1.0, 0.2), (2.5, 0.4)]


def test_a_front_is_drawn_with_probabilities(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,score,seconds\nA,1,2\nB,2,3\nC,1,4\n")
    front = tmp_path / "front.json"
    assert main(["pareto", str(tmp_path / "t.csv"), "--output", str(front)]) == 0
    assert plot("pareto", front, "--output", tmp_path / "p.svg") == 0
    said = texts_of(tmp_path / "p.svg")
    assert all(text in said for text in ("A (1.00)", "B (1.00)", "C (0.00)"))
    assert plot("pareto", front, "--labels", "X", "Y", "Z", "--output", tmp_path / "p.svg") == 0
    assert "X (1.00)" in texts_of(tmp_path / "p.svg")
    assert plot("pareto", front, "--labels", "X", "--output", tmp_path / "p.svg") == 2


def test_different_quantities_are_not_drawn_together(dataset: Path, tmp_path: Path) -> None:
    first = score_files(tmp_path, dataset, "a", pair_scores(0))
    other = score_files(tmp_path, dataset, "b", pair_scores(1), quantity="logit")
    models = read_pair_scores(open_dataset(str(dataset)), [first, other], None, allow_missing=False)
    with pytest.raises(InputError, match=r"cosine, .*: logit\); draw a separate plot for each"):
        equivariance_curves(models)


def test_the_quantity_of_a_file_can_be_said(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = score_files(tmp_path, dataset, "a", pair_scores(0))
    rows = [{"sample_id": f"s{n:03d}", "values": [1.0, 0.0, 0.5, n]} for n in range(N)]
    own = tmp_path / "mine.jsonl"
    own.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("equivariance", dataset, own, folder, "--output", tmp_path / "x.svg")
    assert plot(*arguments) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "mine: unknown" in said
    assert "None" not in said
    assert "pass the score type with --quantity" in said
    assert plot(*arguments, "--quantity", "cosine") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["equivariance", "D", "S", "--output", "x.gif"], ".svg, .png, .pdf"),
        (["equivariance", "D", "--output", "x.svg"], "pass scores"),
        (["minimality", "D", "S", "--measure", "beauty", "--output", "x.svg"], "'beauty'"),
        (["minimality", "D", "S", "--measure", "split", "--output", "x.svg"], "column of numbers"),
        (["minimality", "D", "S", "--metric", "best", "--output", "x.svg"], "text, image, group"),
        (["equivariance", "D", "S", "--labels", "a", "b", "--output", "x.svg"], "--labels"),
        (["bars", "M", "--output", "x.svg"], "bars plot needs the metrics of pairs (text,"),
        (["drops", "M", "--output", "x.svg"], "--output on perturbed captions"),
        (["lambdas", "M", "--output", "x.svg"], "--output on SIMAT"),
        (["drops", "M", "--metric", "x", "--output", "x.svg"], "--metric x: expected one of text"),
        (["drops", "M", "M", "--metric", "text", "--output", "x.svg"], " 2 rows for"),
        (["lambdas", "M", "--metric", "text", "--output", "x.svg"], "names? a lambda|lambda"),
        (["drops", "D/dataset.json", "--output", "x.svg"], "metrics.json"),
        (["pareto", "M", "--output", "x.svg"], "eqforge pareto"),
        (
            ["pareto", "M", "--bins", "3", "--output", "x.svg"],
            "--bins cannot be used with the pareto plot",
        ),
        (
            ["drops", "M", "--seed", "1", "--output", "x.svg"],
            "--seed cannot be used with the drops plot",
        ),
        (
            ["equivariance", "D", "S", "--subset", "a", "--output", "x.svg"],
            "--subset cannot be used with the equivariance plot",
        ),
        (
            ["minimality", "D", "S", "--seed", "-1", "--output", "x.svg"],
            "--seed must be at least 0",
        ),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_error(
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    scores = score_files(tmp_path, dataset, "m", pair_scores(0))
    metrics = write_metrics(tmp_path / "m.json", [("m", "all", "text", 0.5)])
    places = {"D": str(dataset), "S": str(scores), "M": str(metrics)}
    filled = [places.get(a, a) for a in arguments]
    filled = [a.replace("D/", f"{dataset}/") if a.startswith("D/") else a for a in filled]
    filled[-1] = str(tmp_path / filled[-1])
    assert plot(*filled) == 2
    assert re.search(re.escape(said) if "|" not in said else said, capsys.readouterr().err)
    assert not Path(filled[-1]).exists()
