"""The script that completes commands, run by the shell itself."""

import subprocess
from pathlib import Path

import pytest

from eqforge.cli import main

TRY = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _eqforge; echo "${COMPREPLY[@]}"
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
    assert words("import", "valse", "--unc") == ["--unconfirmed"]
    assert words("plan", "wino") == ["winoground"]
    assert words("plan", "eq-v") == ["eq-video"]
    assert words("build", "wino") == []
    assert words("plan", "valse", "--unc") == ["--unconfirmed"]
    assert words("plan", "valse", "--pi") == ["--pilot"]
    assert words("export", "out", "--format", "w") == ["webdataset", "winoground"]
    assert words("export", "out", "--image-format", "p") == ["png"]
    assert words("combine", "--err") == ["--errata"]
    assert words("combine", "--sam") == ["--sample", "--samples-per-file"]
    assert words("build", "eq-v") == ["eq-video"]
    assert words("build", "eq-video", "--max-s") == ["--max-side", "--max-ssim"]
    assert words("plan", "eq-video", "--pi") == ["--pilot"]
    assert words("build", "eq-video", "--mode", "") == ["paper", "corrected"]
    assert words("score", "out", "--auto") == ["--autocast"]
    assert words("verify", "--no-q") == ["--no-quiet"]
    assert words("verify", "/some/folder") == []
    for command, name in (("build", "eq-video"), ("plan", "eq-video"), ("import", "winoground")):
        assert words(command, "--re") == ["--recipe"]
        assert "--recipe" in words(command, name, "--re")
        assert words(command, name, "--recipe", "/some/fo") == []  # the shell completes files


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_the_same_words(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "max-registered-points" in script
    assert "recipe" in script
    assert "bashcompinit" in script or "complete -c eqforge" in script
