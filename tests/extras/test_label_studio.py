"""Label Studio itself shows the tasks of `review plan --tool label-studio`, and exports the votes.

`make labelstudio` runs this: it installs the server into an environment of its own, or takes that
which EQFORGE_LABEL_STUDIO names.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from eqforge import cli
from eqforge.commands import review
from tests.builds import rejected, rows
from tests.evaluation.conftest import browser as browser
from tests.exported import picture
from tests.extras.environments import environment
from tests.reports import HOSTILE, given
from tests.statuses import status_of

pytestmark = [
    pytest.mark.skipif(
        "EQFORGE_LABEL_STUDIO" not in os.environ, reason="`make labelstudio` installs it"
    ),
    pytest.mark.timeout(1200),
]
PACKAGES: Final = Path(__file__).with_name("label_studio.txt")
PERSON: Final = "ada@example.org"
SECRET: Final = "a password of this test"
TOKEN: Final = "0123456789abcdef0123456789abcdef01234567"
CAPTIONS: Final = (
    HOSTILE,
    "$question {{ shown }} &amp; <b>bold</b>",
    "كوب أحمر على طاولة 😀",
    "s3://bucket/key?d=../../etc/passwd",
)
NOTE: Final = "न साफ़ ✓ <b>"
PAIRS: Final = 12

main = status_of(cli.main)


class Server:
    """A server of Label Studio that runs.

    Args:
      url: where.
      root: the folder that it serves pictures from.
    """

    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self.root = root

    def fetch(self, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        kind = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, kind)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def ask(self, path: str, body: Any = None) -> Any:
        return json.loads(self.fetch(path, body))

    def project(self, home: Path, reviewer: str, *, synced: bool) -> int:
        """Makes a reviewer's project as index.html says, or by an import; returns its number."""
        config = (home / "config.xml").read_text()
        about = {"title": f"review of {reviewer}", "label_config": config}
        project: int = self.ask("/api/projects/", about)["id"]
        tasks = home / f"tasks-{reviewer}.json"
        where = {"path": str(home), "regex_filter": re.escape(tasks.name), "use_blob_urls": False}
        storage = self.ask("/api/storages/localfiles", {"project": project, **where})
        if synced:
            found = self.ask(f"/api/storages/localfiles/{storage['id']}/sync", {})
            assert found["status"] == "completed"
        else:
            self.ask(f"/api/projects/{project}/import", json.loads(tasks.read_text()))
        return project

    def tasks(self, project: int) -> list[Any]:
        found = self.ask(f"/api/tasks?project={project}&page_size=100&fields=all")["tasks"]
        return sorted(found, key=lambda task: task["id"])

    def export(self, project: int, path: Path, form: str = "JSON") -> Path:
        path.write_bytes(self.fetch(f"/api/projects/{project}/export?exportType={form}"))
        return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a database of its own, which asks nobody for news."""
    folder = tmp_path_factory.mktemp("label-studio")
    named = Path(os.environ["EQFORGE_LABEL_STUDIO"])
    programs = named / "bin"
    if not named.is_absolute():
        programs = environment(folder / "venv", "-r", PACKAGES)
    root = folder / "root"
    root.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    own |= {
        "HOME": str(folder),
        "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(root),
        "LATEST_VERSION_CHECK": "false",
        "COLLECT_ANALYTICS": "false",
    }
    where = ["--internal-host", "127.0.0.1", "--port", str(port), "--data-dir", folder / "data"]
    who = ["--username", PERSON, "--password", SECRET, "--user-token", TOKEN]
    command = [programs / "label-studio", "start", "--no-browser", "--enable-legacy-api-token"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*map(str, [*command, *where, *who])],
            env=own,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        found = Server(f"http://127.0.0.1:{port}", root)
        wait(found, process, folder / "log")
        yield found
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder / "venv", ignore_errors=True)


def wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(960):  # half a minute alone, minutes beside other tests
        assert process.poll() is None, log.read_text()
        try:
            server.fetch("/health")
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("d"))


def imported(folder: Path, *options: str) -> Path:
    """An import of pairs with hostile captions."""
    for number in range(PAIRS):
        (folder / f"{number}.png").write_bytes(picture(number))
    lines = [
        {
            "id": str(number),
            "image_0": f"{number}.png",
            "image_1": f"{(number + 1) % PAIRS}.png",
            "caption_0": f"{number} {CAPTIONS[number % len(CAPTIONS)]}",
            "caption_1": f"{number} {CAPTIONS[(number + 1) % len(CAPTIONS)]}",
        }
        for number in range(PAIRS)
    ]
    source = folder / "pairs.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = ["import", "own-pairs", str(source), "--images", str(folder)]
    assert main([*command, "--output", str(folder / "in"), *options]) == 0
    return folder / "in"


def planned(dataset: Path, output: Path, *options: str) -> Path:
    who = ["--protocol", "eq-sd-filter", "--reviewers", "ada,ben", *options]
    assert review.main(["plan", str(dataset), *who, "--output", str(output)]) == 0
    return output


def served(server: Server, dataset: Path, folder: Path, *options: str) -> Path:
    plan = planned(dataset, folder, "--tool", "label-studio", *options)
    (made,) = plan.glob("data/review-*")
    shutil.copytree(made, server.root / made.name, dirs_exist_ok=True)
    return server.root / made.name


def taken(dataset: Path, output: Path, *votes: Path) -> tuple[bytes, bytes]:
    """Imports votes; returns the bytes of the decisions and of all answers."""
    answers = output.with_suffix(".answers")
    command = ["import", str(dataset), *map(str, votes), "--output", str(output)]
    assert review.main([*command, "--answers", str(answers)]) == 0
    return output.read_bytes(), answers.read_bytes()


def answer(reviewer: str, number: int, reasons: list[str]) -> dict[str, Any] | None:
    """What somebody answers on a task; None where they skip it."""
    if number == 2:
        return None
    if number % 3 == 0:
        return {"answer": "drop", "reason": reasons[number % len(reasons)], "note": NOTE}
    return {"answer": "unsure" if (reviewer, number) == ("ben", 4) else "keep"}


def annotation(said: dict[str, Any] | None, reasons: list[str]) -> dict[str, Any]:
    """An answer as Label Studio takes it."""
    if said is None:
        return {"was_cancelled": True, "lead_time": 9.0, "result": []}
    chosen = {"answer": said["answer"]}
    if "reason" in said:
        chosen["reason"] = str(1 + reasons.index(said["reason"]))
    result: list[dict[str, Any]] = [
        {"from_name": name, "to_name": "shown", "type": "choices", "value": {"choices": [value]}}
        for name, value in chosen.items()
    ]
    if "note" in said:
        note = {"from_name": "note", "to_name": "shown", "type": "textarea"}
        result.append({**note, "value": {"text": [said["note"]]}})
    return {"lead_time": 2.53, "result": result}


@pytest.mark.timeout(1200)
def test_votes_in_label_studio_decide_as_votes_on_pages_do(
    server: Server, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = planned(dataset, tmp_path / "pages")
    home = served(server, dataset, tmp_path / "plan")
    pictures = {row["image_id"]: row["image"]["bytes"] for row in rows(dataset, "images")}
    exports, files = [], []
    for reviewer in ("ada", "ben"):
        known = given(pages, f"{reviewer}/tasks")
        project = server.project(home, reviewer, synced=reviewer == "ada")
        tasks = server.tasks(project)
        assert len(tasks) == len(known["tasks"]) == PAIRS + 1
        votes = []
        for number, (task, (item, again)) in enumerate(zip(tasks, known["tasks"], strict=True), 1):
            addresses = re.findall(r'img src="([^"]*)"', task["data"]["shown"])
            assert len(addresses) == 2
            for address in addresses:
                name = Path(address).stem
                assert hashlib.sha256(server.fetch(address)).hexdigest() == name in pictures
            said = answer(reviewer, number, known["reasons"])
            body = annotation(said, known["reasons"])
            server.ask(f"/api/tasks/{task['id']}/annotations/", body)
            if said is not None:
                vote = {"task": number, "id": item, "is_repeat": again, "seconds": 2.5}
                votes.append({**vote, **said})
        exports.append(server.export(project, tmp_path / f"{reviewer}.json"))
        named = ("dataset", "sha256", "protocol", "plan", "reviewer", "overlap")
        form = {"format": "eqforge votes", "format_version": 1, "tasks": len(tasks)}
        form |= {name: known[name] for name in named}
        files.append(tmp_path / f"votes-{reviewer}.json")
        files[-1].write_text(json.dumps({**form, "votes": votes}))

    theirs = taken(dataset, tmp_path / "theirs.jsonl", *exports)
    assert theirs == taken(dataset, tmp_path / "ours.jsonl", *files)
    # One of each is as good.
    assert theirs == taken(dataset, tmp_path / "both.jsonl", exports[0], files[1])
    assert NOTE in theirs[1].decode()
    dropped = {
        line["id"]
        for line in map(json.loads, theirs[0].decode().splitlines())
        if line["decision"] == "drop"
    }
    assert dropped
    (tmp_path / "again").mkdir()
    again = imported(tmp_path / "again", "--decisions", str(tmp_path / "theirs.jsonl"))
    assert set(rejected(again, "human")) == dropped

    short = server.export(project, tmp_path / "short.json", "JSON_MIN")
    with pytest.raises(SystemExit):
        taken(dataset, tmp_path / "none.jsonl", short)
    assert "(not JSON-MIN)" in " ".join(capsys.readouterr().err.split())


@pytest.mark.timeout(1200)
def test_the_server_takes_ranks_and_texts(server: Server, dataset: Path, tmp_path: Path) -> None:
    rank = {f"rank_{row}_{column}": str(1 + column) for row in (0, 1) for column in (0, 1)}
    text = {f"text_{number}": f"what is {number}?" for number in range(3)}
    for protocol, said in (("caption-ranking", rank), ("vlue-questions", text)):
        home = served(server, dataset, tmp_path / protocol, "--protocol", protocol)
        project = server.project(home, "ada", synced=False)
        kind = "choices" if said is rank else "textarea"
        result = [
            {
                **{"from_name": name, "to_name": "shown", "type": kind},
                "value": {"choices" if said is rank else "text": [value]},
            }
            for name, value in said.items()
        ]
        for task in server.tasks(project):
            body = {"result": result, "lead_time": 1.0}
            server.ask(f"/api/tasks/{task['id']}/annotations/", body)
        export = server.export(project, tmp_path / f"{protocol}.json")
        _, answers = taken(dataset, tmp_path / f"{protocol}.jsonl", export)
        for line in map(json.loads, answers.decode().splitlines()):
            assert line["answer"] == "given"
            if said is rank:
                assert sorted(map(sorted, line["ranks"])) == [[1, 2], [1, 2]]
            else:
                assert line["texts"].keys() == {"question", "answer_0", "answer_1"}
                assert sorted(line["texts"].values()) == sorted(text.values())


@pytest.mark.timeout(1200)
def test_pictures_are_shown_to_the_projects_of_their_plan_alone(
    server: Server, dataset: Path, tmp_path: Path
) -> None:
    (server.root / "secret.png").write_bytes(picture(99))
    home = served(server, dataset, tmp_path / "plan")
    server.project(home, "ada", synced=False)

    for path in ("secret.png", f"{home.name}/../secret.png", f"{home.name}/pictures/../../x.png"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            server.fetch(f"/data/local-files/?d={path}")


@pytest.mark.timeout(1200)
def test_a_reviewer_sees_pictures_and_captions_and_answers_with_keys(
    server: Server, dataset: Path, browser: Any, tmp_path: Path
) -> None:
    home = served(server, dataset, tmp_path / "plan")
    project = server.project(home, "ada", synced=True)
    captions = {row["caption_0"] for row in rows(dataset, "samples")}
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page, wrong = context.new_page(), []
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.goto(f"{server.url}/user/login/")
    page.fill("input[name=email]", PERSON)
    page.fill("input[name=password]", SECRET)
    page.click("button[type=submit]")
    page.wait_for_url("**/")
    page.goto(f"{server.url}/projects/{project}/data?labeling=1")
    shown = page.frame_locator("iframe").first
    shown.locator("figure").nth(1).wait_for()
    for number in range(2):
        image = shown.locator("img").nth(number)
        image.evaluate("image => image.decode()")
        assert image.evaluate("image => image.naturalWidth") == 24
    assert shown.locator("figure .text").count() == 2
    told = {text.strip() for text in shown.locator("figure .text").all_text_contents()}
    assert len(told & captions) == 1
    assert "eqforge" not in page.inner_text("body")
    if shots := os.environ.get("EQFORGE_LABEL_STUDIO_SHOTS"):
        page.screenshot(path=f"{shots}/task.png")
    page.keyboard.press("d")
    page.keyboard.press("2")
    page.fill("textarea", NOTE)
    with page.expect_response(re.compile("/annotations")):
        page.locator("button", has_text="Submit").first.click()
    context.close()

    assert wrong == []
    export = server.export(project, tmp_path / "ada.json")
    _, answers = taken(dataset, tmp_path / "d.jsonl", export)
    (vote,) = map(json.loads, answers.decode().splitlines())
    assert (vote["answer"], vote["note"]) == ("drop", NOTE)
    assert vote["reason"] == "more than one thing changes"
    assert 0 < vote["seconds"] < 300
