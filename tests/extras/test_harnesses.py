"""The evaluation harnesses themselves run what is exported, and print what eqforge measures.

`make harnesses` runs this: it installs them without what they share with the extra `models`, which
they find here.
"""

import csv
import hashlib
import json
import os
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.harnesses.test_table import measured, values
from tests.extras.environments import environment
from tests.transforms.export.test_harness_tasks import export, pairs, questions
from tests.transforms.export.test_vlue_tasks import build, export_task

pytestmark = pytest.mark.skipif(
    "EQFORGE_HARNESSES" not in os.environ, reason="`make harnesses` installs them"
)

LMMS_EVAL = (
    *("lmms_eval==0.7.3", "chardet==6.0.0.post1", "DataProperty==1.1.1", "evaluate==0.4.6"),
    *("loguru==0.7.3", "lxml==6.1.3", "mbstrdecoder==1.1.5", "pathvalidate==3.3.1"),
    *("portalocker==4.4.2", "pytablewriter==1.2.1", "sacrebleu==2.6.0", "tabledata==1.3.5"),
    *("tabulate==0.10.0", "tcolorpy==0.1.7", "typepy==1.3.5"),
)
VLMEVALKIT = (
    *("ms_vlmeval==0.0.20", "antlr4-python3-runtime==4.11.1", "decord==0.6.0", "jieba==0.42.1"),
    *("et_xmlfile==2.0.0", "json_repair==0.64.6", "latex2sympy2_extended==1.11.0"),
    *("levenshtein==0.27.5", "math_verify==0.9.0", "num2words==0.5.14", "openai==3.54.0"),
    *("openpyxl==3.1.5", "portalocker==4.4.2", "pylatexenc==2.11", "qwen_vl_utils==0.0.14"),
    *("rouge==1.0.1", "sty==1.0.6", "tabulate==0.10.0", "termcolor==3.3.0"),
    *("timeout_decorator==0.5.0", "validators==0.36.0", "xlsxwriter==3.3.1"),
)
"""What each needs beyond this environment to run this; with all it asks for, pip installs 10 GB."""

CAPTIONS = tuple(f"a {colour} cup on a table" for colour in ("red", "blue", "green", "white"))


def install(home: Path, packages: tuple[str, ...]) -> Path:
    """Makes an environment with packages, which sees those of this one; returns its Python."""
    programs = environment(home, "--no-deps", *packages)
    (site,) = (home / "lib").glob("python3*/site-packages")
    (site / "seen.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs / "python"


@pytest.fixture(scope="module")
def lmms_eval(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("lmms-eval"), LMMS_EVAL)


@pytest.fixture(scope="module")
def vlmevalkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("vlmevalkit"), VLMEVALKIT)


def run(command: list[Any], folder: Path, **environment: str) -> str:
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    found = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=os.environ | offline | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def evaluated(python: Path, folder: Path, said: str, *names: str) -> dict[str, tuple[Path, Any]]:
    """Log and printed results of each task below a folder; the model always says the same."""
    tasks = [f"eqforge_{name}" for name in names]
    model = ["--model", "dummy", "--model_args", f"response={said}", "--batch_size", 1]
    what = ["--tasks", ",".join(tasks), "--include_path", folder, "--log_samples"]
    where = ["--output_path", folder / "logs"]
    run([python, "-m", "lmms_eval", "eval", *model, *what, *where], folder)
    (printed,) = (folder / "logs").rglob("*_results.json")
    results = json.loads(printed.read_text())["results"]
    found = {}
    for name, task in zip(names, tasks, strict=True):
        (log,) = (folder / "logs").rglob(f"*_samples_{task}.jsonl")
        found[name] = (log, results[task])
    return found


@pytest.mark.timeout(1200)
def test_lmms_eval_runs_the_task_and_prints_what_metrics_measures(
    lmms_eval: Path, tmp_path: Path
) -> None:
    datasets = {
        "eq_video": pairs(tmp_path / "d", CAPTIONS),
        "mmvp": questions(tmp_path / "q", "mmvp"),
    }
    for name, dataset in datasets.items():
        export(dataset, "lmms-eval", tmp_path / "tasks" / name)
    found = evaluated(lmms_eval, tmp_path / "tasks", "A", *datasets)

    log, theirs = found["eq_video"]
    numbers = measured(tmp_path, datasets["eq_video"], log)
    ours = values(numbers)
    assert ours == {"text": 0, "image": 0, "group": 0, "accuracy": 0.5, "says A": 1, "not read": 0}
    names = ("text", "image", "group", "accuracy")
    assert {name: ours[name] for name in names} == {name: theirs[f"{name},none"] for name in names}
    # One score for each of the three pairs, not for each of their 24 questions.
    assert theirs["group_stderr_clt,none"] == 0
    # Of one video alone there is no interval, which the harness's standard error of 0 does not say.
    assert numbers["all", "group"]["clusters"] == "1"
    check_groups(*found["mmvp"], datasets["mmvp"], tmp_path / "mmvp")


def check_groups(log: Path, theirs: Any, dataset: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    ours = values(measured(folder, dataset, log))
    assert (ours["accuracy"], ours["group"]) == (0.5, 0)
    assert {metric: theirs[f"{metric},none"] for metric in ours} == ours
    assert theirs["group_stderr_clt,none"] in (0, "N/A")


@pytest.mark.timeout(1200)
def test_lmms_eval_asks_about_two_images_and_for_texts(lmms_eval: Path, tmp_path: Path) -> None:
    dataset = build(tmp_path)
    right = {"nlvr2": 2 / 3, "vqa": 1, "grounding": 0}
    for text, names in (
        ("False", ("nlvr2",)),
        ("the dog", ("vqa", "captioning")),
        ("0 0 0.5 0.5", ("grounding",)),
    ):
        folder = tmp_path / names[0]
        for name in names:
            export_task(dataset, name, "lmms-eval", folder / name)
        found = evaluated(lmms_eval, folder, text, *(f"vlue_{name}" for name in names))
        for name in names:
            log, theirs = found[f"vlue_{name}"]
            (folder / f"of {name}").mkdir()
            ours = values(measured(folder / f"of {name}", dataset, log), name)
            if name == "captioning":
                assert ours["BLEU-1"] > 0
            else:
                assert ours["accuracy"] == pytest.approx(right[name])
            metric = "accuracy" if name == "nlvr2" else "answered"
            assert theirs[f"{metric},none"] == pytest.approx(right[name] if name == "nlvr2" else 1)


class _Model(BaseHTTPRequestHandler):
    """Answers A or B by all that it is shown, as a service with OpenAI's interface."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        shown = json.dumps(body["messages"]).encode()
        letter = "AB"[hashlib.sha256(shown).digest()[0] % 2]
        message = {"role": "assistant", "content": letter}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        about = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"]}
        answer = json.dumps(about | {"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def service() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture
def asked(vlmevalkit: Path, tmp_path: Path, service: str) -> Callable[..., Path]:
    """Runs VLMEvalKit over the tables below a folder; returns what finds its answers."""

    def ask(tables: Path, mode: str, *names: str) -> Path:
        every = tmp_path / "LMUData"
        every.mkdir()
        for file in tables.rglob("*.tsv"):
            file.rename(every / file.name)
        model = ["--model", "digest", "--base-url", service, "--judge", "exact_matching"]
        what = ["--data", *(f"eqforge_{name}" for name in names), "--mode", mode]
        command = [vlmevalkit, "-m", "vlmeval.run", *model, *what, "--work-dir", tmp_path / "out"]
        run(command, tmp_path, LMUData=str(every))
        return tmp_path / "out"

    return ask


def answers(out: Path, name: str) -> Path:
    (found,) = out.rglob(f"digest_eqforge_{name}.xlsx")
    return found


@pytest.mark.timeout(1200)
def test_vlmevalkit_reads_the_table_and_prints_the_accuracy_that_metrics_measures(
    asked: Callable[..., Path], tmp_path: Path
) -> None:
    datasets = {
        "eq_video": pairs(tmp_path / "d", CAPTIONS),
        "mmvp": questions(tmp_path / "q", "mmvp"),
    }
    for name, dataset in datasets.items():
        export(dataset, "vlmevalkit", tmp_path / "tables" / name)
    out = asked(tmp_path / "tables", "all", *datasets)

    for name, dataset in datasets.items():
        found = answers(out, name)
        with found.with_name(f"{found.stem}_acc.csv").open() as stream:
            (theirs,) = csv.DictReader(stream)
        (tmp_path / f"of {name}").mkdir()
        ours = values(measured(tmp_path / f"of {name}", dataset, found))
        assert ours["accuracy"] == pytest.approx(float(theirs["Overall"]), abs=1e-9)
        if name == "eq_video":
            assert ours["not read"] == 0
            assert 0 < ours["says A"] < 1


@pytest.mark.timeout(1200)
def test_vlmevalkit_asks_about_two_images_and_for_texts(
    asked: Callable[..., Path], tmp_path: Path
) -> None:
    tasks = ("nlvr2", "vqa", "captioning", "grounding")
    dataset, other = build(tmp_path / "v"), questions(tmp_path / "q", "natural-bench")
    for task in tasks:
        export_task(dataset, task, "vlmevalkit", tmp_path / "tables" / task)
    export(other, "vlmevalkit", tmp_path / "tables" / "natural_bench")
    names = [*(f"vlue_{task}" for task in tasks), "natural_bench"]
    out = asked(tmp_path / "tables", "infer", *names)

    # The service answers letters: none is right, and none is yes or no.
    for task in tasks:
        (tmp_path / f"of {task}").mkdir()
        found = measured(tmp_path / f"of {task}", dataset, answers(out, f"vlue_{task}"))
        ours = values(found, task)
        assert ours.get("accuracy", ours.get("CIDEr")) == 0
    (tmp_path / "of others").mkdir()
    ours = values(measured(tmp_path / "of others", other, answers(out, "natural_bench")))
    assert ours == dict.fromkeys(("accuracy", "question", "image", "group"), 0)
