"""Provide two taggers: the user's spaCy pipeline if there is one, else textblob's lexicon."""

import functools
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from eqforge.core.errors import InputError, importing
from eqforge.core.identity import version
from eqforge.generators.text.analysis import Analysis, Tagger, Token, find_tokens
from eqforge.generators.text.parts import english, lemmatizer
from eqforge.generators.text.words import read_table, word_set

_CLASSES = {
    **dict.fromkeys(("DT", "PDT", "PRP$", "WP$"), "D"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "A"),
    **dict.fromkeys(("RB", "RBR", "RBS"), "R"),
    **dict.fromkeys(("VBG", "VBN"), "V"),
    **dict.fromkeys(("NN", "NNS", "NNP", "NNPS"), "N"),
    **dict.fromkeys(("PRP", "EX", "WP"), "P"),
    "CD": "C",
    "HYPH": "H",
    "POS": "S",
}
_CORE = "[RAVCH]*N+"
_PHRASE = re.compile(rf"(?:[DC]+{_CORE}|A[RAVCH]*N+|N+)(?:S{_CORE})*|P")


def find_noun_phrases(tags: Sequence[str]) -> tuple[tuple[int, int], ...]:
    letters = "".join(_CLASSES.get(tag, "x") for tag in tags)
    return tuple(match.span() for match in _PHRASE.finditer(letters))


if TYPE_CHECKING:
    from spacy.tokens import Doc

LEXICON_TAGGER_VERSION = 1
SPACY_TAGGER_VERSION = 1
_UNIVERSAL = {
    **dict.fromkeys(("NN", "NNS"), "NOUN"),
    **dict.fromkeys(("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"), "VERB"),
    **dict.fromkeys(("JJR", "JJS"), "ADJ"),
    **dict.fromkeys(("RBR", "RBS"), "ADV"),
}
_CLITIC_LEMMAS = {"n't": "not", "'re": "be", "'m": "be", "'ve": "have", "'ll": "will"}
_NOUN_LEMMAS = {"leaves": "leaf"}  # not "leave", which lemminflect returns first


def load_tagger(spacy_model: str | None = None) -> Tagger:
    return LexiconTagger() if spacy_model is None else SpacyTagger(spacy_model)


class LexiconTagger:
    """Tags with textblob's word lexicon (pattern.en), repaired by rules for captions.

    Lemmas come from lemminflect, noun phrases from the tags. Needs no data beyond the wheels.
    """

    def __init__(self) -> None:
        self._lexicon, self._tag_words = english().lexicon, english().parser.find_tags
        self.name = (
            f"lexicon/{LEXICON_TAGGER_VERSION} "
            f"(textblob {version('textblob')}, lemminflect {version('lemminflect')})"
        )

    def analyse(self, texts: Sequence[str]) -> list[Analysis]:
        return [self._analyse(text) for text in texts]

    def _analyse(self, text: str) -> Analysis:
        spans = [(match[0], *match.span()) for match in find_tokens(text)]
        words = [word for word, _, _ in spans]
        tagged = self._tag_words(self._lower_start(words))
        tags = [_plain_tag(word, tag) for word, (_, tag) in zip(words, tagged, strict=True)]
        tags = repair_tags(words, tags)
        return Analysis(
            text=text,
            tokens=tuple(
                Token(text=word, start=start, end=end, tag=tag, lemma=lemmatise(word, tag))
                for (word, start, end), tag in zip(spans, tags, strict=True)
            ),
            noun_phrases=find_noun_phrases(tags),
            tagger=self.name,
        )

    def _lower_start(self, words: list[str]) -> list[str]:
        """Undo a sentence's initial capital, which the lexicon would take for a name's."""
        if not words:
            return words
        if all(word.isupper() for word in words if word.isalpha()):
            return [word.lower() for word in words]
        first = words[0].lower()
        is_name = words[0] in self._lexicon and first not in self._lexicon
        return words if is_name else [first, *words[1:]]


def _plain_tag(word: str, tag: str) -> str:
    if word[0].isdigit():
        return "CD" if word[-1].isdigit() else tag
    if not any(character.isalnum() for character in word):
        return PUNCTUATION_TAGS.get(word, "SYM")
    return tag.split("-")[0] or "NN"


@functools.lru_cache(maxsize=65_536)
def lemmatise(word: str, tag: str) -> str:
    lower = word.lower().replace("\u2019", "'")
    if lower == "'s":
        return "be" if tag == "VBZ" else "'s"
    universal = _UNIVERSAL.get(tag)
    if universal is None or lower in _CLITIC_LEMMAS:
        return _CLITIC_LEMMAS.get(lower, lower)
    if universal == "NOUN" and lower in _NOUN_LEMMAS:
        return _NOUN_LEMMAS[lower]
    lemmas = lemmatizer().getLemma(lower, upos=universal)
    return str(lemmas[0]) if lemmas else lower


class SpacyTagger:
    """Tags with the user's spaCy pipeline.

    Noun phrases come from the pipeline's parser, or from the tags if it has none; lemmas from its
    lemmatiser, or from lemminflect.
    """

    def __init__(self, model: str) -> None:
        with importing("spacy", "text"):
            import spacy
        try:
            self._nlp = spacy.load(model)
        except (OSError, ValueError) as error:
            raise InputError(
                f"spaCy cannot load {model!r}. Pass an installed package, such as en_core_web_sm, "
                f"or the folder of a saved pipeline. Error from spaCy: {error}"
            ) from error
        if not any(token.tag_ for token in self._nlp("A cat sits on a mat.")):
            raise InputError(
                f"the spaCy pipeline {model!r} assigns no part-of-speech tags; choose a "
                "different pipeline"
            )
        meta = self._nlp.meta
        self.name = (
            f"spacy/{SPACY_TAGGER_VERSION} "
            f"({meta['lang']}_{meta['name']} {meta['version']}, spacy {version('spacy')})"
        )

    def analyse(self, texts: Sequence[str]) -> list[Analysis]:
        return [self._from_doc(doc) for doc in self._nlp.pipe(texts)]

    def _from_doc(self, doc: "Doc") -> Analysis:
        tokens = [token for token in doc if not token.is_space]
        tags = [token.tag_ or "SYM" for token in tokens]
        phrases = find_noun_phrases(tags)
        if doc.has_annotation("DEP") and doc.has_annotation("POS"):  # it has a parser
            position = [0, *accumulate(not token.is_space for token in doc)]
            chunks = ((position[chunk.start], position[chunk.end]) for chunk in doc.noun_chunks)
            phrases = tuple((first, last) for first, last in chunks if first < last)
        return Analysis(
            text=doc.text,
            tokens=tuple(
                Token(
                    text=token.text,
                    start=token.idx,
                    end=token.idx + len(token.text),
                    tag=tag,
                    lemma=token.lemma_.lower() or lemmatise(token.text, tag),
                )
                for token, tag in zip(tokens, tags, strict=True)
            ),
            noun_phrases=phrases,
            tagger=self.name,
        )


def _tags(name: str) -> dict[str, str]:
    rows = (row for row in read_table("tags.tsv") if row["set"] == name)
    return {word: row["tag"] for row in rows for word in row["words"].split(" ")}


CAPTION_TAGS = _tags("captions")
"""Tags of words that captions use differently from newspapers."""
PUNCTUATION_TAGS = _tags("punctuation")

_AUXILIARIES = word_set("taggers.auxiliaries")
# Nouns after an article ("a look"), but verbs after a noun ("the couple look").
_VERBS_BEHIND_NOUNS = word_set("taggers.verbs_behind_nouns")
_NOUNS_FOR_ADJECTIVES = frozenset(("adult", "female", "male", "orange", "remote"))
_DETERMINERS = ("DT", "PRP$", "POS", "CD", "WP$")
_ADJECTIVES = ("JJ", "JJR", "JJS")
_NOUNS = ("NN", "NNS", "NNP", "NNPS")
_PARTICIPLES = ("VBG", "VBN")
_BEHIND_NOUN_PHRASE = ("IN", "TO", "VBZ", "VBP", "MD", "WP", "WDT", ".", "")
_SUBJECT_PRONOUNS = ("PRP", "EX", "WP", "WDT")


def repair_tags(words: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Return one tag per word, repaired if the words around show another part of speech.

    The lexicon has the most frequent tag in newspapers: there "sink" and "bear" are verbs. Captions
    are in the present tense and mostly noun phrases. One pass goes from left to right, so that
    earlier tags are already repaired.
    """
    repaired = ["", "", *tags, ""]
    for i, word in enumerate(words, start=2):
        two_before, before, tag, after = repaired[i - 2 : i + 2]
        repaired[i] = _repair(word.lower(), tag, two_before, before, after)
    return repaired[2:-1]


def _repair(word: str, tag: str, two_before: str, before: str, after: str) -> str:
    """Return the tag of one word, given its neighbours' tags; "" is an end of the caption."""
    if word in _AUXILIARIES:
        return tag
    if word in ("'s", "\u2019s"):
        is_verb = before in _SUBJECT_PRONOUNS and after not in (*_NOUNS, *_ADJECTIVES)
        return "VBZ" if is_verb else "POS"
    if before in ("MD", "TO") and two_before not in _ADJECTIVES:  # but not "next to"
        is_verb = tag in ("VB", "VBP") or (tag == "NN" and after in ("DT", "PRP$"))
        return "VB" if is_verb else tag
    tag = CAPTION_TAGS.get(word, tag)
    if tag in ("VB", "VBP", "VBZ") and _is_noun_place(word, two_before, before):
        return "NNS" if tag == "VBZ" else "NN"
    if tag == "NNS" and before == "NN" and after in ("DT", "PRP$"):
        return "VBZ"  # "a skateboarder rides the rail"
    if tag == "VBD" and word.endswith("ed") and before not in _SUBJECT_PRONOUNS:
        return "VBN"  # "a bus parked on the street": the finite verbs of captions are present
    if _is_noun_by_itself(word, tag, before, after):
        return "NN"
    if word == "that" and after in ("VBZ", "VBP", "VBD", "MD"):
        return "WDT"
    return tag


def _is_noun_place(word: str, two_before: str, before: str) -> bool:
    """Return True if a finite verb form is a noun in its place: "a white sink"."""
    if before in _DETERMINERS or before in _ADJECTIVES or before == "IN":
        return True
    if word in _VERBS_BEHIND_NOUNS or word.endswith("s"):
        return False  # "a man rides": after a noun, the third person is a verb
    return before in ("", "NN") or (before == "CC" and two_before in _NOUNS)


def _is_noun_by_itself(word: str, tag: str, before: str, after: str) -> bool:
    """Return True if an adjective or participle is used as a noun: "the top of", "a male"."""
    if word in ("top", "back") and after == "IN":
        return before in ("DT", "PRP$", "IN")
    if tag not in (*_ADJECTIVES, "VBN") or word == "other" or before not in ("DT", "PRP$"):
        return False
    return after in _BEHIND_NOUN_PHRASE or (word in _NOUNS_FOR_ADJECTIVES and after in _PARTICIPLES)
