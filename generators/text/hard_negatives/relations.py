"""The prepositions and verbs of a caption that can be replaced by others of their kind."""

import functools
from collections.abc import Iterator, Mapping

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at, words_of
from eqforge.generators.text.hard_negatives.fitting import fitting_words
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.hard_negatives.places import Place
from eqforge.generators.text.inflection import inflect_word

_VERB_TAGS = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
_PLACED = frozenset(  # verbs behind which "on" and "in" tell where: not that of "waiting on a bus"
    (
        *("arrange", "be", "congregate", "cook", "crouch", "dance", "display", "gather", "graze"),
        *("hang", "heat", "jump", "kneel", "lay", "lean", "lie", "mount", "nap", "park", "perch"),
        *("pile", "place", "play", "pose", "position", "relax", "rest", "run", "seat"),
        *("serve", "set", "show", "sit", "skate", "sleep", "snuggle", "stack", "stand", "walk"),
    )
)
_OF_BODY = frozenset(("back", "belly", "feet", "head", "knees", "legs", "side", "stomach"))
_BEFORE = frozenset(("down", "just", "out", "over", "right", "up"))
_PARTICLES = frozenset(
    ("about", "around", "away", "back", "down", "for", "off", "out", "over", "through", "up")
)
_NOT_WITH = {  # nobody sings to an umpire, or lands in the sky; surfers stand and crouch at once
    "fly": frozenset(("air", "sky", "skies")),
    "jump": frozenset(("air",)),
    "leap": frozenset(("air",)),
    "stand": frozenset(("board", "boards", "surfboard", "surfboards", "wave", "waves")),
    "swing": frozenset(("at",)),
    "talk": frozenset(("to", "with")),
}
_POSTURES = frozenset(("crouch", "kneel", "lay", "lie", "sit", "squat", "stand"))
_HANDS = frozenset(("arm", "arms", "hand", "hands", "mouth"))
_POSSESSIVES = frozenset(("his", "her", "its", "their", "one", "both"))


def preposition_places(analysis: Analysis) -> Iterator[Place]:
    """Yields the prepositions before visible objects, with their replacements.

    Args:
      analysis: the caption's analysis.

    Raises:
      InputError: WordNet is needed and not on this machine.
    """
    taken = 0
    for index in range(len(analysis.tokens)):
        name = _preposition_at(analysis, index) if index >= taken else None
        if name is None:
            continue
        taken = index + len(name.split())
        if _is_before_bare_noun(analysis, taken) or _is_of_verb(analysis, index):
            continue
        if words := fitting_words(analysis, (index, taken), "relation", name):
            yield Place(first=index, last=taken, words=words)


def _is_of_verb(analysis: Analysis, preposition: int) -> bool:
    """Tells whether a preposition belongs to a verb: "waiting on it", "coming up close to it"."""
    if word_at(analysis, preposition - 1) in _BEFORE:
        return True
    if tag_at(analysis, preposition - 1) in ("DT", "IN"):
        return True  # "on the outside of it"
    if not preposition or word_at(analysis, preposition) not in ("in", "on"):
        return False
    verb = analysis.tokens[preposition - 1]
    return verb.tag in _VERB_TAGS and verb.lemma not in _PLACED


def _is_before_bare_noun(analysis: Analysis, index: int) -> bool:
    """Tells whether one singular noun follows, as in "on display"."""
    phrase = next((each for each in analysis.noun_phrases if each[0] == index), None)
    return phrase == (index, index + 1) and analysis.tokens[index].tag == "NN"


def _preposition_at(analysis: Analysis, index: int) -> str | None:
    """Returns the longest preposition of the closed classes that starts at a token."""
    for words in _prepositions().get(word_at(analysis, index), ()):
        if words_of(analysis, (index, index + len(words))) == words:
            return " ".join(words)
    return None


@functools.cache
def _prepositions() -> Mapping[str, tuple[tuple[str, ...], ...]]:
    """Returns the prepositions that are replaced, by their first word, the longest first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in sorted(closed_classes("relation").alternatives):
        words = tuple(name.split())
        found.setdefault(words[0], []).append(words)
    return {first: tuple(sorted(own, key=lambda w: -len(w))) for first, own in found.items()}


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
        if token.tag not in _VERB_TAGS or in_phrase or _is_idiom(analysis, index):
            continue
        if _has_others(analysis, index) or _is_listed(analysis, index):
            continue
        is_base = token.tag == "VBP" or word_at(analysis, index - 1) == "to"
        tag = "VB" if is_base else token.tag
        found = fitting_words(analysis, (index, index + 1), "verb", token.lemma)
        forms = [inflect_word(word, tag) for word in found]
        if words := tuple(form for form in forms if form is not None):
            yield Place(first=index, last=index + 1, words=words)


def _is_idiom(analysis: Analysis, verb: int) -> bool:
    """Tells whether the words around a verb go with no other of its class."""
    token, behind = analysis.tokens[verb], words_of(analysis, (verb + 1, len(analysis.tokens)))
    if behind[:1] and behind[0] in _PARTICLES:
        return True  # "looking up"
    if behind[:1] == ("on",) and behind[2:3] and behind[2] in _OF_BODY:
        return True  # nobody stands "on its side"
    if token.lemma in ("catch", "hit", "strike") and word_at(analysis, verb - 1) == "to":
        return True  # nobody is about to miss
    if token.tag == "VBN" and token.lemma in _POSTURES and word_at(analysis, verb - 1) != "to":
        return True  # "crouched" is said of what crouches, "stood" is not
    is_unfit = not _NOT_WITH.get(token.lemma, frozenset()).isdisjoint(behind)
    return is_unfit or _is_carried(analysis, verb)


def _is_listed(analysis: Analysis, verb: int) -> bool:
    """Tells whether a verb is one of several: "cows lying down, grazing and walking"."""
    return bool({word_at(analysis, verb - 1), word_at(analysis, verb + 1)} & {",", "and"})


def _has_others(analysis: Analysis, verb: int) -> bool:
    """Tells whether a caption has several of a verb's subject: "a person next to a person"."""
    phrase = next((each for each in analysis.noun_phrases if each[1] == verb), None)
    if phrase is None:
        return False
    lemma = analysis.tokens[verb - 1].lemma
    return sum(token.lemma == lemma for token in analysis.tokens) > 1


def _is_carried(analysis: Analysis, verb: int) -> bool:
    """Tells whether a part of the body holds something: "in the other hand", "in its mouth"."""
    words = [token.text.lower() for token in analysis.tokens[verb:]]
    if not _HANDS.isdisjoint(words):
        return True
    pairs = zip(words, [*words[1:], ""], strict=True)
    return any(one in ("in", "with") and two in _POSSESSIVES for one, two in pairs)
