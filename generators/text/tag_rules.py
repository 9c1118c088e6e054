"""Repairs the tags of a word lexicon where the neighbouring words show another part of speech.

A lexicon gives each word its most frequent tag in newspapers: there "sink" and "bear" are verbs.
Captions are in the present tense and mostly noun phrases, so a few rules on the neighbouring tags
correct most of these. They run once, from left to right, so the tags before are repaired already.
"""

from collections.abc import Sequence

# Words that captions use differently from newspapers.
CAPTION_TAGS = {
    "bear": "NN",
    "bears": "NNS",
    "broccoli": "NN",
    "close": "JJ",
    "cut": "VBN",
    "monitor": "NN",
    "sink": "NN",
    "skate": "NN",
    "skiing": "VBG",
    "skis": "NNS",
    "stop": "NN",
    "surfing": "VBG",
    "t-shirt": "NN",
    "urinal": "NN",
}
PUNCTUATION_TAGS = {
    **dict.fromkeys((".", "!", "?"), "."),
    **dict.fromkeys((":", ";", "--", "..", "...", "\u2013", "\u2014", "\u2026"), ":"),
    **dict.fromkeys(("(", "[", "{"), "-LRB-"),
    **dict.fromkeys((")", "]", "}"), "-RRB-"),
    **dict.fromkeys(('"', "\u201d"), "''"),
    **dict.fromkeys(("\u201c", "`"), "``"),
    **dict.fromkeys(("'", "\u2019"), "POS"),
    ",": ",",
    "-": "HYPH",
    "&": "CC",
    "$": "$",
    "#": "#",
}
_AUXILIARIES = frozenset(
    (
        "am",
        "are",
        "be",
        "been",
        "being",
        "did",
        "do",
        "does",
        "had",
        "has",
        "have",
        "is",
        "was",
        "were",
    )
)
# Nouns after an article ("a look"), but verbs after a noun ("the couple look").
_VERBS_BEHIND_NOUNS = frozenset(
    (
        "eat",
        "enjoy",
        "get",
        "go",
        "hang",
        "hold",
        "look",
        "make",
        "ride",
        "see",
        "sit",
        "stand",
        "take",
        "try",
        "wait",
        "walk",
        "wear",
    )
)
_NOUNS_FOR_ADJECTIVES = frozenset(("adult", "female", "male", "orange", "remote"))
_DETERMINERS = ("DT", "PRP$", "POS", "CD", "WP$")
_ADJECTIVES = ("JJ", "JJR", "JJS")
_NOUNS = ("NN", "NNS", "NNP", "NNPS")
_PARTICIPLES = ("VBG", "VBN")
_BEHIND_NOUN_PHRASE = ("IN", "TO", "VBZ", "VBP", "MD", "WP", "WDT", ".", "")
_SUBJECT_PRONOUNS = ("PRP", "EX", "WP", "WDT")


def repair_tags(words: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Returns one tag per word, repaired where a rule applies.

    Args:
      words: the tokens of a caption.
      tags: their Penn Treebank tags by lexicon and suffix; one per word.
    """
    repaired = ["", "", *tags, ""]
    for i, word in enumerate(words, start=2):
        two_before, before, tag, after = repaired[i - 2 : i + 2]
        repaired[i] = _repair(word.lower(), tag, two_before, before, after)
    return repaired[2:-1]


def _repair(word: str, tag: str, two_before: str, before: str, after: str) -> str:
    """Returns the tag of one word, given its neighbours' tags; "" is an end of the caption."""
    if word in _AUXILIARIES:
        return tag
    if word in ("'s", "\u2019s"):
        is_verb = before in _SUBJECT_PRONOUNS and after not in (*_NOUNS, *_ADJECTIVES)
        return "VBZ" if is_verb else "POS"
    if before in ("MD", "TO") and two_before not in _ADJECTIVES:  # but not "next to"
        is_verb = tag in ("VB", "VBP") or (tag == "NN" and after in ("DT", "PRP$"))
        return "VB" if is_verb else tag
    tag = CAPTION_TAGS.get(word, tag)
    if tag in ("VB", "VBP", "VBZ") and _is_noun_place(word, two_before, before):
        return "NNS" if tag == "VBZ" else "NN"
    if tag == "NNS" and before == "NN" and after in ("DT", "PRP$"):
        return "VBZ"  # "a skateboarder rides the rail"
    if tag == "VBD" and word.endswith("ed") and before not in _SUBJECT_PRONOUNS:
        return "VBN"  # "a bus parked on the street": the finite verbs of captions are present
    if _is_noun_by_itself(word, tag, before, after):
        return "NN"
    if word == "that" and after in ("VBZ", "VBP", "VBD", "MD"):
        return "WDT"
    return tag


def _is_noun_place(word: str, two_before: str, before: str) -> bool:
    """Tells whether a finite verb form is a noun in its place: "a white sink"."""
    if before in _DETERMINERS or before in _ADJECTIVES or before == "IN":
        return True
    if word in _VERBS_BEHIND_NOUNS or word.endswith("s"):
        return False  # "a man rides": after a noun, the third person is a verb
    return before in ("", "NN") or (before == "CC" and two_before in _NOUNS)


def _is_noun_by_itself(word: str, tag: str, before: str, after: str) -> bool:
    """Tells whether an adjective or participle stands for a noun: "the top of", "a male"."""
    if word in ("top", "back") and after == "IN":
        return before in ("DT", "PRP$", "IN")
    if tag not in (*_ADJECTIVES, "VBN") or word == "other" or before not in ("DT", "PRP$"):
        return False
    return after in _BEHIND_NOUN_PHRASE or (word in _NOUNS_FOR_ADJECTIVES and after in _PARTICIPLES)
