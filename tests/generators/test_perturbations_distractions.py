import pytest

from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.perturbations.catalogue import add_statement
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.taggers import load_tagger


@pytest.mark.parametrize(
    ("caption", "distracted"),
    [
        ("A cat on a mat.", "A cat on a mat, and true is true."),
        ("a cat on a mat", "a cat on a mat, and true is true"),
        ("A cat on a mat. \n", "A cat on a mat, and true is true. \n"),
        ("a cat on a mat  ", "a cat on a mat, and true is true  "),
        ("What a cat!", "What a cat! True is true."),
        ("Where is it...", "Where is it... True is true."),
        ('The sign says "stop."', 'The sign says "stop." True is true.'),
        ("The sign says (stop)", "The sign says (stop), and true is true"),
        ("Parked in the U.S.", "Parked in the U.S. True is true."),
        ("a cat,", "a cat, and true is true"),
    ],
)
def test_a_statement_joins_the_sentence_before_its_end(caption: str, distracted: str) -> None:
    (analysis,) = load_tagger().analyse([caption])
    edits = add_statement(analysis, "true is true")
    assert not isinstance(edits, Reason)
    assert apply_edits(caption, edits).text == distracted


@pytest.mark.parametrize("caption", ["", "  ", "...", '"?"'])
def test_a_caption_without_words_is_refused(caption: str) -> None:
    (analysis,) = load_tagger().analyse([caption])
    assert add_statement(analysis, "true is true") is Reason.NO_WORDS
