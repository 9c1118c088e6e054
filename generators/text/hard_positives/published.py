"""REPLACE as published: how the authors' files were selected and reworded, defects included.

The authors published two sets of files and no code. The rule below rebuilds all four files byte for
byte from VL-CheckList; the tests compare their SHA-256:

  attributes  (action, color, size, state): a record is kept if exactly one word of its positive is
              missing from its negative and is in the group's lexicon. The first word of the lexicon
              that is a substring of the caption is replaced everywhere, inside longer words too:
              "covered red barn" became "covecrimson crimson barn".
  relations   (spatial, action): every caption is lower-cased. The first pass takes every spatial
              record whose only missing word is "IN", and replaces the first "in" between spaces.
              The second takes every record with a word of the lexicon between spaces before lower-
              casing, so "IN" does not count, and replaces all occurrences of the first such word.
              In action records "WEARING" takes precedence over the lexicon, and becomes "in". The
              negative is ignored, so 15 records are kept whose negative equals their positive, and
              "in front of" became "within front of". Both passes may take the same record.

Source: Kamath et al. 2024, section 3.4 and appendix A; github.com/amitakamath/hard_positives,
data/ and swapped_data/vl_checklist_{attributes,relations}.json.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eqforge.generators.text.lexicon import Kind, Lexicon, LexiconEntry, select
from eqforge.sources.vl_checklist import VlChecklistRecord

PUBLISHED_GROUPS: dict[Kind, tuple[str, ...]] = {
    "attribute": ("action", "color", "size", "state"),
    "relation": ("spatial", "action"),
}

_FILES = [(kind, group) for kind, groups in PUBLISHED_GROUPS.items() for group in groups]


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedTriple:
    """One row of the published set: the position of its record, and its three texts.

    Attributes:
      pass_number: 0, or 1 for the relations of the second pass.
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

    @property
    def order(self) -> tuple[int, int, int]:
        return published_place(self.kind, self.group, self.index, self.pass_number)


def published_place(
    kind: Kind, group: str, index: int, pass_number: int = 0
) -> tuple[int, int, int]:
    return (_FILES.index((kind, group)), pass_number, index)


def record_id(record: VlChecklistRecord, kind: Kind, group: str) -> str:
    """Return a VL-CheckList record's id, which does not depend on its position in the file."""
    return f"vl-checklist/{kind}/{group}/{record.name}"


def replace_as_published(
    record: VlChecklistRecord, kind: Kind, group: str, lexicon: Lexicon
) -> list[PublishedTriple]:
    entries = select(lexicon, kind, group)
    positive, negative = record.positives[0], record.negatives[0]
    if kind == "attribute":
        replaced = []
        missing = _missing_words(positive, negative)
        if len(missing) == 1 and any(entry.word == missing[0] for entry in entries):
            entry = next(entry for entry in entries if entry.word in positive)
            replaced = [(0, positive, positive.replace(entry.word, entry.replacement), entry)]
    else:
        replaced = _relation(positive, negative, group, entries)
        negative = negative.lower()
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


def _relation(
    positive: str, negative: str, group: str, entries: Sequence[LexiconEntry]
) -> list[tuple[int, str, str, LexiconEntry]]:
    found: list[tuple[int, str, str, LexiconEntry]] = []
    caption = positive.lower()
    by_word = {entry.word: entry for entry in entries}
    if group == "spatial" and "in" in by_word and _missing_words(positive, negative) == ["IN"]:
        entry = by_word["in"]
        found.append((0, caption, caption.replace(" in ", f" {entry.replacement} ", 1), entry))
    if group == "action" and "WEARING" in positive and "wearing" in by_word:
        entry = by_word["wearing"]
        found.append((1, caption, positive.replace("WEARING", entry.replacement).lower(), entry))
        return found
    for entry in entries:
        if f" {entry.word} " in positive:
            hard_positive = positive.replace(f" {entry.word} ", f" {entry.replacement} ")
            found.append((1, caption, hard_positive.lower(), entry))
            break
    return found


def _missing_words(positive: str, negative: str) -> list[str]:
    kept = set(negative.split())
    return [word for word in positive.split() if word not in kept]
