"""Plans of reviews, and the files of votes that reviewers save on their pages."""

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from eqforge.commands import review
from tests.reports import given

Answer = Callable[[str, dict[str, Any]], Mapping[str, Any] | None]
"""What a reviewer says of an item, by its id and what is shown of it; None where they skip it."""


def planned(dataset: Path, output: Path, protocol: str, reviewers: str, *more: object) -> Path:
    argv = ["plan", str(dataset), "--protocol", protocol, "--reviewers", *reviewers.split()]
    assert review.main([*argv, "--output", str(output), *map(str, more)]) == 0
    return output


def saved(folder: Path, reviewer: str, answer: Answer, /, **changes: Any) -> Path:
    """What the page of a reviewer saves who answers every item."""
    tasks = given(folder, f"{reviewer}/tasks")
    votes = []
    for n, (item, again) in enumerate(tasks["tasks"], start=1):
        shown = given(folder, f"{reviewer}/items/{(n - 1) // tasks['chunk']}")
        found = answer(item, shown[(n - 1) % tasks["chunk"]])
        said = {"answer": "skipped"} if found is None else {"answer": "given", **found}
        votes.append({"task": n, "id": item, "is_repeat": again, **said})
    named = ("dataset", "sha256", "protocol", "plan", "reviewer", "overlap", "form", "of", "fields")
    known = {name: tasks[name] for name in named}
    about = {"format": "eqforge votes", "format_version": 1, "tasks": len(votes)}
    path = folder.parent / f"{folder.name}-{reviewer}.json"
    path.write_text(json.dumps({**about, **known, "votes": votes, **changes}))
    return path


def decided(
    folder: Path, reviewer: str, path: Path, bad: Collection[str] = (), /, **changes: Any
) -> Path:
    """The file of a reviewer who drops some samples and keeps the others."""

    def answer(item: str, shown: dict[str, Any]) -> Mapping[str, Any]:
        return {"answer": "drop" if item in bad else "keep"}

    return saved(folder, reviewer, answer, **changes).rename(path)


def always(said: Mapping[str, Any] | None) -> Answer:
    return lambda item, shown: said


def taken(dataset: Path, files: list[Path], output: Path, *more: object) -> list[dict[str, Any]]:
    argv = ["import", str(dataset), *map(str, files), "--output", str(output), *map(str, more)]
    assert review.main(argv) == 0
    return [json.loads(line) for line in output.read_text("utf-8").splitlines()]


def refused(argv: list[object], capsys: pytest.CaptureFixture[str], command: Any = None) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        raise SystemExit((command or review.main)(list(map(str, argv))))
    assert ended.value.code == 2
    return " ".join(capsys.readouterr().err.split())
