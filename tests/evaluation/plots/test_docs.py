"""The page on efficiency names every plot."""

from pathlib import Path
from typing import get_args

from eqforge.evaluation.plots.command import Kind

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "efficiency.md").read_text(encoding="utf-8")


def test_the_page_names_every_kind_of_plot() -> None:
    for kind in get_args(Kind):
        assert f"| `{kind}` |" in PAGE, kind
