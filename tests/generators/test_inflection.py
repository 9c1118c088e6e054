from eqforge.generators.text.lexicon import load_lexicon, with_inflections
from eqforge.generators.text.parts import inflect_word


def test_words_are_inflected_by_the_dictionary() -> None:
    assert inflect_word("stroll", "VBZ") == "strolls"
    assert inflect_word("tiny", "JJS") == "tiniest"
    assert inflect_word("chestnut", "JJR") is None


def test_entries_inflect_where_both_sides_do() -> None:
    forms = {
        (entry.group, entry.word): entry.replacement for entry in with_inflections(load_lexicon())
    }
    assert forms["action", "holds"] == "grasps"
    assert forms["action", "held"] == "grasped"
    assert forms["action", "rides on"] == "travels on"
    assert forms["size", "largest"] == "biggest"
    assert ("action", "sits") not in forms  # "seated" has no such form
    assert ("color", "whiter") not in forms


def test_the_given_entries_stay_first_and_none_stands_twice() -> None:
    lexicon = load_lexicon()
    expanded = with_inflections(lexicon)
    assert [entry for entry in expanded if "inflected" not in entry.source] == list(lexicon)
    keys = [(entry.kind, entry.group, entry.word) for entry in expanded]
    assert len(set(keys)) == len(keys)
