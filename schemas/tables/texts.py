"""The rows of text datasets.

Text datasets have the tables `samples` and `rejects`, `images` where the user names a folder of
them, and `captions` where something is measured on each caption once.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from eqforge.schemas.records.judgements import JudgeAnswer, Part
from eqforge.schemas.records.ranges import Positive, Sha256, Share, Text, Whole, Whole32
from eqforge.schemas.records.values import CornerBox, Span
from eqforge.schemas.tables.description import DatasetType, TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE

ENCODED_CHARACTERS = 300
"""Length to which the published code cuts captions, perturbed or not, when it encodes them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PerturbedCaption:
    """One caption after one perturbation.

    Attributes:
      sample_id: `<caption_id>/<perturbation>`.
      caption_id: key into `captions`.
      image: the image's file as the source names it.
      image_id: key into `images`; None where no folder of images was named.
      split: the source's split.
      perturbation: which it is.
      mode, version: by which rules, and in which version of them.
      caption, perturbed_caption: before and after; equal where nothing was applied.
      applied: whether the caption was changed, be it by a space alone, as paper mode may.
      words_changed: whether its words were, not only their case, spacing and punctuation; leave the
        others out of every contrast.
      reason: why it was not applied; None where it was.
      spans, perturbed_spans: the edited characters [start, end) before and after.
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
    """A caption and its granularity.

    `eqforge.generators.text.granularity` says how each feature is counted.

    Attributes:
      caption_id: unique in the dataset.
      image, image_id, split: as in PerturbedCaption.
      caption: the text.
      tagger: name and version of what tagged the caption.
      nouns, adjectives, complement_phrases, articles, quantifiers: how many it has of each.
      adjectives_per_noun, complement_phrases_per_noun, articles_per_noun, quantifiers_per_noun:
        the same by the number of nouns; None without a noun.
      concept_depth, noun_depth: mean depth in WordNet of its words and of its nouns; None where
        WordNet has none of them.
      characters, words: its length.
      concept_diversity: distinct lemmas over all senses of all words, by the number of words; None
        without a word.
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
    """What is known of a sample's being right: what judges say, and a probability.

    Attributes:
      sample_id: key into `samples`.
      probability: that the sample is right: the hard positive says what the caption says, in
        English, and the hard negative is false; of a single text, that it is so. None where nothing
        is known.
      low, high: ends of its interval of 95 % or more, where it is the precision of rules; None
        otherwise.
      basis: where it comes from: `rules`, the precision of the rules by kind; `source` of a caption
        that is the source's, which is taken to be true, and has none; empty where nothing is known.
      answers: of each judge, to each question.
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
    card="A row of `judgements` has the probability that the sample of its `sample_id` is right, "
    "by the precision of its rules where no judge was asked, and what each judge answered, with "
    "its model and revision.",
)
PERTURBED_TABLE = TableType(
    name="samples",
    record=PerturbedCaption,
    key=("sample_id",),
    references={"caption_id": "captions", **_IMAGE},
)
MEASURED_TABLE = TableType(
    name="captions", record=MeasuredCaption, key=("caption_id",), references=_IMAGE
)
RETRIEVAL_PERTURBATIONS = DatasetType(
    tables=(PERTURBED_TABLE, MEASURED_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    card="A row of `samples` is one caption after one perturbation. Where `applied` is false, "
    "`perturbed_caption` equals `caption` and `reason` says why. Where `words_changed` is false, "
    "it has the same words, at most spaced otherwise; leave these rows out of every contrast. "
    "`captions` has each caption once, with its granularity.",
)
HARD_POSITIVES_TABLE = TableType(
    name="samples", record=HardPositiveSample, key=("sample_id",), references=_IMAGE
)
HARD_POSITIVES = DatasetType(
    tables=(HARD_POSITIVES_TABLE, JUDGEMENTS_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    card="A row of `samples` has three texts of one image: `caption` is true of it, "
    "`hard_positive` is a rewording that stays true, and `hard_negative` is false. The columns of "
    "spans say which characters each edit touches, before and after.",
)
TRAINING_TABLE = TableType(
    name="samples", record=TrainingCaption, key=("sample_id",), references=_IMAGE
)
TRAINING_CAPTIONS = DatasetType(
    tables=(TRAINING_TABLE, JUDGEMENTS_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    use="Training vision-language models to tell a rewording from a caption that is false.",
    card="A row of `samples` is one text to train on. Rows with the same `caption_id` belong "
    "together: `role` tells the `original` from its `hard_positive`, which says the same, and its "
    "`hard_negative`, which says something else.",
)
