from typing import Any

import pytest

from eqforge.schemas.records.scores import Rejection
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.text.caption_edits import CaptionEdit, EditRules, edit_captions
from eqforge.transforms.text.hard_positive_samples import free_sample
from eqforge.transforms.text.hard_positives import draw_captions, edit_as_drawn, possible_edits
from tests.transforms.text.test_caption_edits import CAPTIONS

RULES = EditRules(seed=3)


def _edited(seed: int) -> list[Any]:
    rules = EditRules(seed=seed)
    return list(edit_as_drawn(CAPTIONS, rules, draw_captions([CAPTIONS], rules)))


def test_the_hard_positives_are_those_that_are_made_without_balance() -> None:
    plain = [each.positive for each in edit_captions(CAPTIONS, RULES)]
    assert [each.edited.positive for each in possible_edits(CAPTIONS, RULES)] == plain


def test_what_is_drawn_without_balance_is_possible_with_it() -> None:
    possible: dict[str, set[str]] = {}
    for seed in range(12):  # of some seeds the negatives are of the caption, not its rewording
        for each in possible_edits(CAPTIONS, EditRules(seed=seed)):
            if not each.edited.of_positive:
                texts = possible.setdefault(each.edited.record.caption_id, set())
                texts.update(negative.edited.text for negative in each.negatives)
    for made in edit_captions(CAPTIONS, RULES):
        assert isinstance(made.negative, CaptionEdit)
        assert made.negative.edited.text in possible[made.record.caption_id]


def test_a_caption_has_the_same_negatives_in_any_company_of_other_images() -> None:
    together = {each.edited.record.caption_id: each for each in possible_edits(CAPTIONS, RULES)}
    assert possible_edits(CAPTIONS[2:], RULES) == [together["three"]]
    backwards = possible_edits(reversed(CAPTIONS), RULES)
    assert backwards == [together[each.edited.record.caption_id] for each in backwards]


@pytest.mark.parametrize("seed", range(8))
def test_negatives_are_edits_of_the_caption_or_of_its_hard_positive(seed: int) -> None:
    for each in _edited(seed):
        if isinstance(each.negative, Rejection):
            assert each.negative == Rejection(reason="unbalanced")
            continue
        kept = []
        edit = each.negative.edited
        for text, spans in ((each.base, edit.spans_before), (edit.text, edit.spans_after)):
            for span in reversed(spans):
                text = text[: span.start] + text[span.end :]
            kept.append(text)
        assert kept[0] == kept[1]


@pytest.mark.parametrize("seed", range(8))
def test_rows_hold_both_true_texts_and_say_which_is_the_source_s(seed: int) -> None:
    for each in _edited(seed):
        sample = free_sample(each)
        if isinstance(sample, Rejection):
            continue
        assert isinstance(each.positive, CaptionEdit)
        source, reworded = each.record.caption, each.positive.edited.text
        is_reversed = sample.hard_positive_kind.endswith("/reversed")
        texts = (reworded, source) if is_reversed else (source, reworded)
        assert (sample.caption, sample.hard_positive) == texts
        for text, spans in (
            (sample.caption, sample.caption_spans),
            (sample.hard_positive, sample.hard_positive_spans),
            (sample.caption, sample.foil_spans),
            (sample.hard_negative, sample.hard_negative_spans),
        ):
            assert all(0 <= span.start <= span.end <= len(text) for span in spans)


def test_all_ways_to_take_the_texts_are_taken_alike_often() -> None:
    records = [
        CaptionRecord(caption_id=str(n), image=f"{n}.jpg", caption=CAPTIONS[2].caption)
        for n in range(400)
    ]
    ways = [
        (each.edited.of_positive, each.edited.exchanged) for each in possible_edits(records, RULES)
    ]
    for way in ((False, False), (False, True), (True, False), (True, True)):
        assert 70 < ways.count(way) < 130


def test_what_has_no_hard_positive_or_negative_says_why() -> None:
    records = [CaptionRecord(caption_id="1", image="a.jpg", caption="Zzz")]
    (made,) = edit_as_drawn(records, RULES, draw_captions([records], RULES))
    assert made.positive == made.negative
    assert isinstance(made.negative, Rejection)
    assert made.negative.reason == "no_rewording"
