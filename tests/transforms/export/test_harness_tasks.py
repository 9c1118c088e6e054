"""What evaluation harnesses are given: every question whole, and nothing of a dataset as code."""

import ast
import base64
import csv
import hashlib
import importlib.util
import inspect
import io
import json
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from eqforge.cli import main as command
from eqforge.core.identity import sha256_hex
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.records import lettered
from eqforge.schemas.records.questions import Question, form_of
from tests.made_datasets import built, image_rows, picture, write_dataset, write_pairs
from tests.published import SOURCES
from tests.statuses import status_of

main = status_of(command)

HOSTILE = (
    'a "quoted"\ttab, and a\nline',
    "{{ doc }} {%raw%} {caption_1}",
    "!function os.system",
    "=1+1",
    "杯子在桌上 🏺",
    "__import__('os').system('true')",
)


def pairs(
    folder: Path, captions: Sequence[str] = HOSTILE, images: Sequence[int] = (), **how: Any
) -> Path:
    """Pairs of the captions' neighbours; the second has no source."""
    pictures = [picture(number) for number in (images or range(len(captions)))]
    ids = list(map(sha256_hex, pictures))
    samples = [
        {
            "sample_id": f"made/{number}",
            "source_id": "v",
            "split": "test",
            **{f"caption_{place}": captions[number + place] for place in (0, 1)},
            **{f"image_{place}_id": ids[number + place] for place in (0, 1)},
        }
        for number in range(len(captions) - 1)
    ]
    tables = {"samples": samples, "images": image_rows(dict(zip(ids, pictures, strict=True)))}
    return write_pairs(folder, tables, **how)


def foils(folder: Path, negative: str = "a dog") -> Path:
    data = picture(1)
    sample = {"sample_id": "f", "image": "1.png", "image_id": sha256_hex(data), "split": "test"}
    texts = {"caption": "a cat", "hard_positive": "one cat", "hard_negative": negative}
    tables = {"samples": [sample | texts], "images": image_rows({sha256_hex(data): data})}
    return write_dataset(folder, "hard-positives", tables, files=1)


def questions(folder: Path, benchmark: str = "natural-bench") -> Path:
    """Questions in groups: NaturalBench's two on two images each, or a pair of MMVP's."""
    source = folder / "source"
    source.mkdir(parents=True)
    names = {
        "natural-bench": [f"{group}-{side}.jpg" for group in (1, 2) for side in (0, 1)],
        "mmvp": ["MMVP Images/1.jpg", "MMVP Images/2.jpg"],
    }
    for number, name in enumerate(names[benchmark]):
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (50 * number, 90, 20)).save(path, "JPEG")
    SOURCES[benchmark](source)
    command = ["import", benchmark, str(source), "--images", str(folder / "images")]
    assert main([*command, "--output", str(folder / "d")]) == 0
    return folder / "d"


def asked(dataset: Path) -> list[Question]:
    found = open_dataset(str(dataset))
    form = form_of(set(found.columns("samples")), "")
    rows = sorted(found.rows("samples", ["sample_id", *form.columns]), key=lambda r: r["sample_id"])
    return [question for row in rows for question in form.questions(row)]


def export(dataset: Path, name: str, output: Path) -> Path:
    assert main(["export", str(dataset), "--format", name, "--output", str(output)]) == 0
    return output


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def rows_of_task(folder: Path) -> list[dict[str, Any]]:
    """The rows of the files that a task names, in order."""
    (settings,) = folder.glob("*.yaml")
    task = yaml.safe_load(settings.read_text())
    paths = task["dataset_kwargs"]["data_files"]["test"]
    return [row for path in paths for row in pq.read_table(folder / path).to_pylist()]


def functions(folder: Path) -> Any:
    """The module as lmms-eval imports it."""
    spec = importlib.util.spec_from_file_location("utils", folder / "utils.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("make", [pairs, foils])
def test_a_task_of_lmms_eval_has_every_question(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    dataset = make(tmp_path / "d")
    rows = rows_of_task(export(dataset, "lmms-eval", tmp_path / "task"))
    questions = asked(dataset)
    assert len(rows) == len(questions)
    for row, question in zip(rows, questions, strict=True):
        shown = [row[name] for name in ("image_0", "image_1") if row[name] is not None]
        assert tuple(hashlib.sha256(image["bytes"]).hexdigest() for image in shown) == (
            question.images
        )
        found = {name: row[name] for name in ("question_id", "asks", "question", "answer")}
        assert found == {name: getattr(question, name) for name in found}
        assert (row["A"], row["B"]) == question.options
        assert (row["sample_id"], row["cluster"]) == (
            question.sample_id,
            "v" if make is pairs else "1.png",
        )
        counts_in = {"group": [question.sample_id, 8 if make is pairs else 4]}
        if make is pairs:
            counts_in[question.asks] = [question.sample_id, 4]
        assert json.loads(row["counts_in"]) == counts_in


def test_the_settings_are_those_of_every_dataset_and_the_name_is_letters(tmp_path: Path) -> None:
    task = export(pairs(tmp_path / "d"), "lmms-eval", tmp_path / "task")
    (settings,) = task.glob("*.yaml")
    assert settings.name == "eqforge_eq_video.yaml"
    assert yaml.safe_load(settings.read_text()) == {
        "include": "_default_template_yaml",
        "task": "eqforge_eq_video",
        "dataset_kwargs": {"data_files": {"test": ["data/test-00000-of-00001.parquet"]}},
    }
    assert (task / "utils.py").read_text() == inspect.getsource(lettered)
    imported = {
        alias.name
        for node in ast.walk(ast.parse((task / "utils.py").read_text()))
        for alias in getattr(node, "names", ())
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= {"re", "Any"} | sys.stdlib_module_names
    everything = b"".join(data for name, data in contents(task).items() if "data/" not in name)
    assert not [text for text in HOSTILE if text.encode() in everything]


def test_the_functions_count_as_metrics_does(tmp_path: Path) -> None:
    task = export(pairs(tmp_path / "d"), "lmms-eval", tmp_path / "task")
    utils, rows = functions(task), rows_of_task(task)
    template = (task / "_default_template_yaml").read_text().replace("!function ", "")
    named = yaml.safe_load(template)
    assert utils.text(rows[0]).splitlines()[0] == "Which caption describes the image?"

    def run(answer: Callable[[Mapping[str, Any]], str]) -> dict[str, float]:
        found = [utils.results(row, [answer(row)]) for row in rows]
        return {
            metric["metric"]: getattr(utils, metric["aggregation"].removeprefix("utils."))(
                [one[metric["metric"]] for one in found if metric["metric"] in one]
            )
            for metric in named["metric_list"]
            if metric["metric"] in {name for one in found for name in one}
        }

    nothing = {"text": 0, "image": 0, "group": 0}
    assert run(lambda row: "A") == {"accuracy": 0.5} | nothing
    assert run(lambda row: row["answer"]) == dict.fromkeys(("accuracy", *nothing), 1)
    first = rows[0]["sample_id"]
    half = run(lambda row: row["answer"] if row["sample_id"] == first else "?")
    assert half == dict.fromkeys(("accuracy", *nothing), 1 / 5)


def test_questions_of_a_benchmark_count_in_their_groups(tmp_path: Path) -> None:
    dataset = questions(tmp_path)
    task = export(dataset, "lmms-eval", tmp_path / "task")
    utils, rows = functions(task), rows_of_task(task)
    found = {one.question_id: one for one in asked(dataset)}
    assert {row["question_id"] for row in rows} == set(found)
    assert len(rows) == 8
    for row in rows:
        question = found[row["question_id"]]
        assert utils.text(row) == question.question
        assert question.question.endswith("? Please answer Yes or No.")
        assert (row["answer"], row["asks"]) == (question.answer, "answer")
        assert row["image_1"] is None
        counts = {metric: size for metric, (_, size) in json.loads(row["counts_in"]).items()}
        assert counts == {"question": 2, "image": 2, "group": 4}
    assert len({row["cluster"] for row in rows}) == 2

    def run(answer: Callable[[Mapping[str, Any]], str]) -> dict[str, float]:
        results = [utils.results(row, [answer(row)]) for row in rows]
        metrics = ("question", "image", "group")
        shares = {name: utils.right_in_all([one[name] for one in results]) for name in metrics}
        return shares | {"accuracy": utils.accuracy([one["accuracy"] for one in results])}

    blind = {"question": 0, "image": 0, "group": 0, "accuracy": 0.5}
    assert run(lambda row: "Yes") == run(lambda row: "No.") == blind
    assert run(lambda row: row["answer"]) == dict.fromkeys(blind, 1)
    one = rows[0]["question_id"]
    mixed = run(lambda row: "perhaps" if row["question_id"] == one else row["answer"])
    assert mixed == {"question": 3 / 4, "image": 3 / 4, "group": 1 / 2, "accuracy": 7 / 8}


@pytest.mark.parametrize(
    ("benchmark", "columns", "options"),
    [("natural-bench", [], []), ("mmvp", ["A", "B"], ["Open", "Not (yet) open"])],
)
def test_a_table_of_vlmevalkit_has_options_where_questions_have_them(
    tmp_path: Path, benchmark: str, columns: list[str], options: list[str]
) -> None:
    dataset = questions(tmp_path, benchmark)
    (path,) = export(dataset, "vlmevalkit", tmp_path / "t").glob("*.tsv")
    rows, found = table(path), {one.question_id: one for one in asked(dataset)}
    about = ["answer", "category", "sample_id", "cluster", "image"]
    assert list(rows[0]) == ["index", "question", *columns, *about]
    assert {row["index"] for row in rows} == set(found)
    for row in rows:
        question = found[row["index"]]
        assert (row["question"], row["answer"]) == (question.question, question.answer)
        assert [row[letter] for letter in columns] == options


def test_hugging_faces_datasets_open_the_table_with_pictures(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    task = export(pairs(tmp_path / "d"), "lmms-eval", tmp_path / "task")
    files = {"test": [str(path) for path in (task / "data").iterdir()]}
    found = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))
    utils = functions(task)
    shown = [utils.visual(row) for row in found["test"]]
    assert [len(images) for images in shown] == [1, 1, 1, 1, 2, 2, 2, 2] * 5
    assert {image.size for images in shown for image in images} == {(40, 30)}


def table(path: Path) -> list[dict[str, str]]:
    before = csv.field_size_limit(1 << 24)
    try:
        with path.open(newline="") as stream:
            return list(csv.DictReader(stream, delimiter="\t"))
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize("make", [pairs, foils])
def test_a_table_of_vlmevalkit_has_every_question(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    dataset = make(tmp_path / "d")
    (path,) = export(dataset, "vlmevalkit", tmp_path / "t").glob("*.tsv")
    rows, questions = table(path), asked(dataset)
    by_index = {row["index"]: row for row in rows}
    assert len(by_index) == len(rows) == len(questions)
    for row, question in zip(rows, questions, strict=True):
        assert (row["index"], row["question"], row["answer"]) == (
            question.question_id,
            question.question,
            question.answer,
        )
        assert (row["A"], row["B"], row["category"]) == (*question.options, question.asks)
        image = by_index[row["image"]]["image"] if len(row["image"]) <= 64 else row["image"]
        images = ast.literal_eval(image) if image.startswith("[") else [image]
        decoded = [base64.b64decode(one, validate=True) for one in images]
        assert tuple(map(sha256_hex, decoded)) == question.images
        assert all(Image.open(io.BytesIO(data)).size == (40, 30) for data in decoded)


def test_a_folder_of_clip_benchmark_has_the_true_caption_first(tmp_path: Path) -> None:
    folder = export(foils(tmp_path / "d"), "clip-benchmark", tmp_path / "out")
    texts = {name: data.decode() for name, data in contents(folder).items() if ".txt" in name}
    assert texts == {"dataset_type.txt": "retrieval\n", "test/nshards.txt": "1\n"}
    with tarfile.open(folder / "test" / "0.tar") as archive:
        found = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
    image, captions = found
    assert (image.split(".")[0], image.split(".")[1]) == (captions.split(".")[0], "png")
    assert found == {image: picture(1), captions: b"a cat\na dog\n"}


@pytest.mark.parametrize("name", ["lmms-eval", "vlmevalkit"])
def test_the_same_rows_give_the_same_bytes_in_however_many_files(tmp_path: Path, name: str) -> None:
    one, three = pairs(tmp_path / "1", files=1), pairs(tmp_path / "3", files=3, group_rows=1)
    found = [contents(export(d, name, tmp_path / f"{d.name}-{name}")) for d in (one, three)]
    notes = [json.loads(each.pop("eqforge-export.json")) for each in found]
    assert found[0] == found[1]
    assert notes[0]["files"] == notes[1]["files"]


def test_a_single_pair_and_equal_captions_are_asked_too(tmp_path: Path) -> None:
    dataset = pairs(tmp_path / "d", ["same", "same"])
    rows = rows_of_task(export(dataset, "lmms-eval", tmp_path / "task"))
    assert len({row["question_id"] for row in rows}) == 8


def _free(folder: Path) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "a.png").write_bytes(picture(1))
    line = {"id": "a", "question": "What is it?", "answer": "a dog", "image": "a.png"}
    (folder / "q.jsonl").write_text(json.dumps(line))
    command = ["import", "own-questions", str(folder / "q.jsonl")]
    places = ["--images", str(folder / "images"), "--output", str(folder / "d")]
    assert main([*command, *places]) == 0
    return folder / "d"


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (lambda folder: pairs(folder, ["NA", "x"]), "vlmevalkit", "'NA' as a missing value"),
        (lambda folder: built("simat"), "lmms-eval", "no task has the columns"),
        (lambda folder: write_imageless(folder), "lmms-eval", "'f' has no 'image_id'"),
        (questions, "clip-benchmark", "expected images with a caption and a foil"),
        (
            _free,
            "lmms-eval",
            "'own-questions/a' has the answer 'a dog'; expected yes, no, a letter, or one of",
        ),
        (pairs, "clip-benchmark", "except Winoground"),
        (
            lambda folder: foils(folder, "a\u2028dog"),
            "clip-benchmark",
            "of 'f' has 2 lines; expected one line",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Path], Path],
    name: str,
    message: str,
) -> None:
    dataset, output = make(tmp_path / "d"), tmp_path / "out"
    assert main(["export", str(dataset), "--format", name, "--output", str(output)]) == 2
    assert message in capsys.readouterr().err
    assert not output.exists()


def write_imageless(folder: Path) -> Path:
    data = picture(1)
    sample = {"sample_id": "f", "image": "1.png", "image_id": None}
    tables = {"samples": [sample], "images": image_rows({sha256_hex(data): data})}
    return write_dataset(folder, "hard-positives", tables, files=1)
