"""The words that may replace others where these have the sense of their closed class.

`data/hard_negative_contexts.tsv` has the columns kind, group and where: what must stand around the
words of a group; see `contexts`. Words of other groups may stand anywhere.
"""

import functools
from collections.abc import Mapping

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.contexts import Context, parse_context, stands_in
from eqforge.generators.text.coordination.conjuncts import Range
from eqforge.generators.text.hard_negatives.lexicon import ClassKind, closed_classes, read_rows


def fitting_words(analysis: Analysis, span: Range, kind: ClassKind, name: str) -> tuple[str, ...]:
    """Returns the words that may replace some tokens, sorted; nothing if they fit no class.

    Args:
      analysis: the caption's analysis.
      span: the tokens.
      kind: of the classes.
      name: what they are in the classes.

    Raises:
      InputError: WordNet is needed and not on this machine.
    """
    alternatives = closed_classes(kind).alternatives.get(name, {})
    contexts = _contexts(kind)
    found = [
        set(words)
        for group, words in alternatives.items()
        if group not in contexts or stands_in(analysis, span, contexts[group])
    ]
    return tuple(sorted(set().union(*found)))


def is_excluded(analysis: Analysis, span: Range, kind: ClassKind, name: str, other: str) -> bool:
    """Tells whether some words of a caption exclude others in their place: "red" excludes "blue".

    Args:
      analysis: the caption's analysis.
      span: the words: tokens.
      kind: of the closed classes.
      name: what the words are in the classes.
      other: the words that would stand there.

    Raises:
      InputError: WordNet is needed and not on this machine.
    """
    senses = closed_classes(kind).senses
    own, others = senses.get(name, frozenset()), senses.get(other, frozenset())
    contexts = _contexts(kind)
    shared = {group for group, _ in own} & {group for group, _ in others}
    return not own & others and any(
        group not in contexts or stands_in(analysis, span, contexts[group]) for group in shared
    )


@functools.cache
def _contexts(kind: ClassKind) -> Mapping[str, Context]:
    rows = read_rows("hard_negative_contexts.tsv", kind)
    return {row["group"]: parse_context(row["where"]) for row in rows}
