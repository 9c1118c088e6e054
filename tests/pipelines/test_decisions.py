"""What people decided is a stage of a build like any other."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from eqforge import cli
from tests.builds import books, dataset_bytes, rejected, rows
from tests.pipelines.test_errata import perturbed
from tests.pipelines.test_errata import write as write_errata
from tests.statuses import status_of

main = status_of(cli.main)


def write(path: Path, decisions: dict[str, str], seed: int = 0, **more: str) -> Path:
    said = [{"id": name, "decision": what, "reason": "ugly", "who": "majority of 3", **more}
            for name, what in decisions.items()]  # fmt: skip
    random.Random(seed).shuffle(said)
    path.write_text("".join(json.dumps(each) + "\n" for each in said))
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return perturbed(tmp_path_factory.mktemp("whole"))


def test_what_people_drop_is_a_reject_with_the_reason_human(whole: Path, tmp_path: Path) -> None:
    samples = [row["sample_id"] for row in rows(whole, "samples")]
    decisions = dict(zip(samples, ["drop", "keep", "unsure"] * 3, strict=False))
    gone = sorted(name for name, what in decisions.items() if what == "drop")
    erratum = {"id": samples[-1], "action": "drop"}
    errata = write_errata(tmp_path / "errata.jsonl", erratum, {**erratum, "id": gone[0]})

    outputs = []
    for seed in (0, 1):
        path = write(tmp_path / "d.jsonl", decisions, seed)
        if seed:
            path.write_text("".join(sorted(path.read_text().splitlines(keepends=True))))
        more = ("--decisions", path, "--errata", errata)
        outputs.append(perturbed(tmp_path, *more, output=f"out{seed}"))

    out = outputs[0]
    assert sorted(rejected(out, "human")) == gone
    assert rejected(out, "erratum") == [samples[-1]]
    left = len(samples) - len(gone)
    assert books(out)["review"] == (len(samples), left, len(gone))
    assert books(out)["errata"] == (left, left - 1, 1)
    details = {row["detail"] for row in rows(out, "rejects") if row["stage"] == "review"}
    assert details == {"ugly (majority of 3)"}
    kept = [row for row in rows(whole, "samples") if row["sample_id"] not in (*gone, samples[-1])]
    assert rows(out, "samples") == kept
    assert main(["verify", str(out)]) in (0, 3)
    card = (out / "README.md").read_text()
    assert "| drop | ugly | majority of 3 | 3 |" in card
    assert card.index("## Decisions by reviewers") < card.index("| drop | ugly")
    assert card.index("| drop | ugly") < card.index("## Errata")
    said = f"Reviewers dropped {len(gone)} of {len(samples)} rows (stage review)"
    assert said in card
    assert "no person has checked" not in card
    croissant = json.loads((out / "croissant.json").read_text())
    assert said in croissant["rai:dataAnnotationProtocol"][0]
    assert any(said in each for each in croissant["rai:dataLimitations"])
    assert "--decisions path/to/d.jsonl" in card
    inputs = json.loads((out / "dataset.json").read_text())["inputs"]
    assert [file["name"] for file in inputs] == ["captions.jsonl", "errata.jsonl", "d.jsonl"]
    # Lines in another order are another file, by its digest, and the same dataset beside.
    first, second = map(dataset_bytes, outputs)
    for found in (first, second):
        for name in ("dataset.json", "README.md", "croissant.json", "SHA256SUMS"):
            del found[name]
    assert first == second


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"id": "a", "decision": "drop"}] * 2, "lines 1 and 2 both decide about 'a'"),
        ([{"id": "a", "decision": "burn"}], "line 1"),
        ([{"id": " ", "decision": "drop"}], "line 1: id: expected a string that is not blank"),
        ([{"decision": "drop"}], "line 1"),
    ],
)
def test_what_is_no_decision_is_refused_before_any_work(
    lines: list[dict[str, Any]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert perturbed(tmp_path, "--decisions", path).name == "status 2"
    assert f"d.jsonl: {said}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("decision", ["drop", "keep", "unsure"])
def test_decisions_on_samples_that_are_not_there_end_the_run(
    decision: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "d.jsonl", {"zebra": decision})

    assert perturbed(tmp_path, "--decisions", path).name == "status 1"
    said = capsys.readouterr().err
    assert "--decisions: 1 id matches no sample: 'zebra'" in said
    assert "erratum" not in said
    assert "Remove the unknown ids, and build again with --overwrite" in said
    assert not (tmp_path / "out" / "dataset.json").exists()
    # The work that was done stays, so that what belongs to other decisions is not taken for it.
    assert perturbed(tmp_path).name == "status 2"
    assert "an unfinished build" in (said := capsys.readouterr().err)
    assert "Choose a different folder, or add --overwrite to replace it" in said
    assert perturbed(tmp_path, "--overwrite").name == "out"


def test_a_part_of_a_dataset_is_built_with_the_decisions_on_the_whole(
    whole: Path, tmp_path: Path
) -> None:
    samples = [row["sample_id"] for row in rows(whole, "samples")]
    decisions = dict(zip(samples, ["keep", "drop"] * len(samples), strict=False))
    path = write(tmp_path / "d.jsonl", decisions)

    part = perturbed(tmp_path, "--decisions", path, "--limit", 1, output="part")

    assert 0 < len(rows(part, "samples")) < len(samples)


def test_a_file_of_errata_cannot_speak_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_errata(tmp_path / "e.jsonl", {"id": "a", "action": "drop", "stage": "review"})

    assert perturbed(tmp_path, "--errata", path).name == "status 2"
    assert (
        "stage: expected 'errata'; if the file contains decisions, use --decisions"
        in capsys.readouterr().err
    )
