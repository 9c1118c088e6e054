import json
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import beta, binomtest  # type: ignore[import-untyped]

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.command import main as command
from eqforge.evaluation.tables.scores import read_file
from tests.evaluation.written import rows_by
from tests.made_datasets import score_rows, write_dataset, write_scores
from tests.statuses import status_of

main = status_of(command)

IMAGES = ["image_0_id", "image_1_id"]
CAPTIONS = ["caption_0", "caption_1"]
COUNT = 60
KEYS = [f"d/v{number // 4}/{number:03d}" for number in range(COUNT)]


def _pair_scores(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, (COUNT, 4)).astype(np.float32) / 4


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty pairs of fifteen videos, of two splits of which one is small."""
    rows = [
        {
            "sample_id": key,
            "source_id": key.split("/")[1],
            "split": "location" if number < 12 else "attribute",
            **{name: f"{name} {number}" for name in (*IMAGES, *CAPTIONS)},
        }
        for number, key in enumerate(KEYS)
    ]
    return write_dataset(tmp_path_factory.mktemp("pairs") / "d", "eq-video", {"samples": rows})


def _scored(
    folder: Path, dataset: Path, values: np.ndarray, keys: list[str] = KEYS, **changes: Any
) -> Path:
    return write_scores(folder, dataset, "pairs", {"scores": score_rows(keys, values)}, **changes)


def _measured(*arguments: object, output: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    assert main([*map(str, arguments), "--output", str(output), "--resamples", "200"]) == 0
    return rows_by(output, "model", "subset", "metric")


def test_scores_of_pairs_become_text_image_and_group_score(pairs: Path, tmp_path: Path) -> None:
    values = _pair_scores()
    scores = _scored(tmp_path / "s", pairs, values)
    rows = _measured(pairs, scores, "--by", "split", output=tmp_path / "out")
    s = values.reshape(-1, 2, 2)
    text = (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
    image = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
    for metric, won in (("text", text), ("image", image), ("group", text & image)):
        for subset, part in (
            ("all", slice(0, 60)),
            ("location", slice(0, 12)),
            ("attribute", slice(12, 60)),
        ):
            assert float(rows["clip:m@r", subset, metric]["value"]) == pytest.approx(
                won[part].mean()
            )
        macro = (won[:12].mean() + won[12:].mean()) / 2
        assert float(rows["clip:m@r", "macro average", metric]["value"]) == pytest.approx(macro)
    deviation = (s[:, 0, 0] - s[:, 1, 1] - s[:, 0, 1] + s[:, 1, 0]) ** 2
    deviation += (s[:, 0, 0] - s[:, 1, 1] + s[:, 0, 1] - s[:, 1, 0]) ** 2
    for metric, expected in (
        ("equivariance", deviation.mean()),
        ("equivariance 50%", np.quantile(deviation, 0.5)),
        ("equivariance 90%", np.quantile(deviation, 0.9)),
    ):
        found = rows["clip:m@r", "all", metric]
        assert float(found["value"]) == pytest.approx(expected)
        assert found["unit"] == "number"
    whole = rows["clip:m@r", "all", "text"]
    assert (whole["expected"], whole["missing"], whole["clusters"]) == ("60", "0", "15")
    tied = [len({a, d} & {b, c}) > 0 for a, b, c, d in values]
    assert float(whole["ties"]) == pytest.approx(np.mean(tied))
    assert float(whole["chance"]) == 0.25


def test_labels_take_the_place_of_the_models_names_and_the_notes_keep_them(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        _scored(tmp_path / name, pairs, _pair_scores(n)) for n, name in enumerate("ab")
    )
    arguments = [str(pairs), str(first), str(second), "--resamples", "9"]
    full = f"clip:m@r ({first})"
    assert main([*arguments, "--labels", "ours", "theirs", "--show", "latex"]) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("%")]
    assert any(line.startswith("ours &") for line in table)
    assert not any("clip" in line for line in table)
    assert main([*arguments, "--labels", "ours", "theirs", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {one["model"] for one in report["measures"]} == {"ours", "theirs"}
    assert report["comparisons"][0]["against"] == "ours"
    assert f"ours: {full}" in report["notes"]
    assert main([*arguments, "--labels", "ours"]) == 2
    assert "--labels ours: expected 2 different names" in capsys.readouterr().err


def test_files_are_there_when_the_table_is_printed(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    scores = _scored(tmp_path / "s", pairs, _pair_scores())
    monkeypatch.setattr("builtins.print", stop)
    with pytest.raises(BrokenPipeError):
        main([str(pairs), str(scores), "--output", str(tmp_path / "out")])
    assert (tmp_path / "out" / "metrics.tex").exists()


@pytest.mark.parametrize("quantity", ["cosine", "logit"])
def test_deviations_of_different_quantities_are_not_compared(
    pairs: Path, tmp_path: Path, quantity: str
) -> None:
    first = _scored(tmp_path / "a", pairs, _pair_scores())
    second = _scored(tmp_path / "b", pairs, _pair_scores(1), quantity=quantity)
    _measured(pairs, first, second, output=tmp_path / "out")
    same = quantity == "cosine"
    compared = (tmp_path / "out" / "comparisons.csv").read_text()
    assert (",equivariance," in compared, ",text," in compared) == (same, True)
    note = "(cosine, logit), so eqforge compares only fractions"
    assert (note in (tmp_path / "out" / "metrics.txt").read_text()) != same


def test_any_column_may_name_clusters_and_subsets(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = _scored(tmp_path / "s", pairs, _pair_scores())
    arguments = ["--cluster", "split", "--by", "source_id"]
    rows = _measured(pairs, scores, *arguments, output=tmp_path / "out")
    assert rows["clip:m@r", "all", "text"]["clusters"] == "2"
    assert rows["clip:m@r", "v3", "text"]["expected"] == "4"
    assert main([str(pairs), str(scores), "--cluster", "video"]) == 2
    assert "no column 'video'; the columns are" in capsys.readouterr().err


def test_rows_without_a_cluster_are_clusters_of_their_own_and_nested_columns_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, Any]] = [
        {
            "sample_id": f"{number:02d}",
            "source_id": "v",
            "kind": "ab"[number % 2],
            "mask_0_id": None if number < 5 else f"o{number // 10}",
            **{name: f"{name} {number}" for name in (*IMAGES, *CAPTIONS)},
        }
        for number in range(20)
    ]
    dataset = write_dataset(tmp_path / "d", "eq-kubric", {"samples": rows})
    keys = [row["sample_id"] for row in rows]
    scores = _scored(tmp_path / "s", dataset, _pair_scores()[:20], keys)
    found = _measured(dataset, scores, "--cluster", "mask_0_id", output=tmp_path / "o")
    assert found["clip:m@r", "all", "text"]["clusters"] == "7"
    for flag, column in (
        ("--cluster", "generation"),
        ("--by", "generation"),
        ("--cluster", "ssim"),
    ):
        assert main([str(dataset), str(scores), flag, column]) == 2
        assert f"the column '{column}' has the type" in capsys.readouterr().err


def test_rows_in_another_order_give_the_same_bytes(pairs: Path, tmp_path: Path) -> None:
    values, order = _pair_scores(), np.random.default_rng(1).permutation(COUNT)
    moved = [KEYS[i] for i in order]
    for name, keys, found in (("a", KEYS, values), ("b", moved, values[order])):
        scores = _scored(tmp_path / name, pairs, found, keys)
        _measured(pairs, scores, "--ties", "expectation", output=tmp_path / f"out-{name}")
    first, second = ((tmp_path / f"out-{n}" / "metrics.json").read_bytes() for n in "ab")
    assert first == second


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_file_of_anybodys_scores_is_joined_by_key(
    pairs: Path, tmp_path: Path, suffix: str
) -> None:
    values = _pair_scores()
    path = tmp_path / f"mine.{suffix}"
    backwards = list(zip(KEYS[::-1], values[::-1].tolist(), strict=True))
    if suffix == "parquet":
        rows = [{"sample_id": key, "values": found} for key, found in backwards]
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == "csv":
        lines = [",".join([key, *map(str, found)]) for key, found in backwards]
        path.write_text("\n".join(["sample_id,value_0,value_1,value_2,value_3", *lines]))
    else:
        lines = [json.dumps({"sample_id": key, "values": found}) for key, found in backwards]
        path.write_text("\n".join(lines))
    folder = _scored(tmp_path / "s", pairs, values)
    measured = _measured(pairs, folder, path, output=tmp_path / "out")
    for (model, subset, metric), row in measured.items():
        if model == "mine":
            assert row["value"] == measured["clip:m@r", subset, metric]["value"]
    report = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert {found["found"]["difference"] for found in report["comparisons"]} == {0.0}


def test_a_missing_score_is_an_error_unless_it_is_allowed(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {
        "scores": score_rows(KEYS[1:], _pair_scores()[1:]),
        "failures": [{"table": "samples", "key": KEYS[0], "reason": "image_failed", "detail": ""}],
    }
    scores = write_scores(tmp_path / "s", pairs, "pairs", tables)
    assert main([str(pairs), str(scores)]) == 2
    error = capsys.readouterr().err
    assert "1 of 60 samples have no score" in error
    assert "1 image_failed" in error
    arguments = ["--allow-missing", "--by", "split"]
    rows = _measured(pairs, scores, *arguments, output=tmp_path / "out")
    found = rows["clip:m@r", "location", "group"]
    assert (found["expected"], found["scored"], found["missing"]) == ("12", "11", "1")
    assert "1 sample without a score: image_failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "sample_id,value_0\nx,1\n", "missing columns: value_1, value_2, value_3"),
        ("a.csv", "sample_id,value_0,value_1,value_2,value_3\nx,1,2,3,a\n", "line 2"),
        (
            "a.csv",
            "sample_id,value_0,value_1,value_2,value_3,value_4\nx,1,2,3,4,5\n",
            "a.csv: unexpected column 'value_4'; remove it. Expected columns: sample_id, c0_i0",
        ),
        ("a.jsonl", '{"sample_id": "x", "values": [1]}\n', "expected 4 scores, found 1"),
        ("a.jsonl", '{"sample_id": "x", "values": [1, 2, 3, NaN]}\n', "not valid JSON"),
        (
            "a.csv",
            "sample_id,value_0,value_1,value_2,value_3\nx,1,2,3,inf\n",
            "expected a finite number",
        ),
        ("a.csv", "sample_id," + "x" * 200_000, "is not valid CSV"),
        ("a.csv", "", "contains no rows"),
        ("a.jsonl", "", "contains no scores"),
        ("a.jsonl", "[" * 100_000, "line 1"),
        ("a.jsonl", '{"sample_id": "x", "values": [1, 2, 3, 4]}\n' * 2, "appears twice"),
        (
            "a.jsonl",
            '{"sample_id": "x", "values": [1, 2, 3, 4]}\n',
            "such as 'x', is in the dataset; pass scores for this dataset",
        ),
        ("a.parquet", "none", "cannot be read as Parquet"),
        ("a.txt", "", "Pass a folder written by eqforge score"),
    ],
)
def test_scores_that_do_not_fit_are_one_clear_error(
    pairs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    message: str,
) -> None:
    (tmp_path / name).write_text(text)
    assert main([str(pairs), str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sample_id": ["x"]}, "missing columns: c0_i0, c1_i0, c0_i1, c1_i1"),
        ({"values": [[1.0]]}, "missing columns: sample_id"),
        ({"sample_id": ["x"], "values": [["a", "b", "c", "d"]]}, "lists of numbers"),
        ({"sample_id": ["x"], "values": [[1.0, 2.0]]}, "c1_i0 is caption_1 with image_0_id"),
        ({"sample_id": [None], "values": [[1.0, 2.0, 3.0, 4.0]]}, "a row has no sample_id"),
        ({"sample_id": ["x"], "values": [[1.0, 2.0, 3.0, None]]}, "found NaN, empty or null"),
    ],
)
def test_parquet_that_does_not_fit_is_one_clear_error(
    pairs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    columns: dict[str, list[Any]],
    message: str,
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert main([str(pairs), str(tmp_path / "a.parquet")]) == 2
    assert message in capsys.readouterr().err


def test_scores_of_another_build_or_of_other_columns_are_refused(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = _scored(tmp_path / "a", pairs, _pair_scores(), dataset_sha256="0" * 64)
    assert main([str(pairs), str(other)]) == 2
    assert "score the dataset again" in capsys.readouterr().err
    swapped = _scored(tmp_path / "b", pairs, _pair_scores(), captions=CAPTIONS[::-1])
    assert main([str(pairs), str(swapped)]) == 2
    assert "expected scores for the columns" in capsys.readouterr().err
    scores = _scored(tmp_path / "s", pairs, _pair_scores())
    (tmp_path / "out").write_text("mine")
    for arguments, message in (
        ([pairs], "pass scores after the dataset"),
        (["--format", "pairs", scores], "eqforge metrics DATASET SCORES"),
        ([pairs, scores, "--json", "--show", "csv"], "pass either --json or --show csv, not both"),
        ([pairs, scores, "--output", tmp_path / "out"], "out: cannot be written"),
    ):
        assert main([*map(str, arguments)]) == 2
        assert message in capsys.readouterr().err


def test_hard_positives_have_accuracies_brittleness_and_mean_scores(tmp_path: Path) -> None:
    count = 30
    keys = [f"s{number}" for number in range(count)]
    columns = ["caption", "hard_positive", "hard_negative"]
    rows = [
        {
            "sample_id": key,
            "image": f"{n // 2}.jpg",
            "image_id": f"{n // 2}",
            "hard_negative_kind": "r",
        }
        | {name: f"{name} {n}" for name in columns}
        for n, key in enumerate(keys)
    ]
    dataset = write_dataset(tmp_path / "d", "hard-positives", {"samples": rows})
    values = np.random.default_rng(4).integers(-3, 4, (count, 3)).astype(np.float32) / 2
    tables = {"scores": score_rows(keys, values)}
    scores = write_scores(tmp_path / "s", dataset, "hard-positives", tables, quantity="logit")
    assert main([str(dataset), str(scores), "--quantity", "logit"]) == 2
    found = {
        metric: row
        for (_, _, metric), row in _measured(dataset, scores, output=tmp_path / "o").items()
    }
    c, p, n = values.T.astype(float)
    expected = {
        "original": (n < c).mean(),
        "augmented": ((n < p) & (n < c)).mean(),
        "brittleness": (((c > n) & (n > p)) | ((p > n) & (n > c))).mean(),
        "mean hard positive": p.mean(),
        "p_c": (c > 0).mean(),
        "p_f": (n < 0).mean(),
        "min(p_c, p_f)": min((c > 0).mean(), (n < 0).mean()),
        "acc": ((c > 0).mean() + (n < 0).mean()) / 2,
    }
    assert {name: float(found[name]["value"]) for name in expected} == pytest.approx(expected)
    assert found["original"]["clusters"] == "15"
    assert float(found["original"]["ties"]) == pytest.approx(((n == c) | (n == p)).mean())


def test_a_file_of_captions_and_foils_gives_valses_metrics(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    values = rng.random((40, 2)).round(1)
    lines = [
        f"{n},{'plural' if n < 10 else 'existence'},{n // 4}.jpg,{a},{b}"
        for n, (a, b) in enumerate(values)
    ]
    path = tmp_path / "valse.csv"
    path.write_text("\n".join(["sample_id,subset,cluster,value_0,value_1", *lines]))
    arguments = ["--format", "foils", path, "--quantity", "probability"]
    found = _measured(*arguments, output=tmp_path / "o")
    caption, foil = values.T
    p_c, p_f = (caption > 0.5).mean(), (foil < 0.5).mean()
    expected = {
        "pairwise": (caption > foil).mean(),
        "acc": (p_c + p_f) / 2,
        "p_c": p_c,
        "p_f": p_f,
        "min(p_c, p_f)": min(p_c, p_f),
    }
    got = {metric: float(found["valse", "all", metric]["value"]) for metric in expected}
    assert got == pytest.approx(expected)
    assert float(found["valse", "plural", "p_c"]["value"]) == (caption[:10] > 0.5).mean()
    assert found["valse", "all", "acc"]["clusters"] == "10"
    cosines = _measured("--format", "foils", path, output=tmp_path / "c")
    assert {metric for _, _, metric in cosines} == {"pairwise"}
    path.write_text("sample_id,value_0,value_1\na,55,0.2\n")
    with pytest.raises(InputError, match=r"'a' are not probabilities \(0 to 1\)"):
        read_file(path, ["image"], ["0", "1"], "probability")


def _subsets(path: Path, right: int, wrong: int) -> Path:
    """Some pairs of subset a, all right, and some of b, all wrong."""
    lines = [f"a{n},a,2,1,1,2" for n in range(right)] + [f"b{n},b,1,2,2,1" for n in range(wrong)]
    header = "sample_id,subset,value_0,value_1,value_2,value_3"
    path.write_text("\n".join([header, *lines]))
    return path


def test_the_macro_average_weighs_subsets_the_same_whatever_is_missing_or_drawn(
    tmp_path: Path,
) -> None:
    paths = [_subsets(tmp_path / "whole.csv", 10, 10), _subsets(tmp_path / "part.csv", 10, 5)]
    arguments = ["--format", "pairs", *paths, "--allow-missing"]
    found = _measured(*arguments, output=tmp_path / "o")
    # All is right in one subset and nothing in the other: as many trials as clusters, or, where
    # those of the smaller subset weigh twice as much, 1 / (10 * 0.05**2 + 5 * 0.1**2).
    for model, missing, trials in (("whole", "0", 20.0), ("part", "5", 40 / 3)):
        macro = found[model, "macro average", "group"]
        assert float(macro["value"]) == 0.5
        bounds = beta.ppf(0.025, trials / 2, trials / 2 + 1)
        assert [float(macro["low"]), float(macro["high"])] == pytest.approx([bounds, 1 - bounds])
        assert macro["missing"] == missing
    assert float(found["part", "all", "group"]["value"]) == pytest.approx(10 / 15)


def test_a_macro_average_needs_scores_of_every_subset(tmp_path: Path) -> None:
    paths = [_subsets(tmp_path / "whole.csv", 3, 3), _subsets(tmp_path / "part.csv", 3, 0)]
    arguments = ["--format", "pairs", *paths, "--allow-missing"]
    found = _measured(*arguments, output=tmp_path / "o")
    assert ("whole", "macro average", "group") in found
    assert ("part", "macro average", "group") not in found
    assert found["part", "b", "group"]["missing"] == "3"


def test_samples_that_one_file_lacks_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, part = _subsets(tmp_path / "whole.csv", 5, 5), _subsets(tmp_path / "part.csv", 1, 0)
    for paths in ([whole, part], [part, whole]):
        assert main(["--format", "pairs", *map(str, paths)]) == 2
        assert (
            "part.csv: 9 of 10 samples have no score, for example 'a1'" in capsys.readouterr().err
        )
    found = _measured("--format", "pairs", part, whole, "--allow-missing", output=tmp_path / "o")
    row = found["part", "all", "group"]
    assert (row["expected"], row["scored"], row["missing"]) == ("10", "1", "9")
    assert found["part", "b", "group"]["expected"] == "5"


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "npz"])
def test_a_nan_score_counts_as_missing_if_that_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    rows: list[dict[str, Any]] = [
        {"sample_id": f"a{n}", "values": [2.0, 1.0, 1.0, 2.0]} for n in range(3)
    ]
    rows[1]["values"] = [2.0, None, 1.0, 2.0]
    path = tmp_path / f"m.{form}"
    columns = {name: [row["values"][n] for row in rows] for n, name in enumerate(_COLUMNS)}
    if form == "csv":
        lines = [f"{row['sample_id']},2,{'' if n == 1 else 1},1,2" for n, row in enumerate(rows)]
        path.write_text("\n".join([f"sample_id,{','.join(_COLUMNS)}", *lines]))
    elif form == "parquet":
        pq.write_table(pa.table({"sample_id": ["a0", "a1", "a2"], **columns}), path)
    elif form == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        np.savez(path, scores=np.array([columns[name] for name in _COLUMNS], dtype=float).T)
    arguments = ["--format", "pairs", str(path)]
    assert main(arguments) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "found NaN, empty or null scores for 1 sample (first: " in error
    assert "pass --allow-missing to skip them" in error
    row = _measured(*arguments, "--allow-missing", output=tmp_path / "o")["m", "all", "group"]
    assert (row["value"], row["expected"], row["scored"], row["missing"]) == ("1.0", "3", "2", "1")
    assert "m: 1 sample with a NaN score counted as missing" in capsys.readouterr().out


_COLUMNS = ("c0_i0", "c1_i0", "c0_i1", "c1_i1")


def test_files_that_contradict_each_other_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = _subsets(tmp_path / "first.csv", 1, 1), tmp_path / "second.csv"
    second.write_text(first.read_text().replace("b0,b,", "b0,a,"))
    assert main(["--format", "pairs", str(first), str(second)]) == 2
    assert "second.csv: the subset of 'b0' is 'a', but " in capsys.readouterr().err
    second.write_text(first.read_text().replace("b0,b,", "c0,all,"))
    assert main(["--format", "pairs", str(second)]) == 2
    assert "the subset name 'all' is reserved" in capsys.readouterr().err


def test_nothing_right_of_22_leaves_room_and_so_does_a_model_against_its_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = "sample_id,value_0,value_1,value_2,value_3\n"
    wrong, right = "0.1,0.9,0.9,0.1\n", "0.9,0.1,0.1,0.9\n"
    for name, scores in (("none", wrong), ("again", wrong), ("all", right)):
        text = header + "".join(f"s{number},{scores}" for number in range(22))
        (tmp_path / f"{name}.csv").write_text(text)
    paths = [tmp_path / f"{name}.csv" for name in ("none", "again", "all")]
    found = _measured("--format", "pairs", *paths, output=tmp_path / "o")
    for model, won in (("none", 0), ("all", 22)):
        exact = binomtest(won, 22).proportion_ci(method="exact")
        for metric in ("text", "image", "group"):
            row = found[model, "all", metric]
            assert [float(row["low"]), float(row["high"])] == pytest.approx([exact.low, exact.high])
    out = capsys.readouterr().out
    assert "0.00 [0.00, 15.44]" in out
    assert "100.00 [84.56, 100.00]" in out
    assert "Intervals of fractions are exact" in out
    assert "again against none: +0.00 [-15.44, +15.44]" in out
    assert "all against none: +100.00 [+78.17, +100.00]" in out
    assert json.loads((tmp_path / "o" / "metrics.json").read_text())["version"] == 2


def test_a_text_that_repeats_beyond_the_limit_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    content: dict[str, list[Any]] = {
        "sample_id": ["x" * 20_000_000] * 1_000,
        "values": [[0.0] * 4] * 1_000,
    }
    ids = pa.array(np.zeros(1_000, np.int32))
    texts = pa.DictionaryArray.from_arrays(ids, [content["sample_id"][0]])
    pq.write_table(pa.table({"sample_id": texts, "values": content["values"]}), path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="needs more memory than the limit"):
        read_file(path, ("a", "b"), ("c", "d"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


def test_numbers_that_repeat_a_hundred_million_times_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    rows = 2_000_000
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * 10)), 10)
    columns = {"sample_id": pa.array(["x"] * rows), "values": values.cast(pa.list_(pa.float64()))}
    pq.write_table(pa.table(columns), path, compression="zstd")
    with pytest.raises(InputError, match="2,000,000 rows, but the file has only"):
        read_file(path, ("a",), tuple("bcdefghijk"))
