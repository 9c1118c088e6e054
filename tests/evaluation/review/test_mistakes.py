"""What cannot be planned or taken is one clear sentence each; mistakes.txt has all of them.

EQFORGE_SNAPSHOTS=write in the environment writes the file anew.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main as eqforge
from eqforge.core.errors import InputError
from eqforge.evaluation.review.protocols import protocol_of
from tests.builds import rows
from tests.evaluation.review.reviews import always, decided, planned, refused, saved
from tests.evaluation.review.test_label_studio import chosen, exported, known, projects
from tests.made_datasets import built, write_squares
from tests.reports import given

SENTENCES = Path(__file__).with_name("mistakes.txt")
GALLERY = "retrieval-perturbations"
Case = tuple[str, list[object], Any]
"""What is wrong, and a command with the program that it is given to, of review if None."""

PLANS = {
    "unknown protocol": "--protocol eq-gebc --reviewers ada",
    "named twice": "--reviewers ada Ada --overlap 1",
    "no name of a page": "--reviewers ../ada --overlap 1",
    "the first page": "--reviewers ben,Index",
    "a device of Windows": "--reviewers ben nul",
    "nobody": "--reviewers ,",
    "too few": "--reviewers ada --overlap 2",
    "no samples": "--reviewers ada ben --sample 0",
    "no queries": "--protocol picture-ranking --reviewers ada",
    "a file without use": "--protocol eq-sd-filter --reviewers ada --of FILE",
    "a list without use": "--protocol eq-sd-filter --reviewers ada --answer-list FILE",
    "order in Label Studio": "--protocol picture-ranking --reviewers ada --tool label-studio",
    "boxes in Label Studio": "--protocol vlue-boxes --reviewers ada --tool label-studio",
}
KEPT = {"task": 1, "id": "NAME", "answer": "keep"}
VOTES: dict[str, dict[str, Any]] = {
    "another dataset": {"sha256": "0" * 64},
    "another sample": {"votes": [KEPT | {"id": "zebra"}]},
    "twice": {"votes": [KEPT, KEPT | {"task": 2}]},
    "two votes": {"votes": [KEPT, KEPT | {"id": "OTHER"}]},
    "another answer": {"votes": [KEPT | {"answer": "maybe"}]},
    "an answer of another form": {"votes": [KEPT | {"answer": "given"}]},
    "below all tasks": {"votes": [KEPT | {"task": -7}]},
    "beyond all tasks": {"votes": [KEPT | {"task": 999}]},
    "a repeat alone": {"votes": [KEPT | {"is_repeat": True}]},
    "a repeat before": {"votes": [KEPT | {"is_repeat": True}, KEPT | {"task": 2}]},
    "negative seconds": {"votes": [KEPT | {"seconds": -1}]},
    "no tasks": {"tasks": -7},
    "another plan": {"plan": "another"},
    "another overlap": {"overlap": 9},
    "a negative overlap": {"overlap": -1},
    "another protocol": {"protocol": "another"},
    "another form": {"form": "rank"},
    "the same reviewer": {"reviewer": "ben"},
    "another format": {"format": "something"},
    "no reviewer": {"reviewer": " "},
}


def _reencoded(task: Any, **changes: Any) -> None:
    said = json.dumps(known(task) | changes).encode()
    task["data"]["known"] = base64.urlsafe_b64encode(said).decode()


def _value(tasks: Any, choices: list[Any]) -> None:
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = choices


EXPORTS: dict[str, Callable[[Any], Any]] = {
    "two annotations": lambda tasks: tasks[0].update(annotations=tasks[0]["annotations"] * 2),
    "two people": lambda tasks: tasks[0]["annotations"][0].update(completed_by={"id": 7}),
    "a task twice": lambda tasks: tasks.append(tasks[0]),
    "known is damaged": lambda tasks: tasks[0]["data"].update(known="%%%"),
    "known is missing": lambda tasks: tasks[0]["data"].pop("known"),
    "a form of nobody": lambda tasks: _reencoded(tasks[0], form="sing"),
    "two answers": lambda tasks: _value(tasks, ["keep", "drop"]),
    "no answer": lambda tasks: tasks[0]["annotations"][0].update(result=[]),
    "no text": lambda tasks: _value(tasks, [{"a": 1}]),
    "the short format": lambda tasks: [task.pop("annotations") for task in tasks],
    "nothing": lambda tasks: tasks.clear(),
}
A = '{name = "a", label = "A"}'
PROTOCOLS = {
    "no fields": 'form = "write"',
    "fields without use": f"fields = [{A}]",
    "no form": 'form = "sing"',
    "a field of ours": 'unit = "pictures"',
    "no seconds": "seconds = 0",
    "too many reasons": f"reasons = {list(map(str, range(10)))}",
} | {
    f"field {number}": f'form = "write"\nfields = [{A}, {field}]'
    for number, field in enumerate(
        (
            A,
            '{name = "item", label = "I"}',
            '{name = " ", label = "I"}',
            '{name = "b", label = ""}',
            '{name = "b", label = "B", never = [""]}',
            '{name = "b", label = "B", min_words = 0}',
            '{name = "a_1", label = "B", per_picture = true}, {name = "a_1_1", label = "C"}',
        )
    )
}


def votes(pairs: Path, folder: Path) -> Iterator[Case]:
    plan = planned(pairs, folder / "plan", "eq-sd-filter", "ada ben cy", "--overlap", 3)
    ben, ada = decided(plan, "ben", folder / "ben.json"), folder / "ada.json"
    names = [item for item, again in given(plan, "ada/tasks")["tasks"] if not again]
    for what, changes in VOTES.items():
        told = json.dumps(changes).replace("NAME", names[0]).replace("OTHER", names[1])
        file = decided(plan, "ada", ada, **json.loads(told))
        yield f"votes: {what}", ["import", pairs, ben, file, "--output", folder / "o"], None


def exports(pairs: Path, folder: Path) -> Iterator[Case]:
    home = projects(pairs, folder / "ls", "eq-sd-filter")
    for what, change in EXPORTS.items():
        file = exported(home, "ada", lambda data: [chosen("answer", "keep")])
        tasks = json.loads(file.read_text())
        change(tasks)
        file.write_text(json.dumps(tasks))
        yield f"export: {what}", ["import", pairs, file, "--output", folder / "o"], None


def ranks(pairs: Path, folder: Path) -> Iterator[Case]:
    plan = planned(pairs, folder / "rank", "caption-ranking", "ada ben", "--sample", 3)
    wrong: list[list[list[int]]] = [[[1, 2]], [[1, 3], [1, 2]], []]
    for number, own in enumerate(wrong):
        file = saved(plan, "ada", always({"ranks": own}))
        yield f"ranks {number}", ["import", pairs, file, "--output", folder / "o"], None
        yield f"ranks {number} of metrics", ["metrics", pairs, "--human", file], eqforge
    file = saved(plan, "ada", always({"ranks": [[1, 2], [2, 1]]}))
    for option in ("--rule weighted", "--scores s.csv", "--earlier FILE", "--answer-list FILE"):
        argv = ["import", pairs, file, "--output", folder / "o"]
        yield f"ranks with {option}", [*argv, *option.replace("FILE", str(file)).split()], None
    yield "ranks of one of two", ["metrics", pairs, "--human", file], eqforge
    alone = planned(pairs, folder / "alone", "caption-ranking", "ada")
    file = saved(alone, "ada", always({"ranks": [[1, 2], [2, 1]]}))
    scores = folder / "human.csv"
    rows = [f"{item},1,0,0,1" for item, _ in given(alone, "ada/tasks")["tasks"]]
    scores.write_text("\n".join(["sample_id,value_0,value_1,value_2,value_3", *rows]))
    yield "a model called human", ["metrics", pairs, scores, "--human", file], eqforge


def queries(pairs: Path, folder: Path) -> Iterator[Case]:
    gallery, file = built(GALLERY), folder / "q.jsonl"
    name = rows(gallery, "images")[0]["image_id"]
    for number, images in enumerate(([name, "zebra.jpg"], [name], [name, name], "")):
        file.write_text(json.dumps({"id": "a", "text": "t", "images": images}))
        argv = ["plan", gallery, "--protocol", "picture-ranking", "--reviewers", "ada"]
        yield f"query {number}", [*argv, "--of", file, "--output", folder / "o"], None


def test_every_mistake_is_one_clear_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, file = write_squares(tmp_path / "d"), tmp_path / "file"
    file.write_text("{}")
    found = {}
    for what, options in PLANS.items():
        asked = options if "--protocol" in options else f"{options} --protocol eq-sd-filter"
        argv = ["plan", pairs, *asked.replace("FILE", str(file)).split()]
        found[f"plan: {what}"] = refused([*argv, "--output", tmp_path / "o"], capsys)
    for cases in (votes, exports, ranks, queries):
        for what, argv, command in cases(pairs, tmp_path):
            found[what] = refused(argv, capsys, command)
    own = tmp_path / "own.toml"
    for what, lines in PROTOCOLS.items():
        own.write_text(f'name = "x"\nquestion = "?"\n{lines}\n')
        with pytest.raises(InputError) as error:
            protocol_of(str(own))
        found[f"protocol: {what}"] = str(error.value)

    assert not (tmp_path / "o").exists()
    told = "".join(f"{what}\n  {said}\n" for what, said in found.items())
    told = told.replace(str(tmp_path), ".").replace(str(built(GALLERY)), "GALLERY")
    told = re.sub(r"\b[0-9a-f]{12,}\b", "DIGEST", told)
    if os.environ.get("EQFORGE_SNAPSHOTS") == "write":
        SENTENCES.write_text(told, "utf-8")
    assert told == SENTENCES.read_text("utf-8")
