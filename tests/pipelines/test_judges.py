"""Builds that judges verify: what is stored, what is refused, and that the bytes stay the same."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge import cli
from eqforge.commands import verify
from eqforge.generators.text.rule_precision import Precision
from eqforge.pipelines import hard_positives, training_captions
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.transforms.judges import decide, models
from tests.builds import rows
from tests.chat_server import ChatServer
from tests.evaluation.conversations.made import save_llava
from tests.optional import optional
from tests.tiny_judges import save_llm, save_nli, teach_nli

optional("transformers")

CAPTIONS = [
    ("a.jpg", "one", "A man holds a red umbrella."),
    ("a.jpg", "two", "A dog and a cat on a sofa."),
    ("b.jpg", "three", "Two dogs sit beside a blue car."),
    ("c.jpg", "four", "A large white plate on a wooden table."),
    ("c.jpg", "five", "A boy is riding a small brown horse."),
]
NLI_QUESTIONS = (
    *("caption_entails_positive", "positive_entails_caption"),
    *("negative_contradicts_caption", "negative_contradicts_positive"),
)
VQA_QUESTIONS = ("caption_shown", "positive_shown", "negative_not_shown")


def write(path: Path, captions: Sequence[tuple[str, str, str]]) -> Path:
    lines = [json.dumps({"image": i, "id": name, "caption": text}) for i, name, text in captions]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    return write(tmp_path / "captions.jsonl", CAPTIONS)


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judges")
    save_nli(folder / "nli")
    save_llm(folder / "llm")
    save_llava(folder / "vqa")
    return folder


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number, name in enumerate("abc"):
        noise = np.random.default_rng(number).integers(0, 256, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{name}.jpg")
    return folder


def build(output: Path, *arguments: object) -> int:
    return hard_positives.main([*map(str, arguments), "--output", str(output)])


def verdicts(output: Path) -> dict[str, dict[str, Any]]:
    """The judgements of a sound dataset by the ids of its samples."""
    assert verify.main([str(output)]) == 0
    found = {row["sample_id"]: row for row in rows(output, "judgements")}
    assert found.keys() == {row["sample_id"] for row in rows(output, "samples")}
    return found


def tables(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((output / "data").iterdir())}


def test_every_answer_is_stored_with_who_gave_it(
    captions: Path, judges: Path, pictures: Path, tmp_path: Path
) -> None:
    named = [f"--verify={kind}:{judges / kind}" for kind in ("nli", "llm", "vqa")]
    plain, judged = tmp_path / "plain", tmp_path / "judged"
    assert build(plain, "--captions", captions, "--images", pictures) == 0
    assert build(judged, "--captions", captions, "--images", pictures, *named) == 0

    for row in verdicts(judged).values():
        asked = [(answer["judge"], answer["question"]) for answer in row["answers"]]
        assert asked == [
            *(("nli", question) for question in NLI_QUESTIONS),
            *(("llm", question) for question in NLI_QUESTIONS),
            *(("vqa", question) for question in VQA_QUESTIONS),
        ]
        assert all(0 <= answer["probability"] <= 1 for answer in row["answers"])
        assert {answer["model"] for answer in row["answers"]} == {"nli", "llm", "vqa"}
        assert all(answer["revision"].startswith("sha256:") for answer in row["answers"])
    # Judges add a table, and change no other.
    there = tables(judged)
    for name, data in tables(plain).items():
        assert (there[name] == data) == (not name.startswith("judgements"))
    manifest = open_dataset(str(judged)).manifest
    assert "judging" not in open_dataset(str(plain)).manifest.config
    assert [each["kind"] for each in manifest.config["judging"]["verify"]] == ["nli", "llm", "vqa"]
    assert str(judges) not in (judged / "dataset.json").read_text()
    again = "--verify nli:path/to/nli --verify llm:path/to/llm --verify vqa:path/to/vqa --output"
    assert again in (judged / "README.md").read_text()


def test_bytes_follow_neither_order_nor_a_stop(
    captions: Path, judges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [f"--verify={kind}:{judges / kind}" for kind in ("nli", "llm")]
    assert build(tmp_path / "one", "--captions", captions, *named) == 0
    mixed = random.Random(0).sample(CAPTIONS, len(CAPTIONS))
    (tmp_path / "other").mkdir()
    shuffled = write(tmp_path / "other" / "captions.jsonl", mixed)
    assert build(tmp_path / "two", "--captions", shuffled, *named) == 0
    assert tables(tmp_path / "two") == tables(tmp_path / "one")

    calls = 0
    given = models.NliJudge.answer

    def dying(self: Any, *rest: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(28, "no space left on device")
        return given(self, *rest)

    monkeypatch.setattr(models.NliJudge, "answer", dying)
    with pytest.raises(SystemExit):
        build(tmp_path / "three", "--captions", captions, *named)
    assert calls == 3
    assert build(tmp_path / "three", "--captions", captions, *named) == 0
    assert calls == 4  # of three pictures, two were answered before
    assert tables(tmp_path / "three") == tables(tmp_path / "one")


def test_a_sample_alone_has_the_answers_that_it_has_among_all(
    captions: Path, judges: Path, tmp_path: Path
) -> None:
    judge = f"--verify=nli:{judges / 'nli'}"
    assert build(tmp_path / "all", "--captions", captions, judge) == 0
    assert build(tmp_path / "alone", "--captions", captions, judge, "--only", "five") == 0
    (alone,) = verdicts(tmp_path / "alone").values()
    assert alone == verdicts(tmp_path / "all")["five"]


def test_what_a_judge_has_learnt_to_refuse_is_refused(captions: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "plain", "--captions", captions) == 0
    taught: dict[tuple[str, str], str] = {}
    for row in rows(tmp_path / "plain", "samples"):
        texts = (row["caption"], row["hard_positive"], row["hard_negative"])
        caption, positive, negative = texts
        right = row["sample_id"] != "three"
        says = "entailment" if right else "neutral"
        taught |= {(caption, positive): says, (positive, caption): "entailment"}
        against = "contradiction" if row["sample_id"] != "four" else "neutral"
        taught |= {(caption, negative): against, (positive, negative): "contradiction"}
    judge = f"--verify=nli:{teach_nli(tmp_path / 'nli', taught)}"
    limits = ["--entailed-min", 0.5, "--contradicted-min", 0.5]

    assert build(tmp_path / "out", "--captions", captions, judge, *limits) == 0

    rejects = {row["candidate_id"]: row for row in rows(tmp_path / "out", "rejects")}
    assert rejects.keys() == {"three", "four"}
    assert rejects["three"]["reason"] == "not_entailed"
    assert rejects["three"]["value"] < rejects["three"]["threshold"] == 0.5
    assert rejects["three"]["detail"].endswith(": caption_entails_positive")
    assert rejects["four"]["reason"] == "not_contradicted"
    assert verdicts(tmp_path / "out").keys() == {"one", "two", "five"}

    # Of training captions, each text stands for itself.
    output = tmp_path / "training"
    arguments = ["--captions", str(captions), judge, *map(str, limits), "--output", str(output)]
    assert training_captions.main(arguments) == 0
    gone = {row["candidate_id"] for row in rows(output, "rejects")}
    found = verdicts(output)
    assert "three/original" in found
    for row in rows(output, "samples"):
        parts = {answer["question"].split("_")[0] for answer in found[row["sample_id"]]["answers"]}
        expected = {"hard_positive": {"caption", "positive"}, "hard_negative": {"negative"}}
        assert parts == expected.get(row["role"], set())
    assert {name.partition("/")[2] for name in gone} <= {"hard_positive", "hard_negative"}


def test_pairs_of_a_source_are_judged_too(judges: Path, tmp_path: Path) -> None:
    pairs = [
        {
            "image_path": "1.jpg",
            "true_caption": "the black dog and the white cat",
            "false_caption": "the white dog and the black cat",
        }
    ]
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(pairs))
    for mode in ("paper", "corrected"):
        output = tmp_path / mode
        judge = f"--verify=nli:{judges / 'nli'}"
        assert build(output, "--pairs", path, "--mode", mode, judge) == 0
        (row,) = verdicts(output).values()
        assert [answer["question"] for answer in row["answers"]] == list(NLI_QUESTIONS)


def test_captions_in_any_language_and_one_alone_are_judged(judges: Path, tmp_path: Path) -> None:
    captions = [
        ("a.jpg", "one", "Собака и кошка на диване."),
        ("a.jpg", "two", "A dog and a cat on a sofa. 犬と猫"),
        ("b.jpg", "three", "Ein Hund and eine Katze."),
    ]
    path = write(tmp_path / "captions.jsonl", captions)
    judge = f"--verify=nli:{judges / 'nli'}"
    assert build(tmp_path / "any", "--captions", path, judge, "--language", "any") == 0
    verdicts(tmp_path / "any")
    single = write(tmp_path / "single.jsonl", CAPTIONS[:1])
    assert build(tmp_path / "one", "--captions", single, judge) == 0
    assert len(verdicts(tmp_path / "one")) == 1


def test_what_a_judge_cannot_read_has_no_answer(captions: Path, tmp_path: Path) -> None:
    judge = f"--verify=nli:{save_nli(tmp_path / 'nli', reads=24)}"
    long = [("d.jpg", "long", f"A red cup on a table, {'and a cup, ' * 8}and a dog on a sofa.")]
    path = write(tmp_path / "long.jsonl", [*CAPTIONS, *long])
    assert build(tmp_path / "out", "--captions", path, judge) == 0
    found = verdicts(tmp_path / "out")
    unread = {
        name
        for name, row in found.items()
        if any(answer["probability"] is None for answer in row["answers"])
    }
    assert "long" in unread
    limited = tmp_path / "limited"
    assert build(limited, "--captions", path, judge, "--entailed-min", 0) == 0
    rejects = {row["candidate_id"]: row["reason"] for row in rows(limited, "rejects")}
    assert rejects["long"] == "not_judged"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--verify", "nli:nowhere"], "nowhere: no such folder"),
        (["--verify", "vqa:nowhere"], "needs images; pass --images FOLDER"),
        (["--refuse-by", "all"], "--refuse-by needs judges; specify them with --verify"),
    ],
)
def test_wrong_judges_end_the_build_before_any_work(
    arguments: list[str],
    message: str,
    captions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        build(tmp_path / "out", "--captions", captions, *arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_server_says_yes_or_no_and_is_asked_each_question_once(
    captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(prompt: str, _: Any) -> str:
        if "Can both" in prompt:
            return "<think>yes?</think> No, never."
        return "Hmm." if "umbrella" in prompt else "YES"

    twice = [*CAPTIONS, ("z.jpg", "again", CAPTIONS[2][2])]  # of another picture
    path = write(tmp_path / "captions.jsonl", twice)
    with ChatServer(say).running() as server:
        judge = f"--verify=llm:{server.model},parallel=2"
        assert build(tmp_path / "out", "--captions", path, judge) == 0
        assert len(server.prompts) == len(set(server.prompts))
        assert server.at_once <= 2
        assert "judges will send up to 24 questions to servers" in capsys.readouterr().err
        before = len(server.prompts)
        assert (
            build(tmp_path / "out", "--captions", path, judge, "--entailed-min", 0.5, "--overwrite")
            == 0
        )
        assert len(server.prompts) == before
        with pytest.raises(SystemExit):
            build(tmp_path / "no", "--captions", path, judge, "--verify-requests", 23)
    assert "--verify-requests 23: this build may need 24 requests" in capsys.readouterr().err
    rejects = {row["candidate_id"]: row["reason"] for row in rows(tmp_path / "out", "rejects")}
    assert rejects == {"one": "not_judged"}
    for row in verdicts(tmp_path / "out").values():
        assert [answer["probability"] for answer in row["answers"]] == [1.0] * 4
        assert {(a["model"], a["revision"]) for a in row["answers"]} == {
            ("tiny-chat", "unversioned")
        }


def test_a_server_that_is_not_there_is_told_before_any_work(
    captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        build(tmp_path / "out", "--captions", captions, "--verify", "llm:m@http://localhost:9/v1")
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "the language model m@http://localhost:9/v1 cannot be reached" in said
    assert not (tmp_path / "out").exists()


def test_the_precision_of_rules_stands_there_without_a_model(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "precision_of", lambda part, kind: Precision(right=98, wrong=2))
    assert build(tmp_path / "out", "--captions", captions) == 0
    for row in verdicts(tmp_path / "out").values():
        assert (row["probability"], row["basis"], row["answers"]) == (0.9604, "rules", [])
        assert row["low"] < row["probability"] < row["high"]
    assert "judging" not in open_dataset(str(tmp_path / "out")).manifest.config
    strict = ["--probability-min", 0.99]
    assert build(tmp_path / "strict", "--captions", captions, *strict) == 0
    rejects = rows(tmp_path / "strict", "rejects")
    assert {row["reason"] for row in rejects} == {"low_probability"}
    assert open_dataset(str(tmp_path / "strict")).manifest.config["judging"]

    # Of training captions, that of each text that was made.
    output = tmp_path / "training"
    assert training_captions.main(["--captions", str(captions), "--output", str(output)]) == 0
    given = {name: (row["probability"], row["basis"]) for name, row in verdicts(output).items()}
    assert given["one/original"] == (None, "source")
    assert given["one/hard_negative"] == (0.98, "rules")


@pytest.mark.parametrize("arguments", [["--mode", "paper"], ["--language", "any"]])
def test_where_the_rules_precision_is_not_known_there_is_no_column(
    arguments: list[str], captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(tmp_path / "out", "--captions", captions, *arguments) == 0
    assert not open_dataset(str(tmp_path / "out")).files("judgements")
    with pytest.raises(SystemExit):
        build(tmp_path / "no", "--captions", captions, *arguments, "--probability-min", 0.9)
    assert "--probability-min works only with rows" in capsys.readouterr().err


def test_what_is_known_of_samples_is_combined_with_them(captions: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    added = ("z.jpg", "six", "A man holds a blue umbrella.")
    more = write(tmp_path / "other" / "captions.jsonl", [*CAPTIONS[3:], added])
    one, other = tmp_path / "one", tmp_path / "two"
    assert build(one, "--captions", captions) == 0
    assert build(other, "--captions", more) == 0

    for number, limit in enumerate(([], ["--limit", "2"])):
        output = tmp_path / f"out{number}"
        assert cli.main(["combine", str(one), str(other), *limit, "--output", str(output)]) == 0
        known = verdicts(one) | verdicts(other)
        found = verdicts(output)
        assert found == {name: known[name] for name in found}
        # Two samples are in both parts. The part that comes first by its digest has them, so that
        # the other has one or three: two of each part are one and two, or two and two.
        assert len(found) in ((3, 4) if limit else (6,))


def test_nothing_is_known_of_a_text_that_people_wrote_anew(captions: Path, tmp_path: Path) -> None:
    errata = tmp_path / "errata.jsonl"
    known = {"reason": "typing error", "who": "Ada Example"}
    text = {"column": "hard_positive", "text": "A man is holding a red umbrella."}
    lines = [{"id": "one", "action": "correct"} | text | known, {"id": "two", "action": "drop"}]
    errata.write_text("".join(f"{json.dumps(line | known)}\n" for line in lines))
    assert build(tmp_path / "out", "--captions", captions, "--errata", errata) == 0
    found = verdicts(tmp_path / "out")
    assert found.keys() == {"one", "three", "four", "five"}
    unknown = [found["one"][name] for name in ("probability", "low", "high", "basis", "answers")]
    assert unknown == [None, None, None, "", []]
    assert found["three"]["basis"] == "rules"
