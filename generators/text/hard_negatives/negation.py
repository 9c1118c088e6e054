"""Negate captions so that they deny what the image shows.

The "not" alone gives a negated caption away: use negation together with other kinds, and run
`eqforge audit`.
"""

import random
from collections.abc import Iterator

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_words import participles
from eqforge.generators.text.coordination.conjuncts import is_mass, may_color_person
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.perturbations.synonyms import match_case, raised, sentence_capitals
from eqforge.generators.text.words import DENIALS, word_set
from eqforge.schemas.records.scores import Rejection

_AUXILIARIES = frozenset(("am", "are", "can", "could", "is", "was", "were", "will"))
_OF_SOME = frozenset(("that", "which", "who"))
_SOME = word_set("negation.some")
_ALL = frozenset(("all", "always", "and", "both", "each", "every", "only", "together"))
# "No couple of men" and "no picture of a man" would say something else.
_GROUPS = word_set("negation.groups")
_SEVERAL = frozenset(("many", "multiple", "numerous", "several", "some", "various"))
_PLURALS = frozenset(("people", "cattle", "sheep", "police"))
_NOUNS = ("NN", "NNS")
_ARTICLES = frozenset(("a", "an", "few", "some", "several", "many"))
_NOT_COUNTED = frozenset((",", "a", "and", "different", "kinds", "of", "or", "types", "various"))
_QUANTITIES = tuple(
    tuple(text.split())
    for text in (
        *("a bunch of", "a couple of", "a few", "a group of", "a lot of", "a number of"),
        *("a variety of", "an assortment of", "lots of", "plenty of"),
    )
)
"""Openers of captions about several things; the negation drops them."""


def negate(analysis: Analysis, rng: random.Random) -> EditedText | Rejection:
    """Negate a verb, a "with", or else the first noun phrase of a caption.

    "a man is sitting" becomes "a man is not sitting", "a dog runs" "a dog does not run", "a man
    riding a horse" "a man not riding a horse", "a cup with a lid" "a cup without a lid".
    """
    words = {token.text.lower() for token in analysis.tokens}
    if words & {"someone", "somebody", "something", "anyone", "everyone", "everybody"}:
        return Rejection(reason="nothing_to_negate")
    options = [*_verb_edits(analysis), *_with_edits(analysis)] or [*_phrase_edits(analysis)]
    if not options:
        return Rejection(reason="nothing_to_negate")
    return apply_edits(analysis.text, [rng.choice(options)])


def affirm(analysis: Analysis) -> EditedText | Rejection:
    """Undo the one denial of a caption: "a man without a hat", "with a hat"."""
    denied = [i for i, token in enumerate(analysis.tokens) if token.text.lower() in DENIALS]
    if len(denied) != 1:
        return Rejection(reason="already_negated")
    (index,) = denied
    token, word, tag = analysis.tokens[index], analysis.word(index), analysis.tag(index + 1)
    end, replacement = token.end, match_case("with", token.text)
    if word != "without" or not (analysis.word(index + 1) in ("a", "an") or tag == "NNS"):
        is_denied = (word, tag) in (("no", "NNS"), ("not", "VBG"))
        if not is_denied or analysis.tag(index - 1) == "DT":  # "a No bicycles sign"
            return Rejection(reason="already_negated")
        following = analysis.tokens[index + 1]
        end, replacement = following.start, ""
        if token.start in sentence_capitals(analysis):
            end, replacement = following.end, raised(following.text)
    edit = Edit(start=token.start, end=end, replacement=replacement)
    return apply_edits(analysis.text, [edit])


def _verb_edits(analysis: Analysis) -> Iterator[Edit]:
    for index, token in enumerate(analysis.tokens):
        before = analysis.word(index - 1)
        if analysis.word(index + 1) in _ALL or _is_of_some(analysis, index):
            continue  # "not all" is some
        if _is_inverted(analysis, index) or may_color_person(analysis, index + 1):
            continue
        # "That" or "who" has to refer to the one thing that opens the caption.
        is_clause = (
            before in _OF_SOME
            and analysis.word(0) in ("a", "an", "one", "the")
            and analysis.tag(index - 2) == "NN"
            and (0, index - 1) in analysis.noun_phrases
        )
        behind_noun = is_clause or analysis.tag(index - 1) in _NOUNS
        if before in _OF_SOME and not is_clause:
            continue
        if before == "there":
            yield from _no_there(analysis, index)
        elif token.text.lower() in _AUXILIARIES and token.tag[:2] in ("VB", "MD"):
            replacement = match_case(" not", token.text)
            yield Edit(start=token.end, end=token.end, replacement=replacement)
        elif behind_noun and (form := _denied(analysis, index)):
            replacement = match_case(f"{form} {token.lemma}", token.text)
            yield Edit(start=token.start, end=token.end, replacement=replacement)
        elif behind_noun and analysis.word(index) in participles():  # no "topping"
            behind = analysis.phrase_from(index + 1)
            is_bare = behind == (index + 1, index + 2) and analysis.tag(index + 1) == "NN"
            is_sign = is_bare and not is_mass(analysis.tokens[index + 1].lemma)
            if not is_sign and analysis.word(index) != "building":  # "a railroad crossing sign"
                yield Edit(start=token.start, end=token.start, replacement="not ")


def _no_there(analysis: Analysis, verb: int) -> Iterator[Edit]:
    token, behind = analysis.tokens[verb], analysis.word(verb + 1)
    if token.text.lower() not in ("is", "are"):
        return
    is_many = behind in _SEVERAL and analysis.tag(verb + 2) == "NNS"
    is_one = behind in ("a", "an") and analysis.word(verb + 2) not in _SOME | _GROUPS
    if is_many or is_one:
        article = analysis.tokens[verb + 1]
        yield Edit(start=article.start, end=article.end, replacement=match_case("no", article.text))
    elif behind not in _SOME and analysis.tag(verb + 1) in ("CD", *_NOUNS, "JJ"):
        word = " not" if analysis.tag(verb + 1) == "CD" else " no"
        yield Edit(start=token.end, end=token.end, replacement=match_case(word, token.text))


def _is_inverted(analysis: Analysis, verb: int) -> bool:
    """Return True if the subject stands after a verb: "on the table is a cup"."""
    phrase = analysis.phrase_to(verb)
    tag = analysis.tag(phrase[0] - 1 if phrase else verb - 1)
    is_placed = tag in ("IN", "TO", ",") and all(first for first, _ in analysis.noun_phrases)
    return is_placed and analysis.tag(verb + 1) in ("DT", "CD", "JJ", "PRP$", *_NOUNS)


def _is_of_some(analysis: Analysis, verb: int) -> bool:
    """Return True if a verb applies to some and maybe not to others: "some people sitting"."""
    if analysis.word(verb - 1) in _SOME:
        return True
    subject = analysis.phrase_to(verb)
    if subject is None:
        return False
    first = subject[0]
    if analysis.word(first - 1) == "of":
        first = max(first - 3, 0)  # "a couple of" dogs
    return not _SOME.isdisjoint(analysis.words((first, subject[1])))


def _denied(analysis: Analysis, verb: int) -> str:
    """Return "do not" in the form of a finite verb after its subject; "" for other words.

    Taggers take the noun of "sets of train tracks" for a verb, and the plural "eat" of "dogs eat"
    for the infinitive: the verb is one of the closed classes and agrees with the noun before it.
    """
    behind = verb - (analysis.word(verb - 1) in _OF_SOME)
    token, subject = analysis.tokens[verb], analysis.tag(behind - 1)
    is_had = (  # a single thing, not the first of a list
        token.lemma in {"contain", "feature", "have", "include", "show"}
        and analysis.phrase_from(verb + 1) is not None
        and analysis.word(verb + 1) in ("a", "an", "the")
        and not {",", "and", "or"} & set(analysis.words((verb + 1, len(analysis.tokens))))
    )
    if not is_had and token.lemma not in closed_classes("verb").groups:
        return ""
    if token.tag == "VBZ" and subject == "NN":
        return "does not"
    is_plural = subject == "NNS" or analysis.word(behind - 1) in _PLURALS
    return "do not" if token.tag in ("VB", "VBP") and is_plural else ""


def _with_edits(analysis: Analysis) -> Iterator[Edit]:
    """Deny the "with" of a noun's possession; not that of "topped with" or "with her dog"."""
    for index, token in enumerate(analysis.tokens):
        behind_noun = analysis.tag(index - 1) in _NOUNS
        opens = any(first == index + 1 for first, _ in analysis.noun_phrases)
        behind = analysis.words((index + 1, index + 3))
        is_of_some = not _SOME.isdisjoint(behind) or analysis.tag(index + 1) == "PRP$"
        is_of_skin = may_color_person(analysis, index + 1)
        if token.text.lower() != "with" or not behind_noun or is_of_skin:
            continue
        if analysis.word(index + 1) == "some":
            if "and" in analysis.words((index, len(analysis.tokens))):
                continue
            replacement = match_case("without any", token.text)
            end = analysis.tokens[index + 1].end
            yield Edit(start=token.start, end=end, replacement=replacement)
        elif opens and not is_of_some:
            replacement = match_case("without", token.text)
            yield Edit(start=token.start, end=token.end, replacement=replacement)


def _no_quantity(analysis: Analysis, end: int) -> Iterator[Edit]:
    phrase = analysis.phrase_around(end)
    if phrase is None or analysis.tag(phrase[1] - 1) != "NNS":
        return
    words = {*analysis.words((end, phrase[1])), analysis.word(phrase[1])}
    if not words & _NOT_COUNTED and analysis.tag(end) not in ("CD", "DT"):
        first, last = analysis.tokens[0], analysis.tokens[end - 1]
        replacement = match_case("no", first.text)
        yield Edit(start=first.start, end=last.end, replacement=replacement)


def _phrase_edits(analysis: Analysis) -> Iterator[Edit]:
    if {token.text.lower() for token in analysis.tokens[1:]} & {"some", ","}:
        return
    for words in _QUANTITIES:
        if analysis.words((0, len(words))) == words:
            yield from _no_quantity(analysis, len(words))
            return
    for first, last in analysis.noun_phrases[:1]:
        token = analysis.tokens[first]
        word = token.text.lower()
        is_list = analysis.word(last) in ("and", ",", "or")
        is_of = analysis.word(last) == "of" and not _is_plain_group(analysis, first, last)
        is_open = analysis.word(last) in _OF_SOME or analysis.tag(first + 1) == "RB"
        if first or is_list or is_of or is_open or "and" in analysis.words((first, last)):
            continue
        if word in _ARTICLES or (token.tag in (*_NOUNS, "JJ") and word not in _SOME):
            is_name = sentence_capitals(analysis).get(token.start, False)
            rest = token.text if is_name else word
            replacement = match_case("no" if word in _ARTICLES else f"no {rest}", token.text)
            yield Edit(start=token.start, end=token.end, replacement=replacement)


def _is_plain_group(analysis: Analysis, first: int, last: int) -> bool:
    """Return True for "a herd of sheep": not "a large group", nor "a line of people wait"."""
    is_plain = last - 1 - first == (analysis.word(first) in _ARTICLES)
    is_plural = any(token.tag in ("VB", "VBP") for token in analysis.tokens[last:])
    return analysis.word(last - 1) in _GROUPS and is_plain and not is_plural
