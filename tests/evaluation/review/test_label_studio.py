"""Plans as projects of Label Studio, its exports as votes; `make labelstudio` has the server."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from eqforge.commands import review
from eqforge.evaluation.review.votes import read_votes
from eqforge.schemas.dataset.reader import open_dataset
from tests.evaluation.review.reviews import planned, refused, saved
from tests.exported import picture, sample, write_pairs
from tests.made_datasets import write_squares
from tests.reports import HOSTILE, digests, given

Result = list[dict[str, Any]]


def chosen(name: str, value: str) -> dict[str, Any]:
    return {"from_name": name, "to_name": "shown", "value": {"choices": [value]}}


def written(name: str, value: str) -> dict[str, Any]:
    return {"from_name": name, "to_name": "shown", "value": {"text": [value]}}


def projects(dataset: Path, output: Path, protocol: str, *more: object) -> Path:
    plan = planned(dataset, output, protocol, "ada ben", "--tool", "label-studio", *more)
    (home,) = plan.glob("data/review-*")
    return home


def known(task: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(task["data"]["known"]))
    return found


def exported(home: Path, reviewer: str, answer: Callable[[dict[str, Any]], Result | None]) -> Path:
    """What the server exports where somebody answers each task, or skips it."""
    tasks = json.loads((home / f"tasks-{reviewer}.json").read_text("utf-8"))
    for number, task in enumerate(tasks, start=1):
        result = answer(task["data"])
        skipped = {"was_cancelled": result is None, "lead_time": 2.53, "completed_by": 1}
        task |= {"id": number, "annotations": [{**skipped, "result": result or []}]}
    path = home.parent / f"{reviewer}.json"
    path.write_text(json.dumps(tasks))
    return path


def votes_in(dataset: Path, *paths: Path) -> dict[str, Any]:
    found = open_dataset(str(dataset))
    return dict(read_votes(paths, found.folder, found.sha256).by_reviewer)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_squares(tmp_path_factory.mktemp("d") / "d")


def test_one_plan_is_dealt_alike_in_either_tool(pairs: Path, tmp_path: Path) -> None:
    home = projects(pairs, tmp_path / "ls", "eq-sd-filter")
    pages = planned(pairs, tmp_path / "pages", "eq-sd-filter", "ada ben")

    again = projects(pairs, tmp_path / "again", "eq-sd-filter")
    assert digests(home) == digests(again)
    for name in ("ada", "ben"):
        tasks = json.loads((home / f"tasks-{name}.json").read_text())
        dealt = given(pages, f"{name}/tasks")
        assert [[known(t)["id"], known(t)["is_repeat"]] for t in tasks] == dealt["tasks"]
        assert {known(t)["file"]["plan"] for t in tasks} == {dealt["plan"]}
        for task in tasks:
            addresses = re.findall(r'img src="([^"]*)"', task["data"]["shown"])
            assert len(addresses) == 2
            for address in addresses:
                assert (home.parent / address.removeprefix("/data/local-files/?d=")).is_file()
    assert "data/" + home.name in (home.parents[1] / "index.html").read_text()


def test_texts_of_data_are_data_and_not_part_of_the_config(tmp_path: Path) -> None:
    pictures = [picture(0), picture(1)]
    pair = sample("p", 0, (pictures[0], pictures[1]), "test")
    dataset = write_pairs(tmp_path / "d", [pair], pictures)
    own = tmp_path / "own.toml"
    own.write_text(f"name = 'own'\nquestion = '''{HOSTILE} $x'''\nreasons = ['$5 <b>']\n", "utf-8")

    home = projects(dataset, tmp_path / "ls", str(own))

    config = (home / "config.xml").read_text()
    assert "$5" not in config
    assert "script" not in config
    fields = {
        e.get("value", "")[1:] for e in ET.fromstring(config).iter() if "$" in e.get("value", "")
    }
    (task,) = json.loads(next(home.glob("tasks-*.json")).read_text("utf-8"))
    assert fields <= task["data"].keys()
    assert task["data"]["reason_1"] == "$5 <b>"
    assert "<script" not in task["data"]["shown"]
    assert task["data"]["known"] != "p"


def test_decisions_are_those_of_the_pages(pairs: Path, tmp_path: Path) -> None:
    home = projects(pairs, tmp_path / "ls", "eq-sd-filter")
    skipped = known(json.loads((home / "tasks-ada.json").read_text())[1])["task"]

    def answer(data: dict[str, Any]) -> Result | None:
        task = known({"data": data})["task"]
        if task == skipped:
            return None
        if task % 3:
            return [chosen("answer", "keep"), chosen("reason", "1")]
        return [chosen("answer", "drop"), chosen("reason", "2"), written("note", " ✓ न ")]

    votes = votes_in(pairs, *(exported(home, name, answer) for name in ("ada", "ben")))

    total = len(json.loads((home / "tasks-ada.json").read_text()))
    assert len(votes["ada"]) == total - 1
    for vote in votes["ada"]:
        assert vote.seconds == 2.5
        dropped = ("drop", "more than one thing changes", "✓ न")
        found = vote.answer, vote.reason, vote.note
        assert found == (dropped if vote.task % 3 == 0 else ("keep", "", ""))


def test_ranks_and_texts_are_those_of_the_pages(tmp_path: Path, pairs: Path) -> None:
    """Whatever the order in which pictures and captions are shown."""
    home = projects(pairs, tmp_path / "rank", "caption-ranking")

    def rank(data: dict[str, Any]) -> Result:
        here = known({"data": data})
        return [
            chosen(
                f"rank_{row}_{column}",
                "21"[data[f"rank_{row}_{column}"].endswith("left") == (here["places"][row] == 0)],
            )
            for row in (0, 1)
            for column in (0, 1)
        ]

    votes = votes_in(pairs, exported(home, "ada", rank))["ada"]
    assert {vote.ranks for vote in votes} == {((1, 2), (2, 1))}
    tasks = json.loads((home / "tasks-ada.json").read_text())
    assert {tuple(known(task)["places"]) for task in tasks} == {(0, 1), (1, 0)}
    told = tasks[0]["data"]["rank_0_0"]
    assert told.startswith("image 1: a ")

    home = projects(pairs, tmp_path / "write", "vlue-questions")

    def write(data: dict[str, Any]) -> Result:
        here = known({"data": data})["places"]
        assert data["text_1"] == "Answer for image 1"
        texts = ["What is it, then?", *(f"of {place}" for place in here)]
        return [written(f"text_{number}", text) for number, text in enumerate(texts)]

    for vote in votes_in(pairs, exported(home, "ada", write))["ada"]:
        assert vote.texts == {
            "question": "What is it, then?",
            "answer_0": "of 0",
            "answer_1": "of 1",
        }


def test_pages_and_exports_are_taken_together(pairs: Path, tmp_path: Path) -> None:
    pages = planned(pairs, tmp_path / "pages", "caption-ranking", "ada ben")
    home = projects(pairs, tmp_path / "ls", "caption-ranking")
    ranks = [chosen(f"rank_{row}_{column}", "1") for row in (0, 1) for column in (0, 1)]
    files = [
        saved(pages, "ada", lambda item, shown: {"ranks": [[1, 1], [1, 1]]}),
        exported(home, "ben", lambda data: ranks),
    ]
    votes = votes_in(pairs, *files)
    assert {vote.ranks for some in votes.values() for vote in some} == {((1, 1), (1, 1))}


def test_tasks_of_two_reviewers_are_not_one_project(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = projects(pairs, tmp_path / "ls", "eq-sd-filter")
    both = [
        exported(home, name, lambda data: [chosen("answer", "keep")]) for name in ("ada", "ben")
    ]
    path = tmp_path / "both.json"
    path.write_text(json.dumps([task for each in both for task in json.loads(each.read_text())]))
    told = refused(["import", pairs, path, "--output", tmp_path / "o"], capsys)
    assert (
        "contains tasks of 'ada' and of 'ben'. In Label Studio, create a separate project" in told
    )
    assert (
        review.main(["import", str(pairs), *map(str, both), "--output", str(tmp_path / "d")]) == 0
    )
