"""The rows of graded captions: a caption, edited in more and more places."""

from dataclasses import dataclass

from eqforge.schemas.records.numbers import Int32
from eqforge.schemas.records.spans import Span
from eqforge.schemas.tables.description import DatasetType, TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE

MIXED = "mixed"
"""The kind of a text whose edits are of several kinds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GradedCaption:
    """A caption with a rewording and a false caption that are made by equally many edits.

    The rows of a caption are a ladder: each level has the edits of the one below, and one more.

    Attributes:
      sample_id: `<caption_id>/<level>`.
      caption_id: the caption that the texts were made from.
      image: the image's file as the source names it.
      image_id: key into `images`; None where no folder of images was named.
      split: the source's split.
      level: edits in each of the two texts, from 1.
      levels: the height of the caption's ladder.
      caption, hard_positive, hard_negative: the three texts; the first two are true.
      hard_positive_kind, hard_negative_kind: how each was made, such as `replace_object`; `mixed`
        where its edits are of several kinds.
      hard_positive_kinds, hard_negative_kinds: the kind of each edit, in the order of the levels.
      hard_positive_words, hard_negative_words: words inserted, left out or replaced, at least, to
        make the text of the caption (Levenshtein), letter case ignored.
      hard_positive_characters, hard_negative_characters: likewise, characters.
      hard_positive_embedding, hard_negative_embedding: one minus the cosine of the vectors that
        `embedding_model` makes of caption and text; None where none was named.
      hard_positive_entailment, hard_negative_entailment: probability that the text follows from
        the caption, by `entailment_model`; None where none was named.
      embedding_model, entailment_model: name and revision; None where none was named.
      caption_spans, hard_positive_spans: the rewording's edits before and after.
      foil_spans, hard_negative_spans: the false edits before and after.
      generator: name and version of what made the texts.
    """

    sample_id: str
    caption_id: str
    image: str
    image_id: str | None
    split: str
    level: Int32
    levels: Int32
    caption: str
    hard_positive: str
    hard_negative: str
    hard_positive_kind: str
    hard_negative_kind: str
    hard_positive_kinds: tuple[str, ...]
    hard_negative_kinds: tuple[str, ...]
    hard_positive_words: Int32
    hard_negative_words: Int32
    hard_positive_characters: Int32
    hard_negative_characters: Int32
    hard_positive_embedding: float | None
    hard_negative_embedding: float | None
    hard_positive_entailment: float | None
    hard_negative_entailment: float | None
    embedding_model: str | None
    entailment_model: str | None
    caption_spans: tuple[Span, ...]
    hard_positive_spans: tuple[Span, ...]
    foil_spans: tuple[Span, ...]
    hard_negative_spans: tuple[Span, ...]
    generator: str


GRADED_TABLE = TableType(
    name="samples",
    record=GradedCaption,
    key=("sample_id",),
    references={"image_id": "images"},
)
GRADED_CAPTIONS = DatasetType(
    tables=(GRADED_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    use="Measuring how large a change of a caption has to be for a vision-language model to see "
    "it, and how large a rewording may be without the model minding.",
    card="A row of `samples` is a level of a caption's ladder: `hard_positive` is the caption "
    "after `level` rewordings, which stays true, and `hard_negative` after `level` false edits. "
    "Each level has the edits of the one below and one more. The columns of words, characters, "
    "embedding and entailment say how far each text is from the caption.",
)
