"""Imported benchmarks of every kind go through every command: it works, or says why it cannot."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge import cli
from tests.builds import rows
from tests.published import SOURCES, picture
from tests.statuses import status_of

main = status_of(cli.main)

PAIRS, FOILS, REWORDINGS, QUESTIONS = "pairs", "foils", "hard-positives", "questions"
KINDS = {
    "winoground": PAIRS,
    "bivlc": PAIRS,
    "valse": FOILS,
    "replace-swap": REWORDINGS,
    "natural-bench": QUESTIONS,
    "mmvp": QUESTIONS,
}
"""Benchmarks of each kind of rows, with what `eqforge score` makes of them."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers")
    from tests.tiny_models import save_clip

    return f"clip:{save_clip(tmp_path_factory.mktemp('model') / 'clip')}"


@pytest.fixture(scope="module", params=KINDS)
def benchmark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, Path]:
    """A benchmark's name, itself without pictures, and with them; those of the hub have theirs."""
    name: str = request.param
    folder = tmp_path_factory.mktemp(name)
    (folder / "source").mkdir()
    words = ["import", name, str(SOURCES[name](folder / "source")), "--quiet", "--output"]
    bare, whole = folder / "bare", folder / "whole"
    assert main([*words, str(bare)]) == 0
    shown = [row[key] for row in rows(bare, "samples") for key in row if key in _NAMES]
    if any(row.get("image_0_id") for row in rows(bare, "samples")):
        return name, bare, bare
    for number, image in enumerate(sorted(set(shown))):
        path = folder / "images" / image
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(number, (40, 30)))
    assert main([*words, str(whole), "--images", str(folder / "images")]) == 0
    return name, bare, whole


_NAMES = ("image", "image_0", "image_1")
WITH_PICTURES = {"bivlc"}
"""Benchmarks that bring theirs."""


def test_with_pictures(
    benchmark: tuple[str, Path, Path],
    model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, _, whole = benchmark
    kind, samples = KINDS[name], rows(whole, "samples")

    def said(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([*map(str, words)])
        return status, *capsys.readouterr()

    assert said("verify", whole)[0] == said("diff", whole, whole)[0] == 0
    status, out, _ = said("inspect", whole, "--rows", 1)
    assert status == 0
    for text in {"caption_0", "caption", "question"} & samples[0].keys():
        assert json.dumps(samples[0][text], ensure_ascii=False) in out
    assert said("inspect", whole, "--sheet", tmp_path / "sheet.png")[0] == 0
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.height > 100

    output = tmp_path / "seen.parquet"
    assert said("overlap", whole, "--datasets", whole, "--output", output)[0] == 0
    assert all(row["seen"] for row in pq.read_table(output).to_pylist())
    for form in ("pairs", "jsonl", "lmms-eval"):
        assert said("export", whole, "--format", form, "--output", tmp_path / form)[0] == 0

    status, out, error = said("audit", whole, "--folds", 2, "--json")
    if status == 2:
        assert "2 folds need at least 2" in error
    elif kind == PAIRS:
        assert json.loads(out)["two_by_two"] == 2 * len(samples)
    else:
        asked = json.loads(out)
        assert asked["questions" if kind == QUESTIONS else "one_image"] == len(samples)
    if kind == QUESTIONS:
        _check_questions(whole, samples, model, tmp_path, said)
        return
    status, out, _ = said("lint", whole, "--json")
    (report,) = json.loads(out)
    assert report["records"] == len(samples) * (2 if kind == PAIRS else 1)
    scores = tmp_path / "scores"
    status, out, _ = said("score", whole, "--model", model, "--output", scores, "--workers", 0)
    assert (status, f"{len(samples)} expected = {len(samples)} scored + 0 failed" in out) == (
        0,
        True,
    )
    assert f"scores: {kind} of {name} by clip:" in out
    status, out, _ = said("metrics", whole, scores, "--json", "--resamples", 20)
    measured = [each for each in json.loads(out)["measures"] if each["subset"] == "all"]
    assert status == 0
    assert {(each["scored"], each["missing"]) for each in measured} == {(len(samples), 0)}


def _check_questions(
    whole: Path, samples: list[dict[str, Any]], model: str, folder: Path, said: Any
) -> None:
    """Questions are answered, not scored; those who ask for captions are told where to go."""
    answers = folder / "answers.jsonl"
    lines = [{"sample_id": row["sample_id"], "answer": row["answer"]} for row in samples]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    status, out, _ = said("metrics", whole, answers, "--json", "--resamples", 20)
    assert (status, {each["value"] for each in json.loads(out)["measures"]}) == (0, {1.0})
    status, _, error = said("score", whole, "--model", model, "--output", folder / "scores")
    assert (status, "`eqforge export --format lmms-eval`" in error) == (2, True)
    status, _, error = said("lint", whole)
    assert (status, "`eqforge audit`" in error) == (2, True)


@pytest.mark.parametrize("benchmark", sorted(KINDS.keys() - WITH_PICTURES), indirect=True)
def test_without_pictures(
    benchmark: tuple[str, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, bare, whole = benchmark
    assert main(["verify", str(bare)]) == 0
    assert main(["inspect", str(bare)]) == 0
    assert main(["diff", str(bare), str(whole)]) == 1
    refused = [
        ["inspect", "--sheet", str(tmp_path / "sheet.png")],
        ["overlap", "--images", ".", "--output", str(tmp_path / "seen.parquet")],
        ["export", "--format", "lmms-eval", "--output", str(tmp_path / "task")],
        ["score", "--model", "clip:none", "--output", str(tmp_path / "scores")],
    ]
    for command, *options in refused[: 3 if KINDS[name] == QUESTIONS else 4]:
        capsys.readouterr()
        assert main([command, str(bare), *options]) == 2
        assert "; import it with --images FOLDER" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_each_question_of_a_group_is_shown_once_with_its_answers() -> None:
    from eqforge.evaluation.report.of_rows import of_questions

    def item(*asked: tuple[str, str, str]) -> Any:
        row = {"sample_id": "q", "kind": "", "group_id": "g", "options": ["a", "b"]}
        names = ("question", "image", "image_id", "answer")
        said = ((question, f"{image}.jpg", image, answer) for question, image, answer in asked)
        return of_questions([row | dict(zip(names, each, strict=True)) for each in said])

    options = [("option A", "a"), ("option B", "b")]
    one = item(("Open?", "i", "a"))
    assert told(one) == [("question", "Open?"), *options, ("answer", "a")]
    crossed = [(question, image) for question in ("Open?", "Red?") for image in "ij"]
    group = item(*((*each, answer) for each, answer in zip(crossed, "abba", strict=True)))
    assert told(group) == [
        *(("question 1", "Open?"), *options),
        *(("answer to image 1", "a"), ("answer to image 2", "b")),
        *(("question 2", "Red?"), *options),
        *(("answer to image 1", "b"), ("answer to image 2", "a")),
    ]
    assert [pane.name for pane in group.panes] == ["image 1: i.jpg", "image 2: j.jpg"]
    assert group.comparable


def told(item: Any) -> list[tuple[str, str]]:
    return [(text.role, text.plain) for text in item.texts]
