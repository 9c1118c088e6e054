"""Reviews of what judges disagree on."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.commands import review
from eqforge.core.errors import InputError
from eqforge.evaluation.review import assign as module
from eqforge.evaluation.review.assign import Doubtful, doubtful
from eqforge.evaluation.review.plan import write_plan
from eqforge.evaluation.review.settings import Plan
from eqforge.evaluation.scoring.index import task_of
from eqforge.evaluation.shortcuts.command import AuditSettings, audit_command
from eqforge.evaluation.tables.command import metrics_command
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.pipelines import combined, hard_positives, training_captions
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.records.judgements import JudgeAnswer
from eqforge.schemas.tables.texts import Judgement
from eqforge.sources.labelled_captions import read_labelled_captions, why_not_linted
from tests.made_datasets import describe

OLD = Path(__file__).parents[2] / "old" / "0.1.0"
CAPTIONS = [
    "A man holds a red umbrella.",
    "A dog and a cat on a sofa.",
    "Two dogs sit on a car.",
    "A woman holds a blue umbrella.",
]


def write_lines(path: Path, captions: Sequence[str], first: int = 0) -> str:
    numbered = enumerate(captions, first)
    lines = [{"id": str(n), "image": f"{n}.jpg", "caption": text} for n, text in numbered]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four samples, with the precision of rules for a probability."""
    folder = tmp_path_factory.mktemp("doubtful")
    source = write_lines(folder / "captions.jsonl", CAPTIONS)
    output = folder / "out"
    arguments = ["--captions", source, "--output", str(output)]
    assert hard_positives.main(arguments) == 0
    return output


def judged(name: str, probability: float | None, *answers: tuple[str, str, float]) -> Judgement:
    return Judgement(
        sample_id=name,
        probability=probability,
        low=None,
        high=None,
        basis="",
        answers=tuple(
            JudgeAnswer(judge=judge, model="m", revision="1", question=question, probability=given)
            for judge, question, given in answers
        ),
    )


ROWS = [
    judged(
        "0", 0.9, ("nli", "caption_entails_positive", 0.9), ("llm", "positive_entails_caption", 0.8)
    ),
    judged("1", 0.7, ("nli", "caption_entails_positive", 0.9), ("vqa", "positive_shown", 0.2)),
    judged("2", None, ("nli", "negative_contradicts_caption", 0.1), ("vqa", "positive_shown", 0.9)),
]
"""Of three of the four samples; nothing is known of the last."""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"disputed": "judges"}, Doubtful(ids=("1",), unjudged=1)),
        ({"disputed": "rules"}, Doubtful(ids=("1", "2"), unjudged=1)),
        ({"unlikely": 0.8}, Doubtful(ids=("1", "2", "3"))),
        ({"unlikely": 0.7}, Doubtful(ids=("2", "3"))),
        ({"unlikely": 0}, Doubtful(ids=("2", "3"))),
        ({"disputed": "judges", "unlikely": 0.8}, Doubtful(ids=("1",), unjudged=1)),
    ],
)
def test_what_is_in_doubt_is_found(
    settings: dict[str, Any], expected: Doubtful, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "read_judgements", lambda _: iter(ROWS))
    assert doubtful(open_dataset(str(dataset)), **settings) == expected


def test_captions_of_the_source_are_not_in_doubt_whether_judged_or_not(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "captions.jsonl", CAPTIONS[:2])
    known, plain, both = (tmp_path / name for name in ("known", "plain", "both"))
    assert training_captions.main(["--captions", source, "--output", str(known)]) == 0
    other = write_lines(tmp_path / "others.jsonl", CAPTIONS[2:], first=2)
    paper = ["--captions", other, "--mode", "paper", "--output", str(plain)]
    assert training_captions.main(paper) == 0
    assert combined.main([str(known), str(plain), "--output", str(both)]) == 0

    found = doubtful(open_dataset(str(both)), unlikely=1)
    rows = list(open_dataset(str(both)).rows("samples", ["sample_id", "role"]))
    made = {row["sample_id"] for row in rows if row["role"] != "original"}
    assert set(found.ids) == made
    assert {name.partition("/")[0] for name in made} == {"0", "1", "2", "3"}


def test_a_plan_has_what_is_in_doubt_and_nothing_else(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, "read_judgements", lambda _: iter(ROWS))
    own = {"name": "own", "question": "Is it right?", "guide": "Read.", "source": "ours"}
    protocol = tmp_path / "own.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in own.items()]
    protocol.write_text("\n".join([*lines, 'reasons = ["no"]', "seconds = 5"]))
    plan = Plan(
        dataset=str(dataset),
        protocol=str(protocol),
        reviewers=("ada", "ben"),
        output=tmp_path / "tasks",
        disputed="rules",
    )
    written = write_plan(plan)
    assert (written.items, written.unjudged) == (2, 1)
    review.review_command(plan)
    assert "  left out: 1 sample without a judge's answer" in capsys.readouterr().out


def test_nothing_in_doubt_and_no_judgements_are_clear_errors(dataset: Path, tmp_path: Path) -> None:
    opened = open_dataset(str(dataset))
    with pytest.raises(InputError, match="no samples are in doubt"):
        doubtful(opened, unlikely=0)
    with pytest.raises(
        InputError, match="has no answers from judges; build the dataset with --verify"
    ):
        doubtful(opened, disputed="rules")
    with pytest.raises(InputError, match=r"--unlikely 80: .*write 0.8 for 80%"):
        doubtful(opened, unlikely=80)
    lines = write_lines(tmp_path / "captions.jsonl", CAPTIONS[1:2])
    plain = tmp_path / "plain"
    arguments = ["--captions", lines, "--mode", "paper", "--output", str(plain)]
    assert hard_positives.main(arguments) == 0
    with pytest.raises(
        InputError, match="has no answers from judges; build the dataset with --verify"
    ):
        doubtful(open_dataset(str(plain)), disputed="judges")
    with pytest.raises(InputError, match=r"not store how probable .* the rules of corrected mode"):
        doubtful(open_dataset(str(plain)), unlikely=0.9)
    with pytest.raises(
        InputError, match=r"judges only hard-positives and training-captions, not vlue"
    ):
        doubtful(open_dataset(str(OLD / "vlue")), unlikely=0.9)


def test_what_no_judge_was_asked_about_is_told_where_nothing_is_in_doubt(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "read_judgements", lambda _: iter(ROWS[:1]))
    message = "no samples are in doubt, but judges were not asked about 3 samples"
    with pytest.raises(InputError, match=message):
        doubtful(open_dataset(str(dataset)), disputed="judges")


def test_samples_without_ids_are_told(dataset: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(dataset, tmp_path / "copy"))
    (file,) = (copy / "data").glob("samples-*")
    pq.write_table(pq.read_table(file).drop_columns(["sample_id"]), file)
    describe(copy)
    with pytest.raises(InputError, match="sample_id"):
        doubtful(open_dataset(str(copy)), unlikely=0.9)


def test_of_an_empty_dataset_it_is_said_that_it_is_empty(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    lines = write_lines(tmp_path / "captions.jsonl", ["Xq zrt."])
    assert hard_positives.main(["--captions", lines, "--output", str(empty)]) == 0
    opened, message = open_dataset(str(empty)), "has no samples. To see why, run eqforge inspect"
    with pytest.raises(InputError, match=message):
        doubtful(opened, unlikely=0.9)
    with pytest.raises(InputError, match=message):
        audit_command(AuditSettings(path=empty))
    with pytest.raises(InputError, match=message):
        read_labelled_captions(empty)
    with pytest.raises(InputError, match=message):
        metrics_command(MetricsSettings(paths=(empty,)))
    with pytest.raises(InputError, match=message):
        task_of(opened)
    assert why_not_linted(opened) == "it has no samples"


def test_an_answer_to_no_question_is_told(dataset: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(dataset, copy)
    (file,) = (copy / "data").glob("judgements-*")
    table = pq.read_table(file)
    answer = [
        [{"judge": "x", "model": "m", "revision": "1", "question": "why", "probability": 1.0}]
    ]
    column = pa.array(answer * len(table), table.schema.field("answers").type)
    pq.write_table(table.set_column(5, table.schema.field("answers"), column), file)
    manifest = json.loads((copy / "dataset.json").read_text())
    manifest["tables"]["judgements"][0]["num_bytes"] = file.stat().st_size
    (copy / "dataset.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="a judgement answers the unknown question 'why'"):
        doubtful(open_dataset(str(copy)), disputed="rules")
