"""The command `eqforge`: what it answers without, and how it hands the rest on."""

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import eqforge
from eqforge.cli import COMMANDS, main
from eqforge.commands import demo, inspection
from eqforge.generators.demo import workspace
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import pipeline_of
from eqforge.schemas.tables.datasets import DATASETS
from tests.builds import environment, rows


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_names_every_command(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 0

    out = capsys.readouterr().out
    assert all(name in out and text in out for name, text in COMMANDS.items())


@pytest.mark.parametrize("command", ["plan", "build"])
def test_a_command_without_a_dataset_names_every_dataset(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main([command]) == 2
    out = capsys.readouterr().out
    assert all(name in out for name in DATASETS)
    assert main([command, "--help"]) == 0


def test_an_unknown_command_or_dataset_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bild"]) == 2
    assert "unknown command 'bild'" in capsys.readouterr().err
    assert main(["build", "eq-youcook3"]) == 2
    assert "unknown dataset 'eq-youcook3'; did you mean 'eq-youcook2'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        (
            "import",
            "aro",
            "eqforge: unknown benchmark 'aro'; did you mean aro-relation, aro-attribution, "
            "aro-order?",
        ),
        ("import", "eq-video", "eqforge: eq-video is not a benchmark; run eqforge build eq-video"),
        (
            "import",
            "simat",
            "eqforge: simat is not a benchmark; to read the released files, run eqforge build "
            "simat "
            "--retrieval-db retrieval_db.tsv "
            "--triplets triplets.csv --transfos transfos.csv --captions captions.txt "
            "--images IMAGES --output OUT",
        ),
        (
            "import",
            "hard-positives",
            "eqforge: hard-positives is not a benchmark; to read the released files, run eqforge "
            "import replace-swap SOURCE --output OUT; for new samples, run eqforge build "
            "hard-positives",
        ),
        ("build", "valse", "eqforge: valse is not a dataset; run eqforge import valse"),
    ],
)
def test_the_command_that_makes_it_is_named(
    command: str, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, name]) == 2
    assert capsys.readouterr().err == f"{message}\n"
    assert main(["xyz"]) == 2
    assert "usage: " in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, each in DATASETS.items() if each.released])
def test_the_command_that_reads_released_files_has_options_that_exist(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, command, what, *words = DATASETS[name].released.split()
    with pytest.raises(SystemExit):
        main([command, what, "--help-all"])
    said = capsys.readouterr().out
    assert all(word in said for word in words if word.startswith("--"))


def test_common_options_may_stand_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    for before in (["--quiet", "doctor", "--json"], ["doctor", "--json", "--quiet"]):
        assert main(before) == 0
        assert capsys.readouterr().out.startswith("[")
    with pytest.raises(SystemExit):
        main(["--quiet", "verify", "nothing"])
    assert capsys.readouterr().err == "eqforge: nothing: no such folder\n"


def test_every_dataset_has_the_pipeline_of_its_name() -> None:
    assert [pipeline_of(name).name for name in DATASETS] == list(DATASETS)


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert main([flag]) == 0
    assert capsys.readouterr().out.strip() == eqforge.__version__ == version("eqforge")


def test_windows_is_refused_with_one_sentence() -> None:
    code = "import sys; sys.argv = ['eqforge']; sys.modules['fcntl'] = None; import eqforge"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "eqforge: eqforge runs on Linux and macOS; on Windows, install and run eqforge inside WSL\n"
    )


# --- the demo


def test_the_demo_builds_every_dataset(demo_output: Path) -> None:
    needs = {"eq-kubric": "bpy", "eq-sd": "diffusers", "eq-edit": "diffusers"}
    names = {name for name in DATASETS if find_spec(needs.get(name, "eqforge")) is not None}
    assert {path.parent.name for path in demo_output.glob("*/dataset.json")} == names
    assert all(rows(demo_output / name, "samples") for name in names)


def test_the_demo_renders_a_pair_of_each_kind(demo_dataset: Callable[[str], Path]) -> None:
    kinds = [sample["kind"] for sample in rows(demo_dataset("eq-kubric"), "samples")]

    assert kinds == ["attribute", "counting", "location"]


def test_the_demo_says_what_to_install_for_what_it_leaves_out(
    demo_workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "bpy", None)  # as if it were not installed
    monkeypatch.setattr(workspace, "make_workspace", lambda _: demo_workspace)
    some = demo.builds(demo_workspace)
    monkeypatch.setattr(demo, "builds", lambda _: {n: some[n] for n in ("eq-video", "eq-kubric")})

    assert demo.main(["--all", "--output", str(tmp_path)]) == 0

    out, err = capsys.readouterr()
    lines = out.splitlines()
    (left_out,) = (line for line in lines if line.startswith("skipped eq-kubric"))
    assert left_out.endswith("bpy is not installed; run pip install 'eqforge[render]'")
    assert lines[-1] == f"to see its pairs, open {tmp_path / 'pairs.png'}"
    assert err.index("skipping eq-kubric") < err.index("eq-video")


def test_inspect_shows_the_numbers(demo_output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """18 boundaries of which 12 are used, in 6 pairs; 2 frames of the empty video are missing."""
    assert inspection.main([str(demo_output / "eq-gebc"), "--rows", "1", "--full"]) == 0

    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["eq-gebc,", "corrected", "mode"]
    assert ["boundaries", "18", "12", "6"] in lines
    assert ["frames", "12", "10", "2"] in lines
    assert ["pairs", "6", "5", "1"] in lines
    assert ["samples", "5", "1"] in [words[:3] for words in lines]
    assert ["images", "10", "1"] in [words[:3] for words in lines]
    assert ["frames", "video_empty", "2"] in [words[:3] for words in lines]
    assert ["samples", "caption_0", "string"] in lines
    assert '"sample_id": "eq-gebc/demoGebCat2/001A-002A",' in out


def test_the_help_of_a_plan_needs_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    for command, said in (("plan", True), ("build", False)):
        with pytest.raises(SystemExit):
            main([command, "eq-video", "--help"])
        assert ("Required:\n  --output" in capsys.readouterr().out) is not said


def test_inspect_refuses_a_negative_number_of_rows(
    demo_output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        inspection.main([str(demo_output / "eq-gebc"), "--rows", "-1"])
    assert capsys.readouterr().err == "eqforge: --rows -1: expected 0 or more\n"


def test_inspect_draws_no_boxes_and_no_texts(
    demo_output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        inspection.main(
            [str(demo_output / "eq-gebc"), "--boxes", "--sheet", str(tmp_path / "a.png")]
        )

    assert left.value.code == 2
    assert "its samples have no boxes" in capsys.readouterr().err
