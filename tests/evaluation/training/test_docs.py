"""The page on training says what is there."""

import re
from pathlib import Path

import pytest

from eqforge.evaluation.training.command import PRESETS
from eqforge.evaluation.training.losses import LOSSES

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "training.md").read_text(encoding="utf-8")


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "training.md", "exec"), {})
    assert capsys.readouterr().out.startswith("tensor([")


def test_the_page_names_every_loss_and_preset() -> None:
    named = set(re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE, re.MULTILINE))
    assert named >= {*LOSSES, *PRESETS} - {"none"}
