"""Settings that would change nothing are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.command import main as command
from eqforge.evaluation.tables.settings import READ, MetricsSettings
from tests.statuses import status_of

main = status_of(command)

CHANGED: dict[str, Any] = {
    "quantity": "logit",
    "ties": "half",
    "order": "by-subset",
    "clusters": Path("videos.txt"),
    "columns": ("c0_i0=a",),
    "by": "split",
    "cluster": "image",
    "mode": "paper",
    "relevance": Path("clip"),
    "oracle": "oscar",
    "lambdas": (1.0,),
    "tokenizer": "ptb",
    "allow_missing": True,
    "seed": 1,
    "resamples": 9,
    "labels": ("ours",),
    "errata": Path("errata.jsonl"),
    "human": (Path("votes.json"),),
}


@pytest.mark.parametrize("table", READ)
def test_a_table_refuses_what_it_does_not_depend_on(table: str) -> None:
    MetricsSettings(paths=(Path("x"),)).check_read(table)
    assert set(READ[table]) <= CHANGED.keys()
    for name, value in CHANGED.items():
        settings = MetricsSettings(paths=(Path("x"),), **{name: value})
        if name in READ[table]:
            settings.check_read(table)
        else:
            with pytest.raises(InputError, match=f"--{name.replace('_', '-')} cannot be used with"):
                settings.check_read(table)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--format", "eqben", "--by", "split"],
            "--by cannot be used with this table (eqben); omit --by",
        ),
        (["--seed", "-1"], "--seed at least 0"),
        (["--resamples", "0"], "--resamples must be at least 1"),
    ],
)
def test_the_command_says_what_it_would_ignore(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    np.save(tmp_path / "v.npy", np.zeros(4))
    assert main([str(tmp_path / "v.npy"), *arguments]) == 2
    assert said in capsys.readouterr().err
