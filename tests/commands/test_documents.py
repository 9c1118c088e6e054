"""What `--json` prints, beside what docs/reference/python.md says of it and what Python returns."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eqforge
from eqforge.cli import main
from eqforge.generators.demo.workspace import Workspace
from scripts.documents import DOCUMENTS


@pytest.fixture(scope="module")
def built(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents") / "own"
    assert main(["--quiet", *_arguments(demo_workspace, "build"), "--output", str(folder)]) == 0
    return folder


def _arguments(workspace: Workspace, command: str) -> list[str]:
    inputs = ["--captions", str(workspace.captions), "--videos", str(workspace.videos)]
    return [command, "eq-video", *inputs, "--min-minimality", "0", "--max-ssim", "0.25"]


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    main([*arguments, "--json"])
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    kind = DOCUMENTS[arguments[0]]
    assert printed.err, "words for people go to standard error"
    assert json.loads(msgspec.json.encode(msgspec.convert(found, kind))) == found
    return found


def test_a_plan_s_document_is_what_python_returns(
    demo_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, *_arguments(demo_workspace, "plan"), "--pilot", "3")
    report = eqforge.plan(
        "eq-video",
        captions=demo_workspace.captions,
        videos=demo_workspace.videos,
        max_ssim=0.25,
        min_minimality=0,
    )
    assert found["counts"] == report.counts
    assert tuple(found["lines"]) == report.lines
    assert found["sources"]["max-ssim"] == "command line"
    pilot = found["pilot"]
    assert pilot["kept"] + pilot["rejects"]["pairs: change_too_small"] == 19
    (ssim,) = [each for each in pilot["scores"] if each["score"] == "ssim"]
    assert ssim["limits"] == {"min-ssim": None, "max-ssim": 0.25}
    assert ssim["dropped"] == pilot["rejects"]["pairs: change_too_small"]
    assert sum(ssim["counts"]) == 19
    assert len(ssim["edges"]) == len(ssim["counts"]) + 1


def test_a_build_s_document_holds_the_manifest(
    demo_workspace: Workspace, built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = [*_arguments(demo_workspace, "build"), "--output", str(built)]
    found = document(capsys, *again)
    assert (found["output"], found["state"]) == (str(built), "kept")
    manifest = eqforge.open(built).manifest
    assert found["manifest"] == json.loads(msgspec.json.encode(manifest))


def test_verify_s_document_is_what_python_returns(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, "verify", str(built))
    assert found == json.loads(msgspec.json.encode(eqforge.verify(built)))


def test_inspect_gives_rejects_by_reason_and_single_rows(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, "inspect", str(built), "--rows", "2")
    assert len(found["samples"]) == 2
    name = found["samples"][1]["sample_id"]
    assert document(capsys, "inspect", str(built), "--id", name)["samples"] == found["samples"][1:]
    refused = document(capsys, "inspect", str(built), "--rejects", "change_too_small")["rejects"]
    assert len(refused) == 3
    assert all(row["value"] > row["threshold"] == 0.25 for row in refused)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rejects", "change_too_smal"], "did you mean 'change_too_small'?"),
        (["--id", "eq-video/own/tour.mkv/own-000-own_00"], "did you mean 'eq-video/own/tour.mkv/"),
        (["--id", "a", "--rejects", "b"], "pass --id or --rejects, not both"),
    ],
)
def test_inspect_names_the_nearest(
    built: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit):
        main(["inspect", str(built), *arguments])
    assert said in capsys.readouterr().err
