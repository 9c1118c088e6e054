"""The page about scoring says what the code does."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

from eqforge.evaluation.scoring.index import TASKS
from eqforge.models.spec import SCORERS
from eqforge.schemas.dataset.score_tables import FAILURE_REASONS, Quantity, open_scores
from tests.made_datasets import pair_tables, write_pairs
from tests.optional import optional

optional("transformers")

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "scoring.md"


def test_every_task_model_and_reason_is_on_the_page() -> None:
    page = PAGE.read_text()
    for name in (*TASKS, *SCORERS, "python"):
        assert f"`{name}`" in page, name
    for reason, meaning in FAILURE_REASONS.items():
        assert f"| `{reason}` | {meaning} |" in page
    assert set(get_args(Quantity)) >= {"cosine", "logit"}


def test_the_model_of_the_page_scores(tmp_path: Path) -> None:
    """Its code and its command run as they stand."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "redness.py").write_text(code)
    write_pairs(tmp_path / "out" / "demo" / "eq-youcook2", pair_tables(1))
    (command,) = re.findall(r"\$ PYTHONPATH=\. (eqforge score .*)", PAGE.read_text())
    program = f"{Path(sys.executable).parent}/{command}"
    done = subprocess.run(
        ["bash", "-c", f"PYTHONPATH=. {program}"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "samples: 6 expected = 6 scored + 0 failed" in done.stdout
    scored = open_scores(str(tmp_path / "scores" / "redness")).manifest
    assert scored.model.name == "own:redness@1"
