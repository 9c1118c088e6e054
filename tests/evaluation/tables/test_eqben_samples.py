"""EqBen's table over a combined dataset says what it says of the same scores as a vector."""

import csv
import json
import random
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eqforge.cli import main as eqforge
from eqforge.evaluation.tables.command import main as command
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.eqben import eqben_report, eqben_samples_report, is_eqben
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.tables.benchmarks import EQBEN_SIZES, eqben_subset
from eqforge.transforms.export.names import key_of
from tests.builds import rows
from tests.pipelines.test_combined import EQBEN, OLD
from tests.statuses import status_of

main = status_of(command)
SETTINGS = MetricsSettings(paths=(), resamples=50)


@pytest.fixture(scope="module")
def combined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eqben") / "out"
    assert eqforge(["combine", *map(str, EQBEN), "--output", str(folder)]) == 0
    return folder


def scored(folder: Path, to: Path, seed: int) -> dict[str, list[float]]:
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
        vectors.append(tmp_path / f"{seed}.npy")
    dataset = open_dataset(str(combined))

    assert is_eqben(dataset)
    found = eqben_samples_report(dataset, files, SETTINGS)
    expected = eqben_report(vectors, replace(SETTINGS, order="by-subset"), sizes)

    told = [(m.model, m.subset, m.metric, m.value, m.chance, m.ties) for m in found.measures]
    assert told == [
        (m.model, m.subset, m.metric, m.value, m.chance, m.ties) for m in expected.measures
    ]
    differences = [(c.subset, c.metric, c.found.difference) for c in found.comparisons]
    assert differences == [(c.subset, c.metric, c.found.difference) for c in expected.comparisons]
    assert found.paper_columns == expected.paper_columns
    assert any("differ from the published subsets" in note for note in found.notes)


def from_files(folder: Path, to: Path) -> list[str]:
    """Exports pairs and scores both forms, whatever order they have, by picture and caption alone.

    Writes scores of the dataset, `s.csv`, and the vector of the server's file, `v.npy`; returns the
    first images in the order of the file of all pairs.
    """
    assert eqforge(["export", str(folder), "--format", "eqben", "--output", str(to / "out")]) == 0
    pairs = json.loads((to / "out" / "eqben.json").read_text())
    single = json.loads((to / "out" / "eqben_random.json").read_text())
    vector = [score(each["image"], each["caption"]) for each in single]
    np.save(to / "v.npy", np.array(vector, np.float32))
    by_name = {pair["image0"]: pair for pair in pairs}
    by_key = {Path(name).stem.removesuffix("-0"): pair for name, pair in by_name.items()}
    with (to / "s.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sample_id", *(f"value_{n}" for n in range(4))])
        for row in rows(folder, "samples"):
            pair = by_name.get(row["image_0"]) or by_key[key_of(row["sample_id"])]
            values = [score(pair[f"image{i}"], row[f"caption_{c}"]) for i in (0, 1) for c in (0, 1)]
            writer.writerow([row["sample_id"], *values])
    return list(by_name)


def score(image: str, caption: str) -> int:
    return zlib.crc32(f"{image} {caption}".encode()) % 9


def check_same_table(folder: Path, files: Path) -> None:
    sizes = Counter(eqben_subset(row["kind"]) for row in rows(folder, "samples"))
    dataset = open_dataset(str(folder))
    assert is_eqben(dataset)
    found = eqben_samples_report(dataset, [files / "s.csv"], SETTINGS)
    in_order = {name: sizes[name] for name in EQBEN_SIZES}
    expected = eqben_report([files / "v.npy"], SETTINGS, in_order)
    assert [(m.subset, m.metric, m.value, m.ties) for m in found.measures] == [
        (m.subset, m.metric, m.value, m.ties) for m in expected.measures
    ]
    assert len({m.value for m in found.measures}) > 3


def test_scores_of_the_exported_files_have_the_table_of_the_dataset(
    combined: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same after the files come back in an order in which neither subsets nor ids sort."""
    from_files(combined, tmp_path)
    said = capsys.readouterr().err
    assert "need all seven subsets to be complete" in said
    assert "of kubric-location, 1 of 2,000 pairs of kubric-counting" in said
    check_same_table(combined, tmp_path)

    path = tmp_path / "out" / "eqben.json"
    pairs = json.loads(path.read_text())
    random.Random(5).shuffle(pairs)
    path.write_text(json.dumps(pairs))
    again = tmp_path / "again"
    command = ["import", "eqben", str(path), "--images", str(tmp_path / "out" / "images")]
    assert eqforge([*command, "--output", str(again)]) == 0
    columns = ("source_id", "caption_0", "caption_1", "image_0_id", "image_1_id")
    both = [
        Counter(tuple(row[name] for name in columns) for row in rows(folder, "samples"))
        for folder in (combined, again)
    ]
    assert both[0] == both[1]
    (tmp_path / "second").mkdir()
    order = from_files(again, tmp_path / "second")
    check_same_table(again, tmp_path / "second")
    subset_of = {pair["image0"]: eqben_subset(pair["image0"].split("/")[0]) for pair in pairs}
    in_source = sorted(subset_of, key=lambda name: list(EQBEN_SIZES).index(subset_of[name]))
    assert order == in_source
    assert in_source != list(subset_of)


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
    assert "only between models that scored every sample" in capsys.readouterr().out
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
    assert f"leaves out all samples of EqBen's subset {largest}" in capsys.readouterr().err


def test_subsets_are_told_by_their_names() -> None:
    assert eqben_subset("eq-sd/attribute") == "sd"
    assert eqben_subset("eq-kubric/counting") == "kubric-counting"
    assert eqben_subset("eqben/eqbenkubric_cnt") == "kubric-counting"
    assert eqben_subset("eqbenag") == "ag"
    assert eqben_subset("bivlc") == ""
    assert not is_eqben(open_dataset(str(OLD / "eq-kubric")))
