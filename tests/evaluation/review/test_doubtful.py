"""Reviews of what judges disagree on."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.commands import review
from eqforge.evaluation.review import doubtful as module
from eqforge.evaluation.review.doubtful import doubtful
from eqforge.pipelines import hard_positives
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.records.judgements import JudgeAnswer
from eqforge.schemas.tables.texts import Judgement

CAPTIONS = ["A man holds a red umbrella.", "A dog and a cat on a sofa.", "Two dogs sit on a car."]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three samples, with the precision of rules for a probability."""
    folder = tmp_path_factory.mktemp("doubtful")
    lines = [{"id": str(n), "image": f"{n}.jpg", "caption": c} for n, c in enumerate(CAPTIONS)]
    source = folder / "captions.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    output = folder / "out"
    arguments = ["--captions", str(source), "--output", str(output)]
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
    replace(judged("3", None), basis="source"),
    judged("2", None, ("nli", "negative_contradicts_caption", 0.1), ("vqa", "positive_shown", 0.9)),
]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"disputed": "judges"}, ("1",)),
        ({"disputed": "rules"}, ("1", "2")),
        ({"unlikely": 0.8}, ("1", "2")),
        ({"unlikely": 0.7}, ("2",)),
        ({"disputed": "judges", "unlikely": 0.8}, ("1",)),
    ],
)
def test_what_is_in_doubt_is_found(
    settings: dict[str, Any],
    expected: tuple[str, ...],
    dataset: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "read_judgements", lambda _: iter(ROWS))
    assert doubtful(open_dataset(str(dataset)), **settings) == expected


def test_a_plan_has_what_is_in_doubt_and_nothing_else(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "read_judgements", lambda _: iter(ROWS))
    own = {"name": "own", "question": "Is it right?", "guide": "Read.", "source": "ours"}
    protocol = tmp_path / "own.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in own.items()]
    protocol.write_text("\n".join([*lines, 'reasons = ["no"]', "seconds = 5"]))
    plan = review.Plan(
        dataset=str(dataset),
        protocol=str(protocol),
        reviewers=("ada", "ben"),
        output=tmp_path / "tasks",
        disputed="rules",
    )
    assert review.plan_review(plan).items == 2


def test_nothing_in_doubt_and_no_judgements_are_clear_errors(dataset: Path, tmp_path: Path) -> None:
    opened = open_dataset(str(dataset))
    with pytest.raises(InputError, match="nothing in it is in doubt"):
        doubtful(opened, unlikely=0)
    with pytest.raises(InputError, match="no answers of judges; build it with --verify"):
        doubtful(opened, disputed="rules")
    with pytest.raises(InputError, match=r"--unlikely 80: .*write 0.8 for 80 %"):
        doubtful(opened, unlikely=80)
    lines = tmp_path / "captions.jsonl"
    lines.write_text(json.dumps({"caption": CAPTIONS[1], "image": "a.jpg"}) + "\n")
    plain = tmp_path / "plain"
    arguments = ["--captions", str(lines), "--mode", "paper", "--output", str(plain)]
    assert hard_positives.main(arguments) == 0
    with pytest.raises(InputError, match="has no judgements; build it with --verify"):
        doubtful(open_dataset(str(plain)), disputed="judges")


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
    with pytest.raises(InputError, match="no question is called 'why'"):
        doubtful(open_dataset(str(copy)), disputed="rules")
