"""The prepositions and verbs of a caption that can be replaced by others of their kind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import word_at
from eqforge.generators.text.hard_negatives.fitting import fitting_words
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.hard_negatives.places import Place
from eqforge.generators.text.inflection import inflect_word

_VERB_TAGS = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
_PARTICLES = frozenset(("away", "back", "down", "for", "off", "out", "over", "through", "up"))
_MOTION = frozenset(
    (
        *("climb", "come", "drive", "fly", "go", "head", "move", "ride", "roll", "run", "sail"),
        *("skate", "ski", "slide", "snowboard", "surf", "travel", "walk"),
    )
)
_POSSESSIVES = frozenset(("his", "her", "its", "their", "one", "both"))
# Closed classes of objects that things can be in, and of those that things cannot stand on.
_ENCLOSURES = frozenset(
    (
        *("appliance", "bathroom fixture", "building", "container", "craft", "dish or vessel"),
        *("land vehicle", "room"),
    )
)
_NO_SURFACES = frozenset(
    (
        *("ground", "land", "room", "slope or shore", "water", "way", "upper garment"),
        *("lower garment", "headwear", "accessory", "footwear"),
    )
)


def preposition_places(analysis: Analysis) -> Iterator[Place]:
    """Yields the prepositions before visible objects, with their replacements.

    Those before other nouns are left out: "on a sunny day".

    Args:
      analysis: the caption's analysis.
    """
    classes = closed_classes("relation")
    phrases = sorted(classes.alternatives, key=lambda phrase: (-len(phrase.split()), phrase))
    words = [token.text.lower() for token in analysis.tokens]
    taken = 0
    for index in range(len(words)):
        for phrase in phrases:
            size = len(phrase.split())
            if index < taken or words[index : index + size] != phrase.split():
                continue
            taken = index + size
            groups = classes.groups[phrase]
            is_particle = "rising" in groups and not _is_motion(analysis, index - 1)
            if _fits(groups, _groups_at(analysis, taken)) and not is_particle:
                yield Place(first=index, last=taken, words=_flat(classes.alternatives[phrase]))
            break


def _flat(words: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*words.values())))


def _fits(relations: Iterable[str], things: frozenset[str]) -> bool:
    """Tells whether a thing fits all relations of a preposition's groups."""
    if "containment" in relations:
        return bool(things & _ENCLOSURES)
    if "support" in relations:
        return bool(things) and not things & _NO_SURFACES
    return bool(things)


def _is_motion(analysis: Analysis, index: int) -> bool:
    """Tells whether a token is a verb of motion, so that "up" after it is a direction."""
    return index >= 0 and analysis.tokens[index].lemma in _MOTION


def _groups_at(analysis: Analysis, index: int) -> frozenset[str]:
    """Returns the closed classes of the head of the noun phrase that starts at a token."""
    groups = closed_classes("object").groups
    for first, last in analysis.noun_phrases:
        if first == index:
            head = analysis.tokens[last - 1]
            return frozenset((*groups.get(head.lemma, ()), *groups.get(head.text.lower(), ())))
    return frozenset()


def verb_places(analysis: Analysis) -> Iterator[Place]:
    """Yields the verbs with their replacements, in the same form.

    Args:
      analysis: the caption's analysis.

    Raises:
      InputError: WordNet is needed and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    for index, token in enumerate(analysis.tokens):
        in_phrase = any(first <= index < last for first, last in analysis.noun_phrases)
        if token.tag not in _VERB_TAGS or in_phrase:
            continue
        if word_at(analysis, index + 1) in _PARTICLES or _is_carried(analysis, index):
            continue
        tag = "VB" if token.tag == "VBP" else token.tag
        found = fitting_words(analysis, (index, index + 1), "verb", token.lemma)
        forms = [inflect_word(word, tag) for word in found]
        if words := tuple(form for form in forms if form is not None):
            yield Place(first=index, last=index + 1, words=words)


def _is_carried(analysis: Analysis, verb: int) -> bool:
    """Tells whether something is held by a part of the body: "in her arms", "in its mouth"."""
    words = [token.text.lower() for token in analysis.tokens[verb:]]
    pairs = zip(words, [*words[1:], ""], strict=True)
    return any(one in ("in", "with") and two in _POSSESSIVES for one, two in pairs)
