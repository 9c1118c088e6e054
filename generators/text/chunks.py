"""Finds noun phrases by a chunk grammar over part-of-speech tags, for taggers without a parser.

In tags, a noun phrase is:

    phrase   = opener core ("'s" core)*  |  bare ("'s" core)*  |  pronoun
    opener   = (determiner | possessive pronoun | number)+
    core     = (adverb | adjective | participle | number | hyphen)* noun+
    bare     = core that does not begin with a participle or an adverb

A participle belongs to a phrase after an article ("a parked car") or adjective, but never begins
one: in "a man riding waves" the phrases are "a man" and "waves". Prepositional attributes
stay outside: "a bowl of soup" is "a bowl" and "soup".
"""

import re
from collections.abc import Sequence

_CLASSES = {
    **dict.fromkeys(("DT", "PDT", "PRP$", "WP$"), "D"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "A"),
    **dict.fromkeys(("RB", "RBR", "RBS"), "R"),
    **dict.fromkeys(("VBG", "VBN"), "V"),
    **dict.fromkeys(("NN", "NNS", "NNP", "NNPS"), "N"),
    **dict.fromkeys(("PRP", "EX", "WP"), "P"),
    "CD": "C",
    "HYPH": "H",
    "POS": "S",
}
_CORE = "[RAVCH]*N+"
_PHRASE = re.compile(rf"(?:[DC]+{_CORE}|A[RAVCH]*N+|N+)(?:S{_CORE})*|P")


def find_noun_phrases(tags: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Returns (first, last) token indices of the noun phrases, `last` exclusive.

    Args:
      tags: Penn Treebank tags of a caption's tokens.
    """
    letters = "".join(_CLASSES.get(tag, "x") for tag in tags)
    return tuple(match.span() for match in _PHRASE.finditer(letters))
