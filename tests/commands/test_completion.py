"""The script that completes commands, run by the shell itself."""

import subprocess
from pathlib import Path

import pytest

from eqforge.cli import main

TRY = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _tyro_eqforge; echo "${COMPREPLY[@]}"
"""


def test_bash_completes_commands_datasets_options_and_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)

    def words(*line: str) -> list[str]:
        run = ["bash", "-c", TRY, "bash", str(script), "eqforge", *line]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()

    assert words("bu") == ["build"]
    assert words("import", "wino") == ["winoground"]
    assert words("plan", "eq-v") == ["eq-video"]
    assert words("plan", "valse", "--pi") == ["--pilot"]
    assert words("build", "eq-video", "--max-s") == ["--max-side", "--max-ssim"]
    assert words("build", "eq-video", "--mode", "") == ["paper", "corrected"]
    assert words("review", "pl") == ["plan"]
    assert words("combine", "--sam") == ["--sample", "--samples-per-file"]
    assert words("finetune", "--ep") == ["--epochs"]
    assert words("export", "out", "--image-format", "p") == ["png"]
