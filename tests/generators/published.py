"""The published rows as one list, to hold ours against."""

from collections.abc import Mapping, Sequence

from eqforge.generators.text.hard_positives.published import (
    PUBLISHED_GROUPS,
    PublishedTriple,
    replace_as_published,
)
from eqforge.generators.text.lexicon import Kind, Lexicon
from eqforge.sources.vl_checklist import VlChecklistRecord


def published_order(
    records: Mapping[str, Sequence[VlChecklistRecord]], kind: Kind, lexicon: Lexicon
) -> list[PublishedTriple]:
    """Returns the rows of one kind in the order of the published files.

    Args:
      records: the records of each group's file.
      kind: which of the two files is made.
      lexicon: the paper's lexicon, or another.
    """
    triples = (
        triple
        for group in PUBLISHED_GROUPS[kind]
        for record in records[group]
        for triple in replace_as_published(record, kind, group, lexicon)
    )
    return sorted(triples, key=lambda triple: triple.order)
