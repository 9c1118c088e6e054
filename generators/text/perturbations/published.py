"""The 13 perturbations as the published code makes them, its defects included.

Known defects kept: typos at the same place in all captions with as many places (`published_typos`);
punctuation re-spaced and quotation marks turned into `` and '' by joining tokens; the first noun
or adjective replaced by the first other lemma of any sense of any part of speech; "and true it
true"; shuffles that may give back the caption itself; text cut to 300 characters after the
perturbation, so that a statement after a long caption is lost; exceptions that leave the caption
unchanged.

Deviations, because the models and data of the authors' run are not part of this package:

* shuffles use the caption's seed; theirs are not seeded at all;
* part-of-speech tags, and the tokens of the noun and adjective shuffles, come from the tagger in
  use; theirs come from NLTK's perceptron and spaCy's en_core_web_sm;
* the word tokenizer is NLTK's too, but sentences are split at every ".", "!" and "?" before white
  space, where NLTK uses a trained model (punkt).

Two of the three published copies of the code misspell `np.random.permutation` in the shuffle of
nouns and adjectives, which then always fails and leaves the caption unperturbed; the copy followed
here has it right.

Source: mariyahendriksen/model-robustness-for-itr, src/perturbations/ and
  src/retrieval/retriever.py; the copies are mariyahendriksen/evaluating-cmr-in-vl and
  bloomberg/evaluating-cmr-in-mm.
"""

import functools
import random
import re
from collections.abc import Callable, Sequence

from rapidfuzz.distance import Postfix, Prefix

from eqforge.core.errors import MissingExtra
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Span
from eqforge.generators.text.perturbations.record import VERSIONS, Perturbation, Reason
from eqforge.generators.text.wordnet import WORDNET_LOCK, open_wordnet
from eqforge.generators.text.words import has_same_words

MAX_CHARACTERS = 300
NOUNS = ("NN", "NNS", "NNP", "NNPS")
ADJECTIVES = ("JJ", "JJR", "JJS")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def perturb_as_published(
    name: str,
    published: Callable[[Analysis, random.Random], str],
    analysis: Analysis,
    rng: random.Random,
) -> Perturbation:
    """Return what the published code would have sent to the model instead of a caption.

    Args:
      published: returns the published code's text for a caption.
      rng: draws the orders of the shuffles; nothing else is random.
    """
    before, reason = analysis.text, None
    try:
        after = published(analysis, rng)
    except KeyError:  # a digit that the keyboard of `published_typos` lacks
        after, reason = before, Reason.CODE_FAILED
    after = after[:MAX_CHARACTERS]
    applied = after != before[:MAX_CHARACTERS]
    if not applied and reason is None:
        reason = Reason.UNCHANGED
    span_before, span_after = _changed_spans(before, after)
    return Perturbation(
        name=name,
        mode="paper",
        version=VERSIONS["paper"],
        text=after,
        applied=applied,
        words_changed=not has_same_words(before[:MAX_CHARACTERS], after),
        reason=reason,
        spans_before=span_before,
        spans_after=span_after,
    )


def replace_first_by_synonym(analysis: Analysis, tags: Sequence[str]) -> str:
    """Replace the first word that has one of the tags and a synonym, and re-spaces the text."""
    words = _tagged_words(analysis)
    for i, (word, tag) in enumerate(words):
        if tag in tags and (synonym := first_synonym(word)) is not None:
            words[i] = (synonym, tag)
            break
    return " ".join(word for word, _ in words)


@functools.lru_cache(maxsize=65_536)
def first_synonym(word: str) -> str | None:
    """Return the first lemma other than the word, over its senses of any part of speech."""
    wordnet = open_wordnet()
    with WORDNET_LOCK:
        for sense in wordnet.synsets(word):
            for name in sense.lemma_names():
                if name.lower() != word.lower():
                    return str(name).replace("_", " ")
    return None


def shuffle_nouns_and_adjectives(analysis: Analysis, rng: random.Random) -> str:
    """Shuffle the nouns among their places, then the adjectives among theirs."""
    return _shuffle_tagged(analysis, rng, (NOUNS.__contains__, ADJECTIVES.__contains__))


def shuffle_other_words(analysis: Analysis, rng: random.Random) -> str:
    """Shuffle all tokens but nouns and adjectives among their places."""
    return _shuffle_tagged(analysis, rng, (lambda tag: tag not in (*NOUNS, *ADJECTIVES),))


def shuffle_all_words(analysis: Analysis, rng: random.Random) -> str:
    """Shuffle the parts of the text between spaces."""
    words = analysis.text.split(" ")
    return " ".join(rng.sample(words, len(words)))


def _shuffle_tagged(
    analysis: Analysis, rng: random.Random, groups: Sequence[Callable[[str], bool]]
) -> str:
    """Shuffle the tokens of each group of tags among their places; joins tokens with spaces."""
    words, tags = zip(*tokens_as_in_spacy(analysis), strict=True) if analysis.text else ((), ())
    shuffled = list(words)
    for is_in_group in groups:
        places = [i for i, tag in enumerate(tags) if is_in_group(tag)]
        for place, word in zip(places, rng.sample(places, len(places)), strict=True):
            shuffled[place] = words[word]
    return " ".join(shuffled)


def shuffle_trigrams(analysis: Analysis, rng: random.Random, *, within: bool) -> str:
    """Shuffle tokens within groups of three, or the groups; joins tokens with spaces."""
    words = tokenize_words(analysis.text)
    trigrams = [words[i : i + 3] for i in range(0, len(words), 3)]
    for trigram in trigrams if within else [trigrams]:
        rng.shuffle(trigram)
    return " ".join(word for trigram in trigrams for word in trigram)


def tokenize_words(text: str) -> list[str]:
    """Return the tokens of NLTK's word tokenizer, sentence by sentence."""
    tokenizer = _word_tokenizer()
    return [word for part in _SENTENCE_END.split(text) for word in tokenizer(part)]


@functools.cache
def _word_tokenizer() -> Callable[[str], list[str]]:
    try:
        from nltk.tokenize import NLTKWordTokenizer
    except ImportError as error:
        raise MissingExtra("nltk", "text") from error
    tokenize: Callable[[str], list[str]] = NLTKWordTokenizer().tokenize
    return tokenize


def _tagged_words(analysis: Analysis) -> list[tuple[str, str]]:
    """Return NLTK's tokens, each with the tag of the analysis's last token that starts in it."""
    starts = {token.start: token.tag for token in analysis.tokens}
    tagged, done = [], 0
    for word in tokenize_words(analysis.text):
        start, end = _locate(word, analysis.text, done)
        tags = [starts[i] for i in range(start, end) if i in starts]
        tagged.append((word, tags[-1] if tags else ""))
        done = end
    return tagged


def _locate(word: str, text: str, done: int) -> tuple[int, int]:
    """Return a token's span in the text; the tokenizer rewrites quotation marks."""
    forms = (word, '"') if word in ("``", "''") else (word,)
    found = [(at, at + len(form)) for form in forms if (at := text.find(form, done)) >= 0]
    return min(found, default=(done, done))


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


def _changed_spans(before: str, after: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the span that differs in each of two texts; none if they are equal."""
    if before == after:
        return (), ()
    prefix = Prefix.similarity(before, after)
    suffix = Postfix.similarity(before[prefix:], after[prefix:])
    return (
        (Span(start=prefix, end=len(before) - suffix),),
        (Span(start=prefix, end=len(after) - suffix),),
    )
