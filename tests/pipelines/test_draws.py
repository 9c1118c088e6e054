"""Pairs are drawn until as many are kept as were asked for."""

import os
import signal
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.pipelines import eq_sd
from eqforge.pipelines.base.generated import (
    Drawn,
    DrawSettings,
    GeneratedPipeline,
    Judged,
    Numbers,
    draw_until_kept,
)
from tests.builds import dataset_bytes, finished_work, ids, rows, start, wait_for


def named(kind: str, number: int) -> str:
    return f"{kind}/{number}"


def test_the_last_draw_is_the_one_that_completes_its_kind() -> None:
    """Of `a` every third draw is refused, of `b` the first ten are, of `c` none."""
    rounds: list[dict[str, range]] = []

    kept = {"a": lambda n: n % 3 != 1, "b": lambda n: n >= 10, "c": lambda n: True}

    def judge(numbers: Numbers) -> Judged:
        rounds.append(dict(numbers))
        drawn = [(kind, number) for kind, some in numbers.items() for number in some]
        return Judged(
            kept=tuple(f"{kind}/{number}" for kind, number in drawn if kept[kind](number))
        )

    wanted = {"a": 10, "b": 2, "c": 3, "d": 0}
    drawn_of = draw_until_kept(wanted, dict.fromkeys(wanted, 100), named, judge)

    of_a = next(islice((n for n in range(100) if n % 3 != 1), 9, None)) + 1
    assert {kind: found.number for kind, found in drawn_of.items()} == {
        "a": of_a,
        "b": 12,
        "c": 3,
        "d": 0,
    }
    assert all(found.kept == wanted[kind] for kind, found in drawn_of.items())
    drawn = [number for some in rounds for number in some.get("a", ())]
    assert drawn == list(range(len(drawn)))  # in order, none twice
    assert len(drawn) <= of_a + 3  # and hardly one too many
    assert [some.get("c") for some in rounds][1:] == [None] * (len(rounds) - 1)


def test_where_hardly_any_are_kept_a_round_draws_no_more_than_all_before_it() -> None:
    """Of the first eight none is kept, of the later ones all are."""
    rounds: list[range] = []

    def judge(numbers: Numbers) -> Judged:
        rounds.append(numbers["a"])
        return Judged(kept=tuple(f"a/{number}" for number in numbers["a"] if number >= 8))

    found = draw_until_kept({"a": 8}, {"a": 1000}, named, judge)

    assert found == {"a": Drawn(number=16, kept=8)}
    assert rounds == [range(8), range(8, 16)]


def test_it_ends_where_no_more_may_be_drawn() -> None:
    asked: list[int] = []

    def judge(numbers: Numbers) -> Judged:
        asked.extend(numbers["a"])
        return Judged(kept=("a/3",) if 3 in numbers["a"] else ())

    assert draw_until_kept({"a": 5}, {"a": 20}, named, judge) == {"a": Drawn(number=20, kept=1)}
    assert asked == list(range(20))
    assert draw_until_kept({"a": 1}, {"a": 20}, named, judge) == {"a": Drawn(number=4, kept=1)}


@pytest.mark.parametrize(("failures", "drawn"), [(0, 40), (1, 40), (2, 10), (10, 10)])
def test_it_ends_where_more_fail_than_a_run_allows(failures: int, drawn: int) -> None:
    """The build that follows fails; it would not fail less by more draws."""

    def judge(numbers: Numbers) -> Judged:
        return Judged(kept=(), failed=failures if 0 in numbers["a"] else 0)

    found = draw_until_kept({"a": 10}, {"a": 40}, named, judge, max_error_rate=0.1)
    assert found == {"a": Drawn(number=drawn, kept=0)}


def test_the_most_draws_are_those_allowed_and_there() -> None:
    class Some(GeneratedPipeline[Any, Any]):
        def pair_counts(self) -> dict[str, int]:
            return {"a": 5, "b": 5, "c": 0}

        def supply(self, kind: str) -> int:
            return {"a": 100, "b": 7}[kind]

    def most(**settings: float) -> dict[str, int]:
        return Some(SimpleNamespace(draws=DrawSettings(**settings))).most()

    assert most() == {"a": 20, "b": 7, "c": 0}
    assert most(max_draws_per_pair=1) == {"a": 5, "b": 5, "c": 0}
    with pytest.raises(InputError, match=r"--max-draws-per-pair 0\.5: expected 1 to"):
        DrawSettings(max_draws_per_pair=0.5)


QUICK = ["--model", "tiny", "--steps", "2", "--guidance-scale", "50", "--cpu-threads", "1"]
GATES = ["--min-changed-area", "0.2", "--max-changed-area", "0.9", "--min-background-ssim", "None"]
ASKED = ["--object-pairs", "4", "--attribute-pairs", "2", *QUICK, *GATES]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pairs and two, of which filters refuse many."""
    pytest.importorskip("diffusers")
    output = tmp_path_factory.mktemp("draws") / "out"
    assert eq_sd.main([*ASKED, "--output", str(output)]) == 0
    return output


def test_as_many_are_kept_as_were_asked_for_and_they_are_the_first(
    asked: Path, tmp_path: Path
) -> None:
    """Those that come first among many more that are drawn and judged."""
    most = ["--object-pairs", "16", "--attribute-pairs", "8", "--max-draws-per-pair", "1"]
    assert eq_sd.main([*most, *QUICK, *GATES, "--output", str(tmp_path)]) == 0

    for kind, number in (("object", 4), ("attribute", 2)):
        first = [name for name in sorted(ids(tmp_path)) if f"/{kind}/" in name][:number]
        assert [name for name in sorted(ids(asked)) if f"/{kind}/" in name] == first
    known = {row["sample_id"]: row for row in rows(tmp_path, "samples")}
    assert all(row == known[row["sample_id"]] for row in rows(asked, "samples"))
    refused = {row["candidate_id"] for row in rows(asked, "rejects")}
    assert refused
    assert all(name < max(ids(asked)) for name in refused if "/object/" in name)


def test_one_of_the_later_draws_can_be_built_alone(asked: Path, tmp_path: Path) -> None:
    name = max(name for name in ids(asked) if "/object/" in name)
    assert int(name[-6:]) >= 4

    assert eq_sd.main([*ASKED, "--only", name, "--output", str(tmp_path)]) == 0

    (row,) = rows(tmp_path, "samples")
    assert row == next(row for row in rows(asked, "samples") if row["sample_id"] == name)


def test_killed_while_it_draws_it_ends_with_the_same_bytes(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    with start("build", "eq-sd", *ASKED, "--output", output) as run:
        wait_for(lambda: len(finished_work(output, "draw")) >= 7)  # more than are asked for
        os.killpg(run.pid, signal.SIGKILL)

    assert eq_sd.main([*ASKED, "--output", str(output)]) == 0
    assert "drawing replacements" in capsys.readouterr().err
    assert dataset_bytes(output) == dataset_bytes(asked)


def test_what_cannot_be_had_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("diffusers")
    none = ["--min-changed-area", "1", "--max-changed-area", "None", "--max-draws-per-pair", "2"]

    assert eq_sd.main(["--object-pairs", "2", *QUICK, *none, "--output", str(tmp_path)]) == 0

    assert len(rows(tmp_path, "rejects")) == 4
    told = capsys.readouterr()
    assert "WARNING: only 0 of 2 object pairs were kept after 4 draws" in told.err
