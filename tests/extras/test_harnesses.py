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
from collections.abc import Iterator
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


@pytest.mark.timeout(1200)
def test_lmms_eval_runs_the_task_and_prints_what_metrics_measures(
    lmms_eval: Path, tmp_path: Path
) -> None:
    dataset = pairs(tmp_path / "d", CAPTIONS)
    task = export(dataset, "lmms-eval", tmp_path / "task")
    model = ["--model", "dummy", "--model_args", "response=A", "--batch_size", 1]
    what = ["--tasks", "eqforge_eq_video", "--include_path", task, "--log_samples"]
    where = ["--output_path", tmp_path / "logs"]
    run([lmms_eval, "-m", "lmms_eval", "eval", *model, *what, *where], tmp_path)

    (log,) = (tmp_path / "logs").rglob("*_samples_*.jsonl")
    (printed,) = (tmp_path / "logs").rglob("*_results.json")
    theirs = json.loads(printed.read_text())["results"]["eqforge_eq_video"]
    numbers = measured(tmp_path, dataset, log)
    ours = values(numbers)
    assert ours == {"text": 0, "image": 0, "group": 0, "accuracy": 0.5, "says A": 1, "not read": 0}
    names = ("text", "image", "group", "accuracy")
    assert {name: ours[name] for name in names} == {name: theirs[f"{name},none"] for name in names}
    # One score for each of the three pairs, not for each of their 24 questions.
    assert theirs["group_stderr_clt,none"] == 0
    # Of one video alone there is no interval, which the harness's standard error of 0 does not say.
    assert numbers["all", "group"]["clusters"] == "1"


@pytest.mark.timeout(1200)
def test_lmms_eval_asks_a_benchmarks_questions_and_counts_their_groups(
    lmms_eval: Path, tmp_path: Path
) -> None:
    for benchmark, said in (("natural-bench", "Yes"), ("mmvp", "A")):
        folder = tmp_path / benchmark
        dataset = questions(folder, benchmark)
        task = export(dataset, "lmms-eval", folder / "task")
        name = f"eqforge_{benchmark.replace('-', '_')}"
        model = ["--model", "dummy", "--model_args", f"response={said}", "--batch_size", 1]
        what = ["--tasks", name, "--include_path", task, "--log_samples"]
        where = ["--output_path", folder / "logs"]
        run([lmms_eval, "-m", "lmms_eval", "eval", *model, *what, *where], folder)

        (log,) = (folder / "logs").rglob("*_samples_*.jsonl")
        (printed,) = (folder / "logs").rglob("*_results.json")
        theirs = json.loads(printed.read_text())["results"][name]
        ours = values(measured(folder, dataset, log))
        assert (ours["accuracy"], ours["group"]) == (0.5, 0)
        assert {metric: theirs[f"{metric},none"] for metric in ours} == ours
        assert theirs["group_stderr_clt,none"] in (0, "N/A")


@pytest.mark.timeout(1200)
def test_lmms_eval_asks_about_two_images_and_for_texts(lmms_eval: Path, tmp_path: Path) -> None:
    dataset = build(tmp_path)
    said = {"nlvr2": "False", "vqa": "the dog", "captioning": "a dog", "grounding": "0 0 0.5 0.5"}
    right = {"nlvr2": 2 / 3, "vqa": 1, "grounding": 0}
    for name, text in said.items():
        folder = tmp_path / name
        task = export_task(dataset, name, "lmms-eval", folder / "task")
        model = ["--model", "dummy", "--model_args", f"response={text}", "--batch_size", 1]
        what = ["--tasks", f"eqforge_vlue_{name}", "--include_path", task, "--log_samples"]
        where = ["--output_path", folder / "logs"]
        run([lmms_eval, "-m", "lmms_eval", "eval", *model, *what, *where], folder)
        (log,) = (folder / "logs").rglob("*_samples_*.jsonl")
        (printed,) = (folder / "logs").rglob("*_results.json")
        theirs = json.loads(printed.read_text())["results"][f"eqforge_vlue_{name}"]
        ours = values(measured(folder, dataset, log), name)
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


@pytest.mark.timeout(1200)
def test_vlmevalkit_reads_the_table_and_prints_the_accuracy_that_metrics_measures(
    vlmevalkit: Path, tmp_path: Path, service: str
) -> None:
    dataset = pairs(tmp_path / "d", CAPTIONS)
    table = export(dataset, "vlmevalkit", tmp_path / "LMUData")
    model = ["--model", "digest", "--base-url", service, "--judge", "exact_matching"]
    what = ["--data", "eqforge_eq_video", "--work-dir", tmp_path / "out"]
    run([vlmevalkit, "-m", "vlmeval.run", *model, *what], tmp_path, LMUData=str(table))

    (found,) = (tmp_path / "out").rglob("digest_eqforge_eq_video.xlsx")
    with found.with_name(f"{found.stem}_acc.csv").open() as stream:
        (theirs,) = csv.DictReader(stream)
    ours = values(measured(tmp_path, dataset, found))
    assert ours["accuracy"] == pytest.approx(float(theirs["Overall"]), abs=1e-9)
    assert ours["not read"] == 0
    assert 0 < ours["says A"] < 1


@pytest.mark.timeout(1200)
def test_vlmevalkit_asks_a_benchmarks_questions(
    vlmevalkit: Path, tmp_path: Path, service: str
) -> None:
    for benchmark, mode in (("natural-bench", "infer"), ("mmvp", "all")):
        folder = tmp_path / benchmark
        dataset = questions(folder, benchmark)
        table = export(dataset, "vlmevalkit", folder / "LMUData")
        name = f"eqforge_{benchmark.replace('-', '_')}"
        model = ["--model", "digest", "--base-url", service, "--judge", "exact_matching"]
        what = ["--data", name, "--work-dir", folder / "out", "--mode", mode]
        run([vlmevalkit, "-m", "vlmeval.run", *model, *what], folder, LMUData=str(table))
        (found,) = (folder / "out").rglob(f"digest_{name}.xlsx")
        ours = values(measured(folder, dataset, found))
        if benchmark == "natural-bench":  # the service answers letters: neither yes nor no
            assert ours == dict.fromkeys(("accuracy", "question", "image", "group"), 0)
            continue
        with found.with_name(f"{found.stem}_acc.csv").open() as stream:
            (theirs,) = csv.DictReader(stream)
        assert ours["accuracy"] == pytest.approx(float(theirs["Overall"]), abs=1e-9)


@pytest.mark.timeout(1200)
def test_vlmevalkit_asks_about_two_images_and_for_texts(
    vlmevalkit: Path, tmp_path: Path, service: str
) -> None:
    dataset = build(tmp_path)
    for task in ("nlvr2", "vqa", "captioning", "grounding"):
        folder, name = tmp_path / task, f"eqforge_vlue_{task}"
        table = export_task(dataset, task, "vlmevalkit", folder / "LMUData")
        model = ["--model", "digest", "--base-url", service, "--mode", "infer"]
        what = ["--data", name, "--work-dir", folder / "out"]
        run([vlmevalkit, "-m", "vlmeval.run", *model, *what], folder, LMUData=str(table))
        (found,) = (folder / "out").rglob(f"digest_{name}.xlsx")
        ours = values(measured(folder, dataset, found), task)  # of letters, none is right
        assert ours.get("accuracy", ours.get("CIDEr")) == 0
