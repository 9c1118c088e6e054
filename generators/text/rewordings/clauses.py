"""Parse a caption as one noun phrase or one clause, and find where its subject ends."""

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_words import finite_forms, participles
from eqforge.generators.text.coordination.conjuncts import is_mass
from eqforge.generators.text.parts import lemmatizer
from eqforge.generators.text.rewordings.nominals import (
    Be,
    Nominal,
    names_living,
    names_person,
    nominal_from,
)
from eqforge.generators.text.words import read_table, word_set

_FINITE = ("VBZ", "VBP", "VBD", "MD", "VB")
_RELATIVE = frozenset(("that", "where", "which", "who"))
_SUBORDINATING = word_set("clauses.subordinating")
_MANY = frozenset(("many", "several", "some", "these", "those"))
_PREPOSITIONS = frozenset(("at", "in", "inside", "near", "on", "outside", "under", "with"))
_BEFORE_NOUNS = ("VBG", "VBZ", "VBP", "VB", "PRP$")
_NOUNS = frozenset(("being", "building", "carving", "crossing", "drawing", "painting"))
STATES: Final = {
    word: frozenset(row["followed_by"].split(","))
    for row in read_table("states.tsv")
    for word in row["participles"].split(",")
}
"""Past participles of states, with the words that follow them."""
MADE: Final = word_set("introduced.made")
"""Past participles of actions on things, which are no past-tense verbs without an object."""
DRESSED: Final = word_set("introduced.dressed")
_COLORS = word_set("conjuncts.colours")
_OBJECTS = ("DT", "PRP$", "PRP", "CD")
_OF_ALL = frozenset(("all", "both", "each"))
_PARTICLES = frozenset(("down", "off", "out", "up"))
_JOINING = frozenset(("&", ",", "and", "but", "or", "then"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """The noun phrase that opens a caption, or two joined by "and", up to token `last`.

    Attributes:
      modifiers: the things in phrases of place or clothing after it: "in a hat", "on a bench".
      be: the form of "be" that agrees.
    """

    last: int
    parts: tuple[Nominal, ...]
    modifiers: tuple[Nominal, ...]
    be: Be

    @property
    def is_living(self) -> bool:
        return all(part.is_living for part in self.parts)


def read_subject(analysis: Analysis) -> Subject | None:
    left = nominal_from(analysis, 0)
    if left is None or left.is_framed or not left.is_determined:
        return None
    if analysis.word(left.last) != "and":
        modifiers = tuple(_modifiers(analysis, left))
        last = modifiers[-1].last if modifiers else left.last
        return Subject(last=last, parts=(left,), modifiers=modifiers, be=left.be)
    right = nominal_from(analysis, left.last + 1)
    if right is None or not right.is_determined or analysis.word(right.last) == "and":
        return None
    if left.is_living != right.is_living:
        return None
    return Subject(last=right.last, parts=(left, right), modifiers=(), be="are")


def _modifiers(analysis: Analysis, noun: Nominal) -> Iterator[Nominal]:
    here = noun.last
    while noun.is_living and analysis.word(here) in _PREPOSITIONS:
        found = nominal_from(analysis, here + 1)
        if found is None or found.is_living or found.is_framed:
            return
        yield found
        here = found.last


def with_first_verb(analysis: Analysis) -> Analysis:
    """Detach a verb that the tagger has made part of the caption's subject.

    Word lexicons know "drives" and "skis" as nouns, but neither "a man drives" nor "two men drive"
    is a compound noun.
    """
    if not analysis.noun_phrases or analysis.noun_phrases[0][0] != 0:
        return analysis
    (_, last), *others = analysis.noun_phrases
    for index in range(2, last):
        if (tag := _verb_tag(analysis, index)) is not None:
            tokens = list(analysis.tokens)
            tokens[index] = dataclasses.replace(tokens[index], tag=tag)
            rest = [(index + 1, last)] if index + 1 < last else []
            phrases = ((0, index), *rest, *others)
            return dataclasses.replace(analysis, tokens=tuple(tokens), noun_phrases=phrases)
    return analysis


def with_first_participle(analysis: Analysis) -> Analysis:
    """Detach a participle that the tagger has made part of the caption's subject.

    Word lexicons know "reading" as a noun, but "person reading" before "a" is no compound noun.
    """
    if not analysis.noun_phrases or analysis.noun_phrases[0][0] != 0:
        return analysis
    (_, last), *others = analysis.noun_phrases
    index = last - 1
    token, subject = analysis.tokens[index], analysis.tokens[index - 1]
    is_verb = token.tag == "NN" and token.text.lower() in participles()
    is_determined = analysis.tag(0) in ("DT", "CD") or subject.tag == "NNS"
    if index == 0 or not (is_verb and is_determined and names_living(subject)):
        return analysis
    if analysis.tag(last) not in ("DT", "PRP$", "CD", "IN"):
        return analysis
    if analysis.word(index - 2) == "of" or token.text.lower() in _NOUNS:
        return analysis
    tokens = list(analysis.tokens)
    tokens[index] = dataclasses.replace(token, tag="VBG")
    phrases = ((0, index), *others)
    return dataclasses.replace(analysis, tokens=tuple(tokens), noun_phrases=phrases)


def _verb_tag(analysis: Analysis, index: int) -> str | None:
    verb, be = finite_forms().get(analysis.word(index), (None, ""))
    if verb is None:
        return None
    tags = (analysis.tag(index - 1), analysis.tag(index))
    opener, is_person = analysis.word(0), names_person(analysis.tokens[index - 1])
    if be == "is" and tags == ("NN", "NNS") and (is_person or opener in ("a", "an")):
        return "VBZ"
    is_many = is_person or analysis.tag(0) == "CD" or opener in _MANY
    return "VBP" if be == "are" and tags == ("NNS", "NN") and is_many else None


def finite_verbs(analysis: Analysis, start: int) -> list[int]:
    """Return the finite verbs from a token on that may be the main clause's.

    Verbs of relative clauses, and of clauses with "while", "as" and the like, are left out.
    """
    found = []
    for index in range(start, len(analysis.tokens)):
        word, tag = analysis.word(index), analysis.tag(index)
        if index > start and is_subordinating(analysis, index):
            break
        before, tag_before = analysis.word(index - 1), analysis.tag(index - 1)
        if not (tag in _FINITE or (before in _JOINING and word in finite_forms())):
            continue
        # Nouns that word lexicons take for verbs: "with sinks", "eating leaves", "train tracks".
        is_object = tag_before in _BEFORE_NOUNS or before in {"between", "for", "of", "with"}
        is_noun = (
            tag == "VBZ" and word != "is" and is_object and not _has_object(analysis, index)
        ) or (word == "tracks" and before in {"rail", "railroad", "railway", "train"})
        if is_noun or before in _RELATIVE or (tag == "VB" and tag_before in ("TO", "MD")):
            continue
        found.append(index)
    return found


def is_subordinating(analysis: Analysis, index: int) -> bool:
    """Return True if a word may open a clause: not the "as" of "dressed as" and "such as"."""
    before, word, behind = (analysis.word(i) for i in (index - 1, index, index + 1))
    is_of_phrase = (
        analysis.tag(index - 1) == "VBN" or before == "such" or "well" in (before, behind)
    )
    return word in _SUBORDINATING and not (word == "as" and is_of_phrase)


def is_state(analysis: Analysis, index: int) -> bool:
    """Return True if a past participle names a state: "topped with", "parked on"."""
    return analysis.word(index + 1) in STATES.get(analysis.word(index), ())


def may_hide_verb(analysis: Analysis) -> bool:
    """Return True if a word that is tagged as a noun or participle may be the caption's verb.

    Taggers take "plays" of "a man in black plays a guitar" for a noun, and "held" of "a girl in a
    hat held a ball" for a participle.
    """
    start = analysis.noun_phrases[0][1] if analysis.noun_phrases else len(analysis.tokens)
    if start == 2 and analysis.tag(1) == "NNS" and is_mass(analysis.tokens[0].lemma):
        return may_be_verb(analysis.word(1))  # "water flows from a tap"
    for index in range(start, len(analysis.tokens)):
        is_relative = analysis.word(index) in _RELATIVE
        if _hides_second_verb(analysis, index + is_relative):
            return True
        if is_subordinating(analysis, index) or is_relative:
            return False
        if _may_be_past(analysis, index) or _may_be_present(analysis, index):
            return True
    return False


def _hides_second_verb(analysis: Analysis, be: int) -> bool:
    """Return True if a verb follows "is" and an adjective or participle: "who is black sits"."""
    here = be + 1
    while analysis.tag(here) in ("RB", "JJ", "CC"):
        here += 1
    if analysis.word(be) not in ("are", "is") or analysis.word(be - 1) == "there":
        return False
    tag = analysis.tag(here)
    if analysis.tag(here - 1) == "JJ":
        return tag[:2] == "VB" or tag == ("NNS" if analysis.word(be) == "is" else "NN")
    verb = participles().get(analysis.word(here))
    _, form = finite_forms().get(analysis.word(here + 1), (None, ""))
    return verb is not None and verb.takes == "none" and form == analysis.word(be)


def _may_be_past(analysis: Analysis, index: int) -> bool:
    word, before, behind = analysis.word(index), analysis.tag(index - 1), analysis.tag(index + 1)
    if analysis.tag(index) != "VBN":
        return False
    is_in_color = _ends_in_color(analysis, index)
    if _has_object(analysis, index) or (is_in_color and behind in ("NN", "NNS", "JJ")):
        return True
    is_known = is_state(analysis, index) or word in MADE or word in DRESSED
    is_known = is_known or analysis.word(index + 1) == "by"
    return (is_in_color or before in ("NN", "NNS", "RB", "CC")) and not is_known


def _may_be_present(analysis: Analysis, index: int) -> bool:
    word, tag = analysis.word(index), analysis.tag(index)
    before, behind = analysis.tag(index - 1), analysis.tag(index + 1)
    if tag == "JJ" and before in ("NN", "NNS"):  # "children clean the floor", "plants lean on it"
        is_followed = _has_object(analysis, index) or (before == "NNS" and behind == "IN")
        return is_followed and word not in ("full", "open") and may_be_verb(word)
    if tag not in ("NN", "NNS") or word.endswith("ing"):
        return False
    if before == "NNS" or analysis.word(index - 1) in _OF_ALL:
        return may_be_verb(word)  # "people salute"
    if before not in ("NN", "NNP", "JJ", "CD") and analysis.word(index - 1) not in _PARTICLES:
        return False
    _, be = finite_forms().get(word, (None, ""))
    is_in_color = _ends_in_color(analysis, index)
    if _has_object(analysis, index) or (
        tag == "NNS" and before != "JJ" and behind in ("NN", "NNS")
    ):
        return may_be_verb(word)  # "a girl in a hat cooks food", "put his hand on it"
    if tag == "NNS":
        is_followed = behind in ("IN", "TO", "RB", "JJ", "NN", "NNS")
        return be == "is" and (is_in_color or is_followed)
    are_many = any(analysis.tag(i) == "NNS" or analysis.word(i) == "and" for i in range(index))
    is_followed = is_in_color or behind == "NNS" or (behind == "JJ" and before in ("NN", "JJ"))
    is_followed = is_followed or (behind in ("IN", "RB") and before != "JJ")
    return be == "are" and (analysis.word(index + 1) in _PARTICLES or (are_many and is_followed))


def _has_object(analysis: Analysis, index: int) -> bool:
    return analysis.tag(index + 1) in _OBJECTS and analysis.word(index + 1) not in _OF_ALL


def _ends_in_color(analysis: Analysis, index: int) -> bool:
    """Return True right after a color that is no adjective: "in black"."""
    return analysis.word(index - 1) in _COLORS and analysis.tag(index - 2) == "IN"


def is_one_sentence(analysis: Analysis) -> bool:
    """Return True if a caption is one sentence with plausible tags: not "a pink top takes"."""
    if may_hide_verb(analysis):
        return False
    tags = [token.tag for token in analysis.tokens]
    if any(tag in (".", ":", "-LRB-", "-RRB-") for tag in tags[:-1]):
        return False
    if sum(tag in ("``", "''") for tag in tags) % 2:
        return False
    for first, last in analysis.noun_phrases:  # may it end in a verb: not "a surf board" of one man
        verb, be = finite_forms().get(analysis.word(last - 1), (None, ""))
        if verb is None or last - first < 2 or not analysis.tag(last - 2).startswith("NN"):
            continue
        opening = next(each for each in analysis.noun_phrases if analysis.tag(each[0]) != "EX")
        is_of_one = _is_one(analysis, first, last) and _is_one(analysis, *opening)
        if be == "is" or not is_of_one:
            return False
    return not any(
        analysis.word(first) in ("a", "an")
        and tags[last - 1] in ("NNS", "NNPS")
        and analysis.word(first + 1) not in ("couple", "dozen", "few", "lot")
        and analysis.tokens[last - 1].lemma != "people"
        and "POS" not in tags[first:last]
        for first, last in analysis.noun_phrases
    )


def _is_one(analysis: Analysis, first: int, last: int) -> bool:
    tags = (analysis.tag(last - 2), analysis.tag(last - 1))
    is_single = analysis.word(first) in ("a", "an") and not set(tags) & {"NNS", "NNPS"}
    around = {analysis.word(first - 1), analysis.word(last)}
    return is_single and not around & {"&", ",", "and", "of", "or"}


def may_have_second_subject(analysis: Analysis, subject: Subject, start: int) -> bool:
    """Return True if a noun phrase after a verb, such as "and a dog", may be another subject.

    "A man riding a bike and a dog": the dog rides nothing, or is ridden.
    """
    for index in range(start, len(analysis.tokens)):
        if analysis.word(index) not in ("&", ",", "and", "or"):
            continue
        following = index + 1 + (analysis.word(index + 1) == "and")
        other = nominal_from(analysis, following)
        if other is None:
            if following in dict(analysis.noun_phrases):
                return True
            continue
        if analysis.tag(other.last) == "VBG":
            return True  # "and a train coming"
        if other.is_living == subject.is_living and (
            subject.is_living or analysis.tag(following) in ("DT", "CD")
        ):
            return True
    return False


def joins_verb(analysis: Analysis, start: int) -> bool:
    """Return True if another verb may share the subject: "eating and drinking"."""
    return any(
        analysis.word(i) in ("&", "and", "or")
        and (
            analysis.word(i + 1).endswith("ing")
            or (analysis.tag(i + 1) == "NNS" and may_be_verb(analysis.word(i + 1)))
        )
        for i in range(start, len(analysis.tokens))
    )


@functools.lru_cache(maxsize=65_536)
def may_be_verb(word: str) -> bool:
    return bool(lemmatizer().getLemma(word, upos="VERB", lemmatize_oov=False))
