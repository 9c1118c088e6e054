"""The rows of text datasets and the Parquet columns they become.

Text datasets have the tables `samples` and `rejects`, `images` where the user names a folder of
them, and `captions` where something is measured on each caption once.
"""

from dataclasses import dataclass

import pyarrow as pa

from eqforge.schemas.records.boxes import CornerBox
from eqforge.schemas.records.spans import Span
from eqforge.schemas.tables.pairs import BOX, SPANS, list_of, required


@dataclass(frozen=True, kw_only=True, slots=True)
class PerturbedCaption:
    """One caption after one perturbation.

    Attributes:
      sample_id: `<caption_id>/<perturbation>`.
      caption_id: key into `captions`.
      image: the image's file as the source names it.
      image_id: key into `images`; None where no folder of images was named.
      split: the source's split.
      perturbation, mode, version: which perturbation, by which rules, in which version of them.
      caption, perturbed_caption: before and after; equal where nothing was applied.
      applied: whether the caption was changed; leave the others out of every contrast.
      reason: why it was not; None where it was.
      spans, perturbed_spans: the edited characters [start, end) before and after.
    """

    sample_id: str
    caption_id: str
    image: str
    image_id: str | None
    split: str
    perturbation: str
    mode: str
    version: int
    caption: str
    perturbed_caption: str
    applied: bool
    reason: str | None
    spans: tuple[Span, ...]
    perturbed_spans: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredCaption:
    """A caption and its granularity; see `eqforge.generators.text.granularity` for each feature.

    Attributes:
      caption_id: unique in the dataset.
      image, image_id, split, caption: as in PerturbedCaption.
      tagger: name and version of what tagged the caption.
    """

    caption_id: str
    image: str
    image_id: str | None
    split: str
    caption: str
    tagger: str
    nouns: int
    adjectives: int
    complement_phrases: int
    articles: int
    quantifiers: int
    adjectives_per_noun: float | None
    complement_phrases_per_noun: float | None
    articles_per_noun: float | None
    quantifiers_per_noun: float | None
    concept_depth: float | None
    noun_depth: float | None
    characters: int
    words: int
    concept_diversity: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class HardPositiveSample:
    """A caption, a rewording that stays true of the image, and a caption that is false of it.

    Attributes:
      sample_id: made from the source's record.
      image, image_id, split: as in PerturbedCaption.
      caption, hard_positive, hard_negative: the three texts.
      hard_positive_kind, hard_negative_kind: how each was made, such as `replace/attribute`.
      group: the source's list, such as `color`; None where it has none.
      original, replacement: the words that the hard positive replaced, and what stands there now;
        None for a swap.
      caption_spans, hard_positive_spans: the hard positive's edit before and after.
      foil_spans, hard_negative_spans: the hard negative's edit before and after.
      repairs: what was mended in the source's captions.
      generator: name and version of what made the texts.
      box: the part of the source's image that the row is about, as the source has it, in pixels:
        what `image_id` names is cut out of it; None where that is the whole image.
      source_sha256: SHA-256 of the file that was cut; None where nothing was.
      source_order: the row's place in its source: rows sorted by it come in the order of the
        published files. Of VL-CheckList the numbers of the file, of the published rule's pass over
        it and of the record; of text pairs the number of the record; empty for captions.
    """

    sample_id: str
    image: str
    image_id: str | None
    split: str
    caption: str
    hard_positive: str
    hard_negative: str
    hard_positive_kind: str
    hard_negative_kind: str
    group: str | None
    original: str | None
    replacement: str | None
    caption_spans: tuple[Span, ...]
    hard_positive_spans: tuple[Span, ...]
    foil_spans: tuple[Span, ...]
    hard_negative_spans: tuple[Span, ...]
    repairs: tuple[str, ...]
    generator: str
    source_order: tuple[int, ...]
    box: CornerBox | None = None
    source_sha256: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingCaption:
    """One text to train on, beside the others of the same caption.

    Attributes:
      sample_id: `<caption_id>/<role>`.
      caption_id: the caption the text was made from.
      image, image_id, split: as in PerturbedCaption.
      role: `original`, `hard_positive` or `hard_negative`.
      text: the text.
      kind: how it was made; None for the original.
      generator: name, version and settings of what made it; None for the original.
    """

    sample_id: str
    caption_id: str
    image: str
    image_id: str | None
    split: str
    role: str
    text: str
    kind: str | None
    generator: str | None


_TEXT, _WHOLE, _NUMBER = pa.string(), pa.int32(), pa.float64()
_IMAGE = [required("image", _TEXT), pa.field("image_id", _TEXT), required("split", _TEXT)]

PERTURBED_CAPTIONS = pa.schema(
    [
        *(required(name, _TEXT) for name in ("sample_id", "caption_id")),
        *_IMAGE,
        *(required(name, _TEXT) for name in ("perturbation", "mode")),
        required("version", _WHOLE),
        *(required(name, _TEXT) for name in ("caption", "perturbed_caption")),
        required("applied", pa.bool_()),
        pa.field("reason", _TEXT),
        *(required(name, SPANS) for name in ("spans", "perturbed_spans")),
    ]
)
MEASURED_CAPTIONS = pa.schema(
    [
        required("caption_id", _TEXT),
        *_IMAGE,
        *(required(name, _TEXT) for name in ("caption", "tagger")),
        *(
            required(name, _WHOLE)
            for name in ("nouns", "adjectives", "complement_phrases", "articles", "quantifiers")
        ),
        *(
            pa.field(f"{name}_per_noun", _NUMBER)
            for name in ("adjectives", "complement_phrases", "articles", "quantifiers")
        ),
        *(pa.field(name, _NUMBER) for name in ("concept_depth", "noun_depth")),
        *(required(name, _WHOLE) for name in ("characters", "words")),
        pa.field("concept_diversity", _NUMBER),
    ]
)
HARD_POSITIVES = pa.schema(
    [
        required("sample_id", _TEXT),
        *_IMAGE,
        *(required(name, _TEXT) for name in ("caption", "hard_positive", "hard_negative")),
        *(required(f"{name}_kind", _TEXT) for name in ("hard_positive", "hard_negative")),
        *(pa.field(name, _TEXT) for name in ("group", "original", "replacement")),
        *(
            required(f"{name}_spans", SPANS)
            for name in ("caption", "hard_positive", "foil", "hard_negative")
        ),
        required("repairs", list_of(_TEXT)),
        required("generator", _TEXT),
        required("source_order", list_of(pa.int64())),
        pa.field("box", BOX),
        pa.field("source_sha256", _TEXT),
    ]
)
TRAINING_CAPTIONS = pa.schema(
    [
        *(required(name, _TEXT) for name in ("sample_id", "caption_id")),
        *_IMAGE,
        *(required(name, _TEXT) for name in ("role", "text")),
        *(pa.field(name, _TEXT) for name in ("kind", "generator")),
    ]
)
