import dataclasses
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.granularity import measure_granularity
from eqforge.generators.text.perturbations.catalogue import (
    PERTURBATIONS,
    Rules,
    names_of,
    perturb,
    perturb_all,
)
from eqforge.generators.text.perturbations.corrected import find_words
from eqforge.generators.text.perturbations.record import (
    Perturbation,
    PerturbationSettings,
    Reason,
)
from eqforge.generators.text.taggers import load_tagger
from tests.undone import invert

TYPOS, SYNONYMS, DISTRACTIONS, SHUFFLES = (
    [name for name in PERTURBATIONS if "char" in name.split("_")],
    [name for name in PERTURBATIONS if name.startswith("synonym")],
    [name for name in PERTURBATIONS if name.startswith("distraction")],
    [name for name in PERTURBATIONS if name.startswith("shuffle")],
)
PAPER = PerturbationSettings(mode="paper")
REFUSALS = {
    **dict.fromkeys(TYPOS, Reason.NO_WORD_TO_EDIT),
    **dict.fromkeys(SYNONYMS, Reason.NO_SYNONYM),
    **dict.fromkeys(DISTRACTIONS, Reason.NO_WORDS),
    **dict.fromkeys(SHUFFLES, Reason.ONE_ORDER_ONLY),
}
WORDS = (
    "a A the man's dog dogs red big couch t-shirt runs, on . ... \u00e9t\u00e9 \u00dfs 8 # isn't"
)
CAPTIONS = st.text(max_size=40) | st.lists(
    st.sampled_from([*WORDS.split(), " ", "\n", "\u3000"]), max_size=14
).map(" ".join)


def check_spans(caption: str, result: Perturbation) -> None:
    """Outside the spans nothing changed, and the edits can be undone."""
    edited = EditedText(
        text=result.text, spans_before=result.spans_before, spans_after=result.spans_after
    )
    assert apply_edits(result.text, invert(caption, edited)).text == caption


def check_corrected(caption: str, result: Perturbation) -> None:
    check_spans(caption, result)
    assert result.words_changed <= result.applied
    assert result.words_changed == result.applied or not caption.isascii()
    if result.applied:
        assert result.reason is None
        assert result.text.casefold() != caption.casefold()
        assert result.spans_before
    else:
        assert result.reason is REFUSALS[result.name]
        assert (result.text, result.spans_before) == (caption, ())
    if result.name in SHUFFLES:
        check_permutation(caption, result.text)


def check_permutation(caption: str, shuffled: str) -> None:
    """The same words in any case, and the same punctuation and white space between them."""
    assert Counter(shuffled.casefold()) == Counter(caption.casefold())
    assert [len(gap) for gap in re.findall(r"\s+", shuffled)] == [
        len(gap) for gap in re.findall(r"\s+", caption)
    ]


@pytest.mark.usefixtures("wordnet")
@given(CAPTIONS, st.integers(0, 2**63 - 1))
def test_any_caption_is_perturbed_or_refused_with_its_reason(caption: str, seed: int) -> None:
    (analysis,) = load_tagger().analyse([caption])
    results = perturb_all(analysis, "id", seed)
    assert [result.name for result in results] == list(PERTURBATIONS)
    for result in results:
        check_corrected(caption, result)


@pytest.mark.usefixtures("wordnet")
@given(CAPTIONS, st.integers(0, 2**63 - 1))
def test_word_shuffles_permute_words(caption: str, seed: int) -> None:
    (analysis,) = load_tagger().analyse([caption])
    before = [caption[start:end] for start, end in find_words(caption)]
    for name in SHUFFLES[1:]:
        after = perturb(name, analysis, seed).text
        found = [after[start:end] for start, end in find_words(after)]
        assert sorted(map(str.casefold, found)) == sorted(map(str.casefold, before))


@pytest.mark.usefixtures("wordnet")
@given(CAPTIONS, st.integers(0, 2**63 - 1))
def test_paper_mode_takes_any_caption(caption: str, seed: int) -> None:
    (analysis,) = load_tagger().analyse([caption])
    for result in perturb_all(analysis, "id", seed, PAPER):
        check_spans(caption, result)
        assert result.applied == (result.text != caption[:300])
        assert result.words_changed <= result.applied
        assert result.applied == (result.reason is None)


@pytest.mark.usefixtures("wordnet")
def test_a_caption_is_perturbed_alike_wherever_it_stands_and_otherwise_under_other_ids() -> None:
    text = "A big dog sits near the red couch, on a rug."
    (analysis,) = load_tagger().analyse([text])
    (among_others,) = load_tagger().analyse(["x", text])[1:]
    first = perturb_all(analysis, "coco/1", 7)
    assert perturb_all(among_others, "coco/1", 7) == first
    assert perturb_all(analysis, "coco/2", 7) != first
    assert perturb_all(analysis, "coco/1", 8) != first
    assert perturb_all(analysis, "coco/1", 0) != first


@pytest.mark.usefixtures("wordnet")
def test_more_words_are_replaced_on_demand() -> None:
    (analysis,) = load_tagger().analyse(["a couch on a rug"])
    two = PerturbationSettings(max_synonyms=2)
    assert perturb("synonym_noun", analysis, 0, two).text == "a sofa on a carpet"


@pytest.mark.usefixtures("wordnet")
def test_a_spacy_pipeline_serves_as_well(pipeline_folder: Path) -> None:
    captions = ["A dog's t-shirt, near a  close-up of the red cat.", "Two big dogs\nrun", "", "-"]
    for caption, analysis in zip(
        captions, load_tagger(str(pipeline_folder)).analyse(captions), strict=True
    ):
        for result in perturb_all(analysis, "id", 0):
            check_corrected(caption, result)
        for result in perturb_all(analysis, "id", 0, PAPER):
            check_spans(caption, result)


@pytest.mark.usefixtures("wordnet")
def test_another_process_with_another_hash_seed_perturbs_alike() -> None:
    captions = ["A big dog sits near the red couch, on a rug.", "Two kids' t-shirts\nare wet!"]
    code = (
        "import json,sys,dataclasses as d\n"
        "from eqforge.generators.text.taggers import load_tagger\n"
        "from eqforge.generators.text.perturbations.catalogue import *\n"
        "out=[[d.asdict(p) for p in perturb_all(a,str(i),1,PerturbationSettings(mode=m))]\n"
        "     for m in ('corrected','paper')\n"
        "     for i,a in enumerate(load_tagger().analyse(json.loads(sys.argv[1])))]\n"
        "print(json.dumps(out))"
    )
    there = subprocess.run(
        [sys.executable, "-c", code, json.dumps(captions)],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        check=True,
    ).stdout
    analyses = load_tagger().analyse(captions)
    here = [
        [dataclasses.asdict(result) for result in perturb_all(analysis, str(i), 1, mode)]
        for mode in (PerturbationSettings(), PAPER)
        for i, analysis in enumerate(analyses)
    ]
    assert json.loads(there) == json.loads(json.dumps(here))


@pytest.mark.usefixtures("wordnet")
def test_coco_captions_are_perturbed_and_measured(data_folder: Path) -> None:
    """The books balance over every 24th caption, and none raises; paper mode on every 120th."""
    path = data_folder / "coco" / "captions_val2017.json"
    records: list[dict[str, Any]] = json.loads(path.read_text())["annotations"][::24]
    analyses = load_tagger().analyse([record["caption"] for record in records])
    books = Counter[tuple[str, str | None]]()
    for position, (record, analysis) in enumerate(zip(records, analyses, strict=True)):
        for result in perturb_all(analysis, f"coco/{record['id']}", 0):
            check_corrected(record["caption"], result)
            books[result.name, result.reason] += 1
        if position % 5 == 0:
            for result in perturb_all(analysis, f"coco/{record['id']}", 0, PAPER):
                check_spans(record["caption"], result)
        measure_granularity(analysis)
    assert len(records) == 1_043
    for name in PERTURBATIONS:
        assert sum(books[name, reason] for reason in (None, *Reason)) == len(records)
    for name in (*TYPOS, *DISTRACTIONS, *SHUFFLES):
        assert books[name, None] > 0.99 * len(records)
    assert books["synonym_noun", None] > 0.6 * len(records)
    assert books["synonym_adj", None] > 0.18 * len(records)


def test_a_perturbation_that_was_not_published_is_left_out_of_paper_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def echo(
        analysis: Analysis, rng: random.Random, settings: PerturbationSettings
    ) -> list[Edit] | Reason:
        assert settings.mode == "corrected"
        end = len(analysis.text)
        return [Edit(start=end, end=end, replacement=f" {analysis.text}")]

    monkeypatch.setitem(PERTURBATIONS, "echo", Rules(echo))
    (analysis,) = load_tagger().analyse(["A dog."])
    assert perturb("echo", analysis, 0).text == "A dog. A dog."
    assert "echo" in names_of("corrected")
    assert "echo" not in names_of("paper")
    with pytest.raises(KeyError, match="echo"):
        perturb("echo", analysis, 0, PAPER)
