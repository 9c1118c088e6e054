"""Negation: a caption that denies what the image shows.

A negated caption can be recognised by its "not" alone, without the image: use negation together
with other kinds, and run `eqforge audit`.
"""

import random
from collections.abc import Iterator

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import tag_at
from eqforge.generators.text.edits import Edit, apply_edits
from eqforge.generators.text.hard_negatives.records import HardNegative, NegativeRefusal
from eqforge.generators.text.perturbations.synonyms import match_case

_NEGATIONS = frozenset(
    ("n't", "n\u2019t", "never", "no", "nobody", "none", "not", "nothing", "without")
)
_AUXILIARIES = frozenset(("am", "are", "can", "could", "is", "may", "was", "were", "will"))
_DO = {"VBZ": "does not", "VBP": "do not", "VBD": "did not"}
_NOUNS = ("NN", "NNS")
_ARTICLES = frozenset(("a", "an", "some", "several", "many"))


def negate(analysis: Analysis, rng: random.Random) -> HardNegative | NegativeRefusal:
    """Negates a verb, a "with", or the first noun phrase of a caption without either.

    "a man is sitting" becomes "a man is not sitting", "a dog runs" "a dog does not run", "a man
    riding a horse" "a man not riding a horse", "a cup with a lid" "a cup without a lid".

    Args:
      analysis: the caption's analysis.
      rng: draws the place to negate.
    """
    if any(token.text.lower() in _NEGATIONS for token in analysis.tokens):
        return NegativeRefusal(kind="negation", reason="already_negated")
    options = [*_verb_edits(analysis), *_with_edits(analysis)] or [*_phrase_edits(analysis)]
    if not options:
        return NegativeRefusal(kind="negation", reason="nothing_to_negate")
    edited = apply_edits(analysis.text, [rng.choice(options)])
    return HardNegative(kind="negation", edited=edited, source="caption")


def _verb_edits(analysis: Analysis) -> Iterator[Edit]:
    for index, token in enumerate(analysis.tokens):
        behind_noun = tag_at(analysis, index - 1) in _NOUNS
        # Taggers take the plural "eat" of "dogs eat" for the infinitive.
        tag = "VBP" if token.tag == "VB" and behind_noun else token.tag
        if token.text.lower() in _AUXILIARIES and tag[:2] in ("VB", "MD"):
            yield Edit(start=token.end, end=token.end, replacement=match_case(" not", token.text))
        elif tag in _DO and token.lemma not in ("be", "have", "do"):
            replacement = match_case(f"{_DO[tag]} {token.lemma}", token.text)
            yield Edit(start=token.start, end=token.end, replacement=replacement)
        elif tag == "VBG" and behind_noun:
            yield Edit(start=token.start, end=token.start, replacement="not ")


def _with_edits(analysis: Analysis) -> Iterator[Edit]:
    starts = {first for first, _ in analysis.noun_phrases}
    for index, token in enumerate(analysis.tokens):
        if token.text.lower() == "with" and index + 1 in starts:
            replacement = match_case("without", token.text)
            yield Edit(start=token.start, end=token.end, replacement=replacement)


def _phrase_edits(analysis: Analysis) -> Iterator[Edit]:
    for first, _ in analysis.noun_phrases[:1]:
        token = analysis.tokens[first]
        word = token.text.lower()
        if word in _ARTICLES or token.tag in (*_NOUNS, "JJ"):
            replacement = match_case("no" if word in _ARTICLES else f"no {word}", token.text)
            yield Edit(start=token.start, end=token.end, replacement=replacement)
