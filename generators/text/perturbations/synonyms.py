"""Replace nouns and adjectives with words that mean the same in a caption.

Synonyms come from a list made for captions (`caption_synonyms.tsv`), which says where they hold. So
"couch" becomes "sofa", and not "put" or "redact", as in the published code.

Parts of compounds ("fire hydrant"), of fixed expressions ("red wine") and of phrases that work as
one word ("next to") are kept, and no word becomes one that the caption has already. The replacement
copies the number, degree and letter case of the word, and an article before it agrees.
"""

import functools
import random
import re
from collections.abc import Sequence
from typing import Final

from eqforge.generators.text.analysis import Analysis, Token, is_adjective, is_noun, is_word
from eqforge.generators.text.caption_words import ANY_NOUN, PartOfSpeech, caption_synonyms
from eqforge.generators.text.edits import Edit, article_for
from eqforge.generators.text.parts import english, inflect_engine, inflect_word
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.words import is_in_fixed_expression, is_in_function_phrase

_TAGS: dict[PartOfSpeech, tuple[str, ...]] = {"n": ("NN", "NNS"), "a": ("JJ", "JJR", "JJS")}
_PLAIN_TAGS = ("NN", "JJ")
_BEFORE_NOUNS = ("JJ", "JJR", "JJS", "VBN", "VBG", "CD", ",")
"""Tags that may stand between an adjective and its noun."""


def replace_by_synonyms(
    analysis: Analysis, rng: random.Random, pos: PartOfSpeech, max_words: int = 1
) -> list[Edit] | Reason:
    options = synonym_places(analysis, pos)
    if not options:
        return Reason.NO_SYNONYM
    chosen = sorted(rng.sample(list(options), min(max_words, len(options))))
    return [
        edit
        for index in chosen
        for edit in replacement_edits(analysis.tokens, index, rng.choice(options[index])[1])
    ]


def synonym_places(analysis: Analysis, pos: PartOfSpeech) -> dict[int, tuple[tuple[str, str], ...]]:
    tokens = analysis.tokens
    there = words_there(tokens)
    return {
        index: forms
        for index, token in enumerate(tokens)
        if token.tag in _TAGS[pos]
        and not _is_in_compound(tokens, index)
        and (forms := synonyms_at(tokens, index, pos, there))
        and not is_in_fixed_expression(analysis.text, token.start, token.end)
        and not is_in_function_phrase(analysis.text, token.start, token.end)
    }


def words_there(tokens: Sequence[Token]) -> set[str]:
    return {form for token in tokens for form in (token.text.lower(), token.lemma)}


def synonyms_at(
    tokens: Sequence[Token], index: int, pos: PartOfSpeech, there: set[str]
) -> tuple[tuple[str, str], ...]:
    token = tokens[index]
    listed = caption_synonyms()
    rows = listed.get((pos, token.text.lower()))
    tag = _PLAIN_TAGS[0] if rows else token.tag
    following = _following(tokens, index, pos)
    for row in rows or listed.get((pos, token.lemma), ()):
        if row.applies(following, there):
            forms = ((word, _inflected(word, tag)) for word in row.words)
            return tuple(
                (word, form)
                for word, form in forms
                if form is not None
                and there.isdisjoint((word.lower(), form.lower()))
                and not (form.endswith("s") and [t.tag for t in tokens[index + 1 :][:1]] == ["POS"])
            )
    return ()


def replacement_edits(tokens: Sequence[Token], index: int, replacement: str) -> list[Edit]:
    token = tokens[index]
    edit = Edit(start=token.start, end=token.end, replacement=cased(replacement, tokens, index))
    return [*article_edits(tokens, index, replacement), edit]


def article_edits(tokens: Sequence[Token], index: int, replacement: str) -> list[Edit]:
    article = tokens[index - 1] if index > 0 else None
    if article is None or article.text.lower() not in ("a", "an"):
        return []
    agreeing = article_for(replacement.split()[0])
    if agreeing is None or agreeing == article.text.lower():
        return []
    agreeing = match_case(agreeing, article.text)
    return [Edit(start=article.start, end=article.end, replacement=agreeing)]


def cased(replacement: str, tokens: Sequence[Token], index: int) -> str:
    """Return the replacement in the letter case of the token; "TV" becomes "television"."""
    token = tokens[index]
    is_acronym = is_noun(token) and len(token.text) > 1 and token.text.isupper()
    if is_acronym and any(other.text.islower() for other in tokens):
        return replacement if any(map(is_word, tokens[:index])) else raised(replacement)
    return match_case(replacement, token.text)


def match_case(replacement: str, replaced: str) -> str:
    """Return the replacement in the letter case of the replaced word: lower, Capital or ALL."""
    if len(replaced) > 1 and replaced.isupper():
        return replacement.upper()
    if replaced[:1].isupper():
        return replacement[:1].upper() + replacement[1:]
    return replacement


def _following(tokens: Sequence[Token], index: int, pos: PartOfSpeech) -> set[str]:
    first = index + 1
    place = first
    while pos == "a" and place < len(tokens) and tokens[place].tag in _BEFORE_NOUNS:
        place += 1
    if place < len(tokens) and is_noun(tokens[place]):
        while pos == "a" and place + 1 < len(tokens) and is_noun(tokens[place + 1]):
            place += 1
        return {tokens[place].text.lower(), tokens[place].lemma, ANY_NOUN}
    return {tokens[first].text.lower(), tokens[first].lemma} if first < len(tokens) else set()


@functools.lru_cache(maxsize=65_536)
def _inflected(word: str, tag: str) -> str | None:
    if tag in _PLAIN_TAGS:
        return word
    form = inflect_word(word, tag)
    if form is not None or tag != "NNS":
        return form
    return f"{word}s" if word.isupper() else str(inflect_engine().plural_noun(word))


def _is_in_compound(tokens: Sequence[Token], index: int) -> bool:
    around = [*tokens[max(index - 1, 0) : index], *tokens[index + 1 : index + 2]]
    if any(token.tag == "HYPH" for token in around):
        return True
    return not is_adjective(tokens[index]) and any(map(is_noun, around))


_HAS_SENTENCES: Final = re.compile(r"[.!?\u2026]\W*\w")


def sentence_capitals(analysis: Analysis) -> dict[int, bool]:
    """Find words with the capital of their sentence; True for names, acronyms and "I".

    Captions in capitals, or with a capital in every word, have none. A name after a full stop need
    not start a sentence ("St. Louis") and is left out.
    """
    found: dict[int, bool] = {}
    if analysis.text.isupper() or analysis.text.istitle():
        return found
    is_first = begins = True
    for token in analysis.tokens:
        if token.text in {".", "!", "?", "\u2026", ".."}:
            begins = True
        elif begins and is_word(token):
            word = token.text
            if word[0].isupper():  # its own: names, "Asian", "I", "T-shirt"
                is_own = token.tag.startswith("NNP") or (word != "A" and not word[1:2].isalpha())
                lexicon = english().lexicon
                is_own = is_own or (word in lexicon and word.lower() not in lexicon)
                if is_first or not is_own:
                    found[token.start] = is_own
            if is_first and not _HAS_SENTENCES.search(analysis.text):
                break
            is_first = begins = False
    return found


def raised(word: str) -> str:
    """Capitalise a word if no other letter of it is a capital: "iPhone" stays."""
    return _with_first(word, word[0].upper())


def lowered(word: str) -> str:
    """Remove a word's capital if no other letter of it is one: "TV" stays."""
    return _with_first(word, word[0].lower())


def _with_first(word: str, letter: str) -> str:
    is_undone = word[0] in (letter.upper(), letter.lower())
    return letter + word[1:] if is_undone and word[1:] == word[1:].lower() else word
