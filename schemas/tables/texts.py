"""The rows of text datasets.

Text datasets have the tables `samples` and `rejects`, `images` where the user names a folder of
them, and `captions` where something is measured on each caption once.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from eqforge.schemas.records.judgements import JudgeAnswer, Part
from eqforge.schemas.records.values import (
    CornerBox,
    Positive,
    Sha256,
    Share,
    Span,
    Text,
    Whole,
    Whole32,
)
from eqforge.schemas.tables.description import DatasetType, TableType, samples_table
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE

ENCODED_CHARACTERS = 300
"""Length to which the published code cuts captions, perturbed or not, when it encodes them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PerturbedCaption:
    """A caption after one perturbation.

    Attributes:
      sample_id: `<caption_id>/<perturbation>`.
      caption_id: key into `captions`.
      image: image file name, as in the source.
      image_id: key into `images`.
      split: name of the source's split.
      perturbation: name of the perturbation.
      mode: mode of the rules: `paper` or `corrected`.
      version: version of the rules.
      caption, perturbed_caption: text before and after the perturbation. Equal if the perturbation
        was not applied.
      applied: whether the text changed, even if only a space changed.
      words_changed: whether words changed, apart from case, spacing and punctuation. If false,
        exclude the row from every comparison.
      reason: why the perturbation was not applied, or None if it was applied.
      spans, perturbed_spans: edited characters [start, end) in each text.
    """

    sample_id: Text
    caption_id: str
    image: str
    image_id: str | None
    split: str
    perturbation: Text
    mode: Literal["paper", "corrected"]
    version: Whole32
    caption: str
    perturbed_caption: str
    applied: bool
    words_changed: bool
    reason: str | None
    spans: tuple[Span, ...]
    perturbed_spans: tuple[Span, ...]

    RULES: ClassVar = {
        "sample_id": lambda row: row.sample_id == f"{row.caption_id}/{row.perturbation}",
        "applied": lambda row: (row.caption != row.perturbed_caption) == row.applied,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredCaption:
    """A caption and its level of detail.

    `eqforge.generators.text.granularity` says how each feature is counted.

    Attributes:
      caption_id: unique id.
      image, image_id, split: as in PerturbedCaption.
      caption: text of the caption.
      tagger: name and version of the tagger.
      nouns, adjectives, complement_phrases, articles, quantifiers: count in the caption.
      adjectives_per_noun, complement_phrases_per_noun, articles_per_noun, quantifiers_per_noun:
        count per noun.
      concept_depth, noun_depth: mean WordNet depth of the caption's words, and of its nouns.
      characters, words: count in the caption.
      concept_diversity: number of distinct lemmas over all senses of the caption's words, per word.
    """

    caption_id: str
    image: str
    image_id: str | None
    split: str
    caption: str
    tagger: Text
    nouns: Whole32
    adjectives: Whole32
    complement_phrases: Whole32
    articles: Whole32
    quantifiers: Whole32
    adjectives_per_noun: Positive | None
    complement_phrases_per_noun: Positive | None
    articles_per_noun: Positive | None
    quantifiers_per_noun: Positive | None
    concept_depth: Positive | None
    noun_depth: Positive | None
    characters: Whole32
    words: Whole32
    concept_diversity: Positive | None

    RULES: ClassVar = {
        "characters": lambda row: row.characters == len(row.caption),
        "words": lambda row: min(1, row.characters) <= row.words <= row.characters,
        "nouns": lambda row: row.nouns + row.adjectives <= row.words,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class HardPositiveSample:
    """A caption, a rewording that is still true of the image, and a false caption.

    Attributes:
      sample_id: id derived from the source's record.
      image, image_id, split: as in PerturbedCaption.
      caption, hard_positive, hard_negative: the three texts.
      hard_positive_kind, hard_negative_kind: kind of edit that produced the text, such as
        `replace/attribute`.
      group: word list of the source, such as `color`.
      original, replacement: words that the hard positive replaces, and their replacement, or None
        for a swap.
      caption_spans, hard_positive_spans: edited characters in the caption and in the hard positive.
      foil_spans, hard_negative_spans: edited characters in the caption and in the hard negative.
      repairs: corrections of the source's captions.
      generator: name and version of the generator.
      box: crop of the source image that the row describes, in pixels, or None for the whole image.
      source_sha256: SHA-256 of the cropped file.
      source_order: sort key for the order of the published files: file, pass and record number
        (VL-CheckList) or record number (text pairs). Empty for captions.
    """

    sample_id: Text
    image: str
    image_id: str | None
    split: str
    caption: str
    hard_positive: str
    hard_negative: str
    hard_positive_kind: Text
    hard_negative_kind: Text
    group: str | None
    original: str | None
    replacement: str | None
    caption_spans: tuple[Span, ...]
    hard_positive_spans: tuple[Span, ...]
    foil_spans: tuple[Span, ...]
    hard_negative_spans: tuple[Span, ...]
    repairs: tuple[str, ...]
    generator: Text
    source_order: tuple[Whole, ...]
    box: CornerBox | None = None
    source_sha256: Sha256 | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingCaption:
    """A text for training.

    Attributes:
      sample_id: `<caption_id>/<role>`.
      caption_id: id of the source caption.
      image, image_id, split: as in PerturbedCaption.
      role: `original`, `hard_positive` or `hard_negative`.
      text: text for training.
      kind: kind of edit that produced the text, or None for an original caption.
      generator: name, version and settings of the generator, or None for an original caption.
    """

    sample_id: Text
    caption_id: str
    image: str
    image_id: str | None
    split: str
    role: Part
    text: str
    kind: str | None
    generator: str | None

    RULES: ClassVar = {"sample_id": lambda row: row.sample_id == f"{row.caption_id}/{row.role}"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """The probability that a sample is correct, and the judges' answers.

    Attributes:
      sample_id: key into `samples`.
      probability: probability that the hard positive keeps the meaning in good English, and that
        the hard negative is false. In training captions, probability that the row's text is right.
      low, high: ends of the confidence interval (at least 95%), if `probability` is the precision
        of rules.
      basis: `rules` if the probability is the precision of the rules for this kind of text, or
        `source` for an original caption, which eqforge assumes to be true. Empty if unknown.
      answers: each judge's answer to each question.
    """

    sample_id: Text
    probability: Share | None
    low: Share | None
    high: Share | None
    basis: str
    answers: tuple[JudgeAnswer, ...]


_IMAGE = {"image_id": "images"}
JUDGEMENTS_TABLE = TableType(
    name="judgements",
    record=Judgement,
    key=("sample_id",),
    references={"sample_id": "samples"},
    card="A row of `judgements` contains the probability that the sample with its `sample_id` is "
    "right, and each judge's answer, with its model and revision. If no judge was asked, the "
    "probability is the precision of the rules.",
)
PERTURBED_TABLE = samples_table(PerturbedCaption, {"caption_id": "captions", **_IMAGE})
MEASURED_TABLE = TableType(
    name="captions", record=MeasuredCaption, key=("caption_id",), references=_IMAGE
)
RETRIEVAL_PERTURBATIONS = DatasetType(
    tables=(PERTURBED_TABLE, MEASURED_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    card="A row of `samples` is one caption after one perturbation. Where `applied` is false, "
    "`perturbed_caption` equals `caption` and `reason` states why. Where `words_changed` is false, "
    "at most case, spacing or punctuation changed; exclude these rows from every comparison. "
    "`captions` contains each caption once, with its level of detail.",
)
HARD_POSITIVES_TABLE = samples_table(HardPositiveSample, _IMAGE)
HARD_POSITIVES = DatasetType(
    tables=(HARD_POSITIVES_TABLE, JUDGEMENTS_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    card="A row of `samples` has three texts of one image: `caption` is true of it, "
    "`hard_positive` is a rewording that is still true, and `hard_negative` is false. The span "
    "columns contain the characters that each edit changes, before and after.",
)
TRAINING_TABLE = samples_table(TrainingCaption, _IMAGE)
TRAINING_CAPTIONS = DatasetType(
    tables=(TRAINING_TABLE, JUDGEMENTS_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    use="Training vision-language models to distinguish rewordings from false captions.",
    card="A row of `samples` is one text to train on. Rows with the same `caption_id` belong "
    "together: `role` distinguishes the `original`, its `hard_positive`, which has the same "
    "meaning, and its `hard_negative`, which has a different one.",
)
