"""Tells whether an edit of words keeps a caption true, by lists of synonyms and of broader words.

The lists come with the package: those made for captions (`caption_synonyms.tsv`), for hard
positives (its full synonyms), and `broader_words.tsv`, in which whatever is a narrower word is also
the broader one: a man is a person. WordNet is not asked: in the first senses of its words a girl is
a woman, and a bike a motorcycle.
"""

import functools

from eqforge.generators.text.caption_synonyms import PartOfSpeech, caption_synonyms
from eqforge.generators.text.inflection import inflect_word
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.lints.word_edits import WordExchange
from eqforge.generators.text.parts import lemmatizer
from eqforge.generators.text.words import DENIALS, read_table

_ARTICLES = frozenset(("a", "an", "the"))


def stays_true(words: tuple[str, ...], exchanges: tuple[WordExchange, ...]) -> bool:
    """Say whether a caption whose words are exchanged is true wherever the caption is.

    It is if every exchange is one of articles, or of a word or phrase for a synonym of the same
    number, for another form of the same verb ("holds", "holding"), or for a broader word. A broader
    word does not do in a caption that denies something: "no dog" does not say "no animal".
    """
    is_denial = not DENIALS.isdisjoint(words)
    return bool(exchanges) and all(_keeps_truth(each, is_denial) for each in exchanges)


def _keeps_truth(exchange: WordExchange, is_denial: bool) -> bool:
    before, after = exchange.before, exchange.after
    if _ARTICLES.issuperset(before + after):
        return True
    if len(before) == len(after):
        pairs = zip(before, after, strict=True)
        if all(_is_word_kept(left, right, is_denial) for left, right in pairs):
            return True
    return (" ".join(before), " ".join(after)) in _phrases()


@functools.lru_cache(maxsize=65_536)
def _is_word_kept(before: str, after: str, is_denial: bool) -> bool:
    if before == after or {before, after} <= _ARTICLES or (before, after) in _phrases():
        return True
    if _is_same_verb(before, after):
        return True
    nouns = (*_nouns(before), *_nouns(after))
    if len(nouns) == 2 and nouns[0][1] == nouns[1][1]:
        if _is_synonym(nouns[0][0], nouns[1][0], "n"):
            return True
        if not is_denial and nouns[0][0] in _narrower().get(nouns[1][0], ()):
            return True
    if _is_synonym(before, after, "a"):
        return True
    return not is_denial and before in _narrower().get(after, ())


def _is_synonym(word: str, synonym: str, pos: PartOfSpeech) -> bool:
    """Say whether the list for captions has a synonym of a word that holds in any caption."""
    rows = caption_synonyms().get((pos, word), ())
    return any(row.are_of_anything and synonym in row.words for row in rows)


def _is_same_verb(before: str, after: str) -> bool:
    """Say whether two words are forms of one verb, one of them the "-ing" form.

    Other forms are left out: "tattooed" may be passive, and "watches" the plural of "watch".
    """
    common = set(_lemmas(before, "VERB")) & set(_lemmas(after, "VERB"))
    for lemma in common:
        running = inflect_word(lemma, "VBG")
        forms = {running, inflect_word(lemma, "VBZ"), lemma}
        if running in (before, after) and {before, after} <= forms:
            return True
    return False


@functools.lru_cache(maxsize=65_536)
def _nouns(word: str) -> tuple[tuple[str, bool], ...]:
    """Return the lemma of a noun and whether it is a plural; nothing for other words."""
    if word == "people":
        return (("person", True),)
    lemmas = _lemmas(word, "NOUN")
    return ((lemmas[0], lemmas[0] != word),) if lemmas else ()


@functools.lru_cache(maxsize=65_536)
def _lemmas(word: str, tag: str) -> tuple[str, ...]:
    return tuple(lemmatizer().getAllLemmas(word).get(tag, ()))


@functools.cache
def _phrases() -> frozenset[tuple[str, str]]:
    """Return the full synonyms of the lexicon of hard positives: big for huge, not the reverse."""
    return frozenset((e.word, e.replacement) for e in load_lexicon() if e.synonymy == "full")


@functools.cache
def _narrower() -> dict[str, frozenset[str]]:
    rows = read_table("broader_words.tsv")
    return {row["broader"]: frozenset(row["narrower"].split(",")) for row in rows}
