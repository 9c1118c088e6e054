"""A real, tiny model is asked about every pair in four orders, and its answers become a table."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eqforge.cli import main as command
from eqforge.core.errors import InputError
from eqforge.evaluation.conversations.command import ConverseSettings
from eqforge.evaluation.conversations.questions import QUESTION
from eqforge.generators.text.llm.endpoint import KEY
from eqforge.models.chat import ChatModel
from tests.chat_server import MODEL, ChatServer
from tests.evaluation.conversations.made import processor, save_idefics, save_llava
from tests.made_datasets import pair_tables, write_pairs
from tests.statuses import status_of

main = status_of(command)


def converse(dataset: Path, model: Path, output: Path, *options: str) -> int:
    arguments = [str(dataset), "--model", str(model), "--output", str(output), *options]
    return main(["converse", *arguments, "--max-tokens", "8", "--resamples", "50"])


def answers(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for path in sorted((folder / "data").glob("answers-*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def numbers(text: str) -> dict[str, float]:
    return {found["metric"]: found["value"] for found in json.loads(text)["measures"]}


def test_a_model_that_prefers_a_place_is_right_half_of_the_time_and_never_consistent(
    asked_dataset: Path, biased_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert converse(asked_dataset, biased_folder, tmp_path / "a", "--show", "json") == 0
    rows = answers(tmp_path / "a")
    assert {row["answer"] for row in rows} == {"1;2"}
    assert len(rows) == 6 * 4
    assert numbers(capsys.readouterr().out) == {
        "captions 1,2": 1.0,
        "captions 2,1": 0.0,
        "every order": 0.5,
        "consistent": 0.0,
        "right in all": 0.0,
        "1;2": 1.0,
        "not read": 0.0,
    }
    manifest = json.loads((tmp_path / "a/answers.json").read_text())
    assert manifest["counts"]["samples"] == {"expected": 6, "scored": 6, "failed": 0}
    assert manifest["forms"] == {"format": 24}
    assert manifest["settings"]["question"] == QUESTION
    samples = pq.read_table(asked_dataset / "data/samples-00000-of-00002.parquet").to_pylist()
    one = samples[0]
    asked = {
        (row["image_order"], row["caption_order"]): row
        for row in rows
        if row["sample_id"] == one["sample_id"]
    }
    first, second = one["caption_0"], one["caption_1"]
    assert f"caption 1: {first}; caption 2: {second}." in asked["10", "01"]["prompt"]
    assert f"caption 1: {second}; caption 2: {first}." in asked["01", "10"]["prompt"]
    truths = {orders: row["true_left"] for orders, row in asked.items()}
    assert truths == {("01", "01"): 1, ("01", "10"): 2, ("10", "01"): 2, ("10", "10"): 1}


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(
    asked_dataset: Path, biased_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--shard-samples", "2")
    assert converse(asked_dataset, biased_folder, tmp_path / "whole", *options) == 0
    asked: list[str] = []
    answer = ChatModel.answer

    def dying(self: ChatModel, pixels: Any, prompt: str, max_tokens: int) -> str:
        asked.append(prompt)
        if len(asked) == 13:
            raise KeyboardInterrupt
        return answer(self, pixels, prompt, max_tokens)

    monkeypatch.setattr(ChatModel, "answer", dying)
    assert converse(asked_dataset, biased_folder, tmp_path / "cut", *options) == 130
    assert not (tmp_path / "cut/answers.json").exists()
    assert converse(asked_dataset, biased_folder, tmp_path / "cut", *options) == 0
    assert len(asked) == 13 + 16, "the first two pairs were not asked about again"
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
    assert converse(asked_dataset, biased_folder, tmp_path / "cut", *options) == 0
    assert len(asked) == 29


def test_a_random_model_is_not_read_and_its_answers_are_the_same_each_time(
    asked_dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_llava(tmp_path / "model")
    for name in ("a", "b"):
        assert converse(asked_dataset, model, tmp_path / name, "--show", "json") == 0
    found = numbers(capsys.readouterr().out.partition("\n}\n")[0] + "\n}")
    assert found["not read"] == 1.0
    assert found["every order"] == 0.0
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_a_model_that_cuts_the_image_into_tiles_is_asked_alike(
    asked_dataset: Path, tmp_path: Path
) -> None:
    model = save_idefics(tmp_path / "model")
    assert converse(asked_dataset, model, tmp_path / "a", "--samples", "1") == 0
    rows = answers(tmp_path / "a")
    assert len(rows) == 4
    assert all(row["answer"] and "USER" not in row["answer"] for row in rows)


def test_some_pairs_of_each_subset_are_drawn_by_their_ids(
    asked_dataset: Path, biased_folder: Path, tmp_path: Path
) -> None:
    drawn = []
    for count in ("1", "2"):
        options = ("--samples", count, "--by", "source_id")
        assert converse(asked_dataset, biased_folder, tmp_path / count, *options) == 0
        drawn.append({row["sample_id"] for row in answers(tmp_path / count)})
    assert [len(keys) for keys in drawn] == [2, 4]
    assert drawn[0] < drawn[1]


def test_what_cannot_be_asked_about_has_a_reason(
    biased_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = pair_tables(1, 4)
    tables["images"][0]["image"]["bytes"] = b"no image"
    tables["samples"][-1]["caption_0"] = "red cup " * 200
    dataset = write_pairs(tmp_path / "damaged", tables)
    assert converse(dataset, biased_folder, tmp_path / "a") == 2
    assert "4 of 6 pairs have no answer" in capsys.readouterr().err
    options = ("--allow-missing", "--show", "json")
    assert converse(dataset, biased_folder, tmp_path / "a", *options) == 0
    failures = pq.read_table(tmp_path / "a/data/failures-00000-of-00001.parquet").to_pylist()
    assert {row["sample_id"].rpartition("/")[2]: row["reason"] for row in failures} == {
        "0-1": "undecodable_image",
        "0-2": "undecodable_image",
        "0-3": "undecodable_image",
        "2-3": "question_too_long",
    }
    measured = json.loads(capsys.readouterr().out)["measures"][0]
    assert [measured[name] for name in ("expected", "scored", "missing")] == [6, 2, 4]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--question", "which?"], "{caption_1}"),
        (["--model", "someone/model"], "the full commit hash"),
        (["--by", "colour"], "no column 'colour'"),
        (["--samples", "0"], "--samples must be at least 1"),
        (["--seed", "-1"], "--seed must be at least 0"),
        (["--answers", "file.jsonl"], "either --model or --answers"),
    ],
)
def test_wrong_settings_are_one_clear_error(
    asked_dataset: Path,
    biased_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    said: str,
) -> None:
    assert converse(asked_dataset, biased_folder, tmp_path / "a", *options) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_a_server_needs_the_name_of_a_model() -> None:
    with pytest.raises(InputError, match="--endpoint needs --model NAME"):
        ConverseSettings(dataset="pairs", endpoint="http://localhost/v1")


def test_other_settings_do_not_mix_with_answers_that_are_there(
    asked_dataset: Path, biased_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert converse(asked_dataset, biased_folder, tmp_path / "a", "--samples", "1") == 0
    before = files(tmp_path / "a")
    assert converse(asked_dataset, biased_folder, tmp_path / "a", "--samples", "2") == 2
    assert "answers from a run with a different dataset" in capsys.readouterr().err
    assert files(tmp_path / "a") == before


def test_a_processor_without_a_form_of_conversation_needs_one(
    asked_dataset: Path, biased_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "bare"
    model.mkdir()
    for path in biased_folder.iterdir():
        if path.suffix != ".jinja":
            (model / path.name).write_bytes(path.read_bytes())
    assert converse(asked_dataset, model, tmp_path / "a") == 2
    assert "--chat-template" in capsys.readouterr().err
    (tmp_path / "chat.jinja").write_text(processor().chat_template)
    options = ("--chat-template", str(tmp_path / "chat.jinja"), "--samples", "1")
    assert converse(asked_dataset, model, tmp_path / "a", *options) == 0


def test_a_server_is_asked_each_question_once_whatever_happens(
    asked_dataset: Path,
    biased_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = "sk-secret-0123456789"
    monkeypatch.setenv(KEY, secret)
    first = _captions(asked_dataset)[0]
    answered: list[str] = []
    broken = True

    def say(prompt: str, body: dict[str, Any]) -> Any:
        if f"caption 1: {first[0]}; caption 2: {first[1]}." in prompt:
            return 400, {"error": {"message": "not allowed", "code": "content_filter"}}
        if broken and len(answered) >= 5:
            return 404, {"error": {"message": "gone"}}
        answered.append(json.dumps(body["messages"]))
        return "1;2"

    server, model = ChatServer(say, key=secret), Path(MODEL)
    with server.running():
        server.faults = [429, 0, 503]
        options = ("--endpoint", server.url, "--orders", "2", "--allow-missing")
        assert converse(asked_dataset, model, tmp_path / "a", *options) == 2
        said = capsys.readouterr().err
        assert "12 requests with one image each: about" in said
        assert "the server answered with status 404: gone" in said
        broken = False
        assert converse(asked_dataset, model, tmp_path / "a", *options, "--show", "json") == 0
        assert converse(asked_dataset, model, tmp_path / "a", *options) == 0
    assert "the model did not answer 1 pair, for example" in (told := capsys.readouterr().err)
    assert "(refused: not allowed)" in told
    assert len(answered) == len(set(answered)) == 11
    assert all("data:image/png;base64," in one for one in answered)
    manifest = json.loads((tmp_path / "a/answers.json").read_text())
    assert manifest["model"]["kind"] == "server"
    assert manifest["counts"]["samples"] == {"expected": 6, "scored": 5, "failed": 1}
    rows = answers(tmp_path / "a")
    orders = [(row["image_order"], row["caption_order"]) for row in rows]
    assert orders == [("01", "01"), ("01", "10")] * 5
    assert all(secret.encode() not in data for data in files(tmp_path).values())
    assert secret not in said


def _captions(dataset: Path) -> list[tuple[str, str]]:
    rows = pq.read_table(dataset / "data/samples-00000-of-00002.parquet").to_pylist()
    return [(row["caption_0"], row["caption_1"]) for row in rows]
