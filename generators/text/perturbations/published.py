"""Make the 13 perturbations as the published code does, including its defects.

Known defects kept: typos at the same place in all captions with as many places; punctuation
re-spaced and quotation marks turned into `` and '' by joining tokens; the first noun or adjective
replaced by the first other lemma of any sense of any part of speech; "and true it true"; shuffles
that may return the caption itself; exceptions that leave the caption unchanged. The published code
cuts captions to 300 characters when it encodes them. Here captions are stored whole, `eqforge
score` cuts them, and `words_changed` compares the rest after the cut.

Deviations, because this package lacks the models and data of the authors' run:

* shuffles use the caption's seed; theirs are not seeded at all;
* part-of-speech tags, and the tokens of the noun and adjective shuffles, come from the tagger in
  use; theirs come from NLTK's perceptron and spaCy's en_core_web_sm;
* the word tokenizer is NLTK's too, but sentences are split at every ".", "!" and "?" before white
  space, where NLTK uses a trained model (punkt).

Two of the three published copies misspell `np.random.permutation` in the shuffle of nouns and
adjectives, which then always fails and leaves the caption unchanged. This module follows the
correct copy.

Source: mariyahendriksen/model-robustness-for-itr, src/perturbations/ and
src/retrieval/retriever.py; the copies are mariyahendriksen/evaluating-cmr-in-vl and
bloomberg/evaluating-cmr-in-mm.
"""

import functools
import random
import re
from collections.abc import Callable, Sequence

from eqforge.core.errors import importing
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Span, common_ends
from eqforge.generators.text.perturbations.corrected import (
    NEIGHBOURING_LETTERS,
    NEIGHBOURING_NUMPAD_DIGITS,
)
from eqforge.generators.text.perturbations.record import VERSIONS, Perturbation, Reason
from eqforge.generators.text.wordnet import WORDNET_LOCK, open_wordnet
from eqforge.generators.text.words import has_same_words
from eqforge.schemas.tables.texts import ENCODED_CHARACTERS

NOUNS = ("NN", "NNS", "NNP", "NNPS")
ADJECTIVES = ("JJ", "JJR", "JJS")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def perturb_as_published(
    name: str,
    published: Callable[[Analysis, random.Random], str],
    analysis: Analysis,
    rng: random.Random,
) -> Perturbation:
    before, reason = analysis.text, None
    try:
        after = published(analysis, rng)
    except KeyError:  # a digit that the keyboard lacks
        after, reason = before, Reason.CODE_FAILED
    applied = after != before
    if not applied and reason is None:
        reason = Reason.UNCHANGED
    prefix, suffix = common_ends(before, after)
    ends = [] if before == after else [len(before) - suffix, len(after) - suffix]
    spans: list[tuple[Span, ...]] = [(Span(start=prefix, end=end),) for end in ends] or [(), ()]
    return Perturbation(
        name=name,
        mode="paper",
        version=VERSIONS["paper"],
        text=after,
        applied=applied,
        words_changed=not has_same_words(before[:ENCODED_CHARACTERS], after[:ENCODED_CHARACTERS]),
        reason=reason,
        spans_before=spans[0],
        spans_after=spans[1],
    )


def replace_first_by_synonym(analysis: Analysis, tags: Sequence[str]) -> str:
    words = _tagged_words(analysis)
    for i, (word, tag) in enumerate(words):
        if tag in tags and (synonym := first_synonym(word)) is not None:
            words[i] = (synonym, tag)
            break
    return " ".join(word for word, _ in words)


@functools.lru_cache(maxsize=65_536)
def first_synonym(word: str) -> str | None:
    wordnet = open_wordnet()
    with WORDNET_LOCK:
        for sense in wordnet.synsets(word):
            for name in sense.lemma_names():
                if name.lower() != word.lower():
                    return str(name).replace("_", " ")
    return None


def shuffle_nouns_and_adjectives(analysis: Analysis, rng: random.Random) -> str:
    return _shuffle_tagged(analysis, rng, (NOUNS.__contains__, ADJECTIVES.__contains__))


def shuffle_other_words(analysis: Analysis, rng: random.Random) -> str:
    return _shuffle_tagged(analysis, rng, (lambda tag: tag not in (*NOUNS, *ADJECTIVES),))


def shuffle_all_words(analysis: Analysis, rng: random.Random) -> str:
    words = analysis.text.split(" ")
    return " ".join(rng.sample(words, len(words)))


def _shuffle_tagged(
    analysis: Analysis, rng: random.Random, groups: Sequence[Callable[[str], bool]]
) -> str:
    """Shuffle the tokens of each group of tags among their places; join tokens with spaces."""
    words, tags = zip(*tokens_as_in_spacy(analysis), strict=True) if analysis.text else ((), ())
    shuffled = list(words)
    for is_in_group in groups:
        places = [i for i, tag in enumerate(tags) if is_in_group(tag)]
        for place, word in zip(places, rng.sample(places, len(places)), strict=True):
            shuffled[place] = words[word]
    return " ".join(shuffled)


def shuffle_trigrams(analysis: Analysis, rng: random.Random, *, within: bool) -> str:
    words = tokenize_words(analysis.text)
    trigrams = [words[i : i + 3] for i in range(0, len(words), 3)]
    for trigram in trigrams if within else [trigrams]:
        rng.shuffle(trigram)
    return " ".join(word for trigram in trigrams for word in trigram)


def tokenize_words(text: str) -> list[str]:
    tokenizer = _word_tokenizer()
    return [word for part in _SENTENCE_END.split(text) for word in tokenizer(part)]


@functools.cache
def _word_tokenizer() -> Callable[[str], list[str]]:
    with importing("nltk", "text"):
        from nltk.tokenize import NLTKWordTokenizer
    tokenize: Callable[[str], list[str]] = NLTKWordTokenizer().tokenize
    return tokenize


def _tagged_words(analysis: Analysis) -> list[tuple[str, str]]:
    """Return NLTK's tokens, each with the tag of the analysis's last token that starts in it."""
    starts = {token.start: token.tag for token in analysis.tokens}
    text = analysis.text
    tagged, done = [], 0
    for word in tokenize_words(text):
        forms = (word, '"') if word in ("``", "''") else (word,)  # the tokenizer's quotation marks
        places = [(text.find(form, done), len(form)) for form in forms]
        found = [(at, at + size) for at, size in places if at >= 0]
        start, end = min(found, default=(done, done))
        tags = [starts[i] for i in range(start, end) if i in starts]
        tagged.append((word, tags[-1] if tags else ""))
        done = end
    return tagged


def tokens_as_in_spacy(analysis: Analysis) -> list[tuple[str, str]]:
    """Return tokens with tags; white space beyond one space is a token too, as in spaCy."""
    tokens, done = [], 0
    for token in analysis.tokens:
        tokens += _space_tokens(analysis.text[done : token.start], is_first=done == 0)
        tokens.append((token.text, token.tag))
        done = token.end
    return tokens + _space_tokens(analysis.text[done:], is_first=done == 0)


def _space_tokens(gap: str, *, is_first: bool) -> list[tuple[str, str]]:
    rest = gap if is_first else gap.removeprefix(" ")
    return [(rest, "_SP")] if rest else []


# --- typos: the published code uses the package `typo` 0.1.7 (ranvijaykumar/typo, MIT), class
# StrErrer, and src/perturbations/perturbation_types/typos.py

_SEED = 42
"""The code resets the seed for each caption, so captions with the same number of places for a typo
have it at the same one. `typo` seeds the global generator; a local one makes the same draws."""


def _typo(
    place: str, change: Callable[[str, random.Random], str], least: int = 1
) -> Callable[[str], str]:
    pattern = re.compile(place)

    def make(text: str) -> str:
        rng = random.Random(_SEED)
        places = [match.start() for match in pattern.finditer(text)]
        if len(places) < least:
            return text
        start = places[rng.randint(0, len(places) - 1)]
        return text[:start] + change(text[start:], rng)

    return make


def _swapped(rest: str, _: random.Random) -> str:
    return _cased_as(rest[1], rest[0]) + _cased_as(rest[0], rest[1]) + rest[2:]


def _cased_as(character: str, place: str) -> str:
    return character.upper() if place.isupper() else character.lower()


def _neighbour(character: str, rng: random.Random) -> str:
    """Return a neighbouring key, for "9" sometimes "10"; KeyError for digits of other scripts."""
    if character.isdecimal():
        if rng.choice([True, False]):
            return rng.choice(NEIGHBOURING_NUMPAD_DIGITS[character])
        if character in "01":
            return {"0": "9", "1": "2"}[character]
        return str(int(character) + (-1) ** rng.randint(0, 1))
    if character.lower() not in NEIGHBOURING_LETTERS:
        return character
    neighbour = rng.choice(NEIGHBOURING_LETTERS[character.lower()])
    return neighbour.upper() if character.isupper() else neighbour


swap_characters = _typo(r"(?=\w{2})", _swapped)
drop_character = _typo(r"\w", lambda rest, _: rest[1:], least=2)
add_character = _typo(r"\w", lambda rest, rng: _neighbour(rest[0], rng) + rest)
hit_nearby_key = _typo(
    r"\w", lambda rest, rng: _cased_as(_neighbour(rest[0], rng), rest[0]) + rest[1:]
)
