"""Swap the two sides of an "and".

Source: Kamath et al. 2024, section 3.4 (SWAP) and appendix C.1, whose five worked examples are used
as tests; Yuksekgonul et al. 2023 (ARO) for the captions of Visual Genome Attribution.
"""

import re
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis, Range
from eqforge.generators.text.caption_words import finite_forms, participles
from eqforge.generators.text.coordination.conjuncts import (
    ADJECTIVES,
    COLOURS,
    OPENERS,
    PLACES,
    PRONOUNS,
    CannotTell,
    Conjuncts,
    Level,
    is_fixed_pair,
    is_living,
    may_color_person,
    refuse,
    refuse_mentions,
    refuse_pronouns,
)
from eqforge.generators.text.coordination.noun_phrases import join_noun_phrases
from eqforge.generators.text.edits import (
    Edit,
    EditedText,
    agree_articles,
    apply_edits,
    exchange_phrases,
)
from eqforge.generators.text.rewordings.clauses import is_state
from eqforge.generators.text.words import word_set
from eqforge.schemas.records.scores import Rejection

_BE = frozenset(("is", "are", "was", "were"))
_ARO = re.compile(r"(the .+?)( and )(the .+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Swap:
    """A caption whose sides around an "and" are exchanged; a changed article is its first span."""

    edited: EditedText
    level: Level


def swap_phrases(caption: str) -> Swap | Rejection:
    """Swap the two phrases of an ARO caption: "the ATTRIBUTE OBJECT and the ATTRIBUTE OBJECT"."""
    found = _ARO.fullmatch(caption)
    if found is None or " and the " in found[3]:
        return Rejection(reason="unlike_parts" if "and" in caption else "no_and", detail=caption)
    if found[1] == found[3]:
        return Rejection(reason="same_words", detail=caption)
    edits = (
        Edit(start=0, end=found.end(1), replacement=found[3]),
        Edit(start=found.start(3), end=len(caption), replacement=found[1]),
    )
    return Swap(edited=apply_edits(caption, edits), level="noun_phrase")


def swap_coordination(analysis: Analysis) -> Swap | Rejection:
    """Swap the two sides of an "and" if that keeps the caption's meaning.

    Noun phrases, adjectives, verb phrases and whole clauses move with their own modifiers, around
    the first unambiguous "and". If none is, the first "and" gives the reason.
    """
    refusal: Rejection | None = None
    for index, token in enumerate(analysis.tokens):
        if token.text.lower() != "and":
            continue
        try:
            conjuncts = _find_conjuncts(analysis, index)
        except CannotTell as error:
            around = analysis.text[max(0, token.start - 30) : token.end + 30]
            refusal = refusal or Rejection(reason=str(error), detail=around)
            continue
        left, right = exchange_phrases(analysis, conjuncts.left, conjuncts.right)
        # An article before the left side has to agree with the right side.
        swapped = analysis.text[: left.start] + left.replacement
        shared = (
            edit
            for edit in agree_articles(swapped)
            if analysis.text[edit.end : left.start].isspace()
        )
        edited = apply_edits(analysis.text, (*shared, left, right))
        return Swap(edited=edited, level=conjuncts.level)
    return refusal or Rejection(reason="no_and", detail=analysis.text[:60])


def _find_conjuncts(analysis: Analysis, conjunction: int) -> Conjuncts:
    if not 0 < conjunction < len(analysis.tokens) - 1:
        refuse("end_of_caption")
    token = analysis.tokens[conjunction]
    if is_fixed_pair(analysis.text, token.start):
        refuse("fixed_expression")
    before, behind = analysis.tag(conjunction - 1), analysis.tag(conjunction + 1)
    if (clauses := join_clauses(analysis, conjunction)) is not None:
        conjuncts = clauses
    elif before.startswith("JJ") and behind.startswith("JJ"):
        conjuncts = join_adjectives(analysis, conjunction)
    elif behind.startswith("VB"):
        conjuncts = join_verb_phrases(analysis, conjunction)
    else:
        conjuncts = join_noun_phrases(analysis, conjunction)
    sides = (conjuncts.left, conjuncts.right)
    refuse_mentions(analysis, *sides)
    # Both sides have to start with nouns of the same number, with which a verb agrees.
    tags = [[analysis.tag(index) for index in range(*side)] for side in sides]
    numbers = [next((tag for tag in own if tag in ("NN", "NNS")), "") for own in tags]
    if analysis.word(conjuncts.left[0] - 1) in _BE and numbers[0] != numbers[1]:
        refuse("agreement")
    if analysis.words(conjuncts.left) == analysis.words(conjuncts.right):
        refuse("same_words")
    return conjuncts


_FINITE = ("VBZ", "VBP", "VBD")
_VERBS = ("VBG", "VBN", *_FINITE)
_ENDS = (".", ",", ":", "CC", "SYM", "WDT", "WP", "WRB")
_SUBORDINATING = frozenset(("as", "because", "that", "then", "until", "when", "while"))
_SHADES = frozenset(("bright", "dark", "deep", "light", "pale", "very"))
_COMPLEMENTS = frozenset(("about", "at", "for", "from", "of", "than", "to", "with"))
_AUXILIARIES = frozenset(("be", "have"))
_PARTICLES = frozenset(("away", "down", "off", "out", "up"))
_STATES = word_set("swap.states")
# Verbs of posture or activity that take no object.
_POSTURES = word_set("swap.postures")
_OBJECTS = (*OPENERS, *ADJECTIVES, "NN", "NNS", "NNP", "NNPS")


def join_verb_phrases(analysis: Analysis, conjunction: int) -> Conjuncts:
    """Return the verb phrases around an "and" that begin with verbs of the same form.

    In "standing and lying on a beach" only the verbs are joined: the place applies to both. After
    other verbs, the object or place may belong to both ("riding and washing elephants").
    """
    start, end = conjunction, conjunction - (analysis.tag(conjunction - 1) == ",")
    while start > 0 and not _is_border(analysis, start - 1):
        start -= 1
    tag = analysis.tag(conjunction + 1)
    verbs = [i for i in range(start, end) if analysis.tag(i) == tag]
    if len(verbs) != 1:
        refuse("unclear_attachment" if verbs else "unlike_parts")
    left, right = (verbs[0], end), (conjunction + 1, _clause_end(analysis, conjunction + 1))
    _refuse_unlike_verbs(analysis, left, right)
    if tag in ("VBG", "VBN") and any(analysis.tag(i) in _FINITE for i in range(left[0], right[1])):
        refuse("shared_modifier")  # "men wearing hats and using sticks are walking"
    if analysis.tag(left[0] - 1) in ("RB", "TO"):
        refuse("shared_modifier")  # "slightly bending and taking a tool"
    if analysis.tag(right[1]) in (",", "CC", "WDT", "WP") or analysis.word(right[1]) == "that":
        refuse("unclear_attachment")  # "sits and has rice, beans and a drink"
    if analysis.tag(end - 1) in ("IN", "TO"):
        refuse("shared_modifier")  # "standing next to and holding a horse"
    if left[1] - left[0] == 1 < right[1] - right[0]:
        # If the left side is a lone verb, the right side is a verb and its object, without a place.
        lemma, behind = analysis.tokens[left[0]].lemma, right[0] + 1
        is_placed = analysis.word(behind) in PLACES - {"at"}  # not "smiling at"
        if is_placed and {lemma, analysis.tokens[right[0]].lemma} <= _POSTURES:
            right = (right[0], behind)
        elif lemma not in _POSTURES or analysis.tag(behind) not in _OBJECTS:
            refuse("shared_modifier")
    refuse_pronouns(analysis, left, right)
    return Conjuncts(left=left, right=right, level="verb_phrase")


def _refuse_unlike_verbs(analysis: Analysis, left: Range, right: Range) -> None:
    """Check that both sides are verbs that may swap places.

    Simple forms tell a story in order ("climbs a tree and picks a fruit"), unless one is a state
    ("sits on a chair and plays a flute"). So do "gets" and "stands up" in any form.
    """
    starts = (left[0], right[0])
    tag, before = analysis.tag(left[0]), analysis.tag(left[0] - 1)
    lemmas = {analysis.tokens[start].lemma for start in starts}
    if before in ("DT", "CD", "VBN", *ADJECTIVES) or analysis.word(right[0] + 1) == "of":
        refuse("unlike_parts")  # "on a yellowed stake", "a set of doors"
    if tag == "VBN" and not all(is_state(analysis, start) for start in starts):
        refuse("unlike_parts")  # "people dressed in uniform and performed on a stage"
    if tag == "VBD" and len(_AUXILIARIES & lemmas) == 1:
        refuse("unlike_parts")  # "was stuck with a toothpick and hung on it"
    if tag == "VBZ" and analysis.word(right[0]) not in {"has", "is"} | finite_forms().keys():
        refuse("unlike_parts")  # "has green skin and leaves"
    if any(analysis.word(i) in participles() for i in range(left[0] + 1, left[1])):
        refuse("unclear_attachment")  # "working outside cooking and cutting pizza"
    is_story = tag in (*_FINITE, "VB") and (left[0] == 0 or _STATES.isdisjoint(lemmas))
    moving = {analysis.tokens[i].lemma for i in starts if analysis.word(i + 1) in _PARTICLES}
    if is_story or "get" in lemmas or moving - {"look"}:
        refuse("shared_modifier")


def join_adjectives(analysis: Analysis, conjunction: int) -> Conjuncts:
    """Return the adjectives around an "and", with words that modify them ("light blue")."""
    start = conjunction - 1
    while analysis.word(start - 1) in _SHADES or analysis.tag(start - 1) == "RB":
        start -= 1
    if analysis.word(start) == "very" or analysis.tag(start) == "RB":
        refuse("shared_modifier")  # "a very old and rusty car"
    end = conjunction + 2
    while analysis.word(end - 1) in _SHADES and analysis.tag(end) in ADJECTIVES:
        end += 1
    are_colours = {analysis.word(conjunction - 1), analysis.word(end - 1)} <= COLOURS
    if analysis.tag(start - 1) in (*ADJECTIVES, "CC") and not are_colours:
        refuse("shared_modifier")
    if analysis.tag(end) in ADJECTIVES and not (are_colours and analysis.word(end) not in COLOURS):
        refuse("shared_modifier")  # "a black and large white dog"
    if analysis.word(end) in _COMPLEMENTS or analysis.word(end - 1) in ("many", "several"):
        refuse("shared_modifier")  # "open and full of food"
    if are_colours and may_color_person(analysis, end - 1):
        refuse("fixed_expression")  # "black and white people"
    return Conjuncts(left=(start, conjunction), right=(conjunction + 1, end), level="adjective")


def join_clauses(analysis: Analysis, conjunction: int) -> Conjuncts | None:
    """Return the halves of a caption of two parallel clauses: "a man sits and a dog runs".

    Each half is a noun phrase that names a living being, followed at once by its only verb, in the
    same form. Returns None for any other caption.
    """
    ends = dict(analysis.noun_phrases)
    if 0 not in ends or conjunction + 1 not in ends:
        return None
    last = _clause_end(analysis, conjunction + 1)
    halves = (0, conjunction), (conjunction + 1, last)
    subjects = [(half[0], ends[half[0]]) for half in halves]
    verb = analysis.tag(subjects[0][1])
    for half, subject in zip(halves, subjects, strict=True):
        tags = [analysis.tag(i) for i in range(*half)]
        if [tag for tag in tags if tag in _VERBS] != [verb] or not is_living(analysis, subject):
            return None
        if analysis.tag(subject[1]) != verb or set(tags) & {*PRONOUNS, ",", "CC"}:
            return None
    opened = {analysis.tag(half[0]) in OPENERS for half in halves}
    is_whole = all(analysis.tag(i) == "." for i in range(last, len(analysis.tokens)))
    if len(opened) > 1 or not is_whole:
        return None
    return Conjuncts(left=halves[0], right=halves[1], level="clause")


def _clause_end(analysis: Analysis, index: int) -> int:
    while index < len(analysis.tokens) and not _is_border(analysis, index):
        index += 1
    return index


def _is_border(analysis: Analysis, index: int) -> bool:
    return analysis.tag(index) in _ENDS or analysis.word(index) in _SUBORDINATING
