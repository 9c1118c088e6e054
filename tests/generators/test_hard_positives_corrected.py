import dataclasses
import functools
import itertools
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.corrections import CHANGES, compare_modes, correct_all
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.hard_positives.corrected import RewordedFoil, find_foil, reword_foil
from eqforge.generators.text.hard_positives.published import PUBLISHED_GROUPS
from eqforge.generators.text.hard_positives.reconcile import REFUSALS, reconcile_image
from eqforge.generators.text.lexicon import Kind, Lexicon, load_lexicon, with_inflections
from eqforge.generators.text.lints.lint import lint_records
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.tables.texts import HardPositiveSample
from eqforge.sources.text_pairs import TextPair
from eqforge.sources.vl_checklist import VlChecklistRecord, read_vl_checklist
from tests.cases import cases_of
from tests.undone import invert

cases = cases_of(__file__)


class _Texts(NamedTuple):
    caption: str
    hard_positive: str
    hard_negative: str


@functools.cache
def _lexicon() -> Lexicon:
    return with_inflections(load_lexicon())


def _reword(
    kind: Kind, group: str, positive: str, negative: str, *, index: int = 0, weak: bool = True
) -> RewordedFoil | Rejection:
    record = VlChecklistRecord(
        index=index, image="1.jpg", positives=(positive,), negatives=(negative,)
    )
    return reword_foil(record, kind, group, _lexicon(), allow_weak=weak)


def _made(kind: Kind, group: str, positive: str, negative: str) -> RewordedFoil:
    made = _reword(kind, group, positive, negative)
    assert isinstance(made, RewordedFoil), made
    return made


def _reason(kind: Kind, group: str, positive: str, negative: str) -> str:
    refusal = _reword(kind, group, positive, negative)
    assert isinstance(refusal, Rejection), refusal
    return refusal.reason


@pytest.mark.parametrize(
    ("kind", "group", "positive", "negative", "hard_positive"),
    cases("the_foiled_word_is_replaced_and_nothing_else"),
)  # fmt: skip
def test_the_foiled_word_is_replaced_and_nothing_else(
    kind: Kind, group: str, positive: str, negative: str, hard_positive: str
) -> None:
    assert _made(kind, group, positive, negative).hard_positive == hard_positive


def test_spans_name_the_edits_in_all_three_captions() -> None:
    made = _made("attribute", "color", "a white cat", "a dark blue cat")
    assert (made.caption, made.hard_positive) == ("a white cat", "an ivory cat")
    parts = [made.caption[span.start : span.end] for span in made.edited.spans_before]
    assert parts == ["a", "white"]
    parts = [made.hard_positive[span.start : span.end] for span in made.edited.spans_after]
    assert parts == ["an", "ivory"]
    assert made.caption[made.foil.span.start : made.foil.span.end] == "white"
    negative = made.foil.negative_span
    assert made.hard_negative[negative.start : negative.end] == "dark blue"


def test_caption_and_negative_get_the_same_repairs() -> None:
    made = _made("attribute", "state", "fence  OF a old house ", "fence OF a young house")
    assert made.caption == "fence of an old house"
    assert made.hard_positive == "fence of an aged house"
    assert made.hard_negative == "fence of a young house"
    assert made.repairs == ("spacing", "case", "article")


def test_an_article_that_the_negative_lost_is_put_back() -> None:
    made = _made("relation", "action", "man wearing a shirt", "man eating shirt")
    assert made.hard_negative == "man eating a shirt"
    assert made.repairs == ("restored_article",)


@pytest.mark.parametrize(
    ("kind", "group", "positive", "negative", "reason"),
    cases("what_cannot_be_reworded_is_refused_with_a_reason"),
)  # fmt: skip
def test_what_cannot_be_reworded_is_refused_with_a_reason(
    kind: Kind, group: str, positive: str, negative: str, reason: str
) -> None:
    assert _reason(kind, group, positive, negative) == reason
    assert reason in REFUSALS


def test_weak_synonyms_can_be_switched_off() -> None:
    arguments: tuple[Kind, str, str, str] = ("attribute", "color", "silver car", "red car")
    assert isinstance(_reword(*arguments), RewordedFoil)
    refusal = _reword(*arguments, weak=False)
    assert isinstance(refusal, Rejection)
    assert refusal.reason == "weak_replacement"


def test_an_image_keeps_no_duplicate_and_no_contradiction() -> None:
    rows = [
        ("color", "red car", "tan car"),
        ("color", "Red  car", "tan car"),
        ("color", "black car", "red car"),
        ("size", "small dog", "big dog"),
        ("state", "young dog", "tiny dog"),
    ]
    made = [_reword("attribute", *each) for each in rows]
    found = {str(n): each for n, each in enumerate(made) if isinstance(each, RewordedFoil)}
    found["z"] = dataclasses.replace(found["0"], caption="a", hard_negative="tiny dog")
    expected = {
        "1": "duplicate",
        "2": "negative_true_elsewhere",
        "3": "hard_positive_false_elsewhere",
    }
    for order in itertools.permutations(found, len(found)):
        refusals = reconcile_image({name: found[name] for name in order})
        reasons = {name: each.reason for name, each in refusals.items()}
        assert reasons == expected


def test_captions_known_from_elsewhere_count_too() -> None:
    candidate = _made("attribute", "color", "red car", "tan car")
    assert reconcile_image({"1": candidate}) == {}
    (refusal,) = reconcile_image({"1": candidate}, true_captions=["Tan car."]).values()
    assert refusal.reason == "negative_true_elsewhere"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (("red car", "crimson car", "Red, car!"), "negative_equals_positive"),
        (("a red car", "a crimson car", "A  crimson-car."), "hard_positive_equals_negative"),
        (("an old car", "a Old car", "a new car"), "hard_positive_equals_caption"),
        (("a red car", "a crimson car", "a tan car"), None),
        (tuple("dog " * 80 + word for word in ("car", "auto", "bus")), "edit_beyond_context"),
        (
            (f"car {'dog ' * 80}x", f"auto {'dog ' * 80}x", f"auto {'dog ' * 80}y"),
            "edit_beyond_context",
        ),
        (("car " + "dog " * 80, "auto " + "dog " * 80, "bus " + "dog " * 80), None),
    ],
)
def test_texts_that_say_the_same_go_up_to_case_space_punctuation_and_article(
    texts: tuple[str, str, str], reason: str | None
) -> None:
    found = reconcile_image({"1": _Texts(*texts)}).get("1")
    assert (None if found is None else found.reason) == reason


def test_the_negative_of_a_row_that_contradicts_itself_speaks_against_no_other() -> None:
    sound = _Texts("red car", "crimson car", "tan car")
    identity = _Texts("red car", "crimson car", "crimson car")
    refusals = reconcile_image({"1": identity, "2": sound})
    assert {name: r.reason for name, r in refusals.items()} == {
        "1": "hard_positive_equals_negative"
    }


@given(st.text(max_size=60), st.text(max_size=60))
def test_foils_of_any_two_texts_are_the_words_at_their_spans(left: str, right: str) -> None:
    foil = find_foil(left, right)
    if foil is not None:
        assert 0 <= foil.span.start <= foil.span.end <= len(left)
        assert 0 <= foil.negative_span.start <= foil.negative_span.end <= len(right)
        assert bool(foil.words) == (foil.span.start < foil.span.end)


WORDS = st.lists(
    st.sampled_from(["a", "an", "white", "red", "old", "cat", "OF", "Éa", "ice-", "in", ","])
)


@given(WORDS, WORDS, st.sampled_from(["white", "red", "old"]))
def test_edits_can_be_undone_whatever_stands_around(
    before: list[str], behind: list[str], word: str
) -> None:
    group = "state" if word == "old" else "color"
    positive, negative = (
        " ".join([*before, changed, *behind]) for changed in (word, "zebra-striped")
    )
    made = _reword("attribute", group, positive, negative)
    if isinstance(made, RewordedFoil):
        text = made.hard_positive
        undo: tuple[Edit, ...] = invert(made.caption, made.edited)
        for edit in reversed(undo):
            text = text[: edit.start] + edit.replacement + text[edit.end :]
        assert text == made.caption


def _records(folder: Path, kind: Kind) -> dict[str, list[VlChecklistRecord]]:
    root = folder / "vl_checklist" / "data" / kind.capitalize() / "vg"
    return {group: read_vl_checklist(root / f"{group}.json") for group in PUBLISHED_GROUPS[kind]}


@pytest.mark.parametrize("lexicon", [None, load_lexicon()], ids=["rules", "lexicon"])
def test_corrected_vl_checklist_has_no_defect(data_folder: Path, lexicon: Lexicon | None) -> None:
    """Each twelfth record is kept or refused with a reason; lint finds nothing in what is kept."""
    made: list[HardPositiveSample | Rejection] = []
    for kind in PUBLISHED_GROUPS:
        some = {name: records[::12] for name, records in _records(data_folder, kind).items()}
        made += correct_all(some, kind, lexicon).values()
    kept = [outcome for outcome in made if isinstance(outcome, HardPositiveSample)]
    assert len(made) == 5_044
    assert {each.reason for each in made if isinstance(each, Rejection)} <= set(REFUSALS)
    assert len(kept) == (582 if lexicon is None else 2_237)
    findings = lint_records(
        TextPair(
            pair_id=row.sample_id,
            image=row.image,
            positive=row.caption,
            negative=row.hard_negative,
            hard_positive=row.hard_positive,
        )
        for row in kept
    )
    assert [finding for finding in findings if finding.severity != "note"] == []


def test_the_comparison_of_the_modes_balances(data_folder: Path) -> None:
    records = _records(data_folder, "attribute")
    comparison = compare_modes(records, "attribute", load_lexicon())
    touched = comparison.touched
    dropped = sum(rows for change, rows in touched.items() if change.startswith("dropped"))
    assert comparison.published == 10_575
    assert comparison.published - dropped + touched["added"] == comparison.corrected
    assert touched["hard positive: whole words"] == 10
    assert set(touched) <= set(CHANGES)
    assert f"| corrected | {comparison.corrected:,} | |" in comparison.as_markdown()
