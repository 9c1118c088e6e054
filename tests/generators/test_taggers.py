import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.core.errors import InputError
from eqforge.generators.text.analysis import Analysis, Tagger, is_noun
from eqforge.generators.text.taggers import find_noun_phrases, lemmatise, load_tagger, repair_tags
from tests.cases import cases_of

cases = cases_of(__file__)


@pytest.fixture(scope="module")
def lexicon() -> Tagger:
    return load_tagger()


def check_spans(analysis: Analysis) -> None:
    """Spans name their tokens, in order; only white space lies between."""
    done = 0
    for token in analysis.tokens:
        assert token.text
        assert analysis.text[token.start : token.end] == token.text
        assert not analysis.text[done : token.start].strip()
        done = token.end
    assert not analysis.text[done:].strip()
    done = 0
    for first, last in analysis.noun_phrases:
        assert done <= first < last <= len(analysis.tokens)
        done = last


def tags_of(tagger: Tagger, text: str) -> dict[str, str]:
    return {token.text: token.tag for token in tagger.analyse([text])[0].tokens}


def test_a_caption_is_tagged_by_lexicon_and_context(lexicon: Tagger) -> None:
    (analysis,) = lexicon.analyse(["Two women's bikes are parked near a white sink , isn't it?"])
    assert [(token.text, token.tag, token.lemma) for token in analysis.tokens] == [
        ("Two", "CD", "two"),
        ("women", "NNS", "woman"),
        ("'s", "POS", "'s"),
        ("bikes", "NNS", "bike"),
        ("are", "VBP", "be"),
        ("parked", "VBN", "park"),
        ("near", "IN", "near"),
        ("a", "DT", "a"),
        ("white", "JJ", "white"),
        ("sink", "NN", "sink"),
        (",", ",", ","),
        ("is", "VBZ", "be"),
        ("n't", "RB", "not"),
        ("it", "PRP", "it"),
        ("?", ".", "?"),
    ]
    assert analysis.noun_phrases == ((0, 4), (7, 10), (13, 14))


@pytest.mark.parametrize(
    ("text", "word", "tag"),
    [
        ("Zebras graze in a field.", "Zebras", "NNS"),  # unknown, capital at the start
        ("Woman on a bench", "Woman", "NN"),  # the lexicon knows "Woman" as a name
        ("A MAN ON A HORSE", "HORSE", "NN"),
        ("A dog named Obama", "Obama", "NNP"),
        ("2 cats", "2", "CD"),
        ("a cat - black", "-", "HYPH"),
        ("a cat \u2192 black", "\u2192", "SYM"),
    ],
)
def test_capitals_numbers_and_signs_are_tagged_by_form(
    lexicon: Tagger, text: str, word: str, tag: str
) -> None:
    assert tags_of(lexicon, text)[word] == tag


def test_lemmas_follow_the_part_of_speech() -> None:
    assert [lemmatise("saw", "NN"), lemmatise("saw", "VBD")] == ["saw", "see"]
    assert [lemmatise("leaves", "NNS"), lemmatise("leaves", "VBZ")] == ["leaf", "leave"]
    assert [lemmatise("bigger", "JJR"), lemmatise("other", "JJ")] == ["big", "other"]
    assert lemmatise("Mice", "NNS") == "mouse"
    assert lemmatise("'s", "VBZ") == "be"


@given(st.text(max_size=60))
def test_any_text_can_be_analysed(text: str) -> None:
    (analysis,) = load_tagger().analyse([text])
    assert analysis.text == text
    check_spans(analysis)


def test_the_name_says_which_versions_tag(lexicon: Tagger) -> None:
    assert lexicon.name.startswith("lexicon/1 (textblob 0.20")
    assert lexicon.analyse(["a cat"])[0].tagger == lexicon.name


def test_a_users_spacy_pipeline_tags_and_parses(pipeline_folder: Path) -> None:
    tagger = load_tagger(str(pipeline_folder))
    text = "A dog sits on the  mat\n"  # two spaces and a line break: spaCy makes tokens of them
    (analysis,) = tagger.analyse([text])
    check_spans(analysis)
    assert [token.tag for token in analysis.tokens] == ["DT", "NN", "VBZ", "IN", "DT", "NN"]
    assert [token.lemma for token in analysis.tokens][2] == "sit"
    assert analysis.noun_phrases == ((0, 2), (4, 6))
    assert tagger.name.startswith("spacy/1 (en_pipeline 0.0.0, spacy 3.")


def test_a_spacy_pipeline_without_a_parser_gets_phrases_from_the_grammar(
    pipeline_folder: Path, tmp_path: Path
) -> None:
    import spacy

    nlp = spacy.load(pipeline_folder, exclude=["parser"])
    nlp.to_disk(tmp_path / "tagger-only")
    (analysis,) = load_tagger(str(tmp_path / "tagger-only")).analyse(["The red cat sleeps"])
    assert analysis.noun_phrases == ((0, 3),)


def test_spacy_analyses_do_not_depend_on_the_batch(pipeline_folder: Path) -> None:
    tagger = load_tagger(str(pipeline_folder))
    texts = ["A dog sits", "", "The red cat sleeps", "caf\u00e9 \U0001f600  x"]
    alone = [tagger.analyse([text])[0] for text in texts]
    assert tagger.analyse(texts) == alone
    for analysis in alone:
        check_spans(analysis)


def test_a_spacy_pipeline_that_is_unknown_or_does_not_tag_is_one_clear_error(
    tmp_path: Path,
) -> None:
    import spacy

    with pytest.raises(InputError, match="spaCy cannot load 'no_such_model'"):
        load_tagger("no_such_model")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(
        InputError, match="assigns no part-of-speech tags; choose a different pipeline"
    ):
        load_tagger(str(tmp_path / "blank"))


def test_coco_captions_are_analysed_whole(lexicon: Tagger, data_folder: Path) -> None:
    path = data_folder / "coco" / "captions_val2017.json"
    captions = [item["caption"] for item in json.loads(path.read_text())["annotations"]]
    sample = random.Random(0).sample(captions, 2_000)
    analyses = lexicon.analyse(sample)
    for analysis in analyses:
        check_spans(analysis)
    with_noun = [a for a in analyses if any(is_noun(token) for token in a.tokens)]
    assert len(with_noun) > 0.99 * len(sample)


@pytest.mark.parametrize(("tagged", "phrases"), cases("noun_phrases_are_found_by_the_grammar"))
def test_noun_phrases_are_found_by_the_grammar(tagged: str, phrases: str) -> None:
    pairs = [item.rsplit("/", 1) for item in tagged.split()]
    found = find_noun_phrases([tag for _, tag in pairs])
    words = [" ".join(word for word, _ in pairs[first:last]) for first, last in found]
    assert " | ".join(words) == phrases


@pytest.mark.parametrize(("tagged", "word", "repaired"), cases("tags_follow_the_words_around"))
def test_tags_follow_the_words_around(tagged: str, word: str, repaired: str) -> None:
    pairs = [item.rsplit("/", 1) for item in tagged.split()]
    words, tags = zip(*pairs, strict=True)
    assert repair_tags(words, tags)[words.index(word)] == repaired
