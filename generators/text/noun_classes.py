"""What kind of thing a noun names: a room, a vehicle, something living.

Classes are the groups of the closed classes of objects (`hard_negatives.lexicon`), "living", and
WordNet's files of nouns, such as "artifact", "food" or "person": those of the noun's first sense.
"""

import functools

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import Range, head_of, is_living
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.wordnet import WORDNET_LOCK, open_wordnet


def classes_of(analysis: Analysis, phrase: Range) -> frozenset[str]:
    """Returns the classes of what a noun phrase names.

    Args:
      analysis: the caption's analysis.
      phrase: first and last token, `last` exclusive.

    Raises:
      InputError: WordNet is not on this machine.
    """
    head = head_of(analysis, phrase)
    living = frozenset(("living",)) if is_living(analysis, phrase) else frozenset()
    return _classes(head.lemma, head.text.lower()) | living


@functools.lru_cache(maxsize=65_536)
def _classes(lemma: str, word: str) -> frozenset[str]:
    groups = closed_classes("object").groups
    found = {*groups.get(lemma, ()), *groups.get(word, ()), lemma}
    with WORDNET_LOCK:
        senses = open_wordnet().synsets(lemma, "n")
    return frozenset(found | {senses[0].lexname().removeprefix("noun.")} if senses else found)
