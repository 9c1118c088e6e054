"""Wrong input is one clear message and exit status 2, before anything is written."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eqforge.commands import verify
from eqforge.core.errors import BuildError, EqforgeError, InputError, MissingExtra, reported_errors
from eqforge.core.help import Help
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_ag, eq_gebc, eq_video, eq_youcook2, training_captions
from eqforge.pipelines.base.command import parse_line
from eqforge.transforms.engines.exclusive_job import locked
from tests.builds import ENTRY, environment

Main = Callable[[list[str]], int]

HELP = Help(program="eqforge build")


@pytest.fixture
def command(demo_workspace: Workspace, tmp_path: Path) -> list[str]:
    """A right command line of Eq-Video, to which a test adds what is wrong."""
    captions, videos = str(demo_workspace.captions), str(demo_workspace.videos)
    return ["--captions", captions, "--videos", videos, "--output", str(tmp_path / "out")]


def refuse(
    capsys: pytest.CaptureFixture[str], arguments: list[str], main: Main = eq_video.main
) -> str:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--werkers", "3"], "--workers"),  # the suggestion
        (["--mode", "papers"], "papers"),
        (["--workers", "two"], "two"),
        (["stray"], "stray"),
        (["--workers", "0"], "--workers 0: expected 1 or more"),
        (["--workers", "100000"], "--workers 100000: expected at most"),
        (["--samples-per-file", "0"], "--samples-per-file 0: expected 1 or more"),
        (["--images-per-file", "-5"], "--images-per-file -5: expected 1 or more"),
        (["--max-error-rate", "7"], "--max-error-rate 7.0: expected a fraction from 0 to 1"),
        (["--max-error-rate", "nan"], "--max-error-rate nan: expected a fraction from 0 to 1"),
        (["--decoder-timeout-s", "0"], "--decoder-timeout-s 0.0: expected more than 0 seconds"),
        (["--limit", "-1"], "--limit -1: expected 0 or more"),
        (["--limit", "0"], "there is nothing to build"),
        (["--sample", "0%"], "there is nothing to build"),
        (["--keep-best", "0"], "--keep-best 0: expected 1 or more"),
        (["--max-pairs-per-video", "-1"], "--max-pairs-per-video -1: expected 0 or more"),
        (["--jpeg-quality", "200"], "--jpeg-quality 200: expected 1 to 95"),
        (
            ["--min-changed-area", "0.5", "--max-changed-area", "0.3"],
            "--min-changed-area 0.5 is above --max-changed-area 0.3, so nothing would be kept",
        ),
        (["--min-ssim", "0.9", "--max-ssim", "0.8"], "--min-ssim 0.9 is above --max-ssim 0.8"),
        (
            ["--max-changed-area", "30"],
            "--max-changed-area 30.0: expected 0 to 1; write 0.3 for 30%",
        ),
        (["--face-upsample", "9"], "--face-upsample 9: expected 0 to 4"),
        (["--sample", "5"], "--sample 5: expected a percentage such as 1% or 12.5%"),
        (["--sample", "nan%"], "--sample nan%: expected a percentage"),
        (["--sample", "101%"], "--sample 101%: expected a percentage"),
        (
            ["--only", "eq-video/nobody/1-2"],
            "--only eq-video/nobody/1-2: after --limit and --sample, the plan contains no sample",
        ),
        (["--", "--nonsense"], "--nonsense: Beam's local runner does not have this option"),
        (["--", "nonsense"], "nonsense: Beam's local runner does not have this option"),
        (["--", "--runner", "NoRunner"], "--runner NoRunner: Unexpected pipeline runner"),
        (["--", "--runner"], "--runner: expected one argument"),
        (["--", "--direct_num_workers", "two"], "--direct_num_workers: invalid int value: 'two'"),
        (
            ["--workers", "2", "--", "--runner=FlinkRunner"],
            "--workers works only with the local runner",
        ),
        (["--videos", "nowhere"], "--videos nowhere: no such folder"),
        (["--videos", __file__], f"--videos {__file__} is a file; expected a folder"),
        (["--captions", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (
            ["--captions", "."],
            ".: this folder contains no captions. Pass a file, or a folder with subtitles (",
        ),
        (["--output", ""], "--output: expected a folder or URL, found ''"),
        (["--output", "nothing://bucket/out"], "Protocol not known: nothing"),
    ],
)
def test_a_wrong_argument_is_refused(
    command: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    err = refuse(capsys, [*command, *arguments])

    assert message in err
    assert not (tmp_path / "out").exists()


def test_a_missing_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    err = refuse(capsys, ["--output", "out"])

    assert "--captions" in err
    assert "--videos" in err


YOUCOOK2 = {"duration": 9.0, "subset": "training", "recipe_type": "1", "annotations": []}
MOMENT = {"video": "a.mp4", "timestamp_s": 1.0, "caption": "a cup"}


@pytest.mark.parametrize(
    ("main", "flag", "content", "message"),
    [
        (eq_youcook2.main, "annotations", b'{"videos": {}}', "the field 'database' is missing"),
        (
            eq_youcook2.main,
            "annotations",
            json.dumps({"database": {"v": YOUCOOK2 | {"duration": "long"}}}).encode(),
            "database.v.duration: expected a number, found 'long'",
        ),
        (eq_gebc.main, "annotations", b'{"v": {"boundary_id": "v_0A"}}', "v: expected an array"),
        (eq_gebc.main, "annotations", b'{"v": [{"boundary_id": "v"}]}', "v[0].boundary_id:"),
        (eq_ag.main, "objects", b"no pickle", "cannot be read as a pickle"),
        (eq_ag.main, "objects", pickle.dumps(1), "expected a dict or a list, found the type int"),
        (eq_ag.main, "objects", pickle.dumps({"frame": []}), "expected a key such as 001YG.mp4"),
        (
            eq_ag.main,
            "objects",
            pickle.dumps({"A.mp4/000001.png": [Path("x")]}),
            "it contains pathlib.PosixPath",
        ),
        (eq_video.main, "captions", b"", "contains no captioned frames"),
        (eq_video.main, "captions", json.dumps([1]).encode(), "line 1: expected an object"),
        (
            eq_video.main,
            "captions",
            json.dumps(MOMENT | {"timestamp_s": "1,5"}).encode(),
            "line 1: timestamp_s: expected seconds (61.5), a clock time (1:01.5), a frame",
        ),
        (
            eq_video.main,
            "captions",
            b"\n".join([json.dumps(MOMENT).encode(), *[b"no JSON"] * 6]),
            "records cannot be used as captioned frames, but --max-error-rate 0.01 allows 5",
        ),
    ],
)
def test_annotations_of_another_format_are_refused(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    main: Main,
    flag: str,
    content: bytes,
    message: str,
) -> None:
    file = tmp_path / "annotations.jsonl"
    file.write_bytes(content)
    named = [f"--{flag}", str(file), "--videos", str(tmp_path)]

    err = refuse(capsys, [*named, "--output", str(tmp_path / "out")], main)

    assert "annotations.jsonl" in err
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


# --- the output folder


@pytest.fixture
def dataset(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A finished dataset of one pair."""
    assert eq_video.main([*command, "--mode", "paper", "--limit", "1"]) == 0
    capsys.readouterr()
    return tmp_path / "out"


def test_a_dataset_of_another_name_is_left_alone(
    dataset: Path, demo_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (dataset / "dataset.json").read_bytes()
    named = ["--annotations", str(demo_workspace.youcook2), "--videos", str(demo_workspace.videos)]

    for more in ([], ["--overwrite"]):
        err = refuse(capsys, [*named, "--output", str(dataset), *more], eq_youcook2.main)
        assert "contains a build of eq-video; choose a different folder" in err

    assert (dataset / "dataset.json").read_bytes() == before


def test_a_dataset_of_other_settings_is_replaced_only_when_told(
    dataset: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = (dataset / "dataset.json").read_bytes()

    err = refuse(capsys, [*command, "--mode", "paper", "--limit", "2", "--max-side", "64"])

    assert (
        "made with different settings, inputs or versions: --limit was 1 and is now 2; "
        "--max-side was none and is now 64. Choose a different folder"
    ) in err
    assert "--overwrite" in err
    assert (dataset / "dataset.json").read_bytes() == before
    assert eq_video.main([*command, "--mode", "paper", "--limit", "2", "--overwrite"]) == 0
    assert json.loads((dataset / "dataset.json").read_text())["config"]["run"]["limit"] == 2


def test_a_wrong_plan_leaves_the_finished_dataset_as_it_was(
    dataset: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = (dataset / "dataset.json").read_bytes()

    refuse(capsys, [*command, "--limit", "0", "--overwrite"])

    assert (dataset / "dataset.json").read_bytes() == before


def test_a_part_never_takes_the_place_of_a_whole(
    dataset: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = (dataset / "dataset.json").read_bytes()

    err = refuse(capsys, [*command, "--mode", "paper", "--only", "any", "--overwrite"])

    assert "A build with --only cannot replace it" in err
    assert (dataset / "dataset.json").read_bytes() == before


def test_an_unfinished_build_of_other_settings_is_told(
    dataset: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (dataset / "dataset.json").unlink()

    assert "contains an unfinished build of eq-video" in refuse(capsys, command)
    assert eq_video.main([*command, "--mode", "paper", "--limit", "1"]) == 0


def test_a_folder_with_none_of_the_videos_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a drive that is not mounted: every video would be missing."""
    (tmp_path / "empty").mkdir()

    err = refuse(capsys, [*command, "--videos", str(tmp_path / "empty")])

    assert "the folder contains none of the planned videos; eqforge looked for" in err
    assert not (tmp_path / "out").exists()


def test_a_folder_with_none_of_the_images_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    captions = tmp_path / "captions.jsonl"
    captions.write_text('{"image": "a.jpg", "caption": "A dog sleeps on a sofa.", "id": "1"}\n')
    arguments = ["--captions", str(captions), "--images", str(tmp_path / "empty")]

    err = refuse(capsys, [*arguments, "--output", str(tmp_path / "out")], training_captions.main)

    assert "the folder contains none of the planned images; expected files such as a.jpg" in err
    assert not (tmp_path / "out").exists()


def test_an_engine_that_does_not_start_leaves_a_finished_dataset_as_it_is(
    dataset: Path, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "server.jar").touch()
    before = (dataset / "dataset.json").read_bytes()
    settings = [*command, "--mode", "paper", "--limit", "1", "--overwrite"]
    engine = ["--runner=FlinkRunner", f"--flink_job_server_jar={tmp_path / 'server.jar'}"]
    java = ["--job_server_java_launcher=/bin/false", "--allow_open_ports"]

    done = subprocess.run(
        [*ENTRY, "build", "eq-video", *settings, "--", *engine, *java],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert "Service failed to start up with error 1" in done.stderr
    assert (dataset / "dataset.json").read_bytes() == before
    assert verify.main([str(dataset)]) == 0


def test_workers_and_tolerances_do_not_make_another_dataset(
    dataset: Path, command: list[str]
) -> None:
    before = (dataset / "dataset.json").read_bytes()
    tolerances = ["--max-error-rate", "0.5", "--decoder-timeout-s", "99"]

    assert eq_video.main([*command, "--mode", "paper", "--limit", "1", *tolerances]) == 0

    assert (dataset / "dataset.json").read_bytes() == before


@pytest.mark.parametrize("names", [["notes.txt"], ["data/mine.parquet", "README.md"], [".git/x"]])
def test_a_folder_with_other_files_is_left_alone(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], names: list[str]
) -> None:
    for name in names:
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text("mine")

    err = refuse(capsys, command)

    assert "is not empty (it contains " in err
    found = {str(f.relative_to(tmp_path / "out")) for f in (tmp_path / "out").rglob("*.*")}
    assert found - {".git"} == {name for name in names if "." in name.rpartition("/")[2]}
    assert all((tmp_path / "out" / name).read_text() == "mine" for name in names)


@pytest.mark.parametrize(
    ("file", "content", "below", "message"),
    [
        ("out/dataset.json", '{"some": "json"}', "out", "not a dataset manifest"),
        ("out", "mine", "out", "is a file; expected a folder"),
        ("out", "mine", "out/below", "cannot be written: Not a directory"),
    ],
)
def test_an_output_that_is_no_folder_of_a_dataset_is_rejected(
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    content: str,
    below: str,
    message: str,
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)

    assert message in refuse(capsys, [*command, "--output", str(tmp_path / below)])
    assert (tmp_path / file).read_text() == content


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    os.seteuid(65534)
    try:
        with pytest.raises(InputError, match="cannot be written: Permission denied"):  # noqa: SIM117
            with locked(str(folder / "out")):
                pytest.fail("an output was locked that cannot be written")
    finally:
        os.seteuid(0)


# --- what is missing, and exit statuses


@pytest.mark.parametrize(("module", "extra"), [("av", "video"), ("cv2", "video")])
def test_a_missing_package_is_named_with_its_extra_before_any_work(
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    err = refuse(capsys, [*command, "--face-policy", "yunet"])

    assert f"pip install 'eqforge[{extra}]'" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (InputError("wrong"), 2, "eqforge: wrong\n"),
        (MissingExtra("av", "video"), 2, "eqforge: av is not installed"),
        (EqforgeError("odd"), 2, "eqforge: odd\n"),
        (BuildError("unfinished"), 1, "eqforge: unfinished\n"),
        (KeyboardInterrupt(), 130, "eqforge: interrupted\n"),
    ],
)
def test_errors_become_a_message_and_a_status(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, message: str
) -> None:
    with pytest.raises(SystemExit) as left, reported_errors():
        raise error

    assert left.value.code == status
    assert capsys.readouterr().err.startswith(message)


def test_a_mistake_of_the_program_keeps_its_trace() -> None:
    with pytest.raises(ZeroDivisionError), reported_errors():
        raise ZeroDivisionError


# --- what a command line means


def test_the_mode_sets_the_defaults_and_a_flag_beside_it_wins(command: list[str]) -> None:
    def settings(*arguments: str) -> tuple[str, int | None, int | None, bool]:
        line, _ = parse_line(eq_video.EqVideo, [*command, *arguments], HELP)
        found = line.settings.settings
        return (
            found.faces.face_policy,
            found.captions.max_tokens,
            found.cuts.max_registered_points,
            found.distinct_captions,
        )

    assert settings() == ("off", 77, None, True)
    assert settings("--mode", "paper") == ("paper", None, None, False)
    assert settings("--mode=paper", "--max-registered-points", "7") == ("paper", None, 7, False)
    assert settings("--mode", "paper", "--face-policy", "cnn")[0] == "cnn"
    assert settings("--mode", "paper", "--mode", "corrected")[0] == "off"


def test_what_follows_two_dashes_is_beam_s(command: list[str]) -> None:
    arguments = [*command, "--", "--runner", "FlinkRunner", "--mode", "x"]
    line, beam_args = parse_line(eq_video.EqVideo, arguments, HELP)

    assert line.settings.mode == "corrected"
    assert beam_args == ["--runner", "FlinkRunner", "--mode", "x"]
