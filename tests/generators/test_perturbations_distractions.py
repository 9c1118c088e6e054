import pytest

from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.perturbations.catalogue import add_statement
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.taggers import load_tagger
from tests.cases import cases_of

cases = cases_of(__file__)


@pytest.mark.parametrize(
    ("caption", "distracted"), cases("a_statement_joins_the_sentence_before_its_end")
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
