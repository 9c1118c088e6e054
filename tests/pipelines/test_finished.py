"""Images that a dataset was made from are known again, however a source names them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import simat, vlue
from tests.builds import dataset_bytes
from tests.small_builds import COMMANDS

MAINS = {"vlue": vlue.main, "simat": simat.main}


@pytest.mark.parametrize("name", MAINS)
def test_images_are_known_by_their_times_by_their_content_and_without_notes(
    name: str, demo_workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, images = tmp_path / "out", tmp_path / "images"
    command = [*COMMANDS[name](demo_workspace, tmp_path)[1:], "--output", str(output)]
    assert MAINS[name](command) == 0
    before = dataset_bytes(output)
    changes: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: Path(shutil.copy(images / "0.jpg", images / "0.tmp")).replace(images / "0.jpg"),
        lambda: shutil.rmtree(output / "_work"),
    )
    for change in changes:
        change()
        capsys.readouterr()
        assert MAINS[name](command) == 0
        assert "is already finished and was not changed" in capsys.readouterr().out

    shutil.copy(images / "2.jpg", images / "3.jpg")
    with pytest.raises(SystemExit) as left:
        MAINS[name](command)

    assert left.value.code == 2
    assert "1 of 8 images has changed or may have changed: '3.jpg'" in capsys.readouterr().err
    assert dataset_bytes(output) == before
