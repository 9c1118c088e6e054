from collections import Counter
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.text.lexicon import LexiconEntry, load_lexicon, with_inflections

HEADER = "kind\tgroup\tword\treplacement\tsynonymy\tsource\n"


def test_the_lexicon_holds_the_words_of_tables_4_to_6_and_riding() -> None:
    """Table 4 has 14 lines, "wearing, wears" in one; tables 5 and 6 have 23, not 24, words."""
    relations = {entry.word for entry in load_lexicon() if entry.kind == "relation"}
    assert len(relations - {"wears", "riding"}) == 14
    groups = Counter(entry.group for entry in load_lexicon() if entry.kind == "attribute")
    assert groups == {"action": 6, "color": 7, "size": 5, "state": 5}


def test_a_user_brings_another_lexicon(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text(HEADER + "attribute\tcolor\tgrey\tgray\tfull\tours\x85\n")
    assert load_lexicon(path) == (
        LexiconEntry(
            kind="attribute",
            group="color",
            word="grey",
            replacement="gray",
            synonymy="full",
            source="ours\x85",
        ),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected the columns"),
        ("word\treplacement\n", "line 1: expected the columns"),
        (HEADER + "attribute\tcolor\tgrey\n", "line 2: expected 6 columns, found 3"),
        (HEADER + "noun\tx\tgrey\tgray\tfull\to\n", "line 2: kind: expected relation or attribute"),
        (HEADER + "attribute\tx\tgrey\tgray\tso\to\n", "line 2: synonymy: expected full or weak"),
        (HEADER + "attribute\tx\tGrey\tgray\tfull\to\n", "line 2: word: expected lower case"),
        (HEADER + "attribute\tx\tgrey\t\tfull\to\n", "line 2: replacement: expected lower case"),
        (
            HEADER + "attribute\tx\tgrey\tgrey\tfull\to\n",
            "line 2: replacement: expected a word other",
        ),
        (
            HEADER + "attribute\tx\ta\tb\tfull\to\nattribute\tx\ta\tc\tfull\to\n",
            "line 3: 'attribute x a' appears twice",
        ),
    ],
)
def test_a_bad_lexicon_is_one_error_that_names_line_and_column(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        load_lexicon(path)


def test_a_missing_lexicon_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_lexicon(tmp_path / "none.tsv")


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
