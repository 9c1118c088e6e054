"""From pairs that people looked at to the limits of another build."""

import json
from pathlib import Path
from typing import Any

import pytest

from eqforge.commands import review
from eqforge.pipelines import eq_sd
from eqforge.pipelines.shared.planning import plan_command
from tests.builds import ids, rows
from tests.evaluation.review.test_review import saved

pytest.importorskip("torch")
pytest.importorskip("diffusers")

QUICK = ["--model", "tiny", "--steps", "2", "--guidance-scale", "50", "--cpu-threads", "1"]
OPEN = ["--min-changed-area", "None", "--max-changed-area", "None", "--min-background-ssim", "None"]
PAIRS = ["--object-pairs", "40", *QUICK]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty pairs, built with open gates."""
    output = tmp_path_factory.mktemp("limits") / "labelled"
    assert eq_sd.main([*PAIRS, *OPEN, "--output", str(output)]) == 0
    return output


def bad_of(dataset: Path) -> set[str]:
    """The ten pairs whose background differs most."""
    some = sorted(rows(dataset, "samples"), key=lambda row: row["background_ssim"] or 0.0)
    return {row["sample_id"] for row in some[:10]}


@pytest.fixture(scope="module")
def limits(labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("limits")
    planned = ["--protocol", "eq-sd-filter", "--reviewers", "ada"]
    tasks = folder / "tasks"
    assert review.main(["plan", str(labelled), *planned, "--output", str(tasks)]) == 0
    votes = saved(tasks, "ada", folder / "votes.json", bad_of(labelled))
    output = folder / "limits.json"
    asked = ["--limits", "min-background-ssim", "--precision", "1", "--resamples", "50"]
    calibrate = ["calibrate", str(labelled), "--votes", str(votes), *asked]
    assert review.main([*calibrate, "--output", str(output)]) == 0
    return output


def refused(capsys: pytest.CaptureFixture[str], main: Any, *arguments: object) -> str:
    with pytest.raises(SystemExit):
        main([*map(str, arguments)])
    return " ".join(capsys.readouterr().err.split())


def settings_of(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "dataset.json").read_text())["config"]["settings"]
    return found


def test_what_people_dropped_is_refused_by_the_limit_and_nothing_else_is(
    labelled: Path, limits: Path, tmp_path: Path
) -> None:
    found = json.loads(limits.read_text())
    assert (found["dataset"], found["pairs"], found["right"]) == ("eq-sd", 40, 30)
    ((name, value),) = found["limits"].items()
    assert name == "min_background_ssim"

    output = tmp_path / "out"
    gates = ["--min-changed-area", "None", "--max-changed-area", "None"]
    once = ["--max-draws-per-pair", "1", "--calibration", str(limits)]
    assert eq_sd.main([*PAIRS, *gates, *once, "--output", str(output)]) == 0

    assert set(ids(output)) == set(ids(labelled)) - bad_of(labelled)
    assert {row["threshold"] for row in rows(output, "rejects")} == {value}
    settings = settings_of(output)
    assert settings["gates"]["min_background_ssim"] == value
    assert settings["calibration"] == {"calibration": "limits.json"}
    manifest = json.loads((output / "dataset.json").read_text())
    assert "limits.json" in [each["name"] for each in manifest["inputs"]]
    assert any("fitted to 40 pairs of eq-sd" in text for text in manifest["warnings"])
    assert not any("not calibrated on drawn" in text for text in manifest["warnings"])


def test_until_then_the_manifest_says_that_gates_are_not_calibrated(
    labelled: Path, tmp_path: Path
) -> None:
    def warnings(output: Path) -> str:
        return " ".join(json.loads((output / "dataset.json").read_text())["warnings"])

    assert "not calibrated" not in warnings(labelled)  # there are no limits
    gated = tmp_path / "gated"
    assert eq_sd.main(["--pairs", "1", *QUICK, "--output", str(gated)]) == 0
    assert "not calibrated on drawn pictures" in warnings(gated)
    assert "calibration" not in settings_of(gated)


def test_decisions_do_as_well_as_votes(labelled: Path, limits: Path, tmp_path: Path) -> None:
    decisions, bad = tmp_path / "decisions.jsonl", bad_of(labelled)
    decisions.write_text(
        "".join(
            json.dumps({"id": name, "decision": "drop" if name in bad else "keep"}) + "\n"
            for name in ids(labelled)
        )
    )
    output = tmp_path / "limits.json"
    asked = ["--limits", "min-background-ssim", "--precision", "1", "--resamples", "50"]
    calibrate = ["calibrate", str(labelled), "--decisions", str(decisions), *asked]
    assert review.main([*calibrate, "--output", str(output)]) == 0
    assert output.read_bytes() == limits.read_bytes()


def test_a_plan_says_which_limits_hold(
    limits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--pairs", "2", *QUICK, "--calibration", str(limits)]
    assert plan_command(eq_sd.PIPELINE, asked) == 0
    value = json.loads(limits.read_text())["limits"]["min_background_ssim"]
    assert f"--min-background-ssim {value}" in " ".join(capsys.readouterr().out.split())


def test_a_file_that_does_not_fit_is_one_clear_error(
    limits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--pairs", "2", *QUICK, "--output", tmp_path / "out", "--calibration"]
    said = refused(capsys, eq_sd.main, *asked, limits, "--min-background-ssim", "0.2")
    assert "--min-background-ssim 0.2: --calibration" in said
    found = json.loads(limits.read_text())
    (fit,) = found["fits"]

    def changed(name: str, **changes: Any) -> Path:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({**found, **changes}))
        return path

    other = {**fit, "limit": "max_changed_outside"}
    held = {"limits": {"max_changed_outside": fit["value"]}, "fits": [other]}
    assert "which this dataset has not" in refused(
        capsys, eq_sd.main, *asked, changed("outside", **held)
    )
    model = {**fit, "limit": "oracle_min", "scorer": "clip", "version": "sha256:1"}
    held = {"limits": {"oracle_min": fit["value"]}, "fits": [model]}
    assert "--oracle names none" in refused(capsys, eq_sd.main, *asked, changed("model", **held))
    more = changed("more", limits={"min_background_ssim": 0.1})
    assert "expected the value that was fitted" in refused(capsys, eq_sd.main, *asked, more)
    assert "holds none" in refused(capsys, eq_sd.main, *asked, changed("none", limits={}))
    assert "eqforge review calibrate" in refused(
        capsys, eq_sd.main, *asked, changed("format", format="x")
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--votes FILE..., or --decisions FILE"),
        (["--decisions", "d", "--rule", "unanimous"], "--rule: decisions are made already"),
        (["--decisions", "d", "--precision", "2"], "--precision 2.0: expected above 0"),
        (["--decisions", "d", "--folds", "1"], "--folds of at least 2"),
        (["--decisions", "lost.jsonl"], "1 is a decision on no sample"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    labelled: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lost.jsonl").write_text('{"id": "eq-sd/object/999999", "decision": "keep"}\n')
    asked = ["calibrate", labelled, *arguments, "--output", "limits.json"]
    assert message in refused(capsys, review.main, *asked)
    assert not Path("limits.json").exists()
