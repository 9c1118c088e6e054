import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.edits import Edit, Span, apply_edits
from tests.undone import invert


@st.composite
def texts_with_edits(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    text = draw(st.text(max_size=40))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return text, [Edit(start=a, end=b, replacement=draw(st.text(max_size=5))) for a, b in pairs]


def test_a_replacement_leaves_punctuation_and_spacing_alone() -> None:
    text = "A red  door , open."
    edited = apply_edits(
        text, [Edit(start=0, end=1, replacement="An"), Edit(start=2, end=5, replacement="ivory")]
    )
    assert edited.text == "An ivory  door , open."
    assert edited.spans_before == (Span(start=0, end=1), Span(start=2, end=5))
    assert edited.spans_after == (Span(start=0, end=2), Span(start=3, end=8))


@given(texts_with_edits())
def test_edits_are_undone_by_their_inverse(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    edited = apply_edits(text, edits)
    assert apply_edits(edited.text, invert(text, edited)).text == text


@given(texts_with_edits())
def test_outside_the_spans_the_text_is_the_same(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    edited = apply_edits(text, edits)

    def outside(whole: str, spans: tuple[Span, ...]) -> list[str]:
        starts = [0, *(span.end for span in spans)]
        ends = [*(span.start for span in spans), len(whole)]
        return [whole[start:end] for start, end in zip(starts, ends, strict=True)]

    assert outside(text, edited.spans_before) == outside(edited.text, edited.spans_after)
    assert [edited.text[span.start : span.end] for span in edited.spans_after] == [
        edit.replacement for edit in edits
    ]


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(start=0, end=3, replacement=""), Edit(start=2, end=4, replacement="")],
        [Edit(start=3, end=4, replacement=""), Edit(start=0, end=1, replacement="")],
        [Edit(start=0, end=6, replacement="")],
        [Edit(start=-1, end=0, replacement="")],
        [Edit(start=2, end=1, replacement="")],
    ],
    ids=["overlapping", "out of order", "past the end", "before the start", "backwards"],
)
def test_edits_that_cannot_be_told_apart_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match="expected sorted, separate edits"):
        apply_edits("a cat", edits)
