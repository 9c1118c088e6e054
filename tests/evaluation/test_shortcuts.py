import functools
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.shortcuts.answerers import LanguageModelProbe, posed
from eqforge.evaluation.shortcuts.audit import ProbeResult, as_json, as_text, audit_pairs
from eqforge.evaluation.shortcuts.command import main as command
from eqforge.evaluation.shortcuts.judges import (
    CONTRASTS,
    Judge,
    blind_judges,
    likelihood_judge,
    probe_judges,
    transformer_judge,
)
from eqforge.evaluation.shortcuts.probes import PROBES, clues, train_and_judge
from eqforge.sources.text_pairs import TextPair, read_text_pairs
from tests.made_datasets import COLOURS, PLACES, write_captions
from tests.statuses import status_of
from tests.tiny_judges import save_llm

main = status_of(command)

NOUNS = [f"{a}{b}" for a in ("bla", "dro", "fli", "gru") for b in ("ck", "nt", "sh", "mp", "rk")]


def _pair(index: int, positive: str, negative: str, hard_positive: str | None = None) -> TextPair:
    return TextPair(
        pair_id=str(index),
        image=f"{index // 2}.jpg",
        positive=positive,
        negative=negative,
        hard_positive=hard_positive,
    )


def _random_pairs(count: int, seed: int = 0) -> list[TextPair]:
    """Pairs whose two captions are drawn alike."""
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(NOUNS, k=rng.randint(3, 7))) for _ in range(2 * count)]
    return [_pair(i, texts[2 * i], texts[2 * i + 1]) for i in range(count)]


def _accuracies(
    pairs: list[TextPair], probes: Sequence[str] = tuple(PROBES), **settings: Any
) -> dict[str, ProbeResult]:
    audit = audit_pairs(pairs, probe_judges(probes), **settings)
    return {result.probe: result for result in audit.results}


@functools.cache
def _audits_without_a_shortcut() -> list[dict[str, ProbeResult]]:
    probes = ["length", "rarity", "words"]
    return [_accuracies(_random_pairs(120, seed), probes, resamples=300) for seed in range(40)]


def test_captions_drawn_alike_are_called_a_shortcut_as_seldom_as_the_interval_says() -> None:
    """Of 80 audits of captions without a shortcut some four should miss chance."""
    results = [each[name] for each in _audits_without_a_shortcut() for name in ("length", "rarity")]
    assert len(results) == 80
    assert sum(not result.low <= 0.5 <= result.high for result in results) <= 7


def test_the_interval_of_the_best_holds_for_all_probes_together() -> None:
    """Of 40 audits some two should miss chance, though the best of three probes is looked at."""
    missed = narrow = 0
    for found in _audits_without_a_shortcut():
        best = max(found.values(), key=lambda result: result.separation)
        low, high = best.separation_interval
        assert low <= best.separation <= high
        missed += low > 0.5
        narrow += max(best.low, 1 - best.high) > 0.5
    assert missed <= min(narrow, 5)
    (alone,) = _accuracies(_random_pairs(120), ["words"]).values()
    assert (alone.joint_low, alone.joint_high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize(
    ("probe", "change"),
    [
        ("length", lambda words: [*words, "very", "long"]),
        ("rarity", lambda words: [*words[:-1], "zyx" + words[0] + words[1]]),
        ("position", lambda words: sorted(words, reverse=True)),
        ("words", lambda words: [*words[:-1], "not"]),
        ("letters", lambda words: [words[0].upper(), *words[1:]]),
    ],
)
def test_each_probe_finds_the_shortcut_it_is_made_for(probe: str, change: Any) -> None:
    rng = random.Random(1)
    pairs = []
    for index in range(300):
        words = sorted(rng.choices(NOUNS, k=5))
        pairs.append(_pair(index, " ".join(words), " ".join(change(words))))
    result = _accuracies(pairs)[probe]
    assert result.is_shortcut
    assert result.accuracy > 0.9


def test_the_report_names_what_gives_most_away() -> None:
    pairs = [
        _pair(index, f"a red {noun}", f"no red {noun}") for index, noun in enumerate(NOUNS * 3)
    ]
    audit = audit_pairs(pairs, probe_judges(["words", "letters", "length"]))
    text = as_text("x", audit)
    assert "most revealing words" in text
    assert "'a' (60 and 0)" in text
    assert "'no red' (0 and 60)" in text
    found = {result["probe"]: result for result in json.loads(as_json("x", audit))["results"]}
    words = {clue["text"]: clue for clue in found["words"]["clues"]}
    assert set(words) == {"a", "a red", "no", "no red"}
    assert words["a"]["weight"] == -words["no"]["weight"] > 0
    assert (words["no"]["right"], words["no"]["wrong"]) == (0, 60)
    assert len(found["letters"]["clues"]) <= 10
    assert found["length"]["clues"] == []


def test_where_the_text_gives_nothing_away_no_words_are_named() -> None:
    audit = audit_pairs(_random_pairs(120), probe_judges(["words"]))
    assert not audit.results[0].is_shortcut
    assert "most revealing" not in as_text("x", audit)
    assert len(audit.results[0].clues) == 10
    assert clues("words", ["a b"] * 3, ["a b"] * 3) == ()
    assert clues("rarity", ["a b"] * 3, ["a c"] * 3) == ()


def test_a_probe_cannot_learn_the_captions_of_an_image() -> None:
    """True captions of an image share a word that no other image has: only a leak would help."""
    rng = random.Random(2)
    pairs = []
    for image in range(100):
        words = rng.sample([f"w{image}x", f"w{image}y"], k=2)
        for index in range(4):
            positive, negative = (f"{w} {' '.join(rng.choices(NOUNS, k=4))}" for w in words)
            pair = _pair(0, positive, negative)
            pairs.append(replace(pair, pair_id=f"{image}/{index}", image=str(image)))
    assert 0.4 < _accuracies(pairs)["words"].accuracy < 0.6


def test_probes_do_not_know_the_order_of_the_captions() -> None:
    pairs = _random_pairs(80)
    right, wrong = [pair.positive for pair in pairs], [pair.negative + " not" for pair in pairs]
    for probe in PROBES:
        margins = train_and_judge(probe, (right[:60], wrong[:60]), (right[60:], wrong[60:]))
        mirrored = train_and_judge(probe, (right[:60], wrong[:60]), (wrong[60:], right[60:]))
        np.testing.assert_allclose(margins, -mirrored, atol=1e-9)


def test_equal_captions_are_ties_and_count_one_half() -> None:
    pairs = [_pair(index, f"a {noun}", f"a {noun}") for index, noun in enumerate(NOUNS)]
    for result in _accuracies(pairs).values():
        assert (result.accuracy, result.ties) == (0.5, 1.0)
        assert result.low < 0.5 < result.high  # twenty ties are not certain


def test_hard_positives_bring_two_more_questions() -> None:
    pairs = [
        _pair(index, f"red {noun}", f"not {noun}", f"crimson {noun}")
        for index, noun in enumerate(NOUNS * 4)
    ]
    audit = audit_pairs(pairs, probe_judges(["words"]))
    assert [(r.contrast, r.accuracy) for r in audit.results] == [(name, 1.0) for name in CONTRASTS]
    assert audit.results[0].pairs == 80
    assert audit.results[0].images == 40


def test_two_by_two_designs_are_left_out_and_said_so() -> None:
    two = [
        TextPair(pair_id=f"{i}/{s}", image=f"{i}/{s}", positive="a b"[::o], negative="a b"[::-o],
                 design="two_by_two")
        for i in range(9) for s, o in ((0, 1), (1, -1))
    ]  # fmt: skip
    audit = audit_pairs(two)
    assert (audit.results, audit.one_image, audit.two_by_two) == ((), 0, 18)
    assert "18 pairs of two images and two captions were not" in as_text("x", audit)
    mixed = audit_pairs([*two, *_random_pairs(40)], probe_judges(["length"]))
    assert (mixed.one_image, mixed.two_by_two) == (40, 18)
    assert mixed.results[0].pairs == 40


def test_too_few_images_are_an_input_error() -> None:
    with pytest.raises(InputError, match="Found only 2; lower --folds"):
        audit_pairs(_random_pairs(4))
    with pytest.raises(InputError, match="Found only 1; add images"):
        audit_pairs(_random_pairs(1))


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    return save_llm(tmp_path_factory.mktemp("lm") / "tiny")


def test_likelihoods_are_those_of_the_models_own_loss(model_folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    captions = ["a black", "the drock a fliprk", "a black", "blant blash blamp blark a a a", ""]
    probe = LanguageModelProbe(str(model_folder), batch_size=2)
    scores = probe.score(captions)
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModelForCausalLM.from_pretrained(model_folder)
    for caption, (total, per_token) in zip(captions[:4], scores, strict=False):
        ids = torch.tensor([[2, *tokenizer(caption, add_special_tokens=False)["input_ids"]]])
        with torch.inference_mode():
            loss = float(model(input_ids=ids, labels=ids).loss)
        assert per_token == pytest.approx(-loss, abs=1e-4)
        assert total == pytest.approx(-loss * (ids.shape[1] - 1), abs=1e-3)
    assert list(scores[4]) == [0.0, 0.0]


def test_a_device_or_a_model_that_is_not_there_is_one_clear_error(
    model_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"device=cuda:77: "):
        LanguageModelProbe(str(model_folder), device="cuda:77")
    with pytest.raises(InputError, match="cannot be loaded"):
        LanguageModelProbe(str(tmp_path))


def test_a_language_model_takes_the_likelier_caption_for_the_true_one(model_folder: Path) -> None:
    probe = LanguageModelProbe(str(model_folder))
    texts = sorted({pair.positive for pair in _random_pairs(40)})
    texts.sort(key=lambda text: probe.score([text])[0, 0])
    pairs = [_pair(i, texts[-1 - i], texts[i]) for i in range(len(texts) // 2)]
    audit = audit_pairs(pairs, probe.judges())
    assert (audit.results[0].probe, audit.results[0].accuracy) == ("language_model_total", 1.0)


def test_a_language_model_says_the_likeliest_answer(model_folder: Path) -> None:
    probe = LanguageModelProbe(str(model_folder))
    rows: list[dict[str, Any]] = [
        {"question": "a black", "answer": "yes", "options": [], "group_id": "a"},
        {"question": "a black", "answer": "no", "options": [], "group_id": "a"},
        {"question": "a", "answer": "drock", "options": ["blant", "drock"], "group_id": "b"},
    ]
    said = probe.answerers()["language_model_total"].answers([posed(row) for row in rows])
    named = probe.score(["a black No", "a black Yes"])[:, 0]
    assert said[:2] == [["no", "yes"][named.argmax()]] * 2
    assert said[2] == "AB"[probe.score(["a blant", "a drock"])[:, 0].argmax()]


def _file(folder: Path, pairs: list[TextPair]) -> Path:
    path = folder / "pairs.jsonl"
    rows = (
        {"id": p.pair_id, "image": p.image, "caption": p.positive, "hard_negative": p.negative}
        for p in pairs
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_command_reports_and_sets_a_limit(
    tmp_path: Path, model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [_pair(i, f"red {noun}", f"not {noun}") for i, noun in enumerate(NOUNS * 2)]
    path = str(_file(tmp_path, pairs))
    assert main([path]) == 0
    out = capsys.readouterr().out
    assert "40 pairs of one image and two captions were audited" in out
    assert "words                     100.00%  [66.03%, 100.00%]  shortcut" in out
    assert main([path, "--fail-above", "0.6", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["chance"] == 0.5
    assert {result["probe"] for result in report["results"]} == set(blind_judges())
    assert main([path, "--language-model", str(model_folder), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["results"][-1]["probe"] == "language_model_per_token"


def test_kinds_are_audited_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 240 pairs those of one kind are told by their length, and the whole describes none."""
    longer = [(pair.positive, f"{pair.positive} and more words") for pair in _random_pairs(120, 1)]
    drawn = [(pair.positive, pair.negative) for pair in _random_pairs(120, 2)]
    kinds = {"add": longer, "swap": drawn, "rare": drawn[:3]}
    lines = [
        {
            "id": f"{kind}/{n}",
            "image": f"{kind}/{n}.jpg",
            "kind": kind,
            "caption": texts[0],
            "hard_negative": texts[1],
        }
        for kind, some in kinds.items()
        for n, texts in enumerate(some)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert main([str(path), "--by", "kind", "--json", "--fail-above", "0.99"]) == 1
    found = json.loads(capsys.readouterr().out)
    told = {
        part: next(each["accuracy"] for each in some["results"] if each["probe"] == "length")
        for part, some in {"all": found, **found["parts"]}.items()
    }
    assert told["kind add"] == 1.0
    assert 0.35 < told["kind swap"] < 0.65
    assert 0.65 < told["all"] < 0.85
    assert (
        found["unasked"][-1] == "kind rare: not audited, because it has too few images for 5 folds"
    )
    assert main([str(path), "--by", "image"]) == 2
    assert f"--by image: {path} has only the column 'kind'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.json"], "cannot be read"),
        (["pairs.jsonl", "--folds", "40"], "lower --folds"),
        (["pairs.jsonl", "--folds", "1"], "--folds must be at least 2"),
    ],
)
def test_what_cannot_be_audited_is_exit_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    _file(tmp_path, _random_pairs(20))
    assert main([str(tmp_path / arguments[0]), *arguments[1:]]) == 2
    assert message in capsys.readouterr().err


def test_the_published_attribute_foils_are_told_by_their_text_alone(data_folder: Path) -> None:
    """VL-CheckList's negatives: a probe of words is right nine times in ten without the image."""
    path = data_folder / "vl_checklist" / "data" / "Attribute" / "vg" / "action.json"
    results = {r.probe: r for r in audit_pairs(read_text_pairs(path)).results}
    assert results["words"].low > 0.8
    assert results["words"].pairs == 1892


def test_training_captions_are_audited_by_caption_and_what_has_no_negative_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(write_captions(tmp_path / "training"))
    assert main([folder, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    captions = len(COLOURS) * len(PLACES)
    assert (report["one_image"], report["left_out"]) == (captions - 1, 1)
    pairs = {result["contrast"]: result["pairs"] for result in report["results"]}
    assert pairs == {
        "negative": captions - 1,
        "hard_positive_or_negative": captions - 2,
        "hard_positive": captions - 2,
    }


def test_one_pair_alone_teaches_nothing() -> None:
    """Two images in two folds leave one pair to learn from, all of one sign."""
    margins = train_and_judge("words", (["a red car"], ["a blue car"]), (["x"], ["y"]))

    assert margins.tolist() == [0.0]


def test_the_word_model_knows_odd_captions_of_which_it_saw_no_false_one() -> None:
    texts = [f"a {one} {two}" for one, two in pairwise(NOUNS)] * 4
    pairs = [_pair(n, text, " ".join(text.split()[::-1])) for n, text in enumerate(texts)]
    (result,) = audit_pairs(pairs, {"likelihood": likelihood_judge(5)}).results
    assert result.accuracy == 1


def test_the_transformer_sees_which_words_go_together_and_others_do_not() -> None:
    """Of two words each is as common in true captions as in false ones; only both together tell."""
    pytest.importorskip("torch")
    pairs = []
    for index in range(1_200):
        rng = random.Random(index)
        one, two = rng.choice(("cat", "dog")), rng.choice(("red", "blue"))
        is_told = (one == "cat") == (two == "red")
        other = "blue" if two == "red" else "red"
        texts = [f"the {one} in a {colour} hat" for colour in (two, other)]
        pairs.append(_pair(index, *(texts if is_told else texts[::-1])))
    judges = {"transformer": transformer_judge(3), **probe_judges(["letters"])}
    found = {each.probe: each.accuracy for each in audit_pairs(pairs, judges, folds=3).results}
    assert found["transformer"] > 0.95
    assert found["letters"] < 0.6


def test_the_transformer_s_answers_are_the_same_again() -> None:
    pytest.importorskip("torch")
    pairs = _random_pairs(60)
    judges = {"transformer": transformer_judge(3)}
    assert audit_pairs(pairs, judges, folds=3) == audit_pairs(pairs, judges, folds=3)


def test_the_best_probe_may_be_one_that_is_always_wrong() -> None:
    pairs = [_pair(n, f"{noun} {noun}", noun) for n, noun in enumerate(NOUNS)]
    judge = Judge(margins=lambda question: np.full(len(question.right), -1.0))
    audit = audit_pairs(pairs, {"backwards": judge})
    assert "best of 1: 100.00%" in as_text("x", audit)
    assert "by backwards with reversed answers" in as_text("x", audit)
