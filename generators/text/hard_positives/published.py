"""REPLACE as published: the selection and the replacement of the authors' files, defects included.

The authors published two sets of files and no code. The rule below rebuilds all four files byte by
byte from VL-CheckList:

  attributes  (action, color, size, state): a record is kept where exactly one word of its positive
              is missing from its negative and is in the group's lexicon. In the whole caption, as
              a string, the first word of the lexicon that occurs is replaced, everywhere, inside
              longer words too: "covered red barn" became "covecrimson crimson barn".
  relations   (spatial, action): first every spatial record whose only missing word is "IN", put in
              lower case; then every spatial record, and every action record with "WEARING" put in
              lower case, that holds a word of the lexicon between spaces. The negative is not
              looked at, so 15 records are kept whose negative equals their positive, and "in front
              of" became "within front of". A record of the first kind may come again in the second.

Source: Kamath et al. 2024, section 3.4 and appendix A; github.com/amitakamath/hard_positives,
data/ and swapped_data/vl_checklist_{attributes,relations}.json.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from eqforge.generators.text.lexicon import Kind, Lexicon, LexiconEntry, select
from eqforge.schemas.vl_checklist import VlChecklistRecord

PUBLISHED_GROUPS: dict[Kind, tuple[str, ...]] = {
    "attribute": ("action", "color", "size", "state"),
    "relation": ("spatial", "action"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedTriple:
    """One row of the published set.

    Attributes:
      kind, group: the VL-CheckList file it comes from: Attribute or Relation, and its name.
      pass_number: 0, or 1 for the relations of the second pass; rows are ordered by group, pass
        and index.
      index: position of the record in its file.
      image: the image's path as VL-CheckList has it.
      caption, hard_negative: the positive and the negative.
      hard_positive: the positive after the replacement.
      entry: the entry of the lexicon that was replaced.
    """

    kind: Kind
    group: str
    pass_number: int
    index: int
    image: str
    caption: str
    hard_negative: str
    hard_positive: str
    entry: LexiconEntry


def replace_as_published(
    record: VlChecklistRecord, kind: Kind, group: str, lexicon: Lexicon
) -> list[PublishedTriple]:
    """Returns the rows that the published rule makes of a record: none, one, or two.

    Args:
      record: a record of the Visual Genome part: one positive, one negative.
      kind: whether its file is of relations or attributes.
      group: the name of its file, such as `color`.
      lexicon: the whole lexicon; the entries of the kind and group are used, in order.
    """
    entries = select(lexicon, kind, group)
    positive, negative = record.positives[0], record.negatives[0]
    if kind == "attribute":
        replaced = [(0, positive, *found) for found in _attribute(positive, negative, entries)]
    else:
        replaced = _relation(positive, negative, group, entries)
    return [
        PublishedTriple(
            kind=kind,
            group=group,
            pass_number=pass_number,
            index=record.index,
            image=record.image,
            caption=caption,
            hard_negative=negative,
            hard_positive=hard_positive,
            entry=entry,
        )
        for pass_number, caption, hard_positive, entry in replaced
    ]


def _attribute(
    positive: str, negative: str, entries: Sequence[LexiconEntry]
) -> list[tuple[str, LexiconEntry]]:
    missing = _missing_words(positive, negative)
    if len(missing) != 1 or all(entry.word != missing[0] for entry in entries):
        return []
    entry = next(entry for entry in entries if entry.word in positive)
    return [(positive.replace(entry.word, entry.replacement), entry)]


def _relation(
    positive: str, negative: str, group: str, entries: Sequence[LexiconEntry]
) -> list[tuple[int, str, str, LexiconEntry]]:
    found: list[tuple[int, str, str, LexiconEntry]] = []
    by_word = {entry.word: entry for entry in entries}
    if group == "spatial" and "in" in by_word and _missing_words(positive, negative) == ["IN"]:
        entry = by_word["in"]
        hard_positive = positive.replace("IN", entry.replacement)
        found.append((0, positive.replace("IN", "in"), hard_positive, entry))
    caption = positive.replace("WEARING", "wearing") if group == "action" else positive
    for entry in entries:
        if f" {entry.word} " in caption:
            hard_positive = caption.replace(f" {entry.word} ", f" {entry.replacement} ")
            found.append((1, caption, hard_positive, entry))
            break
    return found


def _missing_words(positive: str, negative: str) -> list[str]:
    kept = set(negative.split())
    return [word for word in positive.split() if word not in kept]


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
        (position, triple)
        for position, group in enumerate(PUBLISHED_GROUPS[kind])
        for record in records[group]
        for triple in replace_as_published(record, kind, group, lexicon)
    )
    ordered = sorted(triples, key=lambda row: (row[0], row[1].pass_number, row[1].index))
    return [triple for _, triple in ordered]


def dump_as_published(triples: Iterable[PublishedTriple], *, hard_positives: bool) -> str:
    """Returns the text of a published file: of data/, or of swapped_data/ with hard positives."""
    return json.dumps(
        [
            {
                "image_id": PurePosixPath(triple.image).stem,
                "true_caption": triple.hard_positive if hard_positives else triple.caption,
                "false_caption": triple.hard_negative,
                "image_path": f"data/{triple.image}",
            }
            for triple in triples
        ]
    )
