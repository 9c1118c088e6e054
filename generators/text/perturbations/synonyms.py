"""Replaces nouns and adjectives with words that mean the same in a caption.

Synonyms come from a list made for captions or, for words not in it, from WordNet: those of the same
part of speech, in the first (most frequent) sense of both words, with at least `MIN_COUNT`
occurrences in that sense in the texts in which WordNet's senses are counted. So "couch" becomes
"sofa", and neither "put" nor "redact", as in the published code.

Parts of compounds ("fire hydrant") and of fixed expressions ("red wine") are kept. The replacement
takes the number, degree and letter case of the word, and an article before it is made to agree.
"""

import functools
import random
from collections.abc import Sequence
from typing import Literal

from eqforge.generators.text.analysis import Analysis, Token, is_adjective, is_noun, is_word
from eqforge.generators.text.articles import article_for
from eqforge.generators.text.capitals import raised
from eqforge.generators.text.caption_synonyms import caption_synonyms
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.inflection import inflect_word
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.wordnet import WORDNET_LOCK, open_wordnet

PartOfSpeech = Literal["n", "a"]

MIN_COUNT = 2
_TAGS: dict[PartOfSpeech, tuple[str, ...]] = {"n": ("NN", "NNS"), "a": ("JJ", "JJR", "JJS")}
_PLAIN_TAGS = ("NN", "JJ")


def replace_by_synonyms(
    analysis: Analysis, rng: random.Random, pos: PartOfSpeech, max_words: int = 1
) -> list[Edit] | Reason:
    """Replaces up to `max_words` words of a part of speech, drawn from those with a synonym.

    Args:
      analysis: the caption's analysis.
      rng: draws the words and their synonyms.
      pos: "n" for common nouns, "a" for adjectives.
      max_words: 1 or more; fewer are replaced if fewer have a synonym.

    Raises:
      InputError: WordNet is not on this machine; the message says how to get it.
    """
    options = {
        index: forms
        for index, token in enumerate(analysis.tokens)
        if token.tag in _TAGS[pos]
        and not _is_in_compound(analysis.tokens, index)
        and (forms := _inflected_synonyms(token.text.lower(), token.lemma, token.tag, pos))
        and not is_in_fixed_expression(analysis.text, token.start, token.end)
    }
    if not options:
        return Reason.NO_SYNONYM
    chosen = sorted(rng.sample(list(options), min(max_words, len(options))))
    return [
        edit
        for index in chosen
        for edit in replacement_edits(analysis.tokens, index, rng.choice(options[index]))
    ]


@functools.lru_cache(maxsize=65_536)
def find_synonyms(lemma: str, pos: PartOfSpeech) -> tuple[str, ...]:
    """Returns the words that can safely replace a word in a caption; may be empty.

    Args:
      lemma: dictionary form, in lower case.
      pos: "n" or "a".

    Raises:
      InputError: WordNet is not on this machine; the message says how to get it.
    """
    listed = caption_synonyms().get((pos, lemma))
    return _wordnet_synonyms(lemma, pos) if listed is None else listed


def replacement_edits(tokens: Sequence[Token], index: int, replacement: str) -> list[Edit]:
    """Returns the edits that replace a token and make an article before it agree.

    Args:
      tokens: the caption's tokens.
      index: of the token to replace.
      replacement: inflected, in lower case; it takes the letter case of the token.
    """
    token = tokens[index]
    cased = _cased(replacement, tokens, index)
    edits = [Edit(start=token.start, end=token.end, replacement=cased)]
    article = tokens[index - 1] if index > 0 else None
    if article is not None and article.text.lower() in ("a", "an"):
        agreeing = article_for(replacement)
        if agreeing is not None and agreeing != article.text.lower():
            cased = match_case(agreeing, article.text)
            edits.insert(0, Edit(start=article.start, end=article.end, replacement=cased))
    return edits


def _cased(replacement: str, tokens: Sequence[Token], index: int) -> str:
    """Returns the replacement in the letter case of the token; "TV" becomes "television"."""
    token = tokens[index]
    is_acronym = is_noun(token) and len(token.text) > 1 and token.text.isupper()
    if is_acronym and any(other.text.islower() for other in tokens):
        return replacement if any(map(is_word, tokens[:index])) else raised(replacement)
    return match_case(replacement, token.text)


def match_case(replacement: str, replaced: str) -> str:
    """Returns the replacement in the letter case of the replaced word: lower, Capital or ALL."""
    if len(replaced) > 1 and replaced.isupper():
        return replacement.upper()
    if replaced[:1].isupper():
        return replacement[:1].upper() + replacement[1:]
    return replacement


@functools.lru_cache(maxsize=65_536)
def _inflected_synonyms(word: str, lemma: str, tag: str, pos: PartOfSpeech) -> tuple[str, ...]:
    """Returns the synonyms in the word's form, except any equal to it ("axes" of "ax", "axis")."""
    synonyms = find_synonyms(lemma, pos)
    forms = synonyms if tag in _PLAIN_TAGS else [inflect_word(name, tag) for name in synonyms]
    return tuple(form for form in forms if form is not None and form.lower() != word)


def _is_in_compound(tokens: Sequence[Token], index: int) -> bool:
    """Tells whether a word is part of a compound: a noun or a hyphen stands next to it.

    For an adjective only hyphens count.
    """
    before = tokens[index - 1] if index > 0 else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if any(token is not None and token.tag == "HYPH" for token in (before, after)):
        return True
    if is_adjective(tokens[index]):
        return False
    return any(token is not None and is_noun(token) for token in (before, after))


def _wordnet_synonyms(lemma: str, pos: PartOfSpeech) -> tuple[str, ...]:
    wordnet = open_wordnet()
    with WORDNET_LOCK:
        senses = wordnet.synsets(lemma, pos)
        if not senses or lemma not in senses[0].lemma_names():
            return ()
        return tuple(
            word.name()
            for word in senses[0].lemmas()
            if word.name() != lemma
            and word.name().isalpha()
            and word.name().islower()
            and word.count() >= MIN_COUNT
            and wordnet.synsets(word.name(), pos)[0] == senses[0]
        )
