"""Ladders of captions: what stands on each level, what is refused, and what the models say."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqforge.commands import verify
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.graded.steps import FALSE_KINDS, FAMILIES
from eqforge.generators.text.hard_positives.reconcile import what_is_said
from eqforge.pipelines import graded_captions
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.records.spans import Span
from eqforge.schemas.tables.graded import GradedCaption
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.text.distances import TextModels
from eqforge.transforms.text.grade import LadderRules, make_ladders
from eqforge.transforms.text.work import CaptionBatch
from tests.builds import books, rejected
from tests.tiny_models import bert_tokenizer, save_blip, save_clip

LADDERS = {
    "one": "A man in a red shirt tossing a white frisbee.",
    "two": "A black dog running next to a wooden bench in a park.",
    "short": "A cat on a sofa.",
    "none": "Zzz",
}
Rows = dict[str, dict[str, Any]]


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """Two captions with ladders of three levels, one with a smaller one, one with none."""
    images = {"one": "a.jpg", "two": "a.jpg", "short": "b.jpg", "none": "b.jpg"}
    lines = ({"image": images[name], "caption": text, "id": name} for name, text in LADDERS.items())
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def build(output: Path, *arguments: object) -> Rows:
    """Builds, verifies and returns the samples by id."""
    assert graded_captions.main([*map(str, arguments), "--output", str(output)]) == 0
    assert verify.main([str(output)]) == 0
    return {row["sample_id"]: row for row in open_dataset(str(output)).rows("samples")}


def test_every_level_has_as_many_rows_of_the_same_captions(captions: Path, tmp_path: Path) -> None:
    rows = build(tmp_path / "out", "--captions", captions)

    assert sorted(rows) == [f"{name}/{level}" for name in ("one", "two") for level in (1, 2, 3)]
    assert {row["levels"] for row in rows.values()} == {3}
    assert books(tmp_path / "out")["ladders"] == (12, 6, 6)
    assert rejected(tmp_path / "out", "few_rewordings") == ["none/1", "none/2", "none/3", "short/3"]
    assert rejected(tmp_path / "out", "short_ladder") == ["short/1", "short/2"]


def test_smaller_ladders_are_kept_where_one_says_so(captions: Path, tmp_path: Path) -> None:
    rows = build(tmp_path / "out", "--captions", captions, "--least-levels", 1)

    heights = {name: 0 for name in LADDERS}
    for row in rows.values():
        heights[row["caption_id"]] = max(heights[row["caption_id"]], row["level"])
        assert row["levels"] <= 3
    assert heights["one"] == heights["two"] == 3
    assert 0 < heights["short"] < 3
    assert heights["none"] == 0
    rejects = {
        row["candidate_id"]: row for row in open_dataset(str(tmp_path / "out")).rows("rejects")
    }
    assert set(rejects) | set(rows) == {f"{n}/{level}" for n in LADDERS for level in (1, 2, 3)}
    assert rejects["none/1"]["detail"] == "0 rewordings, 0 false edits"


def test_every_level_alone_is_the_same_as_in_the_whole_dataset(
    captions: Path, tmp_path: Path
) -> None:
    arguments = ("--captions", captions, "--least-levels", 1)
    everything = build(tmp_path / "all", *arguments)
    refused = {
        row["candidate_id"]: row for row in open_dataset(str(tmp_path / "all")).rows("rejects")
    }
    for name in (*everything, *refused):
        output = tmp_path / name.replace("/", "-")
        alone = build(output, *arguments, "--only", name)
        rejects = {row["candidate_id"]: row for row in open_dataset(str(output)).rows("rejects")}
        assert alone == {key: row for key, row in everything.items() if key == name}
        assert rejects == {key: row for key, row in refused.items() if key == name}


def test_one_caption_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_text(json.dumps({"caption": LADDERS["one"], "id": "one"}))
    assert len(build(tmp_path / "out", "--captions", path)) == 3


def test_the_seed_decides_the_ladder(captions: Path, tmp_path: Path) -> None:
    first, again, other = (
        build(tmp_path / name, "--captions", captions, "--seed", seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again
    assert first != other


def test_ladders_of_one_kind(captions: Path, tmp_path: Path) -> None:
    of_one = ("--negative-kinds", "replace_attribute", "--positive-families", "color", "synonym")
    rows = build(tmp_path / "out", "--captions", captions, "--levels", 2, *of_one)

    assert set(rows) == {"one/1", "one/2"}
    assert {row["hard_negative_kind"] for row in rows.values()} == {"replace_attribute"}
    families = {
        kind.partition("/")[0] for row in rows.values() for kind in row["hard_positive_kinds"]
    }
    assert families <= {"color", "synonym"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--levels", "0"], "--levels 0: expected 1 or more"),
        (["--least-levels", "4"], "--least-levels 4: expected 1 to 3"),
        (["--negative-kinds"], "--negative-kinds"),
        (["--entailment", "nli:missing"], "missing: no such folder"),
        (["--entailment", "clip:missing"], "expected KIND:SOURCE with a KIND of nli"),
        (["--embedding", "clip:missing"], "missing: no such folder"),
        (["--embedding", "clip:a+siglip:b"], "--embedding clip:a+siglip:b: name one model"),
    ],
)
def test_a_setting_that_cannot_be_is_one_message(
    captions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    command = ["--captions", str(captions), *arguments, "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as left:
        graded_captions.main(command)
    assert left.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# --- what every ladder keeps to

COLOURS, THINGS = ("red", "white", "black"), ("table", "bench", "couch", "bed")
ANIMALS, VERBS = ("cat", "dog", "horse", "sheep"), ("sitting", "standing", "lying")
PLACES = ("next to", "near", "under", "in front of", "on top of")
CAPTIONS = st.builds(
    "A {} {} {} {} a {} {}{}".format,
    st.sampled_from(COLOURS),
    st.sampled_from(ANIMALS),
    st.sampled_from(VERBS),
    st.sampled_from(PLACES),
    st.sampled_from(COLOURS),
    st.sampled_from(THINGS),
    st.sampled_from((".", "", " in a large room.", " near two men.", " and a big window ")),
)


def ladders(texts: Sequence[str], seed: int = 0, levels: int = 4) -> list[GradedCaption]:
    """The rows of some captions of one image."""
    records = [
        CaptionRecord(caption_id=f"c{number}", image="a.jpg", caption=text)
        for number, text in enumerate(texts)
    ]
    rules = LadderRules(
        seed=seed,
        levels=levels,
        least=1,
        positive_families=FAMILIES,
        negative_kinds=FALSE_KINDS,
        spacy_model=None,
        captions=CaptionSettings(max_tokens=None),
        images=None,
        models=TextModels(),
        language="any",
    )
    work = make_ladders(CaptionBatch(captions=tuple(records)), rules)
    admitted, books = work.tallies
    assert books.candidates == levels * admitted.kept
    assert books.kept == len(work.samples)
    assert not [reject.reason for reject in work.rejects if reject.reason.startswith("error:")]
    return list(work.samples)


@settings(max_examples=60, deadline=None)
@given(st.lists(CAPTIONS, min_size=1, max_size=4, unique_by=what_is_said), st.integers(0, 99))
def test_a_level_has_so_many_edits_and_those_of_the_level_below(
    texts: list[str], seed: int
) -> None:
    by_caption: dict[str, list[GradedCaption]] = {}
    for row in ladders(texts, seed):
        by_caption.setdefault(row.caption_id, []).append(row)
    for rows in by_caption.values():
        assert [row.level for row in rows] == list(range(1, rows[0].levels + 1))
        for row in rows:
            _check_edits(row, row.hard_positive, row.caption_spans, row.hard_positive_spans)
            _check_edits(row, row.hard_negative, row.foil_spans, row.hard_negative_spans)
            assert len(row.hard_positive_kinds) == len(row.hard_negative_kinds) == row.level
        for lower, upper in pairwise(rows):
            assert upper.hard_positive_kinds[: lower.level] == lower.hard_positive_kinds
            assert set(lower.caption_spans) < set(upper.caption_spans)
            assert set(lower.foil_spans) < set(upper.foil_spans)


def _check_edits(
    row: GradedCaption, text: str, before: Sequence[Span], after: Sequence[Span]
) -> None:
    """There are enough edits, and what lies outside of them is the caption's."""
    assert row.level <= len(before)
    kept = [
        [whole[a:b] for a, b in pairwise([0, *(x for s in spans for x in (s.start, s.end)), None])]
        for whole, spans in ((row.caption, before), (text, after))
    ]
    assert kept[0][::2] == kept[1][::2]


@settings(max_examples=60, deadline=None)
@given(st.lists(CAPTIONS, min_size=1, max_size=4, unique_by=what_is_said), st.integers(0, 99))
def test_no_two_texts_of_an_image_say_the_same(texts: list[str], seed: int) -> None:
    rows = ladders(texts, seed)
    made = [text for row in rows for text in (row.hard_positive, row.hard_negative)]
    said = [*map(what_is_said, [*texts, *made])]
    assert len(set(said)) == len(said)


@settings(max_examples=30, deadline=None)
@given(CAPTIONS, st.integers(0, 99))
def test_distances_are_of_the_texts_and_rise_with_no_level_falling_to_nothing(
    text: str, seed: int
) -> None:
    for row in ladders([text], seed):
        assert row.hard_positive_words > 0
        assert row.hard_negative_words >= row.level
        assert row.hard_negative_characters >= row.hard_negative_words


SCRIPTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=40)
OF_ANY_SCRIPT = st.builds("{}{}{}".format, SCRIPTS, st.sampled_from(["", " ", "\u0301"]), CAPTIONS)


@settings(max_examples=60, deadline=None)
@given(st.lists(OF_ANY_SCRIPT | SCRIPTS, min_size=1, max_size=3))
def test_letters_of_any_script_break_nothing(texts: list[str]) -> None:
    for row in ladders(texts):
        _check_edits(row, row.hard_positive, row.caption_spans, row.hard_positive_spans)
        _check_edits(row, row.hard_negative, row.foil_spans, row.hard_negative_spans)


# --- models


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A CLIP, a BLIP and a classifier of inference, all of random weights."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("models")
    found = {"clip": save_clip(folder / "clip"), "nli": save_nli(folder / "nli")}
    return {**found, "blip": save_blip(folder / "blip")}


def save_nli(
    folder: Path, classes: Sequence[str] = ("contradiction", "neutral", "Entailment")
) -> Path:
    """Saves a BERT of random weights that classifies pairs of sentences."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = bert_tokenizer(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
        id2label=dict(enumerate(classes)),
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_models_say_how_far_the_texts_are(
    models: Mapping[str, Path], captions: Path, tmp_path: Path
) -> None:
    named = ("--embedding", f"clip:{models['clip']}", "--entailment", f"nli:{models['nli']}")
    rows = build(tmp_path / "out", "--captions", captions, *named)
    plain = build(tmp_path / "plain", "--captions", captions)

    for name, row in rows.items():
        for side in ("hard_positive", "hard_negative"):
            assert row[side] == plain[name][side]
            assert 0 <= row[f"{side}_embedding"] <= 2
            assert 0 < row[f"{side}_entailment"] < 1
            assert plain[name][f"{side}_embedding"] is plain[name][f"{side}_entailment"] is None
        assert row["embedding_model"].startswith("clip:clip@sha256:")
        assert row["entailment_model"].startswith("nli:nli@sha256:")
    settings = open_dataset(str(tmp_path / "out")).manifest.config
    assert settings["embedding"][0]["revision"].startswith("sha256:")
    assert str(tmp_path) not in json.dumps(settings)
    alone = build(tmp_path / "alone", "--captions", captions, *named, "--only", "one/2")
    assert alone == {"one/2": rows["one/2"]}


def test_a_model_of_another_kind_is_refused_before_any_work(
    models: Mapping[str, Path], captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = save_nli(tmp_path / "other", ("good", "bad"))
    for flag, model, said in (
        ("--embedding", f"blip-itm:{models['blip']}", "name a dual encoder, such as clip:MODEL"),
        ("--entailment", f"nli:{other}", "expected a model of natural language inference"),
    ):
        command = ["--captions", str(captions), flag, model, "--output", str(tmp_path / "out")]
        with pytest.raises(SystemExit):
            graded_captions.main(command)
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
