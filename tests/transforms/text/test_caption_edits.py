from typing import Any

import pytest

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.text import perturb
from eqforge.transforms.text.caption_edits import CaptionEdit, EditRules, edit_captions
from eqforge.transforms.text.perturb import tagger_of

RULES = EditRules(seed=3, lexicon=load_lexicon(None))
CAPTIONS = (
    CaptionRecord(caption_id="one", image="a.jpg", caption="A white dog sleeps under the table."),
    CaptionRecord(caption_id="two", image="a.jpg", caption="A dog and a cat on a sofa."),
    CaptionRecord(caption_id="three", image="b.jpg", caption="A man holds a red umbrella."),
)


def test_edits_come_with_spans_outside_of_which_nothing_changed() -> None:
    for made in edit_captions(CAPTIONS, RULES):
        for edit in (made.positive, made.negative):
            assert isinstance(edit, CaptionEdit)
            kept = []
            for text, spans in (
                (made.record.caption, edit.edited.spans_before),
                (edit.edited.text, edit.edited.spans_after),
            ):
                for span in reversed(spans):
                    text = text[: span.start] + text[span.end :]
                kept.append(text)
            assert kept[0] == kept[1]
            assert edit.edited.text != made.record.caption


def test_a_caption_is_edited_alike_in_any_company_of_other_images() -> None:
    together = {made.record.caption_id: made for made in edit_captions(CAPTIONS, RULES)}
    backwards = edit_captions(reversed(CAPTIONS), RULES)

    assert [together[made.record.caption_id] for made in backwards] == backwards
    assert edit_captions(CAPTIONS[2:], RULES) == [together["three"]]


@pytest.mark.parametrize("seed", range(8))
def test_what_another_caption_of_the_image_names_is_in_no_hard_negative(seed: int) -> None:
    rules = EditRules(seed=seed, lexicon=RULES.lexicon, kinds=("replace_object",))

    made = edit_captions(CAPTIONS, rules)[0].negative

    assert isinstance(made, CaptionEdit)
    assert not {"cat", "sofa"} & set(made.edited.text.rstrip(".").lower().split())


def test_no_hard_negative_says_what_another_caption_of_the_image_says() -> None:
    """Exchanged, the adjectives of the first caption give the second one."""
    rules = EditRules(seed=3, lexicon=RULES.lexicon, kinds=("swap_attribute",))
    first = CaptionRecord(
        caption_id="1", image="a.jpg", caption="A black cat sits behind a white dog."
    )
    second = CaptionRecord(
        caption_id="2", image="a.jpg", caption="a white cat sits behind a black dog"
    )

    (alone,) = edit_captions([first], rules)
    together = edit_captions([first, second], rules)

    assert isinstance(alone.negative, CaptionEdit)
    assert alone.negative.edited.text == "A white cat sits behind a black dog."
    refused = Rejection(reason="no_hard_negative", detail="swap_attribute: true_of_image")
    assert [each.negative for each in together] == [refused, refused]


def test_a_caption_that_breaks_the_tagger_breaks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {made.record.caption_id: made for made in edit_captions(CAPTIONS, RULES)}

    class Breaking:
        """The tagger, but for captions about umbrellas."""

        def analyse(self, captions: Any) -> list[Analysis]:
            if any("umbrella" in text for text in captions):
                raise ValueError("no umbrellas")
            return list(tagger_of(None).analyse(captions))

    monkeypatch.setattr(perturb, "tagger_of", lambda _: Breaking())
    found = {made.record.caption_id: made for made in edit_captions(CAPTIONS, RULES)}

    error = Rejection(reason="error:ValueError", detail="no umbrellas")
    assert (found["three"].positive, found["three"].negative) == (error, error)
    assert [found[name] for name in ("one", "two")] == [expected[name] for name in ("one", "two")]


def test_there_is_and_negation_are_drawn_where_nothing_else_can_be() -> None:
    captions = [
        CaptionRecord(caption_id=str(n), image=f"{n}.jpg", caption="A man holds a red umbrella.")
        for n in range(40)
    ]
    alone = CaptionRecord(caption_id="alone", image="alone.jpg", caption="An apple.")

    made = edit_captions(captions, RULES)
    families = {_kind(each.positive).partition("/")[0] for each in made}
    negatives = {_kind(each.negative) for each in made}

    assert len(families) > 2
    assert "existential" not in families
    assert negatives == {"replace_object", "replace_attribute", "replace_relation"}
    assert _kind(edit_captions([alone], RULES)[0].positive) == "existential/add_there_is"


def _kind(edit: CaptionEdit | Rejection) -> str:
    assert isinstance(edit, CaptionEdit)
    return edit.kind
