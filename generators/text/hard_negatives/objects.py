"""Find nouns of a caption to replace with others of their kind and number."""

from collections.abc import Iterator
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis, Range, Token
from eqforge.generators.text.contexts import fitting_words
from eqforge.generators.text.coordination.conjuncts import OPENERS, is_living, is_mass
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.hard_negatives.places import GENDER, Place
from eqforge.generators.text.parts import inflect_word
from eqforge.generators.text.words import is_in_fixed_expression, word_set

# Words whose usual sense in captions is not that of their class.
_NEVER = frozenset(("back", "glasses", "skis"))
_GENDERED = frozenset(("boy", "gentleman", "girl", "guy", "lady", "man", "woman"))
_ONE = frozenset(("a", "an", "another", "each", "every", "one"))
_MANY = word_set("objects.many")
_PICTURES = frozenset(("drawing", "image", "painting", "photo", "photograph", "picture", "shot"))
_LISTS = frozenset((",", "and", "&", "or"))
_BESIDE = word_set("objects.beside")
_INSIDE = word_set("objects.inside")  # of which nothing is "on"
_UPON = word_set("objects.upon")  # of which nothing is "in"
_NOT_AT = frozenset(("bed", "bench", "chair", "couch", "hill", "mountain", "sofa", "stool"))
_UNFIT = {
    "at": _NOT_AT,
    **dict.fromkeys(("in", "inside", "into"), _UPON),
    **dict.fromkeys(("atop", "of", "on", "onto"), _INSIDE),  # "on top of"
}
_NOT_OF = frozenset(("building", "land", "land vehicle", "slope or shore", "water"))
_OUTSIDE = ("", ",", ".", "CC", "IN", "RP", "TO", "VB", "VBD", "VBG", "VBP", "VBZ")
_ONE_FORM = frozenset(("deer", "fish", "moose", "sheep"))  # of one or of several


@dataclass(frozen=True, kw_only=True, slots=True)
class _Noun:
    """The noun that heads a noun phrase, a compound as a whole.

    Attributes:
      start: where the phrase starts if the tagger has cut it: "a snow | covered hill".
      is_counted: whether "a", "an" or "one" precedes it, which "rice" cannot follow.
      is_several: whether it names several without an ending: "three sheep", "a group of zebra".
    """

    phrase: Range
    start: int
    first: int
    head: Token
    groups: tuple[str, ...]
    is_opened: bool
    is_counted: bool
    is_several: bool

    @property
    def last(self) -> int:
        return self.phrase[1]

    @property
    def is_plural(self) -> bool:
        return self.head.tag == "NNS" or self.is_several


def object_places(analysis: Analysis) -> Iterator[Place]:
    """Yield the heads of noun phrases with their replacements.

    A compound ("fire hydrant") is replaced as a whole or not at all. Skipped are things in a list
    or next to something, since the image may show the replacement as well, a man with "his" hat,
    and things that the caption names twice.
    """
    for noun in _nouns(analysis):
        if _is_idiom(analysis, noun) or _may_be_there(analysis, noun):
            continue
        lemma = noun.head.lemma  # is the thing named again, by noun, pronoun or a verb's number?
        if sum(token.lemma == lemma for token in analysis.tokens) > 1:
            continue
        if lemma in _GENDERED and any(t.text.lower() in GENDER for t in analysis.tokens):
            continue
        if lemma in _ONE_FORM and not (noun.is_counted or noun.is_several):
            continue
        forms = (_in_number(word, noun) for word in _fitting(analysis, noun))
        if words := tuple(form for form in forms if form is not None):
            yield Place(first=noun.first, last=noun.last, words=words)


def _nouns(analysis: Analysis) -> Iterator[_Noun]:
    named = closed_classes("object").groups
    for phrase in analysis.noun_phrases:
        head = analysis.tokens[phrase[1] - 1]
        if head.tag not in ("NN", "NNS"):
            continue
        first, start = _first(analysis, phrase), _start(analysis, phrase[0])
        inside = any(token.tag in OPENERS for token in analysis.tokens[phrase[0] : first])
        is_opened = inside or analysis.tag(start) in OPENERS
        is_of_many = analysis.word(phrase[0] - 1) == "of" and not is_opened
        is_several = not _MANY.isdisjoint(analysis.words((phrase[0], phrase[1] - 1)))
        yield _Noun(
            phrase=phrase,
            start=start,
            first=first,
            head=head,
            groups=named.get(head.lemma, ()),
            is_opened=is_opened,
            is_counted=not _ONE.isdisjoint(analysis.words((start, first))),
            is_several=is_several or (is_of_many and is_living(analysis, phrase)),
        )


def _first(analysis: Analysis, phrase: Range) -> int:
    first = phrase[1] - 1
    pair = f"{analysis.word(first - 1)} {analysis.tokens[first].lemma}"
    if first > phrase[0] and pair in closed_classes("object").groups:
        first -= 1  # "hot dog"
    while first > phrase[0] and analysis.tokens[first - 1].tag[:2] in ("NN", "HY", "VB"):
        first -= 1
    return first


def _start(analysis: Analysis, first: int) -> int:
    here = first
    while analysis.tag(here - 1) not in _OUTSIDE and analysis.tag(here) not in OPENERS:
        here -= 1
    return here


def _is_idiom(analysis: Analysis, noun: _Noun) -> bool:
    last, head = noun.last, noun.head
    before, behind = analysis.word(noun.phrase[0] - 1), analysis.tag(last)
    if head.text.lower() in _NEVER or behind in OPENERS:  # "watches the water"
        return True
    if noun.first == last - 1 and is_in_fixed_expression(analysis.text, head.start, head.end):
        return True  # "polar bear"
    if behind == "VBN" and analysis.tag(last + 1).startswith(("NN", "JJ")):
        return True  # "glass fronted cabinets"
    if analysis.word(last) == "of" and not _NOT_OF.isdisjoint(noun.groups):
        return True  # "a train of animals", "a field of tall grass"
    if "slope or shore" in noun.groups and analysis.tag(noun.first - 1) == "JJ":
        return True  # no mountain is as a "sandy beach"
    is_bare = noun.start == last - 1 > 0 and head.tag == "NN" and not is_mass(head.lemma)
    is_in_use = "device" in noun.groups and before in {"answering", "on", "use", "uses", "using"}
    return is_bare or is_in_use  # "in bed", "playing frisbee", "on a phone"


def _may_be_there(analysis: Analysis, noun: _Noun) -> bool:
    if {"another", "other"} & set(analysis.words(noun.phrase)):
        return True
    if is_living(analysis, noun.phrase):
        return False
    start, last = noun.phrase
    before, behind = analysis.word(start - 1), analysis.word(last)
    is_shown = before == "of" and analysis.word(start - 2) in _PICTURES
    return (before in _BESIDE and not is_shown) or not _LISTS.isdisjoint((before, behind))


def _fitting(analysis: Analysis, noun: _Noun) -> Iterator[str]:
    words = analysis.words((noun.first, noun.last))
    names = (" ".join(words), " ".join((*words[:-1], noun.head.lemma)))
    span = (noun.first, noun.last)
    found = (fitting_words(analysis, span, "object", name) for name in names)
    unfit = _UNFIT.get(analysis.word(noun.start - 1), frozenset())
    if any(token.lemma in ("grass", "grassy", "tree") for token in analysis.tokens):
        unfit |= {"desert", "forest"}
    return (word for word in next(filter(None, found), ()) if word not in unfit)


def _in_number(word: str, noun: _Noun) -> str | None:
    """Inflect a noun like the replaced one; None if impossible: bare "rice" becomes "potatoes"."""
    *rest, last = word.split()
    if is_mass(last):
        return None if noun.is_counted or noun.is_plural else word
    is_bare = not noun.is_opened and is_mass(noun.head.lemma)
    if not (noun.is_plural or is_bare) or last in {"jeans", "pants", "shorts", "trousers"}:
        return word
    plural = inflect_word(last, "NNS")
    return None if plural is None else " ".join([*rest, plural])
