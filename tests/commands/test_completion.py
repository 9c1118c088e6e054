"""The script that completes commands, run by the shell itself."""

import subprocess
from pathlib import Path

import pytest

from eqforge.cli import main

TRY = """
source "$1"; shift
for line; do
  COMP_WORDS=(eqforge $line)
  if [[ $line == *" " ]]; then COMP_WORDS+=(""); fi
  COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )) COMPREPLY=()
  _tyro_eqforge
  echo "${COMPREPLY[@]}"
done
"""
COMPLETED = {
    "bu": "build",
    "plan eq-v": "eq-video",
    "build eq-video --max-s": "--max-side --max-ssim",
    "build eq-video --mode ": "paper corrected",
    "review pl": "plan",
    "export out --image-format p": "png",
}


def test_bash_completes_commands_datasets_options_and_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)

    run = ["bash", "-c", TRY, "bash", str(script), *COMPLETED]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout

    assert [line.strip() for line in printed.splitlines()] == [*COMPLETED.values()]
