"""EqBen's table over a combined dataset says what it says of the same scores as a vector."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from eqforge.cli import main as eqforge
from eqforge.evaluation.statistics.averages import EQBEN_SIZES
from eqforge.evaluation.tables.command import main as command
from eqforge.evaluation.tables.eqben import EqbenVector, eqben_report
from eqforge.evaluation.tables.eqben_samples import (
    eqben_samples_report,
    eqben_subset,
    is_eqben,
)
from eqforge.evaluation.tables.report import Rules
from eqforge.evaluation.tables.sample_tasks import SampleRules
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import rows
from tests.pipelines.test_combined import EQBEN, OLD
from tests.statuses import status_of

main = status_of(command)
RULES = Rules(resamples=50)


@pytest.fixture(scope="module")
def combined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eqben") / "out"
    assert eqforge(["combine", *map(str, EQBEN), "--output", str(folder)]) == 0
    return folder


def scored(folder: Path, to: Path, seed: int) -> dict[str, list[float]]:
    """Writes scores of every sample, and returns them by subset."""
    rng, found = np.random.default_rng(seed), dict[str, list[float]]()
    with to.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sample_id", *(f"value_{n}" for n in range(4))])
        for row in rows(folder, "samples"):
            values = rng.integers(0, 9, 4).tolist()
            writer.writerow([row["sample_id"], *values])
            # Of a sample s(i0, c0), s(i0, c1), s(i1, c0), s(i1, c1), as in EqBen's vectors.
            found.setdefault(eqben_subset(row["kind"]), []).extend(values)
    return found


def test_the_table_is_that_of_the_same_scores_as_vectors(combined: Path, tmp_path: Path) -> None:
    files, vectors = [], []
    sizes: dict[str, int] = {}
    for seed in (1, 2):
        by_subset = scored(combined, tmp_path / f"{seed}.csv", seed)
        sizes = {name: len(by_subset[name]) // 4 for name in EQBEN_SIZES}
        vector = np.concatenate([by_subset[name] for name in EQBEN_SIZES])
        np.save(tmp_path / f"{seed}.npy", vector.astype(np.float32))
        files.append(tmp_path / f"{seed}.csv")
        vectors.append(EqbenVector(path=tmp_path / f"{seed}.npy", order="by-subset"))
    dataset = open_dataset(str(combined))

    assert is_eqben(dataset)
    found = eqben_samples_report(dataset, files, SampleRules(rules=RULES))
    expected = eqben_report(vectors, RULES, sizes=sizes)

    told = [(m.model, m.subset, m.metric, m.value, m.chance, m.ties) for m in found.measures]
    assert told == [
        (m.model, m.subset, m.metric, m.value, m.chance, m.ties) for m in expected.measures
    ]
    differences = [(c.subset, c.metric, c.found.difference) for c in found.comparisons]
    assert differences == [(c.subset, c.metric, c.found.difference) for c in expected.comparisons]
    assert found.paper_columns == expected.paper_columns
    assert any("not the published subsets" in note for note in found.notes)


def test_the_command_makes_it_unless_other_subsets_are_asked_for(
    combined: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scored(combined, tmp_path / "s.csv", 3)
    few = ["--resamples", "10"]
    assert main([str(combined), str(tmp_path / "s.csv"), *few]) == 0
    assert "paper's average" in capsys.readouterr().out
    assert main([str(combined), str(tmp_path / "s.csv"), *few, "--by", "dataset"]) == 0
    assert "paper's average" not in capsys.readouterr().out


def test_scores_that_are_missing_are_told(
    combined: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scored(combined, tmp_path / "all.csv", 4)
    head, *lines = (tmp_path / "all.csv").read_text().splitlines()
    some = [line for line in lines if "eq-sd/object/000000" not in line]
    (tmp_path / "some.csv").write_text("\n".join([head, *some]))
    paths = [str(combined), str(tmp_path / "all.csv"), str(tmp_path / "some.csv")]

    assert main(paths) == 2
    assert main([*paths, "--allow-missing", "--resamples", "10"]) == 0
    assert "only where each has scores of every sample" in capsys.readouterr().out
    (tmp_path / "some.csv").write_text("\n".join([head, *(x for x in lines if "eq-ag" not in x)]))
    assert main([*paths, "--allow-missing", "--resamples", "10"]) == 2
    assert "no sample of EqBen's subset ag has a score" in capsys.readouterr().err


def test_errata_are_left_out_and_said(
    combined: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scored(combined, tmp_path / "s.csv", 5)
    ids: dict[str, list[str]] = {}
    for row in rows(combined, "samples"):
        ids.setdefault(eqben_subset(row["kind"]), []).append(row["sample_id"])
    largest = max(ids, key=lambda name: len(ids[name]))

    def wrong(names: list[str]) -> list[str]:
        said = {"action": "drop", "reason": "mislabelled", "who": "Ada", "when": "2026-11-23"}
        lines = [{"id": name, **said} for name in names]
        path = tmp_path / "errata.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        paths = [str(combined), str(tmp_path / "s.csv")]
        return [*paths, "--errata", str(path), "--resamples", "10"]

    assert main(wrong(ids[largest][:1])) == 0
    said = capsys.readouterr().out
    number = sum(map(len, ids.values()))
    assert f"EqBen: {number - 1:,} samples of 7 subsets" in said
    assert "errata: 1 sample" in said
    assert "mislabelled" in said
    assert main(wrong(ids[largest])) == 2
    assert f"leaves no sample of EqBen's subset {largest}" in capsys.readouterr().err


def test_subsets_are_told_by_their_names() -> None:
    assert eqben_subset("eq-sd/attribute") == "sd"
    assert eqben_subset("eq-kubric/counting") == "kubric-counting"
    assert eqben_subset("eqben/eqbenkubric_cnt") == "kubric-counting"
    assert eqben_subset("eqbenag") == "ag"
    assert eqben_subset("bivlc") == ""
    assert not is_eqben(open_dataset(str(OLD / "eq-kubric")))
