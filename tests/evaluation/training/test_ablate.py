"""A grid of trainings as one table, on a tiny real model and datasets of coloured squares."""

import contextlib
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from eqforge.evaluation.tables.command import metrics_report
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.training import ablate
from eqforge.evaluation.training.ablate import average
from eqforge.evaluation.training.ablate import main as command
from tests.made_datasets import write_squares
from tests.optional import optional
from tests.statuses import status_of
from tests.tiny_models import save_clip

optional("transformers")
optional("torch")

main = status_of(command)
GRID = """
model = "clip:{root}/clip"

[finetune]
steps = 3
batch-size = 4
device = "cpu"
workers = 0

[score]
workers = 0

[train]
F30K = "{root}/pairs"

[rows.FT]
negatives-in-contrast = false
precision = "bfloat16"

[rows."+ EqSim"]
loss = ["infonce=1", "eqsim-v2=0.5"]
learning-rate = 1e-3

[test]
Eq-AG = "{root}/pairs"
Wino = {{ dataset = "{root}/pairs", subset = "all" }}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ablation")
    save_clip(root / "clip")
    write_squares(root / "pairs")
    return root


def write_grid(root: Path, path: Path, *changes: tuple[str, str]) -> Path:
    text = GRID.format(root=root)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def finished(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Return a grid, the folder of its finished ablation, and what the command printed."""
    folder = tmp_path_factory.mktemp("finished")
    grid, output = write_grid(root, folder / "grid.toml"), folder / "out"
    # As an editor on Windows saves it.
    grid.write_bytes(b"\xef\xbb\xbf" + grid.read_bytes().replace(b"\n", b"\r\n"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([str(grid), "--output", str(output)]) == 0
    return grid, output, printed.getvalue()


def test_the_average_is_the_papers() -> None:
    """Rows of tables 5, 6, 9 and 10 as printed: their average is the plain mean of the columns."""
    for printed, *row in (
        [21.28, 9.24, 44.33, 8.54, 23.00],
        [33.85, 11.15, 29.25, 69.25, 25.75],
        [33.79, 9.24, 44.33, 8.54, 8.95, 28.49, 66.54, 81.29, 23.00],
        [35.59, 12.27, 45.43, 10.30, 10.89, 29.49, 67.69, 81.69, 27.00],
    ):
        assert average(row) == pytest.approx(printed, abs=0.02)


def test_a_grid_is_trained_scored_and_printed_once(
    root: Path,
    finished: tuple[Path, Path, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table has the numbers of `metrics` for each cell; a second run trains nothing."""
    grid, output, text = finished
    content = json.loads((output / "ablation.json").read_text())
    assert [(cell["train"], cell["row"]) for cell in content["cells"]] == [
        ("F30K", "FT"),
        ("F30K", "+ EqSim"),
    ]
    lines = text.splitlines()
    assert lines[0].split() == [
        *("data", "method", "Eq-AG", "Wino", "Avg", "forward", "s", "step", "s", "parameters")
    ]
    assert lines[-1] == "group, in per cent; n: number of samples"
    for cell, slug, line in zip(content["cells"], ("FT", "EqSim"), lines[2:-1], strict=True):
        folder = output / f"F30K--{slug}"
        scored = (root / "pairs", folder / "scores" / "0")
        measures = metrics_report(MetricsSettings(paths=scored)).measures
        ((group, n),) = [
            (m.value, m.scored) for m in measures if (m.subset, m.metric) == ("all", "group")
        ]
        assert lines[1].split() == ["n", str(n), str(n)]
        assert cell["values"] == {"Eq-AG": group, "Wino": group}
        assert f"{100 * group:.2f}  {100 * group:.2f}  {100 * group:.2f}" in " ".join(
            [line]
        ).replace("   ", "  ").replace("   ", "  ")
        cost = json.loads((folder / "model" / "training.json").read_text())["cost"]
        assert cell["cost"] == cost
        assert 0 < cost["forward_s"] < cost["step_s"]
        assert cost["steps_measured"] == 3
    monkeypatch.setattr(ablate, "_run", lambda *_: pytest.fail("trained again"))
    assert main([str(grid), "--output", str(output)]) == 0
    assert capsys.readouterr().out == text


def test_parameters_are_those_of_the_model(finished: tuple[Path, Path, str]) -> None:
    from safetensors.numpy import load_file

    model = finished[1] / "F30K--EqSim" / "model"
    count = sum(
        int(np.prod(each.shape)) for each in load_file(model / "model.safetensors").values()
    )
    cost = json.loads((model / "training.json").read_text())["cost"]
    assert cost["parameters"] == cost["trained_parameters"] == count
    assert cost["peak_memory_bytes"] > 4 * count


def test_a_cell_that_fails_is_named_and_the_others_are_finished(
    root: Path,
    finished: tuple[Path, Path, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """After the fix, only that cell is trained."""
    bad = ('precision = "bfloat16"', "learning-rate = 1e25")
    grid, output = write_grid(root, tmp_path / "grid.toml", bad), tmp_path / "out"
    shutil.copytree(finished[1] / "F30K--EqSim", output / "F30K--EqSim")
    assert main([str(grid), "--output", str(output)]) == 1
    captured = capsys.readouterr()
    failed = "eqforge: cell 1 of 2 (F30K, FT) failed: eqforge finetune ended with status 1"
    assert failed in captured.err
    assert "1 of 2 cells failed: F30K, FT" in captured.err
    assert "failed" in captured.out.splitlines()[2]
    other = (output / "F30K--EqSim" / "cell.json").stat().st_mtime_ns
    write_grid(root, grid)
    shutil.rmtree(output / "F30K--FT")
    assert main([str(grid), "--output", str(output)]) == 0
    assert (output / "F30K--EqSim" / "cell.json").stat().st_mtime_ns == other


def test_a_finished_cell_of_other_settings_is_kept(
    root: Path,
    finished: tuple[Path, Path, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "out"
    shutil.copytree(finished[1], output)
    grid = write_grid(root, tmp_path / "grid.toml", ("steps = 3", "steps = 4"))
    assert main([str(grid), "--output", str(output)]) == 1
    assert "was made with different settings: finetune was" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("[rows.FT]", "[rows.EqSim]")], "two cells would share the folder F30K--EqSim"),
        ([("[finetune]", "[fine]")], "unknown field `fine`"),
        ([('model = "', 'model = "vectors:')], "cannot train heads on stored vectors"),
        ([("model =", "model :")], "grid.toml: "),
    ],
)
def test_a_wrong_grid_is_one_clear_error(
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: list[tuple[str, str]],
    message: str,
) -> None:
    grid = write_grid(root, tmp_path / "grid.toml", *changes)
    assert main([str(grid), "--output", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_a_subset_that_is_not_there_names_those_that_are(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moon = ('subset = "all"', 'subset = "moon"')
    one_row = ('[rows."+ EqSim"]\nloss = ["infonce=1", "eqsim-v2=0.5"]\nlearning-rate = 1e-3', "")
    grid = write_grid(root, tmp_path / "grid.toml", moon, one_row)
    assert main([str(grid), "--output", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert "test Wino: " in error
    assert "has no metric group for the subset moon. Its subsets: " in error
